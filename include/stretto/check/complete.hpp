#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/check/kind_set.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::check {

namespace detail {

//! The walk behind check::complete: first what stands in the lists, then what does not.
class completeness {
 public:
  constexpr explicit completeness(const replay_input& input)
      : in_(input),
        stages_(input.where.stages()),
        seen_(static_cast<std::int64_t>(stages_) * input.microbatches * input.slices),
        reduced_(2 * static_cast<std::int64_t>(stages_)),
        prepared_(static_cast<std::int64_t>(input.groups.size())),
        joined_(static_cast<std::int64_t>(input.groups.size())),
        last_joined_(static_cast<std::int64_t>(input.groups.size())) {}

  constexpr verdict run() {
    if (const verdict found = enter_all(nullptr); !found) return found;
    if (const verdict found = absent_jobs(); !found) return found;
    if (updates_ > 0)
      if (const verdict found = absent_updates(); !found) return found;
    return pairs();
  }
  //! Only what stands once for all micro-batches, from step ends[rank] of every list on; from the
  //! beginning where some of it stands earlier.
  constexpr verdict run_ends(const std::int32_t* ends) {
    for (const rank_group& group : in_.groups)
      if (group.data_parallel) ends = nullptr;
    const verdict found = enter_all(ends, true);
    return found.ok() && updates_ > 0 ? absent_updates() : found;
  }

 private:
  constexpr verdict enter_all(const std::int32_t* from, bool step_wide_only = false) {
    for (int rank = 0; rank < in_.rows.ranks; ++rank) {
      updated_ = ended_ = false;
      const job* const list = in_.rows.items + std::int64_t{rank} * in_.rows.stride;
      const std::int32_t count = in_.rows.counts[rank];
      for (int step = from == nullptr ? 0 : from[rank]; step < count; ++step) {
        const job work = list[step];  // a copy is read faster by a compiler
        const bool of_cell = is_of_cell(work.kind);
        if (step_wide_only && of_cell) continue;
        const verdict found =
            of_cell ? enter(rank, step, work) : enter_step_wide(rank, step, work);
        if (found.what != fault::none) return found;
      }
      updates_ += updated_ ? 1 : 0;
    }
    return {};
  }

  static constexpr kind_set whole = only(job_kind::backward);
  static constexpr kind_set split_input = only(job_kind::backward_input);
  static constexpr kind_set split_weight = only(job_kind::backward_weight);
  static constexpr int backwards = whole | split_input | split_weight;
  static constexpr kind_set forward = only(job_kind::forward);
  static constexpr kind_set recompute = only(job_kind::recompute);
  static constexpr kind_set copies = only(job_kind::offload, job_kind::reload);

  static constexpr job like(job work, job_kind kind) {
    work.kind = kind;
    work.paired = false;
    return work;
  }

  constexpr verdict enter(int rank, int step, const job& work) {
    if (work.stage < 0 || work.stage >= stages_ || work.microbatch < 0 ||
        work.microbatch >= in_.microbatches || work.slice < 0 || work.slice >= in_.slices)
      return refuse(fault::incomplete, reason::out_of_range, rank, step, work);
    if (in_.where.rank_of(work.stage, work.microbatch) != rank)
      return refuse(fault::incomplete, reason::wrong_rank, rank, step, work);
    kind_set& here =
        seen_[(static_cast<std::int64_t>(work.stage) * in_.microbatches + work.microbatch) *
                  in_.slices +
              work.slice];
    const kind_set before = here;
    const kind_set mine = only(work.kind);
    if (holds(before, mine)) return refuse(fault::incomplete, reason::duplicate, rank, step, work);
    here = static_cast<kind_set>(before | mine);
    switch (work.kind) {
      case job_kind::backward:
        backwards_ = true;
        if (!holds(before, split_input | split_weight)) return {};
        return refuse(fault::incomplete, reason::both_whole_and_split, rank, step, work,
                      like(work, holds(before, split_input) ? job_kind::backward_input
                                                            : job_kind::backward_weight));
      case job_kind::backward_input:
      case job_kind::backward_weight:
        backwards_ = true;
        if (!holds(before, whole)) return {};
        return refuse(fault::incomplete, reason::both_whole_and_split, rank, step, work,
                      like(work, job_kind::backward));
      case job_kind::recompute:
        if (!holds(before, whole | split_input)) return {};
        return needs_recompute(rank, work);
      default:
        return {};
    }
  }

  //! `recomputed` stands behind its backward: the fault is that backward's.
  constexpr verdict needs_recompute(int rank, const job& recomputed) const {
    int step = 0;
    const auto is_it = [&](const job& work) {
      return is_input_gradient(work.kind) && work.stage == recomputed.stage &&
             work.microbatch == recomputed.microbatch && work.slice == recomputed.slice;
    };
    while (!is_it(in_.rows.at(rank, step))) ++step;
    return refuse(fault::incomplete, reason::needs_earlier, rank, step, in_.rows.at(rank, step),
                  recomputed);
  }

  //! Jobs of a stage or a rank that stand once for all micro-batches.
  constexpr verdict enter_step_wide(int rank, int step, const job& work) {
    switch (work.kind) {
      case job_kind::unshard:
      case job_kind::reshard:
      case job_kind::reduce_grad:
        if (work.stage < 0 || work.stage >= stages_)
          return refuse(fault::incomplete, reason::out_of_range, rank, step, work);
        for (int replica = 0; replica < 2; ++replica) {
          if (host(work.stage, replica) != rank) continue;
          if (work.kind == job_kind::reduce_grad) enter_reduction(rank, work, replica);
          return {};
        }
        return refuse(fault::incomplete, reason::wrong_rank, rank, step, work);
      case job_kind::all_reduce:
        return enter_collective(rank, step, work);
      case job_kind::optimizer:
        if (updated_) return refuse(fault::incomplete, reason::duplicate, rank, step, work);
        updated_ = true;
        return nothing_follows(rank, step, work);
      default:
        if (ended_) return refuse(fault::incomplete, reason::duplicate, rank, step, work);
        ended_ = true;
        return {};
    }
  }

  constexpr void enter_reduction(int rank, const job& work, int replica) {
    if (!in_.is_data_parallel(rank, work))
      reduced_[2 * static_cast<std::int64_t>(work.stage) + replica] = true;
    else if (in_.groups[static_cast<std::size_t>(work.microbatch)].stage == work.stage)
      prepared_[work.microbatch] = true;
  }

  //! Above all no gradient and no reduction: it would come too late for the update.
  constexpr verdict nothing_follows(int rank, int step, const job& update) const {
    for (int later = step + 1; later < in_.rows.counts[rank]; ++later) {
      const job& work = in_.rows.at(rank, later);
      if (work.kind == job_kind::optimizer)
        return refuse(fault::incomplete, reason::duplicate, rank, later, work);
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
    if (last_joined_[work.microbatch] != rank + 1) ++joined_[work.microbatch];
    last_joined_[work.microbatch] = rank + 1;
    return {};
  }

  constexpr verdict absent_jobs() const {
    std::int64_t at = 0;
    for (int stage = 0; stage < stages_; ++stage)
      for (int microbatch = 0; microbatch < in_.microbatches; ++microbatch)
        for (int slice = 0; slice < in_.slices; ++slice, ++at) {
          // Both copies or none, and not of what a recompute saves anew.
          const int found = seen_[at] & ((seen_[at] & (copies | recompute)) == copies
                                             ? forward | backwards
                                             : forward | backwards | copies);
          // Forward-only lists have nothing to recompute or to reload for.
          if (backwards_
                  ? found == (forward | whole) || found == (forward | split_input | split_weight)
                  : found == forward && !holds(seen_[at], copies | recompute))
            continue;
          return absent_job(seen_[at], {.stage = stage,
                                        .microbatch = microbatch,
                                        .slice = static_cast<std::int16_t>(slice)});
        }
    return {};
  }

  //! Which job a (stage, micro-batch, slice) with these kinds lacks, and why it should be there.
  constexpr verdict absent_job(kind_set found, const job& place) const {
    const int rank = in_.where.rank_of(place.stage, place.microbatch);
    const auto lacks = [&](reason why, job_kind kind, job_kind because) {
      return refuse(fault::incomplete, why, rank, -1, like(place, kind), like(place, because));
    };
    if (!holds(found, forward))
      return refuse(fault::incomplete, reason::missing, rank, -1, like(place, job_kind::forward));
    if ((found & (split_input | split_weight)) == (split_input | split_weight))
      return lacks_copy(found, rank, place);
    if (holds(found, split_input))
      return lacks(reason::weight_gradient_missing, job_kind::backward_weight,
                   job_kind::backward_input);
    if (holds(found, split_weight))
      return lacks(reason::input_gradient_missing, job_kind::backward_input,
                   job_kind::backward_weight);
    if (!holds(found, whole))
      return refuse(fault::incomplete, reason::missing, rank, -1, like(place, job_kind::backward));
    return lacks_copy(found, rank, place);
  }

  //! The same of one that has its forward and its backward.
  constexpr verdict lacks_copy(kind_set found, int rank, const job& place) const {
    if (holds(found, recompute) && (found & copies) == copies)
      return refuse(fault::incomplete, reason::offload_recomputed, rank, -1,
                    like(place, job_kind::offload), like(place, job_kind::recompute));
    return refuse(fault::incomplete, reason::missing, rank, -1,
                  like(place, holds(found, only(job_kind::offload)) ? job_kind::reload
                                                                    : job_kind::offload));
  }

  //! Once one rank updates its weights, all do, after every reduction that feeds an update.
  constexpr verdict absent_updates() const {
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      const int there = static_cast<int>(stage);
      if (host(there, 0) == host(there, 1)) continue;
      for (int replica = 0; replica < 2; ++replica)
        if (!reduced_[2 * stage + replica])
          return refuse(fault::incomplete, reason::reduction_missing, host(there, replica), -1,
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
        if (!stands(member, [&](const job& work) {
              return work.kind == job_kind::all_reduce && work.microbatch == reduction.microbatch;
            }))
          return refuse(fault::incomplete, reason::reduction_missing, member, -1, reduction);
    }
    if (updates_ == in_.rows.ranks) return {};
    for (int rank = 0; rank < in_.rows.ranks; ++rank)
      if (!stands(rank, [](const job& work) { return work.kind == job_kind::optimizer; }))
        return refuse(fault::incomplete, reason::missing, rank, -1, {.kind = job_kind::optimizer});
    return {};
  }

  template <class Predicate>
  constexpr bool stands(int rank, Predicate matches) const {
    if (rank < 0 || rank >= in_.rows.ranks) return false;
    for (const job& work : in_.rows.row(rank))
      if (matches(work)) return true;
    return false;
  }

  //! What runs as one node is a forward and a backward that do not need each other.
  constexpr verdict pairs() const {
    for (int rank = 0; rank < in_.rows.ranks; ++rank) {
      const int count = in_.rows.counts[rank];
      for (int step = 0; step < count; ++step) {
        const job& work = in_.rows.at(rank, step);
        if (!work.paired) continue;
        if (step + 1 == count)
          return refuse(fault::incomplete, reason::not_a_pair, rank, step, work);
        const job& second = in_.rows.at(rank, step + 1);
        const job_kind other = work.kind == job_kind::forward ? second.kind : work.kind;
        const bool ahead = work.kind == job_kind::forward || second.kind == job_kind::forward;
        if (!ahead || !is_input_gradient(other) || second.paired ||
            work.microbatch == second.microbatch)
          return refuse(fault::incomplete, reason::not_a_pair, rank, step, work, second);
      }
    }
    return {};
  }

  //! The rank of one of a stage's two replicas; the same rank twice where there is but one.
  constexpr int host(int stage, int replica) const {
    if (in_.where.kind == placement_kind::bidirectional)
      return replica == 0 ? stage : in_.where.ranks - 1 - stage;
    return in_.where.rank_of(stage, 0);
  }

  const replay_input& in_;
  int stages_;
  scratch<kind_set> seen_;
  scratch<bool> reduced_;
  scratch<bool> prepared_;             // per group of data-parallel replicas
  scratch<std::int32_t> joined_;       // per group: ranks that join it
  scratch<std::int32_t> last_joined_;  // per group: the latest of them, plus one
  bool backwards_ = false;
  bool updated_ = false;  // this rank
  bool ended_ = false;    // this rank
  int updates_ = 0;       // ranks
};

}  // namespace detail

//! Rule `complete`. Each (stage, micro-batch, slice) has one forward, and either one whole backward
//! or one for the input and one for the weights (none at all when no list holds any: forward-only);
//! a recompute stands before the backward that needs it; what is copied to the host is copied back,
//! and not recomputed; a pair is a forward and a backward for the
//! input, whole or not, of different micro-batches; every job lies on the rank that the
//! placement names. Once a rank has an optimizer, every rank has one, last but for `end_step`, and
//! every reduction comes before it: of each stage with replicas on two ranks, of each group, over
//! data-parallel replicas with the job that prepares it.
//! Messages are looked at one by one only (range, rank, doubles): whether they suffice is the
//! business of `ordered` and `rendezvous`. Linear in the jobs.
//! @return ok, or fault::incomplete with the rank, the job, and its step unless it is absent.
constexpr verdict complete(const replay_input& input) {
  if (input.rows.ranks < 1) return refuse(fault::incomplete, reason::ranks_below_one);
  if (input.microbatches < 1) return refuse(fault::incomplete, reason::microbatches_below_one);
  if (input.slices < 1) return refuse(fault::incomplete, reason::slices_below_one);
  if (input.where.stages() < 1) return refuse(fault::incomplete, reason::chunks_below_one);
  return detail::completeness(input).run();
}

}  // namespace stretto::check
