#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stretto/model/job_text.hpp"

namespace stretto::detail {

//! What a kind does, in the few words that a legend has room for.
constexpr std::string_view legend_of(job_kind kind) {
  if (is_message(kind)) return "message, with its wait";
  if (kind == job_kind::backward_input) return "backward, input";
  if (kind == job_kind::backward_weight) return "backward, weights";
  return words(kind);
}

inline std::string escape_xml(std::string_view text) {
  std::string safe;
  for (char letter : text) {
    if (letter == '&')
      safe += "&amp;";
    else if (letter == '<')
      safe += "&lt;";
    else if (letter == '>')
      safe += "&gt;";
    else if (letter == '"')
      safe += "&quot;";
    else if (static_cast<unsigned char>(letter) >= 32)
      safe += letter;
  }
  return safe;
}

//! A tick distance of 1, 2 or 5 times a power of ten that leaves `least` pixels between ticks.
inline std::int64_t tick_distance(double pixels_per_unit, double least) {
  std::int64_t distance = 1;
  for (int turn = 0; static_cast<double>(distance) * pixels_per_unit < least && turn < 54; ++turn)
    distance = turn % 3 == 1 ? distance / 2 * 5 : distance * 2;
  return distance;
}

}  // namespace stretto::detail
