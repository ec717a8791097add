#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/check/doubled.hpp"
#include "stretto/check/kind_set.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check::detail {

//! Whether the rank's list has such a job.
template <class Predicate>
constexpr bool stands(const job_rows& rows, int rank, Predicate matches) {
  if (rank < 0 || rank >= rows.ranks) return false;
  for (const job& work : rows.row(rank))
    if (matches(work)) return true;
  return false;
}

//! What of rule `complete` stands once for all micro-batches: the sums of gradients, and the
//! optimizer behind them.
class update_completeness {
 public:
  constexpr explicit update_completeness(const replay_input& input)
      : in_(input),
        stages_(input.where.stages()),
        reduced_(2 * static_cast<std::int64_t>(stages_)),
        prepared_(static_cast<std::int64_t>(input.groups.size())),
        joined_(static_cast<std::int64_t>(input.groups.size())) {}
  constexpr ~update_completeness() = default;  // nvcc does not find it constexpr by itself

  //! What is entered next is of `rank`'s list.
  constexpr void come_to(int rank) {
    rank_ = rank;
    updated_ = ended_ = false;
    sums_from_ = -1;
  }
  //! Job `step` of the rank's list.
  constexpr verdict enter(int step, const job& work) {
    const int rank = rank_;
    switch (work.kind) {
      case job_kind::unshard:
      case job_kind::reshard:
      case job_kind::reduce_grad:
        if (work.stage < 0 || work.stage >= stages_)
          return refuse(fault::incomplete, reason::out_of_range, rank, step, work);
        for (int replica = 0; replica < 2; ++replica) {
          if (in_.where.rank_in(replica, work.stage) != rank) continue;
          if (work.kind == job_kind::reduce_grad) enter_reduction(rank, work, replica);
          return once(step, work);
        }
        // What a rank without stages has to add to a sum is of none.
        if (work.kind == job_kind::reduce_grad && in_.where.stage_of(rank, 0) < 0)
          return once(step, work);
        return refuse(fault::incomplete, reason::wrong_rank, rank, step, work);
      case job_kind::all_reduce:
        return enter_collective(rank, step, work);
      case job_kind::all_gather:
        if (in_.gathers_weights(rank, work)) return {};
        return refuse(fault::incomplete, reason::out_of_range, rank, step, work);
      case job_kind::optimizer:
        if (updated_) return doubled(fault::incomplete, in_.rows, rank, step, work);
        updated_ = true;
        ++updates_;
        return nothing_follows(rank, step, work);
      default:
        if (ended_) return doubled(fault::incomplete, in_.rows, rank, step, work);
        ended_ = true;
        return {};
    }
  }

  //! Once one rank updates its weights, all do, after every reduction that feeds an update.
  constexpr verdict absent() const {
    if (updates_ == 0) return {};
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      const int there = static_cast<int>(stage);
      if (in_.where.rank_in(0, there) == in_.where.rank_in(1, there)) continue;
      for (int replica = 0; replica < 2; ++replica)
        if (!reduced_[2 * stage + replica])
          return refuse(fault::incomplete, reason::reduction_missing,
                        in_.where.rank_in(replica, there), -1,
                        {.stage = there, .kind = job_kind::reduce_grad});
    }
    for (std::size_t group = 0; group < in_.groups.size(); ++group) {
      const auto at = static_cast<std::int64_t>(group);
      if (in_.groups[group].data_parallel && !prepared_[at])
        return refuse(fault::incomplete, reason::reduction_missing,
                      in_.groups[group].members.front(), -1,
                      {.stage = in_.groups[group].stage,
                       .microbatch = static_cast<std::int32_t>(group),
                       .kind = job_kind::reduce_grad});
      if (joined_[at] == static_cast<std::int32_t>(in_.groups[group].members.size())) continue;
      const job reduction{.microbatch = static_cast<std::int32_t>(group),
                          .kind = job_kind::all_reduce};
      for (std::int32_t member : in_.groups[group].members)
        if (!stands(in_.rows, member, [&](const job& work) {
              return work.kind == job_kind::all_reduce && work.microbatch == reduction.microbatch;
            }))
          return refuse(fault::incomplete, reason::reduction_missing, member, -1, reduction);
    }
    if (updates_ == in_.rows.ranks) return {};
    for (int rank = 0; rank < in_.rows.ranks; ++rank)
      if (!stands(in_.rows, rank, [](const job& work) { return work.kind == job_kind::optimizer; }))
        return refuse(fault::incomplete, reason::missing, rank, -1, {.kind = job_kind::optimizer});
    return {};
  }

 private:
  constexpr void enter_reduction(int rank, const job& work, int replica) {
    if (!in_.is_data_parallel(rank, work))
      reduced_[2 * static_cast<std::int64_t>(work.stage) + replica] = true;
    else if (in_.groups[static_cast<std::size_t>(work.microbatch)].stage == work.stage)
      prepared_[work.microbatch] = true;
  }

  //! Nothing but the end of the step comes after the optimizer; a gradient or a sum would be too
  //! late.
  constexpr verdict nothing_follows(int rank, int step, const job& update) const {
    for (int later = step + 1; later < in_.rows.counts[rank]; ++later) {
      const job& work = in_.rows.at(rank, later);
      if (work.kind == job_kind::optimizer)
        return doubled(fault::incomplete, in_.rows, rank, later, work);
      if (work.kind != job_kind::end_step)
        return refuse(fault::incomplete, reason::optimizer_not_last, rank, step, update, work);
    }
    return {};
  }

  constexpr verdict enter_collective(int rank, int step, const job& work) {
    // A compute-only list may name groups that only its lowering knows.
    if (!in_.messages && in_.groups.empty()) return {};
    if (work.microbatch < 0 || static_cast<std::size_t>(work.microbatch) >= in_.groups.size())
      return refuse(fault::incomplete, reason::out_of_range, rank, step, work);
    if (!in_.groups[static_cast<std::size_t>(work.microbatch)].holds(rank))
      return refuse(fault::incomplete, reason::wrong_rank, rank, step, work);
    ++joined_[work.microbatch];
    return once(step, work);
  }

  //! What is summed twice is no sum any more. (Lists without groups name none: see rule `sharded`.)
  constexpr verdict once(int step, const job& work) {
    if (is_gather(work.kind) || in_.groups.empty()) return {};
    if (sums_from_ < 0) sums_from_ = step;
    for (int first = sums_from_; first < step; ++first)
      if (same_place(in_.rows.at(rank_, first), work))
        return doubled(fault::incomplete, in_.rows, rank_, step, work);
    return {};
  }

  const replay_input& in_;
  int stages_;
  scratch<bool> reduced_;         // by the ranks of a stage's two replicas
  scratch<bool> prepared_;        // per group of data-parallel replicas
  scratch<std::int32_t> joined_;  // per group: ranks that join it
  int rank_ = 0;
  bool updated_ = false;  // this rank
  bool ended_ = false;    // this rank
  int sums_from_ = -1;    // this rank's first step of a sum
  int updates_ = 0;       // ranks
};

//! The same of lists whose other jobs are known to keep the rule, from step ends[rank] of every
//! list on; from the beginning where some of it stands earlier.
constexpr verdict updates_complete(const replay_input& input, const std::int32_t* ends) {
  for (const rank_group& group : input.groups)
    if (group.data_parallel) ends = nullptr;
  update_completeness updates(input);
  for (int rank = 0; rank < input.rows.ranks; ++rank) {
    updates.come_to(rank);
    const job* const list = input.rows.items + std::int64_t{rank} * input.rows.stride;
    for (int step = ends == nullptr ? 0 : ends[rank]; step < input.rows.counts[rank]; ++step) {
      job work = list[step];  // a copy is read faster by a compiler
      if (is_of_cell(work.kind)) continue;
      if (work.paired) return refuse(fault::incomplete, reason::not_a_pair, rank, step, work);
      if (const verdict found = updates.enter(step, work); !found.ok()) return found;
    }
  }
  return updates.absent();
}

}  // namespace stretto::check::detail
