#pragma once

#include <cstdint>
#include <limits>

namespace stretto {

//! Sums and products that stay at the end of the range which they would leave, and once there stay.
//! For figures that are not checked yet: whoever checks them refuses the ends.
constexpr std::int64_t saturated_sum(std::int64_t one, std::int64_t other) {
  using range = std::numeric_limits<std::int64_t>;
  if (one == range::max() || one == range::min()) return one;
  if (other > 0 && one > range::max() - other) return range::max();
  if (other < 0 && one < range::min() - other) return range::min();
  return one + other;
}
//! The same of what may not be below 0: what is stays so, or others would hide it in the sum.
constexpr std::int64_t saturated_sum_of_sizes(std::int64_t one, std::int64_t other) {
  if (one < 0 || other < 0) return one < other ? one : other;
  return saturated_sum(one, other);
}
//! @param count  0 or more
constexpr std::int64_t saturated_product(int count, std::int64_t one) {
  using range = std::numeric_limits<std::int64_t>;
  if (count > 0 && one > range::max() / count) return range::max();
  if (count > 0 && one < range::min() / count) return range::min();
  return count * one;
}
constexpr std::int64_t saturated_negative(std::int64_t one) {
  using range = std::numeric_limits<std::int64_t>;
  return one == range::min() ? range::max() : -one;
}

}  // namespace stretto
