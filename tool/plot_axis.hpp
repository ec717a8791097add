#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/plan/svg_layout.hpp"

namespace stretto::tool {

//! A number as an axis has it, in thousands from 10 000 on.
//! @param number  as text, maybe with a fraction
inline std::string in_thousands(std::string number) {
  const std::size_t whole = std::min(number.find_first_of(".e"), number.size());
  if (whole > 4)
    for (std::size_t at = whole - 3; at > 0 && at<whole; at = at> 3 ? at - 3 : 0)
      number.insert(at, " ");
  return number;
}
inline std::string in_thousands(std::int64_t number) {
  return in_thousands(std::to_string(number));
}

//! From the least to the greatest of what is drawn, with some room, on so many pixels; by its
//! logarithm where the one is many times the other.
class plot_axis {
 public:
  plot_axis(double least, double greatest, double pixels) : pixels_(pixels) {
    logarithmic_ = least > 0 && greatest > 5 * least;
    const double room = std::max((greatest - least) * 0.06, std::abs(greatest) * 0.002 + 1e-3);
    low_ = logarithmic_ ? least / 1.15 : least < 0 ? least - room : std::max(0.0, least - room);
    high_ = logarithmic_ ? greatest * 1.15 : greatest + room;
  }
  double at(double value) const {
    const double part = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_)
                                     : (value - low_) / (high_ - low_);
    return part * pixels_;
  }
  bool is_logarithmic() const { return logarithmic_; }
  bool holds(double value) const { return value >= low_ && value <= high_; }
  //! Whole numbers, so many pixels apart or, by their logarithm, of 1, 2 and 5 times powers of ten.
  std::vector<std::int64_t> ticks(double pixels) const {
    std::vector<std::int64_t> all;
    const auto add = [&](std::int64_t one) {
      if (holds(static_cast<double>(one))) all.push_back(one);
    };
    if (logarithmic_) {
      for (std::int64_t ten = 1; static_cast<double>(ten) <= high_; ten *= 10)
        for (const int times : {1, 2, 5}) add(ten * times);
      return all;
    }
    const std::int64_t distance = detail::tick_distance(pixels_ / (high_ - low_), pixels);
    const auto first = static_cast<std::int64_t>(std::ceil(low_ / static_cast<double>(distance)));
    for (std::int64_t one = first * distance; static_cast<double>(one) <= high_; one += distance)
      add(one);
    return all;
  }

 private:
  double low_, high_, pixels_;
  bool logarithmic_;
};

}  // namespace stretto::tool
