#pragma once

#include <string>
#include <string_view>

namespace stretto::tool {

//! What CLI11 says of a number out of its range, as other refusals are said: the option, what was
//! typed, the rule. "--ranks: Value 4.5 not in range 1 to 64" becomes "--ranks 4.5: expected a
//! whole number from 1 to 64". Other words stay as they are.
inline std::string range_words(const std::string& words) {
  constexpr std::string_view typed = ": Value ", rule = " not in range ";
  const std::size_t value = words.find(typed), range = words.rfind(rule);
  if (value == std::string::npos || range == std::string::npos || range < value) return words;
  const std::size_t begin = value + typed.size();
  std::string ends = words.substr(range + rule.size());
  if (ends.starts_with('[') && ends.ends_with(']'))  // newer versions: [1 - 64]
    if (const std::size_t dash = ends.find(" - "); dash != std::string::npos)
      ends = ends.substr(1, dash - 1) + " to " + ends.substr(dash + 3, ends.size() - dash - 4);
  const bool whole = ends.find_first_of(".e") == std::string::npos;
  return words.substr(0, value) + " " + words.substr(begin, range - begin) + ": expected a " +
         (whole ? "whole number" : "number") + " from " + ends;
}

}  // namespace stretto::tool
