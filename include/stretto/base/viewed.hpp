#pragma once

#include <span>
#include <vector>

namespace stretto {

//! The vector's elements, read only. What std::span's own conversion asks of a range costs a
//! compiler twice the time for every type, and these headers would take a third more of it.
template <class T>
constexpr std::span<const T> viewed(const std::vector<T>& items) {
  return {items.data(), items.size()};
}

}  // namespace stretto
