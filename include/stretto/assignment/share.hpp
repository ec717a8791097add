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
//!    the costliest stage. Which it does is counted from what changes: a layer that goes on to the
//!    next stage changes two.
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
  };

  //! The cut in `ends_` beside the best one.
  struct standing {
    std::int64_t over = 0;
    std::int64_t slower = 0;     // groups that are slower than the slowest of the best
    std::int64_t as_slow = 0;    // and those that are as slow
    std::int64_t as_costly = 0;  // stages as costly as the costliest of the best, or more
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

  //! Takes the cut in `ends_` as the best.
  constexpr void keep() {
    best_ = {};
    now_ = {};
    for (int group = 0; group < in_.groups; ++group) loads_[group] = held_[group] = 0;
    int begin = 0;
    for (int stage = 0; stage < in_.stages; ++stage) {
      const int end = ends_[stage];
      const std::int64_t mine = in_.cost.of(stage, begin, end);
      loads_[in_.group[stage]] += mine;
      if (in_.caps != nullptr) held_[in_.group[stage]] += in_.held.of(stage, begin, end);
      if (mine > best_.stage) {
        best_.stage = mine;
        now_.as_costly = 0;
      }
      if (mine == best_.stage) ++now_.as_costly;
      begin = end;
    }
    for (int group = 0; group < in_.groups; ++group)
      if (loads_[group] > best_.slowest) best_.slowest = loads_[group];
    for (int group = 0; group < in_.groups; ++group) count_group(group, 1);
    best_.over = now_.over;
    best_.as_slow = now_.as_slow;
  }

  constexpr bool better() const {
    if (now_.over != best_.over) return now_.over < best_.over;
    if (now_.slower > 0) return false;
    if (now_.as_slow != best_.as_slow) return now_.as_slow < best_.as_slow;
    return now_.as_costly == 0;
  }

  //! The group joins what `now_` counts (by = 1) or leaves it (-1).
  constexpr void count_group(int group, int by) {
    if (in_.caps != nullptr && held_[group] > in_.caps[group])
      now_.over += by * (held_[group] - in_.caps[group]);
    if (loads_[group] > best_.slowest) now_.slower += by;
    if (loads_[group] == best_.slowest) now_.as_slow += by;
  }
  //! The stage holds other layers from now on.
  constexpr void change(int stage, int begin, int end) {
    const int group = in_.group[stage];
    const std::int64_t was = in_.cost.of(stage, begin_of(stage), ends_[stage]);
    const std::int64_t now = in_.cost.of(stage, begin, end);
    now_.as_costly += (now >= best_.stage) - (was >= best_.stage);
    count_group(group, -1);
    loads_[group] += now - was;
    if (in_.caps != nullptr)
      held_[group] +=
          in_.held.of(stage, begin, end) - in_.held.of(stage, begin_of(stage), ends_[stage]);
    count_group(group, 1);
  }

  //! The stage takes a layer from the next one (by = 1) or gives it one (-1).
  constexpr void move_end(int stage, int by) {
    const int end = ends_[stage] + by;
    change(stage, begin_of(stage), end);
    change(stage + 1, end, ends_[stage + 1]);
    ends_[stage] = end;
  }
  //! The layer that `from` has too many goes to `to`; those between pass one on.
  constexpr void shift(int from, int to) {
    for (; from < to; ++from) move_end(from, -1);
    for (; from > to; --from) move_end(from - 1, 1);
  }
  constexpr int begin_of(int stage) const { return stage == 0 ? 0 : ends_[stage - 1]; }

  constexpr void descend() {
    keep();
    for (bool improved = true; improved;) {
      improved = false;
      for (int from = 0; from < in_.stages; ++from) {
        // Between groups that are no bottleneck only neighbours trade.
        const bool bottleneck = best_.over > 0 || loads_[in_.group[from]] == best_.slowest;
        const int first = bottleneck || from == 0 ? 0 : from - 1;
        const int last = bottleneck || from + 1 == in_.stages ? in_.stages - 1 : from + 1;
        int at = from;  // who has the layer: the next one tried is a stage further
        for (int to = first; to <= last; ++to) {
          if (to == from) continue;
          if (at == from && ends_[from] - begin_of(from) < 2) break;
          shift(at, to);
          at = to;
          if (!better()) continue;
          keep();
          improved = true;
          at = from;
        }
        shift(at, from);
      }
    }
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
  standing now_{};
  std::int64_t bound_ = 0;
  std::int64_t open_load_ = 0;  // of groups with stages to come
  int open_ = 0;                // how many those are
  int branches_ = 0;
};

}  // namespace stretto::assignment
