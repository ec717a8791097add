#pragma once

#include <cstddef>
#include <stdexcept>

namespace stretto {

//! A vector of at most `Capacity` elements. Structural when `T` is (public members only), so that
//! it may stand in a template argument. A push beyond the capacity throws std::length_error, which
//! in a constant evaluation is a compile error.
template <class T, std::size_t Capacity>
struct fixed_vector {
  T items[Capacity == 0 ? 1 : Capacity]{};
  std::size_t count = 0;

  constexpr void push_back(const T& item) {
    if (count == Capacity) throw std::length_error("stretto::fixed_vector: capacity exceeded");
    items[count++] = item;
  }
  constexpr std::size_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr T& operator[](std::size_t at) { return items[at]; }
  constexpr const T& operator[](std::size_t at) const { return items[at]; }
  constexpr T* begin() { return items; }
  constexpr T* end() { return items + count; }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
  constexpr bool operator==(const fixed_vector& other) const {
    if (count != other.count) return false;
    for (std::size_t at = 0; at < count; ++at)
      if (!(items[at] == other.items[at])) return false;
    return true;
  }
};

}  // namespace stretto
