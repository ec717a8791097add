#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "stretto/base/named_members.hpp"
#include "stretto/model/layer.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::assignment {

using stretto::layer_range;

//! What an assignment is: a value without state beyond its options that deals the layers of a model
//! to the stages of a placement. It never sees jobs. What a model's layers are is the caller's
//! part: an embedding or a head counts as one where it is to be dealt.
//!
//! - `name`: as the command-line tool spells it.
//! - `layers()`: how many layers the model has.
//! - `assign(where, stages)`: fills stages[s] for every stage s of the placement, in pipeline order
//!   and without gaps. Returns ok; fault::capacity when `stages` is short; or fault::misassigned,
//!   whose `amount` is what is wrong and whose `limit` is what would be valid:
//!     reason                rank             amount               limit
//!     empty_stage           short of layers  its layers           the least it needs
//!     empty_stage           -                the model's layers   stages, which need one each
//!     layers_do_not_fit     -                the layers given     those of the model
//!     counts_not_per_rank   -                the counts given     ranks
//!     counts_not_per_stage  -                the counts given     stages
//!     no_such_rank          as given         the layer            the last rank
//!     layer_misplaced       as given         the layer            where it would have to lie
//!     layer_missing, _twice of the stage     the layer            the model's layers
//!     bad_layout, layout_*  -                the character, from 1  characters
//! - `leaves_empty` (optional): true when a stage may be without layers. It passes on what it
//!   receives.
template <class Assignment>
concept Policy = requires(const Assignment& made, const placement& where,
                          std::span<layer_range> stages) {
  { Assignment::name } -> std::convertible_to<std::string_view>;
  { made.layers() } -> std::same_as<int>;
  { made.assign(where, stages) } -> std::same_as<verdict>;
};

//! Whether a stage may be without layers, as a member of that name says; without one, none may.
template <class Assignment>
inline constexpr bool leaves_empty = [] {
  static_assert(!requires { Assignment::leaves_empty(); },
                "stretto: an assignment's leaves_empty is a value and not a function");
  static_assert(
      !stretto::detail::names_leaves_empty<Assignment> ||
          requires { typename std::bool_constant<bool{Assignment::leaves_empty}>; },
      "stretto: an assignment's leaves_empty must be public, static and constexpr");
  if constexpr (requires { typename std::bool_constant<bool{Assignment::leaves_empty}>; })
    return bool{Assignment::leaves_empty};
  return false;
}();

//! fault::misassigned, as the table above says.
constexpr verdict misassigned(reason why, int rank = -1, std::int64_t amount = 0,
                              std::int64_t limit = 0) {
  return {.what = fault::misassigned, .why = why, .rank = rank, .amount = amount, .limit = limit};
}

//! Gives `stage` the next `count` layers after `next`, which it moves on.
//! @return whether layers can still be numbered
constexpr bool take_layers(layer_range& stage, std::int32_t count, std::int32_t& next) {
  if (count > std::numeric_limits<std::int32_t>::max() - next) return false;
  stage = {next, count};
  next += count;
  return true;
}

//! The answer when they cannot.
constexpr verdict too_many_layers(std::int64_t layers) {
  return misassigned(reason::layers_do_not_fit, -1, layers,
                     std::numeric_limits<std::int32_t>::max());
}

}  // namespace stretto::assignment
