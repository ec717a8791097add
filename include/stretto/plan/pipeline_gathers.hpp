#pragma once

#include "stretto/check/complete.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/lowering/plan_storage.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/pipeline_jobs.hpp"

namespace stretto::detail {

//! The second part of a pipeline: the schedule's jobs, which are complete, and where replicas
//! gather the weights (with_sharded_weights) the same with gathers; and how much room what follows
//! needs.
template <shape Shape, class Schedule, class Assignment, class Memory, class Groups>
class pipeline_gathers : public pipeline_jobs<Shape, Schedule, Assignment, Memory, Groups> {
  using parts = pipeline_jobs<Shape, Schedule, Assignment, Memory, Groups>;

 protected:
  using parts::compute_room, parts::emitted_, parts::gathered, parts::has_replicas,
      parts::held_groups, parts::ranks, parts::scheduled_jobs;

 public:
  using parts::forward_only;

 protected:
  // Decided by `if constexpr`: gcc tries calls of constants in branches that are not taken, too.
  static constexpr verdict complete_ = [] {
    if constexpr (!emitted_.answer.ok()) {
      return emitted_.answer;
    } else {
      const verdict found = check::complete(
          scheduled_jobs(), forward_only ? check::lists_of::forwards : check::lists_of::training);
      if constexpr (requires { Groups::gathered; })
        if (found.ok()) return may_gather(scheduled_jobs().rows, has_replicas, Groups::gathered);
      return found;
    }
  }();
  // Where nothing is gathered, to name a pipeline computes no order.
  static constexpr bool gathers_ = [] {
    if constexpr (gathered > 0) return complete_.ok();
    return false;
  }();
  //! Jobs of the longest list, with gathers.
  static constexpr int job_room = [] {
    if constexpr (gathers_) return longest_gathered(scheduled_jobs().rows, gathered);
    return compute_room;
  }();
  static constexpr int list_room =
      lowering::with_ends(lowering::with_messages(job_room), held_groups);
  static constexpr lowering::plan_capacity room = lowering::plan_room(
      job_room, held_groups, positive(Shape) == reason::none ? Shape.slices : 1, gathers_);

 private:
  struct gathered_jobs {
    fixed_job_lists<ranks, gathers_ ? job_room : 1> lists{};

    constexpr gathered_jobs() {
      if constexpr (gathers_) {
        job_sink out = lists.sink();
        write_gathered_weights(scheduled_jobs().rows, gathered, out);
      }
    }
  };
  static constexpr gathered_jobs gathered_{};

 public:
  //! Compute jobs of every rank, and gathers of their weights.
  static constexpr job_rows jobs() {
    if constexpr (gathers_)
      return gathered_.lists.rows();
    else
      return scheduled_jobs().rows;
  }
  //! What a replay of these takes.
  static constexpr replay_input compute() {
    replay_input made = scheduled_jobs();
    made.rows = jobs();
    return made;
  }
};

}  // namespace stretto::detail
