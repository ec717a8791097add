#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stretto/model/job.hpp"

namespace stretto::detail {

inline std::string_view words_for(job_kind kind) {
  switch (kind) {
    case job_kind::forward:
      return "forward";
    case job_kind::backward:
      return "backward";
    case job_kind::backward_input:
      return "backward, input";
    case job_kind::backward_weight:
      return "backward, weights";
    case job_kind::recompute:
      return "recompute";
    case job_kind::offload:
      return "copy to the host";
    case job_kind::reload:
      return "copy back";
    case job_kind::optimizer:
      return "optimizer";
    case job_kind::reduce_grad:
      return "reduce gradients";
    case job_kind::all_reduce:
      return "all-reduce";
    case job_kind::send_forward:
    case job_kind::send_backward:
    case job_kind::receive_forward:
    case job_kind::receive_backward:
      return "message, with its wait";
    default:
      return "other";
  }
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
