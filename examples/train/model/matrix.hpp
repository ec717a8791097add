// Matrices in someone else's memory, the host's or a device's: they are addressed, not read.
#pragma once

#include <cstddef>
#include <type_traits>

#include "model/bfloat16.hpp"

namespace train {

//! A row-major matrix; Scalar may be const.
template <class Scalar>
struct matrix_span {
  Scalar* data = nullptr;
  std::size_t rows = 0, columns = 0;
  std::size_t stride = 0;  //!< scalars from a row to the next

  matrix_span() = default;
  matrix_span(Scalar* at, std::size_t rows_of, std::size_t columns_of, std::size_t stride_of = 0)
      : data(at),
        rows(rows_of),
        columns(columns_of),
        stride(stride_of == 0 ? columns_of : stride_of) {}
  template <class Other>
    requires std::is_same_v<const Other, Scalar>
  matrix_span(const matrix_span<Other>& other)
      : data(other.data), rows(other.rows), columns(other.columns), stride(other.stride) {}

  matrix_span columns_from(std::size_t first, std::size_t count) const {
    return {data + first, rows, count, stride};
  }
};

//! One side of a product.
template <class Scalar>
struct factor {
  matrix_span<const Scalar> of;
  bool transposed = false;
  //! Where there is one, a copy in bf16 that lies as `of` does.
  const bfloat16* copy = nullptr;

  factor(const matrix_span<const Scalar>& matrix, bool is_transposed = false)
      : of(matrix), transposed(is_transposed) {}
  factor(const matrix_span<Scalar>& matrix) : of(matrix) {}

  std::size_t rows() const { return transposed ? of.columns : of.rows; }
  std::size_t columns() const { return transposed ? of.rows : of.columns; }
};

template <class Scalar>
factor<std::remove_const_t<Scalar>> transposed(const matrix_span<Scalar>& matrix) {
  return {matrix_span<const Scalar>(matrix), true};
}

}  // namespace train
