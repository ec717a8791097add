// How much of an arena a step really uses: paint it, run, look where the paint is gone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace train {

// As floats and doubles these bytes are NaN: a step that reads what it has not written shows it.
inline constexpr std::byte paint_byte{0xff};

//! To be called between steps only.
inline void paint(std::span<std::byte> arena) {
  std::ranges::fill(arena, paint_byte);
}

//! Bytes of the 64-byte lines of which something was written since.
inline std::int64_t touched_bytes(std::span<const std::byte> arena) {
  constexpr std::size_t line = 64;
  std::int64_t touched = 0;
  for (std::size_t at = 0; at < arena.size(); at += line) {
    const auto part = arena.subspan(at, std::min(line, arena.size() - at));
    if (std::ranges::any_of(part, [](std::byte each) { return each != paint_byte; }))
      touched += static_cast<std::int64_t>(part.size());
  }
  return touched;
}

}  // namespace train
