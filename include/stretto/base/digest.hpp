#pragma once

#include <cstdint>

namespace stretto {

//! FNV-1a over 64-bit words.
struct digest {
  std::uint64_t value = 14695981039346656037u;

  constexpr void add(std::uint64_t word) { value = (value ^ word) * 1099511628211u; }
};

}  // namespace stretto
