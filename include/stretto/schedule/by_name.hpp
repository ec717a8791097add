#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "stretto/schedule/all.hpp"
#include "stretto/schedule/any.hpp"

namespace stretto::schedule {

//! Every schedule of `all`, in its order, with its default options.
inline std::vector<any> catalogue() {
  std::vector<any> made;
  all::for_each([&](const auto& schedule) { made.emplace_back(schedule); });
  return made;
}

//! The schedule of that name, with its default options; nothing when there is none.
inline std::optional<any> by_name(std::string_view name) {
  for (const any& schedule : catalogue())
    if (schedule.name == name) return schedule;
  return std::nullopt;
}

}  // namespace stretto::schedule
