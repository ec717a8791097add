#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stretto {

//! The most sizes that a kernel's time depends on.
inline constexpr std::size_t most_axes = 3;
//! One size for each axis that a kernel has, from the first on.
using kernel_sizes = std::array<std::int64_t, most_axes>;

//! A kernel with sizes, some times over: what an op does, or a part of it. Machines that were
//! measured (`stretto calibrate`) know the kernels of the trainer and, for whoever has no kernels
//! of his own,
//! - `product`: rows, inner size, columns of a matrix product,
//! - `move`: bytes read and written together,
//! - `sum`: bytes that leave a device for a collective, and are added to others.
struct kernel_call {
  std::string_view kernel;
  kernel_sizes sizes{};  //!< of the axes that it has
  std::int64_t times = 1;

  constexpr bool operator==(const kernel_call&) const = default;
};

namespace detail {

template <class Value>
constexpr bool same_values(const std::span<const Value>& one, const std::span<const Value>& other) {
  if (one.size() != other.size()) return false;
  for (std::size_t at = 0; at < one.size(); ++at)
    if (!(one[at] == other[at])) return false;
  return true;
}

}  // namespace detail

//! A kernel's times on a grid of sizes. What it refers to outlives it: constants, or a file's
//! contents.
struct measured_kernel {
  std::string_view name;
  //! The sizes on each axis, positive and ascending; empty from the first axis on that it lacks.
  std::span<const std::int64_t> axes[most_axes]{};
  //! Nanoseconds at each point of the grid, the last axis' first; none smaller than that of a point
  //! whose sizes are no larger.
  std::span<const std::int64_t> times{};

  constexpr bool operator==(const measured_kernel& other) const {
    for (std::size_t axis = 0; axis < most_axes; ++axis)
      if (!detail::same_values(axes[axis], other.axes[axis])) return false;
    return name == other.name && detail::same_values(times, other.times);
  }

  //! Nanoseconds for any sizes: linear in each of them between two points of the grid, so that a
  //! sum of products of sizes, as most kernels' times are, comes out as it is; at the rate of the
  //! last point beyond it, and never less than at the first. Hence exact at the points, and nowhere
  //! less for a larger size. Of what is longer than any op may be it says no more than that.
  constexpr std::int64_t time(const kernel_sizes& sizes) const {
    std::size_t lower[most_axes]{}, upper[most_axes]{};
    double part[most_axes]{};  // of the way from lower to upper
    double beyond = 1;
    for (std::size_t axis = 0; axis < most_axes && !axes[axis].empty(); ++axis) {
      const std::span<const std::int64_t> points = axes[axis];
      const std::int64_t size = sizes[axis];
      std::size_t at = 0;
      while (at + 1 < points.size() && points[at + 1] <= size) ++at;
      lower[axis] = upper[axis] = at;
      if (at + 1 == points.size()) {
        if (size > points[at])
          beyond *= static_cast<double>(size) / static_cast<double>(points[at]);
      } else if (size > points[at]) {
        upper[axis] = at + 1;
        part[axis] = static_cast<double>(size - points[at]) /
                     static_cast<double>(points[at + 1] - points[at]);
      }
    }
    double corners[1 << most_axes]{};
    for (std::size_t corner = 0; corner < std::size(corners); ++corner) {
      std::size_t index = 0;
      for (std::size_t axis = 0; axis < most_axes && !axes[axis].empty(); ++axis) {
        const bool far = (corner >> (most_axes - 1 - axis) & 1) != 0;
        index = index * axes[axis].size() + (far ? upper[axis] : lower[axis]);
      }
      corners[corner] = static_cast<double>(times[index]);
    }
    for (std::size_t axis = most_axes; axis-- > 0;)
      for (std::size_t at = 0; at < std::size_t{1} << axis; ++at)
        corners[at] = corners[2 * at] + part[axis] * (corners[2 * at + 1] - corners[2 * at]);
    constexpr auto longest = static_cast<double>(std::int64_t{1} << 47);
    const double all = corners[0] * beyond + 0.5;
    return static_cast<std::int64_t>(all < longest ? all : longest);
  }
};

}  // namespace stretto
