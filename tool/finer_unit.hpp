#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

namespace stretto::tool {

//! Integers that come multiplied, so that no part of them is rounded, told as they were given.
struct finer_unit {
  std::int64_t times = 1;

  //! In which any time is one of which pairs hide so many percent.
  static finer_unit of_hidden(int percent) { return {100 / std::gcd(100, percent)}; }

  std::string text(std::int64_t value) const {
    if (value % times == 0) return std::to_string(value / times);
    char made[40];
    std::snprintf(made, sizeof made, "%.2f", plain(value));
    return made;
  }
  nlohmann::ordered_json json(std::int64_t value) const {
    if (value % times == 0) return value / times;
    return plain(value);
  }

 private:
  double plain(std::int64_t value) const {
    return static_cast<double>(value) / static_cast<double>(times);
  }
};

}  // namespace stretto::tool
