#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "stretto/model/placement.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/merged.hpp"
#include "stretto/schedule/variants.hpp"
#include "stretto/schedule/zb_h1.hpp"

namespace stretto::schedule {

//! What a schedule that is known by its name may be told beyond its shape; unset: its own default.
struct options {
  std::optional<placement_kind> placement{};
  std::optional<int> group{};
  std::optional<remainder_kind> remainder{};
  std::optional<warmup_kind> warmup{};
  std::optional<backwards_kind> backwards{};
  std::optional<split_kind> split{};
  std::optional<objective_kind> objective{};
  std::optional<int> variant{};
  //! Any schedule takes it: what it is in is schedule::merged. Without effect where it splits no
  //! backward.
  std::optional<merge_kind> merge{};
};

//! How a value of an option is spelt.
template <class Kind>
struct spelling {
  std::string_view word;
  Kind kind;
};
//! The values of an option, as they are spelt.
template <class Kind>
inline constexpr std::array<spelling<Kind>, 0> spellings{};
template <>
inline constexpr std::array spellings<placement_kind>{
    spelling<placement_kind>{"looped", placement_kind::looped},
    spelling<placement_kind>{"wave", placement_kind::wave},
    spelling<placement_kind>{"bidirectional", placement_kind::bidirectional}};
template <>
inline constexpr std::array spellings<remainder_kind>{
    spelling<remainder_kind>{"even", remainder_kind::even},
    spelling<remainder_kind>{"first", remainder_kind::first},
    spelling<remainder_kind>{"last", remainder_kind::last}};
template <>
inline constexpr std::array spellings<warmup_kind>{
    spelling<warmup_kind>{"standard", warmup_kind::standard},
    spelling<warmup_kind>{"half", warmup_kind::half},
    spelling<warmup_kind>{"all", warmup_kind::all}};
template <>
inline constexpr std::array spellings<backwards_kind>{
    spelling<backwards_kind>{"groups", backwards_kind::groups},
    spelling<backwards_kind>{"early", backwards_kind::early}};
template <>
inline constexpr std::array spellings<split_kind>{
    spelling<split_kind>{"full", split_kind::full},
    spelling<split_kind>{"partial", split_kind::partial}};
template <>
inline constexpr std::array spellings<objective_kind>{
    spelling<objective_kind>{"flush", objective_kind::flush},
    spelling<objective_kind>{"span", objective_kind::span}};
template <>
inline constexpr std::array spellings<merge_kind>{
    spelling<merge_kind>{"none", merge_kind::none},
    spelling<merge_kind>{"adjacent", merge_kind::adjacent},
    spelling<merge_kind>{"shortest", merge_kind::shortest}};

//! The value that a word spells; none for another word.
template <class Kind>
constexpr std::optional<Kind> spelt(std::string_view word) {
  for (const spelling<Kind>& one : spellings<Kind>)
    if (one.word == word) return one.kind;
  return std::nullopt;
}
//! The other way; a number in digits. Empty for what has no word: warmup_kind::paired, which by
//! name is schedule paired_1f1b.
template <class Kind>
std::string word_for(const Kind& kind) {
  if constexpr (std::integral<Kind>) return std::to_string(kind);
  for (const spelling<Kind>& one : spellings<Kind>)
    if (one.kind == kind) return std::string(one.word);
  return {};
}

//! Calls `visit(name, told, member)` for every option that is a schedule's own: where `options`
//! tell it, and a function that gives the member of a schedule that has it, and cannot be called
//! with another.
template <class Visitor>
constexpr void for_each_option(const Visitor& visit) {
  visit("placement", &options::placement,
        [](auto& one) -> decltype((one.placement)) { return one.placement; });
  visit("group", &options::group, [](auto& one) -> decltype((one.group)) { return one.group; });
  visit("remainder", &options::remainder,
        [](auto& one) -> decltype((one.remainder)) { return one.remainder; });
  visit("warmup", &options::warmup, [](auto& one) -> decltype((one.warmup)) { return one.warmup; });
  visit("backwards", &options::backwards,
        [](auto& one) -> decltype((one.backwards)) { return one.backwards; });
  visit("split", &options::split, [](auto& one) -> decltype((one.split)) { return one.split; });
  visit("objective", &options::objective,
        [](auto& one) -> decltype((one.objective)) { return one.objective; });
  visit("variant", &options::variant,
        [](auto& one) -> decltype((one.variant)) { return one.variant; });
}

}  // namespace stretto::schedule
