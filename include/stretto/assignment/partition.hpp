#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"

namespace stretto::assignment {

//! What consecutive layers add up to: prefix sums, of which the second counts times[stage] times.
//! Never negative for any layer, so that parts of a stage take no more than the whole.
struct layer_sums {
  const std::int64_t* fixed = nullptr;   //!< layers + 1 entries
  const std::int64_t* scaled = nullptr;  //!< the same; null: none
  const std::int32_t* times = nullptr;   //!< one per stage, with `scaled`

  constexpr std::int64_t of(int stage, int begin, int end) const {
    std::int64_t sum = fixed[end] - fixed[begin];
    if (scaled != nullptr) sum += times[stage] * (scaled[end] - scaled[begin]);
    return sum;
  }
};

//! Cuts `layers` layers into `stages` stages of at least one layer so that the largest `cost` of a
//! stage is the least there is, with no stage above its cap of `held`. Among all such cuts it takes
//! one whose boundaries lie nearest to where cost is shared evenly (the least sum of distances), so
//! that what slack there is does not gather in one place.
//!
//! Both are shortest paths over (stage, layers before it), found exactly by dynamic programming:
//! the largest of a path is the larger of the largest before and the last stage. A stage's cost
//! grows with its layers, so a loop over its first layer ends where it is as long as the best, in
//! all about layers^2 steps for stages of similar cost, at most stages * layers^2.
//! @param caps one per stage; null: none
//! @param ends takes the end of each stage, the last one `layers`
//! @return the largest cost of a stage; -1 when no cut keeps to the caps
constexpr std::int64_t partition(int layers, int stages, const layer_sums& cost,
                                 const layer_sums& held, const std::int64_t* caps,
                                 std::int32_t* ends) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  if (stages < 1 || layers < stages) return -1;
  const int wide = layers + 1;
  scratch<std::int64_t> table(2 * std::int64_t{wide});
  scratch<std::int32_t> from(std::int64_t{stages} * wide);
  std::int64_t slowest = never;
  const std::int64_t share = cost.of(0, 0, layers) / stages;
  // 0: the least that the largest stage can cost. 1: the evenest cut that costs no more.
  for (int pass = 0; pass < 2; ++pass) {
    std::int64_t* before = table.data();
    std::int64_t* after = before + wide;
    for (int end = 0; end < wide; ++end) before[end] = never;
    before[0] = 0;
    for (int stage = 0; stage < stages; ++stage) {
      std::int32_t* const back = from.data() + std::int64_t{stage} * wide;
      for (int end = 0; end < wide; ++end) after[end] = never;
      const int last = layers - (stages - 1 - stage);
      for (int end = stage + 1 == stages ? layers : stage + 1; end <= last; ++end) {
        const std::int64_t distance = cost.of(0, 0, end) - share * (stage + 1);
        std::int64_t best = never;
        for (int begin = end - 1; begin >= stage; --begin) {
          const std::int64_t mine = cost.of(stage, begin, end);
          if (pass == 0 ? mine >= best : mine > slowest) break;
          if (caps != nullptr && held.of(stage, begin, end) > caps[stage]) break;
          if (before[begin] == never) continue;
          const std::int64_t value = pass == 0
                                         ? (before[begin] > mine ? before[begin] : mine)
                                         : before[begin] + (distance < 0 ? -distance : distance);
          if (value >= best) continue;
          best = value;
          back[end] = begin;
        }
        after[end] = best;
      }
      std::int64_t* const swapped = before;
      before = after;
      after = swapped;
    }
    if (before[layers] == never) return -1;
    if (pass == 0) slowest = before[layers];
  }
  int end = layers;
  for (int stage = stages - 1; stage >= 0; --stage) {
    ends[stage] = end;
    end = from[std::int64_t{stage} * wide + end];
  }
  return slowest;
}

}  // namespace stretto::assignment
