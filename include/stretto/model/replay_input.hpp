#pragma once

#include <cstdint>
#include <span>

#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"

namespace stretto {

//! The ranks that one collective joins; ascending. `stage`: whose replicas' gradients it sums; -1
//! for what else there is to join. `data_parallel`: replicas that are workers of one rank, which
//! share its list; it stands in the midst of that, all others at its end. `gathers`: they hold a
//! part each of the stage's weights, too, and gather them; of the gradients each gets its own part.
struct rank_group {
  std::span<const std::int32_t> members;
  int stage = -1;
  bool data_parallel = false;
  bool gathers = false;
  bool sums = true;  //!< gradients; not where the step has no optimizer, which would read them

  constexpr bool holds(int rank) const {
    for (std::int32_t member : members)
      if (member == rank) return true;
    return false;
  }
};

//! What a replay runs: the lists, where the stages lie, how many micro-batches and slices there
//! are, and the costs. With `messages` a cross-rank input arrives by the list's own receives, and
//! each rank stops at a message until its partner stands at the other half (rendezvous in the
//! host's issue order); without, it arrives by itself.
struct replay_input {
  job_rows rows;
  placement where;
  int microbatches = 1;
  int slices = 1;
  job_table_view costs;
  bool messages = false;
  std::span<const rank_group> groups{};
  //! How many nodes (jobs, or pairs) of its rank may still be to run before the one that a message
  //! is for when its receive is posted; below zero: any number. A message leaves no sooner.
  int receive_lead = -1;

  //! Whether what `work` reads first, its input or its output gradient, comes from another rank.
  constexpr bool receives(const job& work) const {
    const bool ahead = work.kind == job_kind::forward;
    if (!ahead && !is_input_gradient(work.kind)) return false;
    const int from = work.stage + (ahead ? -1 : 1);
    return from >= 0 && from < where.stages() && where.rank_of(from, work.microbatch) !=
                                                     where.rank_of(work.stage, work.microbatch);
  }
  //! What makes the gradient of another stage or slice of the micro-batch in the lists: B or I, as
  //! `work` where it is not there.
  constexpr job_kind backward_of(const job& work, int stage, int slice) const {
    const int rank = where.rank_of(stage, work.microbatch);
    for (int step = 0; rank >= 0 && rank < rows.ranks && step < rows.counts[rank]; ++step)
      if (const job& other = rows.at(rank, step);
          is_input_gradient(other.kind) && other.stage == stage &&
          other.microbatch == work.microbatch && other.slice == slice)
        return other.kind;
    return is_input_gradient(work.kind) ? work.kind : job_kind::backward;
  }
  //! Whether `work` prepares the sum of a stage's replicas, which needs no earlier collective but
  //! those of data-parallel replicas.
  constexpr bool sums_replicas(const job& work) const {
    return work.kind == job_kind::reduce_grad &&
           groups[static_cast<std::size_t>(work.microbatch)].stage >= 0;
  }
  //! Whether `work` is a gather of its stage's weights by their data-parallel replicas on `rank`.
  constexpr bool gathers_weights(int rank, const job& work) const {
    const auto group = static_cast<std::size_t>(work.microbatch);
    return work.kind == job_kind::all_gather && work.microbatch >= 0 && group < groups.size() &&
           groups[group].gathers && groups[group].stage == work.stage && groups[group].holds(rank);
  }
  //! Whether `work` is a sum of which each member gets its own part.
  constexpr bool scatters(const job& work) const {
    const auto group = static_cast<std::size_t>(work.microbatch);
    return work.kind == job_kind::all_reduce && work.microbatch >= 0 && group < groups.size() &&
           groups[group].gathers;
  }
  //! Whether `work` is of a sum over data-parallel replicas of `rank`.
  constexpr bool is_data_parallel(int rank, const job& work) const {
    if (work.kind != job_kind::reduce_grad && work.kind != job_kind::all_reduce) return false;
    const auto group = static_cast<std::size_t>(work.microbatch);
    return work.microbatch >= 0 && group < groups.size() && groups[group].data_parallel &&
           groups[group].holds(rank);
  }
};

//! Told of everything that runs, in an order in which every cause precedes its effects. Derive and
//! override by hiding what you need.
struct replay_observer {
  //! A job of `rank`, at `step` of its list. Both halves of a pair are told of, one by one.
  constexpr void ran(int /*rank*/, int /*step*/, const job& /*work*/, std::int64_t /*start*/,
                     std::int64_t /*end*/) {}
  //! The same where nobody keeps time: see lowering::walk.
  constexpr void ran(int /*rank*/, int /*step*/, const job& /*work*/) {}
  //! A send and the receive it meets; only with replay_input::messages.
  constexpr void met(int /*sender*/, int /*send_step*/, int /*receiver*/, int /*receive_step*/) {}
  //! The collective of `group`, at steps[r] of every member r.
  constexpr void joined(const rank_group& /*group*/, const std::int32_t* /*steps*/) {}
};

}  // namespace stretto
