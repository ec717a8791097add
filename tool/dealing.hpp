#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "cost_options.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::tool {

// The ways in which balanced layers are dealt.

//! As even ones: the slowest rank says little of a step whose ranks have several stages, one of
//! which then waits for another of the same turn.
cost_options evenly(cost_options costs);

// And under a limit:

//! As if there were none.
cost_options without_limit(cost_options costs);
//! So that an order keeps to it that has so many micro-batches of every stage alive, and not 1F1B.
cost_options as_kept(cost_options costs, std::vector<std::int32_t> alive);

//! Of the ways that were tried the first that makes the step shortest; while none fits, the one
//! that needs least.
class best_way {
 public:
  explicit best_way(const cost_options& costs) : way_(costs) {}

  //! @return whether it is the best so far
  bool fits(const cost_options& way, std::int64_t length);
  void refused(const cost_options& way, const verdict& why);
  const cost_options& way() const { return way_; }
  bool any() const { return fits_; }  //!< whether one fits

 private:
  cost_options way_;
  bool fits_ = false;
  std::int64_t least_ = std::numeric_limits<std::int64_t>::max();
};

//! Tries those in which this order keeps to the limit. What it keeps is an estimate, as layers
//! differ and not all stages are full at once: while no way fits, they are dealt for less and less.
//! @param attempt  tries a way, and tells `best`
void try_as_kept_by(const replay_input& order, const cost_options& costs, const best_way& best,
                    const std::function<void(const cost_options&)>& attempt);

}  // namespace stretto::tool
