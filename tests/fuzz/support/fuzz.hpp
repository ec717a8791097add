#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

//! What libFuzzer calls, and in its absence support/replay.cpp: one idea to be held against any
//! bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuzz {

//! Ends the program where what must hold does not.
inline void require(bool holds, const std::string& rule) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", rule.c_str());
  std::abort();
}

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return size == 0 ? std::string_view{}
                   : std::string_view(reinterpret_cast<const char*>(data), size);
}

//! Choices, made by bytes; when they are used up, always the first.
class choices {
 public:
  choices(const std::uint8_t* data, std::size_t size) : next_(data), left_(size) {}

  bool left() const { return left_ > 0; }
  //! The bytes from here to where `later` is.
  std::string until(const choices& later) const {
    return std::string(text(next_, left_ - later.left_));
  }
  //! From 0 to before `count`, which is at least 1.
  int below(std::size_t count) {
    std::size_t drawn = byte();
    if (count > 256) drawn = drawn * 256 + byte();
    return static_cast<int>(drawn % count);
  }
  int from(int least, int most) {
    return least + below(static_cast<std::size_t>(most - least) + 1);
  }
  bool flip() { return below(2) == 1; }
  //! Any number at all, often a small one or one of the largest.
  std::int64_t number() {
    constexpr std::int64_t ends[] = {std::numeric_limits<std::int32_t>::max(),
                                     std::numeric_limits<std::int32_t>::min(),
                                     std::numeric_limits<std::int64_t>::max()};
    const int bytes = below(9 + std::size(ends));
    if (bytes > 8) return ends[bytes - 9];
    std::uint64_t drawn = 0;
    for (int at = 0; at < bytes; ++at) drawn = drawn << 8U | byte();
    const int unused = 64 - 8 * bytes;  // whose places the sign takes
    return bytes == 0 ? 0 : static_cast<std::int64_t>(drawn << unused) >> unused;
  }
  template <class List>
  auto& one_of(List& all) {
    return all[static_cast<std::size_t>(below(all.size()))];
  }

 private:
  std::size_t byte() { return left_ == 0 ? 0 : (--left_, *next_++); }

  const std::uint8_t* next_;
  std::size_t left_;
};

}  // namespace fuzz
