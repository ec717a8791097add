#pragma once

#include <cstdint>
#include <vector>

namespace stretto {

//! Bytes of the vectors' elements, without what they have reserved besides.
template <class... Elements>
constexpr std::int64_t stored_bytes(const std::vector<Elements>&... items) {
  return (static_cast<std::int64_t>(items.size() * sizeof(Elements)) + ...);
}

}  // namespace stretto
