#pragma once

#include <cstddef>
#include <vector>

namespace stretto {

//! A vector of so many equal elements. At run time what its constructor gives; in constant
//! expressions clang 19 does not take that of libstdc++ 12.
template <class T>
constexpr std::vector<T> filled(std::size_t count, const T& value = T{}) {
  std::vector<T> made;
  made.reserve(count);
  for (std::size_t at = 0; at < count; ++at) made.push_back(value);
  return made;
}

}  // namespace stretto
