#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/check/kind_set.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::check {

namespace detail {

//! The walk behind check::ordered: down each list, with what has been done up to there.
class precedence {
 public:
  constexpr explicit precedence(const replay_input& input)
      : in_(input),
        stages_(input.where.stages()),
        done_(static_cast<std::int64_t>(stages_) * input.microbatches * input.slices),
        reduced_at_(stages_),
        reduced_on_(stages_) {}

  constexpr verdict run() {
    for (rank_ = 0; rank_ < in_.rows.ranks; ++rank_) {
      const int count = in_.rows.counts[rank_];
      for (int step = 0; step < count; ++step) {
        const job& work = in_.rows.at(rank_, step);
        if (verdict found = check(step, work); !found) return found;
        // The halves of a pair start together, so neither may need the other.
        if (work.paired && step + 1 < count) {
          const job& second = in_.rows.at(rank_, step + 1);
          if (verdict found = check(step + 1, second); !found) return found;
          mark(step, work);
          ++step;
          mark(step, second);
        } else {
          mark(step, work);
        }
      }
    }
    return {};
  }

 private:
  static constexpr kind_set forward = only(job_kind::forward);
  static constexpr kind_set gradient = only(job_kind::backward, job_kind::backward_input);

  constexpr std::int64_t cell(int stage, int microbatch, int slice) const {
    return (static_cast<std::int64_t>(stage) * in_.microbatches + microbatch) * in_.slices + slice;
  }
  constexpr bool has(const job& work, int stage, int slice, kind_set any_of) const {
    return holds(done_[cell(stage, work.microbatch, slice)], any_of);
  }
  constexpr verdict too_early(int step, const job& work, int stage, int slice,
                              job_kind kind) const {
    return refuse(fault::disordered, reason::needs_earlier, rank_, step, work,
                  {stage, work.microbatch, static_cast<std::int16_t>(slice), kind, false});
  }

  //! Whether all that `work` needs of its own rank has been done.
  constexpr verdict check(int step, const job& work) {
    if (is_of_cell(work.kind)) {
      if (work.stage < 0 || work.stage >= stages_ || work.microbatch < 0 ||
          work.microbatch >= in_.microbatches || work.slice < 0 || work.slice >= in_.slices)
        return refuse(fault::incomplete, reason::out_of_range, rank_, step, work);
    }
    const int stage = work.stage;
    const int slice = work.slice;
    switch (work.kind) {
      case job_kind::forward:
        if (slice > 0 && !has(work, stage, slice - 1, forward))
          return too_early(step, work, stage, slice - 1, job_kind::forward);
        return stage > 0 ? input_there(step, work, stage - 1, forward) : verdict{};
      case job_kind::backward:
      case job_kind::backward_input: {
        if (verdict found = not_reduced(work); !found) return found;
        const kind_set here = done_[cell(stage, work.microbatch, slice)];
        if (!holds(here, forward)) return too_early(step, work, stage, slice, job_kind::forward);
        if (holds(here, only(job_kind::offload)) && !holds(here, only(job_kind::reload)))
          return too_early(step, work, stage, slice, job_kind::reload);
        if (slice + 1 < in_.slices && !has(work, stage, slice + 1, gradient))
          return too_early(step, work, stage, slice + 1, in_.backward_of(work, stage, slice + 1));
        return stage + 1 < stages_ ? input_there(step, work, stage + 1, gradient) : verdict{};
      }
      case job_kind::backward_weight:
        if (verdict found = not_reduced(work); !found) return found;
        if (has(work, stage, slice, only(job_kind::backward_input))) return {};
        return too_early(step, work, stage, slice, job_kind::backward_input);
      case job_kind::offload:
        if (has(work, stage, slice, gradient))
          if (verdict found = not_reloaded(step, work); !found) return found;
        [[fallthrough]];
      case job_kind::recompute:
      case job_kind::send_forward:
        if (has(work, stage, slice, forward)) return {};
        return too_early(step, work, stage, slice, job_kind::forward);
      case job_kind::reload:
        if (has(work, stage, slice, only(job_kind::offload))) return {};
        return too_early(step, work, stage, slice, job_kind::offload);
      case job_kind::send_backward:
        if (has(work, stage, slice, gradient)) return {};
        return too_early(step, work, stage, slice, in_.backward_of(work, stage, slice));
      case job_kind::reduce_grad:
        if (stage >= 0 && stage < stages_) return {};
        return refuse(fault::incomplete, reason::out_of_range, rank_, step, work);
      case job_kind::end_step:
        if (step + 1 == in_.rows.counts[rank_]) return {};
        return refuse(fault::disordered, reason::needs_earlier, rank_, step, work,
                      in_.rows.at(rank_, step + 1));
      default:
        return {};
    }
  }

  //! The neighbour's result: made earlier on this rank, or received earlier.
  constexpr verdict input_there(int step, const job& work, int neighbour, kind_set made) const {
    if (in_.where.rank_of(neighbour, work.microbatch) == rank_) {
      if (has(work, neighbour, work.slice, made)) return {};
      return too_early(step, work, neighbour, work.slice,
                       work.kind == job_kind::forward
                           ? job_kind::forward
                           : in_.backward_of(work, neighbour, work.slice));
    }
    if (!in_.messages) return {};
    const job_kind received =
        work.kind == job_kind::forward ? job_kind::receive_forward : job_kind::receive_backward;
    if (has(work, work.stage, work.slice, only(received))) return {};
    return too_early(step, work, work.stage, work.slice, received);
  }

  //! A gradient that comes after its stage's reduction: the reduction is what stands too early.
  constexpr verdict not_reduced(const job& work) const {
    if (reduced_on_[work.stage] != rank_ + 1) return {};
    const int step = reduced_at_[work.stage];
    return refuse(fault::disordered, reason::needs_earlier, rank_, step, in_.rows.at(rank_, step),
                  work);
  }

  //! An offload behind its backward: that is what stands too early.
  constexpr verdict not_reloaded(int before, const job& away) const {
    for (int step = 0; step < before; ++step) {
      const job& work = in_.rows.at(rank_, step);
      if (is_input_gradient(work.kind) && work.stage == away.stage &&
          work.microbatch == away.microbatch && work.slice == away.slice)
        return too_early(step, work, away.stage, away.slice, job_kind::reload);
    }
    return {};
  }

  constexpr void mark(int step, const job& work) {
    if (is_of_cell(work.kind)) {
      kind_set& here = done_[cell(work.stage, work.microbatch, work.slice)];
      here = static_cast<kind_set>(here | only(work.kind));
    } else if (work.kind == job_kind::reduce_grad) {
      reduced_at_[work.stage] = step;
      reduced_on_[work.stage] = rank_ + 1;
    }
  }

  const replay_input& in_;
  int stages_;
  scratch<kind_set> done_;
  scratch<std::int32_t> reduced_at_;  // per stage: the step of its latest reduction,
  scratch<std::int32_t> reduced_on_;  // and that step's rank, plus one
  int rank_ = 0;
};

}  // namespace detail

//! Rule `ordered`. Down each rank's list, a job stands after whatever it needs of the same rank:
//! F(s, i) after F(s-1, i) and after the slice before; B or I(s, i) after F(s, i), after the
//! gradient of stage s+1 and of the slice after; W(s, i) after I(s, i); a recompute after its
//! forward; a reload between its offload and the backward; a stage's reduction after its gradients;
//! `end_step` after everything. With messages, a result from another rank is received before it is
//! used, and a result is sent after it is made. The halves of a pair start together, so neither may
//! need the other. Linear in the jobs. What must hold between ranks is rule `live`.
//! @return ok; fault::disordered with the rank, the step, the job and the one that it needs; or
//!         fault::incomplete for a job out of range.
constexpr verdict ordered(const replay_input& input) {
  return detail::precedence(input).run();
}

}  // namespace stretto::check
