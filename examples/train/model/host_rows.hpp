// What is held between ops, row by row in floats: how the host's operations read and leave bf16.
// Internal.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "model/algebra.hpp"
#include "model/matrix.hpp"
#include "model/scratch.hpp"

namespace train {

//! How many matrices one operation holds at most, and scalars between the windows to their rows.
inline constexpr std::size_t most_held = 4;
inline constexpr std::size_t granule_scalars = 16;  // 64 bytes of float
constexpr std::size_t window_scalars(std::size_t columns) {
  return (columns + 2 * granule_scalars - 1) / granule_scalars * granule_scalars;
}

template <class Scalar>
void widen_row(const bfloat16* from, std::size_t count, Scalar* to) {
  for (std::size_t at = 0; at < count; ++at) to[at] = static_cast<Scalar>(widened(from[at]));
}
template <class Scalar>
void round_row(const Scalar* from, std::size_t count, bfloat16* to) {
  for (std::size_t at = 0; at < count; ++at) to[at] = rounded(static_cast<float>(from[at]));
}
template <class Scalar>
void round_rows(const matrix_span<const Scalar>& from, const matrix_span<bfloat16>& to) {
  for (std::size_t row = 0; row < from.rows; ++row)
    round_row(from.data + row * from.stride, from.columns, to.data + row * to.stride);
}

namespace detail {

template <class Value>
matrix_view<Value> view_of(const matrix_span<Value>& of) {
  return matrix(of.data, of.rows, of.columns, of.stride);
}

//! A row in floats: where it lies, or in a window, as far from a multiple of 64 bytes as in a
//! matrix without gaps. Sums group their terms by that.
template <class Value, class Scalar>
matrix_view<Value> open_row(const held_matrix<Value>& of, std::size_t row, Scalar* window) {
  const held_matrix<Value> one = of.rows_from(row, 1);
  if (!of.in_bf16()) return view_of(one.wide());
  window += row * of.columns() % granule_scalars;
  if constexpr (std::is_const_v<Value>) widen_row(one.narrow().data, of.columns(), window);
  return matrix<Value>(window, 1, of.columns());
}
template <class Value, class Scalar>
void close_row(const held_matrix<Value>& of, std::size_t row, const Scalar* window) {
  if constexpr (!std::is_const_v<Value>) {
    if (of.in_bf16())
      round_row(window + row * of.columns() % granule_scalars, of.columns(),
                of.rows_from(row, 1).narrow().data);
  }
}

}  // namespace detail

//! Calls use(number of the first row, a matrix_view of each that is held): once with all rows where
//! none is in bf16; else row by row, and what is not const has been written, and is rounded.
//! @param windows  most_held of them, one behind the other
template <class Scalar, class Use, class... Value>
void by_rows(std::span<Scalar> windows, std::size_t rows, Use&& use,
             const held_matrix<Value>&... held) {
  static_assert(sizeof...(Value) <= most_held);
  if (!(held.in_bf16() || ...)) {
    use(std::size_t{0}, detail::view_of(held.wide())...);
    return;
  }
  const std::size_t apart = windows.size() / most_held;
  (check_scratch(window_scalars(held.columns()), apart), ...);
  [&]<std::size_t... At>(std::index_sequence<At...>) {
    for (std::size_t row = 0; row < rows; ++row) {
      use(row, detail::open_row(held, row, windows.data() + At * apart)...);
      (detail::close_row(held, row, windows.data() + At * apart), ...);
    }
  }
  (std::index_sequence_for<Value...>{});
}

}  // namespace train
