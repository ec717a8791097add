#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "stretto/assignment/partition.hpp"

namespace stretto::assignment {

//! Layers to be cut into stages that belong to groups: a group is what one rank holds, and costs
//! what its stages cost together.
struct share_problem {
  int layers = 0;
  int stages = 0;
  int groups = 0;
  layer_sums cost{};
  layer_sums held{};
  const std::int32_t* group = nullptr;  //!< of every stage
  const std::int64_t* caps = nullptr;   //!< of every group, for `held`; null: none
};

//! Improves a cut of `problem` (the end of every stage) until the slowest group is as fast as it
//! can make it. Which cut is best is a hard question in general (two groups with a stage for every
//! layer are a number partition), so there are two steps:
//! 1. Descent: one layer moves from a stage to another, those between pass one on. A move stays if
//!    it lowers, in this order, what is above caps, the slowest group, how many groups are as slow,
//!    the costliest stage.
//! 2. Proof: all cuts that would be better are tried, stage by stage, a branch being left when its
//!    groups cannot hold the rest of the model. It ends after `effort` branches at the latest.
class share_search {
 public:
  static constexpr int effort = 4'000;

  constexpr share_search(const share_problem& problem, std::int32_t* ends)
      : in_(problem),
        ends_(ends),
        tried_(problem.stages),
        loads_(problem.groups),
        held_(problem.groups),
        last_(problem.groups) {
    for (int stage = 0; stage < in_.stages; ++stage) last_[in_.group[stage]] = stage;
    bound_ = least_share();
  }
  constexpr ~share_search() = default;

  constexpr void run() {
    descend();
    if (best_.over == 0 && best_.slowest <= bound_) return;
    if (best_.over > 0) best_.slowest = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t& load : std::span(loads_.data(), count())) load = 0;
    for (std::int64_t& load : std::span(held_.data(), count())) load = 0;
    open_ = in_.groups;
    if (in_.stages <= deepest) branch(0, 0);
    if (in_.stages <= deepest && branches_ <= effort) bound_ = best_.slowest;
  }

  //! Whether the cut keeps to all caps.
  constexpr bool fits() const { return best_.over == 0; }
  constexpr std::int64_t slowest() const { return best_.slowest; }
  //! No cut has a faster slowest group; slowest() when that is proven to be the best.
  constexpr std::int64_t bound() const { return bound_; }

 private:
  static constexpr int deepest = 256;

  struct quality {
    std::int64_t over = 0;
    std::int64_t slowest = 0;
    std::int64_t as_slow = 0;
    std::int64_t stage = 0;

    constexpr bool better(const quality& other) const {
      if (over != other.over) return over < other.over;
      if (slowest != other.slowest) return slowest < other.slowest;
      if (as_slow != other.as_slow) return as_slow < other.as_slow;
      return stage < other.stage;
    }
  };

  //! What some group has at least. Of the n costliest layers one group has k = ceil(n / groups) or
  //! more, which cost as much as the k cheapest of those n; or all cost is shared evenly.
  constexpr std::int64_t least_share() const {
    scratch<std::int64_t> costs(in_.layers);  // descending
    for (int layer = 0; layer < in_.layers; ++layer) {
      const std::int64_t one = in_.cost.fixed[layer + 1] - in_.cost.fixed[layer];
      int at = layer;
      for (; at > 0 && costs[at - 1] < one; --at) costs[at] = costs[at - 1];
      costs[at] = one;
    }
    std::int64_t least = (in_.cost.fixed[in_.layers] + in_.groups - 1) / in_.groups;
    std::int64_t cheapest = 0;  // of the first `layer` ones, the k last
    int held = 0;
    for (int layer = 1; layer <= in_.layers; ++layer) {
      cheapest += costs[layer - 1];
      if (held * in_.groups < layer)
        ++held;
      else
        cheapest -= costs[layer - 1 - held];
      if (cheapest > least) least = cheapest;
    }
    return least;
  }

  constexpr std::size_t count() const { return static_cast<std::size_t>(in_.groups); }

  //! Of the cut in `ends_`; leaves every group's cost in `loads_`.
  constexpr quality judge() {
    std::int64_t* const loads = loads_.data();
    std::int64_t* const held = held_.data();
    for (int group = 0; group < in_.groups; ++group) loads[group] = held[group] = 0;
    quality found;
    int begin = 0;
    for (int stage = 0; stage < in_.stages; ++stage) {
      const int end = ends_[stage];
      const std::int64_t mine = in_.cost.of(stage, begin, end);
      loads[in_.group[stage]] += mine;
      if (in_.caps != nullptr) held[in_.group[stage]] += in_.held.of(stage, begin, end);
      if (mine > found.stage) found.stage = mine;
      begin = end;
    }
    for (int group = 0; group < in_.groups; ++group) {
      if (in_.caps != nullptr && held[group] > in_.caps[group])
        found.over += held[group] - in_.caps[group];
      if (loads[group] == found.slowest) ++found.as_slow;
      if (loads[group] > found.slowest) {
        found.slowest = loads[group];
        found.as_slow = 1;
      }
    }
    return found;
  }

  //! One layer less for `from` and one more for `to`; or back again.
  constexpr void shift(int from, int to) {
    for (int stage = from; stage < to; ++stage) --ends_[stage];
    for (int stage = to; stage < from; ++stage) ++ends_[stage];
  }
  constexpr int layers_of(int stage) const {
    return ends_[stage] - (stage == 0 ? 0 : ends_[stage - 1]);
  }

  constexpr void descend() {
    best_ = judge();
    for (bool improved = true; improved;) {
      improved = false;
      for (int from = 0; from < in_.stages; ++from) {
        const bool bottleneck = best_.over > 0 || slow(from);
        for (int to = 0; to < in_.stages; ++to) {
          const int far = from < to ? to - from : from - to;
          // Between groups that are no bottleneck only neighbours trade.
          if (far == 0 || layers_of(from) < 2) continue;
          if (far > 1 && !bottleneck) continue;
          shift(from, to);
          const quality found = judge();
          if (found.better(best_)) {
            best_ = found;
            improved = true;
          } else {
            shift(to, from);
          }
        }
      }
    }
  }
  constexpr bool slow(int stage) const {
    std::int64_t load = 0;
    for (int other = 0; other < in_.stages; ++other)
      if (in_.group[other] == in_.group[stage])
        load += in_.cost.of(other, other == 0 ? 0 : ends_[other - 1], ends_[other]);
    return load == best_.slowest;
  }

  //! Tries all cuts with these ends so far that are better than the best: slowest group first, and
  //! with caps any that keeps to them.
  constexpr void branch(int stage, int begin) {
    if (stage == in_.stages) {
      best_.over = 0;
      best_.slowest = 0;
      for (int group = 0; group < in_.groups; ++group)
        if (loads_[group] > best_.slowest) best_.slowest = loads_[group];
      for (int at = 0; at < in_.stages; ++at) ends_[at] = tried_[at];
      return;
    }
    if (++branches_ > effort) return;
    const int group = in_.group[stage];
    const bool closes = last_[group] == stage;
    const std::int64_t load = loads_[group];
    const std::int64_t held = held_[group];
    const int most = in_.layers - (in_.stages - 1 - stage);
    const auto fits = [&](int end) {
      return load + in_.cost.of(stage, begin, end) < best_.slowest &&
             (in_.caps == nullptr || held + in_.held.of(stage, begin, end) <= in_.caps[group]);
    };
    int end = begin;
    while (end < most && fits(end + 1)) ++end;
    const int least = stage + 1 == in_.stages ? in_.layers : begin + 1;
    for (; end >= least && branches_ <= effort; --end) {
      if (!fits(end)) continue;  // the best is better by now
      const std::int64_t mine = in_.cost.of(stage, begin, end);
      const std::int64_t change = closes ? -load : mine;
      const int open = open_ - (closes ? 1 : 0);
      const std::int64_t rest = in_.cost.fixed[in_.layers] - in_.cost.fixed[end];
      // In this order: without caps the best may be the largest integer.
      if (rest > 0 &&
          (open == 0 || (rest + open_load_ + change + open - 1) / open >= best_.slowest)) {
        if (closes) return;
        continue;
      }
      tried_[stage] = end;
      loads_[group] = load + mine;
      if (in_.caps != nullptr) held_[group] = held + in_.held.of(stage, begin, end);
      open_ = open;
      open_load_ += change;
      branch(stage + 1, end);
      open_load_ -= change;
      open_ = open + (closes ? 1 : 0);
      loads_[group] = load;
      held_[group] = held;
    }
  }

  const share_problem& in_;
  std::int32_t* ends_;
  scratch<std::int32_t> tried_;
  scratch<std::int64_t> loads_;
  scratch<std::int64_t> held_;
  scratch<std::int32_t> last_;
  quality best_{};
  std::int64_t bound_ = 0;
  std::int64_t open_load_ = 0;  // of groups with stages to come
  int open_ = 0;                // how many those are
  int branches_ = 0;
};

}  // namespace stretto::assignment
