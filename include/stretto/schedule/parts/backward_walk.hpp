#pragma once

#include <cstdint>

#include "stretto/schedule/parts/microbatch_groups.hpp"

namespace stretto::schedule {

//! In which order an interleaved rank's backwards go where its groups of micro-batches are not all
//! as long as each other; else there is but one.
enum class backwards_kind : std::uint8_t {
  groups,  //!< as its forwards do, from the last chunk to the first (Megatron-LM, PyTorch)
  early,   //!< the last chunk's as soon as the last rank has run their forwards, the others' as
           //!< before, but behind these: where all stages take and keep as much, no rank keeps
           //!< more, and no step was seen to be longer (Paddle's best_unbalanced_scheduler)
};

//! The backwards of a rank, one by one.
class backward_walk {
 public:
  constexpr backward_walk(const microbatch_groups& groups, backwards_kind kind)
      : groups_(groups), kind_(kind) {}

  //! At most groups.steps() times.
  constexpr microbatch_groups::visit next() {
    const int step = taken_++;
    if (kind_ == backwards_kind::groups) return groups_.back_at(step);
    const int last = groups_.chunks - 1;
    while (others_ < groups_.steps() && groups_.back_at(others_).chunk == last) ++others_;
    // The forward that the last rank runs right before, in a steady round.
    const int forward = last * groups_.first * groups_.slices + step;
    const bool now = forward < groups_.steps() && groups_.at(forward).chunk == last;
    if (!now && others_ < groups_.steps()) return groups_.back_at(others_++);
    const int slice = groups_.slices - 1 - last_ % groups_.slices;
    return {last, last_++ / groups_.slices, static_cast<std::int16_t>(slice)};
  }

 private:
  microbatch_groups groups_;
  backwards_kind kind_;
  int taken_ = 0;
  int last_ = 0;    // of the last chunk's, how many are taken
  int others_ = 0;  // where the others stand in the order of groups
};

}  // namespace stretto::schedule
