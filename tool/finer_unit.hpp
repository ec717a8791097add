#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "stretto/plan/picture.hpp"

namespace stretto::tool {

//! Integers that come multiplied, so that no part of them is rounded, told as they were given.
struct finer_unit {
  std::int64_t times = 1;

  //! In which any time is one of which pairs hide so many percent.
  static finer_unit of_hidden(int percent) { return {100 / std::gcd(100, percent)}; }

  std::string text(std::int64_t value) const { return in_units(value, times); }
  nlohmann::ordered_json json(std::int64_t value) const {
    if (value % times == 0) return value / times;
    return static_cast<double>(value) / static_cast<double>(times);
  }
};

}  // namespace stretto::tool
