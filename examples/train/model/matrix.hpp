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
  matrix_span rows_from(std::size_t first, std::size_t count) const {
    return {data + first * stride, count, columns, stride};
  }
};

//! A row-major matrix as it is held between ops: of Scalar, or of bf16. Scalar may be const.
template <class Scalar>
class held_matrix {
  template <class Other>
  friend class held_matrix;
  using half = std::conditional_t<std::is_const_v<Scalar>, const bfloat16, bfloat16>;

 public:
  //! @param memory  of either
  held_matrix(Scalar* memory, bool in_bf16, std::size_t rows_of, std::size_t columns_of)
      : memory_(memory),
        rows_(rows_of),
        columns_(columns_of),
        stride_(columns_of),
        half_(in_bf16) {}
  template <class Other>
    requires std::is_same_v<const Other, const Scalar>
  held_matrix(const matrix_span<Other>& of)
      : memory_(of.data), rows_(of.rows), columns_(of.columns), stride_(of.stride), half_(false) {}
  template <class Other>
    requires std::is_same_v<const Other, Scalar>
  held_matrix(const held_matrix<Other>& other)
      : memory_(other.memory_),
        first_(other.first_),
        rows_(other.rows_),
        columns_(other.columns_),
        stride_(other.stride_),
        half_(other.half_) {}

  bool in_bf16() const { return half_; }
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  //! As what it is; the other has no data.
  matrix_span<Scalar> wide() const {
    return {half_ ? nullptr : memory_ + first_, rows_, columns_, stride_};
  }
  matrix_span<half> narrow() const {
    return {half_ ? reinterpret_cast<half*>(memory_) + first_ : nullptr, rows_, columns_, stride_};
  }

  held_matrix block(std::size_t row, std::size_t column, std::size_t rows_of,
                    std::size_t columns_of) const {
    held_matrix made = *this;
    made.first_ += row * stride_ + column;
    made.rows_ = rows_of;
    made.columns_ = columns_of;
    return made;
  }
  held_matrix rows_from(std::size_t first, std::size_t count) const {
    return block(first, 0, count, columns_);
  }
  held_matrix columns_from(std::size_t first, std::size_t count) const {
    return block(0, first, rows_, count);
  }
  //! The same of other memory.
  held_matrix in(Scalar* memory) const {
    held_matrix made = *this;
    made.memory_ = memory;
    return made;
  }

 private:
  Scalar* memory_;
  std::size_t first_ = 0;
  std::size_t rows_, columns_, stride_;
  bool half_;
};

//! One side of a product.
template <class Scalar>
struct factor {
  matrix_span<const Scalar> of;
  bool transposed = false;
  //! Where there is one, a copy in bf16 that lies as `of` does; what is held in bf16 has no other.
  const bfloat16* copy = nullptr;

  factor(const matrix_span<const Scalar>& matrix, bool is_transposed = false)
      : of(matrix), transposed(is_transposed) {}
  factor(const matrix_span<Scalar>& matrix) : of(matrix) {}
  factor(const held_matrix<const Scalar>& held, bool is_transposed = false)
      : of(held.wide()), transposed(is_transposed), copy(held.narrow().data) {}
  factor(const held_matrix<Scalar>& held) : factor(held_matrix<const Scalar>(held)) {}

  std::size_t rows() const { return transposed ? of.columns : of.rows; }
  std::size_t columns() const { return transposed ? of.rows : of.columns; }
};

//! Products of one shape: how many, and how many scalars lie between the beginnings of one's matrix
//! and the next one's.
struct product_batch {
  std::size_t count = 1, out = 0, left = 0, right = 0;
};

template <class Scalar>
factor<std::remove_const_t<Scalar>> transposed(const matrix_span<Scalar>& matrix) {
  return {matrix_span<const Scalar>(matrix), true};
}
template <class Scalar>
factor<std::remove_const_t<Scalar>> transposed(const held_matrix<Scalar>& matrix) {
  return {held_matrix<const Scalar>(matrix), true};
}

}  // namespace train
