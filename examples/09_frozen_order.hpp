#pragma once

// clang-format off
// Written by
//   stretto schedule zb_auto --ranks 4 --microbatches 12 --cost 5,6,3,1 --limit 5 --emit header
// makespan 195, bubble 27 of 195. Proven where it is used:
//   static_assert(stretto::valid<stretto::pipeline<
//       frozen_zb_auto_4x12::made_for, stretto::schedule::frozen<frozen_zb_auto_4x12>,
//       stretto::assignment::unassigned, frozen_zb_auto_4x12::memory>>);

#include <cstdint>
#include <string_view>

#include "stretto/memory/release_early.hpp"
#include "stretto/schedule/frozen.hpp"

struct frozen_zb_auto_4x12 {
  static constexpr std::string_view name = "zb_auto";
  static constexpr stretto::shape made_for{4, 12, 1, 1};
  static constexpr stretto::placement_kind placement = stretto::placement_kind::looped;
  static constexpr stretto::job_kind F = stretto::job_kind::forward;
  static constexpr stretto::job_kind I = stretto::job_kind::backward_input;
  static constexpr stretto::job_kind W = stretto::job_kind::backward_weight;
  // Jobs of each rank.
  static constexpr std::int32_t counts[4] = {
      36, 36, 36, 36};
  // {stage, kind, micro-batch}, then the slice and whether the job is paired with the next.
  static constexpr stretto::schedule::frozen_job jobs[144] = {
      // rank 0
      {0, F, 0}, {0, F, 1}, {0, F, 2}, {0, F, 3}, {0, F, 4}, {0, I, 0}, {0, W, 0}, {0, F, 5},
      {0, I, 1}, {0, W, 1}, {0, F, 6}, {0, I, 2}, {0, W, 2}, {0, F, 7}, {0, I, 3}, {0, W, 3},
      {0, F, 8}, {0, I, 4}, {0, W, 4}, {0, F, 9}, {0, I, 5}, {0, W, 5}, {0, F, 10}, {0, I, 6},
      {0, W, 6}, {0, F, 11}, {0, I, 7}, {0, W, 7}, {0, I, 8}, {0, W, 8}, {0, I, 9}, {0, W, 9},
      {0, I, 10}, {0, W, 10}, {0, I, 11}, {0, W, 11},
      // rank 1
      {1, F, 0}, {1, F, 1}, {1, F, 2}, {1, F, 3}, {1, I, 0}, {1, F, 4}, {1, I, 1}, {1, W, 0},
      {1, F, 5}, {1, I, 2}, {1, W, 1}, {1, F, 6}, {1, I, 3}, {1, W, 2}, {1, F, 7}, {1, I, 4},
      {1, W, 3}, {1, F, 8}, {1, I, 5}, {1, W, 4}, {1, F, 9}, {1, I, 6}, {1, W, 5}, {1, F, 10},
      {1, I, 7}, {1, W, 6}, {1, F, 11}, {1, I, 8}, {1, W, 7}, {1, W, 8}, {1, I, 9}, {1, I, 10},
      {1, W, 9}, {1, W, 10}, {1, I, 11}, {1, W, 11},
      // rank 2
      {2, F, 0}, {2, F, 1}, {2, F, 2}, {2, I, 0}, {2, F, 3}, {2, I, 1}, {2, F, 4}, {2, I, 2},
      {2, W, 0}, {2, F, 5}, {2, I, 3}, {2, W, 1}, {2, F, 6}, {2, I, 4}, {2, W, 2}, {2, F, 7},
      {2, I, 5}, {2, W, 3}, {2, F, 8}, {2, I, 6}, {2, W, 4}, {2, F, 9}, {2, I, 7}, {2, W, 5},
      {2, F, 10}, {2, I, 8}, {2, W, 6}, {2, F, 11}, {2, I, 9}, {2, I, 10}, {2, W, 7}, {2, W, 8},
      {2, I, 11}, {2, W, 9}, {2, W, 10}, {2, W, 11},
      // rank 3
      {3, F, 0}, {3, I, 0}, {3, F, 1}, {3, I, 1}, {3, F, 2}, {3, I, 2}, {3, F, 3}, {3, I, 3},
      {3, F, 4}, {3, I, 4}, {3, W, 0}, {3, F, 5}, {3, I, 5}, {3, W, 1}, {3, F, 6}, {3, I, 6},
      {3, W, 2}, {3, F, 7}, {3, I, 7}, {3, W, 3}, {3, F, 8}, {3, I, 8}, {3, W, 4}, {3, F, 9},
      {3, I, 9}, {3, W, 5}, {3, F, 10}, {3, I, 10}, {3, W, 6}, {3, F, 11}, {3, I, 11}, {3, W, 7},
      {3, W, 8}, {3, W, 9}, {3, W, 10}, {3, W, 11},
  };
  // What it was made for, and is proven under.
  struct memory : stretto::memory::release_early {
    constexpr stretto::unit_costs costs() const {
      return {
          .forward = 5, .backward_input = 6, .backward_weight = 3, .communication = 1
      };
    }
    constexpr std::int64_t limit() const { return 5; }
  };
};
