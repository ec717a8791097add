#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "stretto/model/job.hpp"

namespace stretto::detail {

//! An sRGB colour in 0 ... 255.
struct colour {
  int red, green, blue;

  std::string hex() const {
    char text[16];
    std::snprintf(text, sizeof text, "#%02x%02x%02x", red & 255, green & 255, blue & 255);
    return text;
  }
  //! How light it is, of 0 ... 1: the relative luminance of WCAG 2.
  double luminance() const {
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  }
  //! The same hue mixed with black or with white, in linear light, to that luminance.
  colour with_luminance(double wanted) const {
    const double own = luminance();
    const auto mix = [&](int part) {
      const double light = wanted <= own
                               ? linear(part) * wanted / own
                               : linear(part) + (1 - linear(part)) * (wanted - own) / (1 - own);
      return static_cast<int>(std::lround(
          255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * std::pow(light, 1 / 2.4) - 0.055)));
    };
    return {mix(red), mix(green), mix(blue)};
  }

 private:
  static double linear(int part) {
    const double of = part / 255.0;
    return of <= 0.04045 ? of / 12.92 : std::pow((of + 0.055) / 1.055, 2.4);
  }
};

//! WCAG 2's contrast ratio, of 1 ... 21; text wants 4.5.
inline double contrast(const colour& one, const colour& other) {
  const double light[] = {one.luminance() + 0.05, other.luminance() + 0.05};
  return std::max(light[0], light[1]) / std::min(light[0], light[1]);
}

//! What is written on it: the style class `dark` (black) or `pale` (white), whichever is read
//! better.
inline const char* ink_on(const colour& ground) {
  return contrast(ground, {0, 0, 0}) >= contrast(ground, {255, 255, 255}) ? "dark" : "pale";
}

//! The hue of a kind. Those of neighbours in `palette::order` are blue and yellow in turn to
//! deuteranopes.
inline colour hue_of(job_kind kind) {
  switch (kind) {
    case job_kind::forward:
      return {40, 140, 240};
    case job_kind::backward:
      return {0, 140, 60};
    case job_kind::backward_input:
      return {110, 60, 220};
    case job_kind::backward_weight:
      return {255, 160, 0};
    case job_kind::recompute:
      return {235, 70, 20};
    case job_kind::send_forward:
    case job_kind::send_backward:
    case job_kind::receive_forward:
    case job_kind::receive_backward:
      return {125, 140, 165};
    case job_kind::offload:
      return {20, 110, 125};
    case job_kind::reload:
      return {110, 195, 205};
    case job_kind::reduce_grad:
      return {200, 185, 70};
    case job_kind::unshard:
      return {185, 105, 190};
    case job_kind::all_reduce:
      return {210, 95, 45};
    case job_kind::optimizer:
      return {120, 100, 90};
    default:
      return {140, 140, 140};
  }
}

//! The colours of a picture's jobs. What computes shares out the luminances between the grounds of
//! a light and a dark page, in equal ratios, kind by kind and in each kind chunk by chunk: so also
//! in grey no chunk of one kind passes for one of another. Other kinds have one colour each.
class palette {
 public:
  palette(const std::set<job_kind>& kinds, int chunks) : chunks_(chunks) {
    for (job_kind kind : order)
      if (kinds.contains(kind)) shared_.push_back(kind);
  }

  colour of(job_kind kind, int chunk) const {
    const auto at = std::find(shared_.begin(), shared_.end(), kind);
    if (at == shared_.end()) return hue_of(kind);
    const auto before = static_cast<double>(at - shared_.begin()) * chunks_ + chunk;
    const double part = (before + 0.5) / (static_cast<double>(shared_.size()) * chunks_);
    return hue_of(kind).with_luminance(lightest * std::pow(darkest / lightest, part) - 0.05);
  }

 private:
  // From light to dark.
  static constexpr job_kind order[] = {job_kind::recompute, job_kind::forward,
                                       job_kind::backward_weight, job_kind::backward_input,
                                       job_kind::backward};
  // As contrast counts them, with 0.05 added.
  static constexpr double lightest = 0.78;
  static constexpr double darkest = 0.115;

  std::vector<job_kind> shared_;
  int chunks_;
};

}  // namespace stretto::detail
