#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::detail {

//! When what was made of every (stage, micro-batch, slice) is where, in one replay; so when a job's
//! inputs are there, and which of them is missing. Times are kept plus one, so that zero, what
//! scratch memory holds at first, means "not yet".
class replay_state {
 public:
  constexpr explicit replay_state(const replay_input& input)
      : in_(input),
        // Of a table that lacks some, or of more than a step can have, there is no job.
        stages_(input.where.sound() &&
                        positive({1, input.microbatches, 1, input.slices}) == reason::none &&
                        input.costs.serves(input.rows.ranks, input.where.chunks, input.microbatches,
                                           input.slices)
                    ? input.where.stages()
                    : 0),
        stride_(std::int64_t{input.microbatches} * input.slices),
        cells_(stages_ * stride_),
        times_(5 * cells_),
        forward_end_(times_.data()),
        backward_end_(forward_end_ + cells_),
        input_at_(backward_end_ + cells_),
        gradient_at_(input_at_ + cells_),
        copied_(gradient_at_ + cells_),
        alike_(input.costs.classes.empty()) {}
  constexpr ~replay_state() = default;  // nvcc does not find it constexpr by itself

 protected:
  static constexpr std::int64_t never = 0;

  constexpr std::int64_t cell(const job& work) const {
    return (static_cast<std::int64_t>(work.stage) * in_.microbatches + work.microbatch) *
               in_.slices +
           work.slice;
  }
  constexpr bool inside(const job& work) const {
    return work.stage >= 0 && work.stage < stages_ && work.microbatch >= 0 &&
           work.microbatch < in_.microbatches && work.slice >= 0 && work.slice < in_.slices;
  }

  //! When the inputs of `work`, whose cell is `at`, are there, plus one; never while one is
  //! missing.
  constexpr std::int64_t inputs_at(const job& work, std::int64_t at) const {
    if (work.kind == job_kind::forward)
      return work.slice > 0 && forward_end_[at - 1] == never ? never
             : work.stage == 0                               ? 1
                                                             : input_at_[at];
    if (work.kind == job_kind::backward_weight) return backward_end_[at];
    if (work.kind == job_kind::recompute) return forward_end_[at];
    return forward_end_[at] == never ||
                   (work.slice + 1 < in_.slices && backward_end_[at + 1] == never)
               ? never
           : copied_[at] != 0          ? with_reload(work, at)
           : work.stage + 1 == stages_ ? 1
                                       : gradient_at_[at];
  }

  //! The same of a backward whose stash was on the host.
  constexpr std::int64_t with_reload(const job& work, std::int64_t at) const {
    const std::int64_t gradient = work.stage + 1 == stages_ ? 1 : gradient_at_[at];
    if (copied_[at] < 0 || gradient == never) return never;
    return gradient > copied_[at] ? gradient : copied_[at];
  }

  //! What `work`, which did not run, waits for. Of what is there by now that is what came from a
  //! rank on which it does not belong, and which therefore woke nobody.
  constexpr job missing_for(const job& work) const {
    const std::int64_t at = cell(work);
    job missing = work;
    missing.paired = false;
    if (work.kind == job_kind::forward) {
      if (work.slice > 0 && (forward_end_[at - 1] == never || work.stage == 0)) {
        --missing.slice;
      } else {
        --missing.stage;
      }
    } else if (work.kind == job_kind::backward_weight) {
      missing.kind = job_kind::backward_input;
    } else if (forward_end_[at] == never) {
      missing.kind = job_kind::forward;
    } else if (is_copy(work.kind)) {
      missing.kind = work.kind == job_kind::reload ? job_kind::offload : job_kind::reload;
    } else if (copied_[at] < 0) {
      missing.kind = job_kind::reload;
    } else if (work.slice + 1 < in_.slices &&
               (backward_end_[at + 1] == never || work.stage + 1 == stages_)) {
      ++missing.slice;
      missing.kind = in_.backward_of(work, missing.stage, missing.slice);
    } else if (work.stage + 1 == stages_) {
      missing.kind = job_kind::forward;
    } else {
      ++missing.stage;
      missing.kind = in_.backward_of(work, missing.stage, missing.slice);
    }
    return missing;
  }

  const replay_input& in_;
  int stages_;
  std::int64_t stride_;  // cells from one stage to the next
  std::int64_t cells_;
  scratch<std::int64_t> times_;  // behind the pointers
  std::int64_t* forward_end_;
  std::int64_t* backward_end_;
  std::int64_t* input_at_;     // when a stage's input is on its rank
  std::int64_t* gradient_at_;  // when a stage's output gradient is on its rank
  std::int64_t* copied_;       // when a copy to the host ended, below zero; or one back, above
  bool alike_;                 // all micro-batches and slices take the same
};

}  // namespace stretto::detail
