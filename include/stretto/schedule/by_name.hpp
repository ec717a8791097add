#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/schedule/all.hpp"
#include "stretto/schedule/any.hpp"
#include "stretto/schedule/merged.hpp"
#include "stretto/schedule/options.hpp"
#include "stretto/schedule/variants.hpp"

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

//! The schedule of that name, told so; nothing when there is none.
//! @param lacks  hears `(option, value)`, both in words, of each that it is told and has not; the
//!               value is empty where options have no word for it. A placement that is its only one
//!               it may be told
template <class Lacks>
std::optional<any> by_name(std::string_view name, const options& told, const Lacks& lacks) {
  const merge_kind merge = told.merge.value_or(merge_kind::none);
  std::optional<any> found;
  all::for_each([&]<class Schedule>(Schedule made) {
    if (name != Schedule::name) return;
    for_each_option([&](const char* option, auto where, auto member) {
      const auto& value = told.*where;
      if (!value) return;
      if constexpr (std::invocable<decltype(member), Schedule&>)
        member(made) = *value;
      else if (merge != merge_kind::none && option == std::string_view("objective"))
        return;  // which merging has, too
      else if (word_for(*value) != word_for(made.placed()))
        lacks(std::string(option), word_for(*value));
    });
    if (merge == merge_kind::none) {
      found = made;
    } else if constexpr (Search<Schedule>) {
      found = merged<Schedule>(made, merge);
    } else {
      found = merged<any>(any(made), merge, told.objective.value_or(objective_kind::flush));
    }
  });
  return found;
}

}  // namespace stretto::schedule
