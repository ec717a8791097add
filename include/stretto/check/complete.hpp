#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/check/complete_updates.hpp"
#include "stretto/check/doubled.hpp"
#include "stretto/check/kind_set.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::check {

//! What lists are for. Those that plans are written from hold compute jobs and copies alone, and
//! backwards if they are to train, and none where they are forwards; `jobs` may be either.
enum class lists_of : std::uint8_t { anything, jobs, forwards, training };

namespace detail {

//! The walk behind check::complete: first what stands in the lists, then what does not.
class completeness {
 public:
  constexpr completeness(const replay_input& input, lists_of of)
      : in_(input),
        of_(of),
        stages_(input.where.stages()),
        seen_(static_cast<std::int64_t>(stages_) * input.microbatches * input.slices),
        updates_(input),
        backwards_(of == lists_of::training) {}

  constexpr verdict run() {
    for (int rank = 0; rank < in_.rows.ranks; ++rank) {
      updates_.come_to(rank);
      const job* const list = in_.rows.items + std::int64_t{rank} * in_.rows.stride;
      const std::int32_t count = in_.rows.counts[rank];
      for (int step = 0; step < count; ++step) {
        job work = list[step];  // a copy is read faster by a compiler
        if (of_ != lists_of::anything && !has_cost(work.kind))
          return refuse(fault::incomplete, reason::unexpected_communication, rank, step, work);
        const verdict found =
            is_of_cell(work.kind) ? enter(rank, step, work) : updates_.enter(step, work);
        if (found.what != fault::none) return found;
      }
    }
    if (of_ == lists_of::forwards && backwards_) return a_backward();
    if (const verdict found = absent_jobs(); !found) return found;
    if (const verdict found = updates_.absent(); !found) return found;
    return pairs();
  }

 private:
  static constexpr kind_set whole = only(job_kind::backward);
  static constexpr kind_set split_input = only(job_kind::backward_input);
  static constexpr kind_set split_weight = only(job_kind::backward_weight);
  static constexpr int backwards = whole | split_input | split_weight;
  static constexpr kind_set forward = only(job_kind::forward);
  static constexpr kind_set recompute = only(job_kind::recompute);
  static constexpr kind_set copies = only(job_kind::offload, job_kind::reload);

  //! The first.
  constexpr verdict a_backward() const {
    for (int rank = 0; rank < in_.rows.ranks; ++rank)
      for (int step = 0; step < in_.rows.counts[rank]; ++step)
        if (const job& work = in_.rows.at(rank, step); holds(backwards, only(work.kind)))
          return refuse(fault::incomplete, reason::backward_of_forwards, rank, step, work);
    return {};
  }
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
    if (holds(before, mine)) return doubled(fault::incomplete, in_.rows, rank, step, work);
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
        if (of_ != lists_of::anything && in_.slices > 1)
          return refuse(fault::unsupported, reason::slices_not_recomputed, rank, step, work);
        if (!holds(before, whole | split_input)) return {};
        return needs_recompute(rank, work);
      case job_kind::offload:
      case job_kind::reload:
        if (of_ == lists_of::anything || in_.slices == 1) return {};
        return refuse(fault::unsupported, reason::slices_not_offloaded, rank, step, work);
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

  const replay_input& in_;
  lists_of of_;
  int stages_;
  scratch<kind_set> seen_;
  update_completeness updates_;
  bool backwards_;  // there are some, or must be
};

}  // namespace detail

//! Rule `complete`. Each (stage, micro-batch, slice) has one forward, and either one whole backward
//! or one for the input and one for the weights (none at all when no list holds any: forward-only,
//! unless it is to train);
//! a recompute stands before the backward that needs it; what is copied to the host is copied back,
//! and not recomputed; a pair is a forward and a backward for the
//! input, whole or not, of different micro-batches; every job lies on the rank that the
//! placement names. Once a rank has an optimizer, every rank has one, last but for `end_step`, and
//! every reduction comes before it: of each stage with replicas on two ranks, of each group, over
//! data-parallel replicas with the job that prepares it.
//! Messages are looked at one by one only (range, rank, doubles): whether they suffice is the
//! business of `ordered` and `rendezvous`. Linear in the jobs.
//! @return ok, or fault::incomplete with the rank, the job, and its step unless it is absent.
constexpr verdict complete(const replay_input& input, lists_of of = lists_of::anything) {
  if (input.rows.ranks < 1) return refuse(fault::incomplete, reason::ranks_below_one);
  if (input.where.ranks != input.rows.ranks) return refuse(fault::incomplete, reason::ranks_differ);
  if (input.microbatches < 1) return refuse(fault::incomplete, reason::microbatches_below_one);
  if (input.slices < 1) return refuse(fault::incomplete, reason::slices_below_one);
  if (input.where.stages() < 1) return refuse(fault::incomplete, reason::chunks_below_one);
  return detail::completeness(input, of).run();
}

}  // namespace stretto::check
