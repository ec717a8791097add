#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "stretto/model/job.hpp"

namespace stretto::detail {

//! A colour in 0 ... 255.
struct colour {
  int red, green, blue;

  std::string hex() const {
    char text[16];
    std::snprintf(text, sizeof text, "#%02x%02x%02x", red & 255, green & 255, blue & 255);
    return text;
  }
  bool light() const { return 299 * red + 587 * green + 114 * blue > 140000; }
};

//! Distinct also for the colour-blind (after Okabe and Ito).
inline colour colour_of(job_kind kind) {
  switch (kind) {
    case job_kind::forward:
      return {86, 156, 230};
    case job_kind::backward:
      return {40, 160, 110};
    case job_kind::backward_input:
      return {64, 180, 190};
    case job_kind::backward_weight:
      return {230, 159, 40};
    case job_kind::recompute:
      return {190, 120, 180};
    case job_kind::send_forward:
    case job_kind::send_backward:
    case job_kind::receive_forward:
    case job_kind::receive_backward:
      return {125, 140, 165};
    case job_kind::offload:
      return {105, 115, 205};
    case job_kind::reload:
      return {170, 150, 225};
    case job_kind::reduce_grad:
      return {200, 185, 70};
    case job_kind::all_reduce:
      return {210, 95, 45};
    case job_kind::optimizer:
      return {120, 100, 90};
    default:
      return {140, 140, 140};
  }
}

//! The shade of a chunk: from a light tint for the first to the dark end for the last.
inline colour shade(colour base, int chunk, int chunks) {
  const double at = chunks > 1 ? static_cast<double>(chunk) / (chunks - 1) : 0.35;
  const auto mix = [&](int part) {
    return static_cast<int>(at < 0.5 ? part + (255 - part) * (0.5 - at) * 0.9
                                     : part * (1 - (at - 0.5) * 0.8));
  };
  return {mix(base.red), mix(base.green), mix(base.blue)};
}

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
