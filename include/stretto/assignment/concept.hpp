#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/model/placement.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::assignment {

//! The consecutive layers of one stage: first ... first + count - 1, numbered through the model.
struct layer_range {
  std::int32_t first = 0;
  std::int32_t count = 0;

  constexpr bool operator==(const layer_range&) const = default;
};

//! What an assignment is: a value without state beyond its options that deals the layers of a model
//! to the stages of a placement. It never sees jobs.
//!
//! - `name`: as the command-line tool spells it.
//! - `layers()`: how many layers the model has.
//! - `assign(where, stages)`: fills stages[s] for every stage s of the placement, in pipeline order
//!   and without gaps, every stage with at least one layer. Returns ok, or fault::misassigned with
//!   a reason and, where one rank is at fault, that rank; fault::capacity when `stages` is short.
template <class Assignment>
concept Policy = requires(const Assignment& made, const placement& where,
                          std::span<layer_range> stages) {
  { Assignment::name } -> std::convertible_to<std::string_view>;
  { made.layers() } -> std::same_as<int>;
  { made.assign(where, stages) } -> std::same_as<verdict>;
};

//! fault::misassigned, with the rank at fault if there is one.
constexpr verdict misassigned(reason why, int rank = -1) {
  return {.what = fault::misassigned, .why = why, .rank = rank};
}

}  // namespace stretto::assignment
