// The only file that includes Eigen, so that its switches are set once and alike. Internal: source
// files of the model include it, its public headers do not.
#pragma once

#ifdef EIGEN_CORE_H
#error "include model/algebra.hpp before any Eigen header: it sets Eigen's switches"
#endif

// A product split over threads would sum in another order, and the pipeline has its own threads.
#define EIGEN_DONT_PARALLELIZE

// Eigen packs the operands of a product into scratch memory: on the stack up to this limit, from
// the heap above it. With panels of `panel_columns` the left pack is at most
// (L1 / 64 or so) * 512 scalars and the right one 768 KiB, below this limit in all.
#define EIGEN_STACK_ALLOCATION_LIMIT (4 * 1024 * 1024)

#include <Eigen/Core>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace train {

template <class Scalar>
using row_major = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

//! A row-major matrix in someone else's memory; Scalar may be const.
template <class Scalar>
using matrix_view =
    Eigen::Map<std::conditional_t<std::is_const_v<Scalar>,
                                  const row_major<std::remove_const_t<Scalar>>, row_major<Scalar>>,
               Eigen::Unaligned, Eigen::OuterStride<>>;

template <class Scalar>
matrix_view<Scalar> matrix(Scalar* data, std::size_t rows, std::size_t columns,
                           std::size_t stride = 0) {
  const auto index = [](std::size_t size) { return static_cast<Eigen::Index>(size); };
  return {data, index(rows), index(columns),
          Eigen::OuterStride<>(index(stride == 0 ? columns : stride))};
}

//! A row vector in someone else's memory; Scalar may be const.
template <class Scalar>
auto row_vector(Scalar* data, std::size_t size) {
  using vector = Eigen::Matrix<std::remove_const_t<Scalar>, 1, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<std::conditional_t<std::is_const_v<Scalar>, const vector, vector>>(
      data, static_cast<Eigen::Index>(size));
}

//! Bounds the scratch memory of one Eigen product, see EIGEN_STACK_ALLOCATION_LIMIT.
inline constexpr Eigen::Index panel_columns = 512;

namespace detail {

template <class Right, class Panel>
void panels(const Right& right, Panel&& panel) {
  for (Eigen::Index at = 0; at < right.cols(); at += panel_columns) {
    panel(at, std::min(panel_columns, right.cols() - at));
  }
}

}  // namespace detail

//! out = left * right.
template <class Out, class Left, class Right>
void assign_product(Out&& out, const Left& left, const Right& right) {
  detail::panels(right, [&](Eigen::Index at, Eigen::Index columns) {
    out.middleCols(at, columns).noalias() = left * right.middleCols(at, columns);
  });
}

//! out += left * right.
template <class Out, class Left, class Right>
void add_product(Out&& out, const Left& left, const Right& right) {
  detail::panels(right, [&](Eigen::Index at, Eigen::Index columns) {
    out.middleCols(at, columns).noalias() += left * right.middleCols(at, columns);
  });
}

//! sums += the sum over the rows of `values`, top to bottom: the gradient of a bias.
template <class Scalar>
void add_rows(Scalar* sums, matrix_view<const Scalar> values) {
  auto total = row_vector(sums, static_cast<std::size_t>(values.cols()));
  for (Eigen::Index row = 0; row < values.rows(); ++row) total += values.row(row);
}

}  // namespace train
