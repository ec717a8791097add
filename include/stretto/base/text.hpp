#pragma once

#include <cstdint>
#include <string_view>

#include "stretto/base/fixed_vector.hpp"

namespace stretto {

//! Short text built without allocation, at compile time or run time.
template <std::size_t Capacity>
struct fixed_text {
  fixed_vector<char, Capacity> letters{};

  constexpr std::string_view view() const { return {letters.items, letters.count}; }
  constexpr operator std::string_view() const { return view(); }
  constexpr fixed_text& operator<<(char letter) {
    letters.push_back(letter);
    return *this;
  }
  constexpr fixed_text& operator<<(std::string_view words) {
    for (char letter : words) letters.push_back(letter);
    return *this;
  }
  constexpr fixed_text& operator<<(std::int64_t number) {
    // Digits are taken from the negative side, where the smallest integer has a place too.
    char digits[20]{};
    int count = 0;
    if (number < 0) letters.push_back('-');
    std::int64_t rest = number > 0 ? -number : number;
    do {
      digits[count++] = static_cast<char>('0' - rest % 10);
      rest /= 10;
    } while (rest != 0);
    while (count > 0) letters.push_back(digits[--count]);
    return *this;
  }
  constexpr fixed_text& operator<<(int number) {
    return *this << static_cast<std::int64_t>(number);
  }
  constexpr bool operator==(std::string_view other) const { return view() == other; }
};

}  // namespace stretto
