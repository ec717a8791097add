#pragma once

#include <cstdint>
#include <type_traits>

#include "stretto/base/scratch.hpp"
#include "stretto/model/bound_chain.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/link_bound.hpp"
#include "stretto/model/placement.hpp"

namespace stretto {

//! What no order of a training step can be faster than, in the unit of the costs.
struct step_bound {
  std::int64_t flush = 0;  //!< for the makespan: from the first job of any rank to the last of any
  std::int64_t span = 0;   //!< for the longest rank's first to last job

  constexpr bool operator==(const step_bound&) const = default;
};

//! Of a step whose jobs all stand in its schedule: see lower_bound.
struct nothing_put_in {};

namespace detail {

//! What one rank brings into the bound: extremes over its stages.
struct rank_bound {
  std::int64_t jobs = 0;      // of a kind
  std::int64_t forwards = 0;  // time of all of them
  std::int64_t backwards = 0;
  std::int64_t start = 0;  // the earliest start of its first forward
  std::int64_t back = 0;   // the earliest start of its first backward
  std::int64_t tail = 0;   // from the end of its last one to the end of the first stage's
  std::int64_t wait = 0;   // the least from a micro-batch's first forward to its first backward
  std::int64_t longest_forward = 0;
  std::int64_t longest_deferred = 0;  // of a backward: what can run when its gradient has gone on
  std::int64_t least_kept = 0;        // memory that a forward takes
  std::int64_t least_pending = 0;     // memory that a backward for the weights gives back
  std::int64_t again = 0;             // time of forwards that run again, or of the waits instead
  std::int64_t longest_again = 0;     // the longest of these
  bool balanced = true;               // no micro-batch gives back more than it took
};

//! Micro-batches whose forwards run again, and which are copied to the host, on chunks where some
//! are.
struct put_in_count {
  std::int32_t again = 0;
  std::int32_t copied = 0;
};

constexpr void keep_less(std::int64_t& least, std::int64_t value, bool first) {
  if (first || value < least) least = value;
}
constexpr void keep_more(std::int64_t& most, std::int64_t value) {
  if (value > most) most = value;
}

//! What is put in between jobs of one chunk. A forward that runs again does so right before its
//! backward, but for one whose backward stands right behind it: then the rank waits for its
//! gradient meanwhile. Of one at a time that fills a wait which counts anyway.
//! @param wait  from the end of the forward until its gradient can be there
template <class PutIn>
constexpr void add_put_in(const job_table_view& costs, int rank, int chunk, std::int64_t wait,
                          const PutIn& put, const put_in_count& counts, rank_bound& of) {
  const std::int64_t kept = costs.at(rank, chunk, job_kind::forward).change;
  if (counts.copied > 0 && put.offload.which.holds(chunk))
    keep_less(of.least_kept, kept + costs.at(rank, chunk, job_kind::offload).change, false);
  if (counts.again == 0 || !put.recompute.holds(chunk)) return;
  const job_cost& second = costs.at(rank, chunk, job_kind::recompute);
  keep_less(of.least_kept, kept - second.change, false);
  const std::int64_t each = second.time < wait ? second.time : wait;
  of.again += counts.again * each;
  keep_more(of.longest_again, each);
}

//! @param count  micro-batches that go this way
//! @param counts  of these, those that something is put in for
template <class PutIn>
constexpr void add_chain(const bound_chain& chain, int count, const PutIn& put,
                         const put_in_count& counts, scratch<rank_bound>& ranks,
                         scratch<bool>& seen) {
  const int stages = chain.where.stages();
  std::int64_t through = 0;
  for (int stage = 0; stage < stages; ++stage)
    through += chain.forward(stage) + (stage + 1 < stages ? chain.hop(stage) : 0);
  scratch<std::int64_t> enters(chain.where.ranks);  // its first forward there, plus one
  std::int64_t arrives = 0;
  std::int64_t returns = through;  // when stage 0's gradient could be there, less what follows
  std::int64_t tail = 0;
  for (int stage = stages - 1; stage > 0; --stage)
    returns += chain.gradient(stage) + chain.hop(stage - 1);
  for (int stage = 0; stage < stages; ++stage) {
    const int rank = chain.rank(stage);
    rank_bound& of = ranks[rank];
    const bool first = !seen[rank];
    seen[rank] = true;
    const int chunk = chain.where.chunk_of(stage, chain.microbatch);
    const job_cost& f = chain.costs.at(rank, chunk, job_kind::forward);
    const job_cost& b = chain.costs.at(rank, chunk, job_kind::backward_input);
    const job_cost& w = chain.costs.at(rank, chunk, job_kind::backward_weight);
    const job_cost& whole = chain.costs.at(rank, chunk, job_kind::backward);
    const backward_time least(chain.costs, rank, chunk);
    of.jobs += count;
    of.forwards += count * f.time;
    of.backwards += count * least.all;
    keep_less(of.start, arrives, first);
    keep_less(of.back, returns, first);
    keep_less(of.tail, tail, first);
    if (enters[rank] == 0) enters[rank] = arrives + 1;
    keep_less(of.wait, returns - enters[rank] + 1, first);
    keep_less(of.least_kept, f.change, first);
    keep_less(of.least_pending, -w.change, first);
    if constexpr (!std::is_same_v<PutIn, nothing_put_in>)
      add_put_in(chain.costs, rank, chunk, returns - arrives - f.time, put, counts, of);
    keep_more(of.longest_forward, f.time);
    keep_more(of.longest_deferred, least.deferred);
    of.balanced =
        of.balanced && f.change + b.change + w.change >= 0 && f.change + whole.change >= 0;
    if (stage + 1 == stages) break;
    arrives += f.time + chain.hop(stage);
    returns -= chain.gradient(stage + 1) + chain.hop(stage);
    tail += least.gradient + chain.hop(stage);
  }
}

constexpr std::int64_t at_most(std::int64_t room, std::int64_t each, std::int64_t count) {
  if (each <= 0 || room / each >= count) return count;
  return room < 0 ? 0 : room / each;
}

}  // namespace detail

//! Lower bounds on a training step of whole or split backwards, for any order within the table's
//! limits of memory. A backward takes what is less, B or I + W, of which min(B, I) until its
//! gradient is there; the rest, w, can be put off. With, on rank r, P forwards that fit its limit
//! at once, and Q backwards whose w can be put off while the last gradient is made:
//! - the rank is idle until its first forward can start, and again for I_r when P forwards are done
//!   before the first gradient can be back (for the span: that of the micro-batch whose forward
//!   the gradient follows soonest);
//! - its last gradient is there no earlier than after its work less (Q + 1) w, and from there the
//!   chain to stage 0 and one more w follow.
//! flush >= work + start + I + max(0, tail - Q w), span >= work + max(I, start + I + tail - Q w),
//! for every rank; the last because the step of the first stage's rank holds every chain from its
//! start to its end. With one chunk, memory given back at the end of a backward alone, and M < m
//! micro-batches that fit, forward k also waits for the end of the backward of k - M. Where links
//! carry one message at a time, see link_bound. Where costs
//! differ between the chunks of a rank, the largest, or smallest, stand in for them; where pairs
//! save time, all is taken to be paired. Exact for one chunk, f = b = w and M >= p; loose where
//! memory is tight and v >= 2. What is put in between the jobs adds the time of forwards that run
//! again, and keeps less. The extension to limits, and to whole backwards, of the bubble
//! formulas of Qi et al. 2023.
//! @param put     memory::windows that stand in the lists beside the schedule's jobs; of whole
//!                micro-batches, not of slices
//! @param slices  of a micro-batch, whose costs are those of one
//! @return of a table of fewer ranks or chunks: 0
template <class PutIn = nothing_put_in>
constexpr step_bound lower_bound(const placement& where, const job_table_view& costs,
                                 const PutIn& put = {}, int slices = 1) {
  using namespace detail;
  if (where.ranks < 1 || costs.ranks < where.ranks || costs.chunks < where.chunks ||
      static_cast<std::int64_t>(costs.entries.size()) < costs.class_entries())
    return {};
  const bool alike = costs.classes.empty();
  const int count = alike ? where.microbatches * slices : static_cast<int>(costs.classes.size());
  const bool two_ways = where.kind == placement_kind::bidirectional && where.microbatches > 1;
  scratch<rank_bound> ranks(where.ranks);
  scratch<bool> seen(where.ranks);
  link_bound links(where, costs);
  // The last backward of a chain ends on the rank of a first stage.
  std::int64_t last_deferred = unlimited;
  scratch<int> counts(alike ? 2 : 2 * costs.class_count());  // of each class, one way and the other
  if (alike) {
    counts[1] = two_ways ? where.microbatches / 2 * slices : 0;
    counts[0] = count - counts[1];
  }
  for (std::size_t at = 0; at < costs.classes.size(); ++at)
    ++counts[2 * costs.classes[at] + where.direction(static_cast<int>(at) / costs.slices)];
  scratch<put_in_count> put_in(counts.size());
  if constexpr (!std::is_same_v<PutIn, nothing_put_in>)
    for (int microbatch = 0; microbatch < count; ++microbatch) {
      const std::int64_t number = alike ? 0 : costs.classes[static_cast<std::size_t>(microbatch)];
      const int way = two_ways ? where.direction(microbatch) : 0;
      put_in[2 * number + way].again += put.recompute.in_turn(microbatch);
      put_in[2 * number + way].copied += put.offload.which.in_turn(microbatch);
    }
  for (std::int64_t one = 0; one < costs.class_count(); ++one) {
    const job_table_view of = costs.of_class(one);
    const int ahead = counts[2 * one];
    const int back = counts[2 * one + 1];
    const bound_chain there{where, of, 0};
    const bound_chain other{where, of, where.microbatches - 1};
    if (ahead > 0) add_chain(there, ahead, put, put_in[2 * one], ranks, seen);
    if (two_ways && back > 0) add_chain(other, back, put, put_in[2 * one + 1], ranks, seen);
    if (costs.serial_links && ahead > 0) links.add(there, ahead);
    if (costs.serial_links && two_ways && back > 0) links.add(other, back);
    const auto end_at = [&](int microbatch) {
      const int rank = where.rank_of(0, microbatch);
      keep_less(last_deferred, backward_time(of, rank, where.chunk_of(0, microbatch)).deferred,
                false);
    };
    if (ahead > 0) end_at(0);
    if (two_ways && back > 0) end_at(where.microbatches - 1);
  }
  step_bound found;
  keep_more(found.flush, links.flush());
  if (!two_ways) keep_more(found.span, links.flush());
  for (int rank = 0; rank < where.ranks; ++rank) {
    if (!seen[rank]) continue;
    const rank_bound& of = ranks[rank];
    const std::int64_t jobs = of.jobs;
    const std::int64_t limit = costs.limit_of(rank);
    const bool free = limit == unlimited;
    const std::int64_t room = free ? 0 : limit - costs.base_of(rank);
    const std::int64_t ahead = free ? jobs : at_most(room, of.least_kept, jobs);
    const std::int64_t pending =
        free || !of.balanced ? jobs - 1 : at_most(room - of.least_kept, of.least_pending, jobs - 1);
    const auto idle_for = [&](std::int64_t time) {
      const std::int64_t idle = time - ahead * of.longest_forward;
      return idle > 0 ? idle : 0;
    };
    const std::int64_t work = costs.pair_time(of.forwards, of.backwards)  // all paired, at best
                              + of.again - of.longest_again;
    const std::int64_t early = work + idle_for(of.back - of.start);
    const std::int64_t chained =
        of.start + early + of.tail + last_deferred - (pending + 1) * of.longest_deferred;
    keep_more(found.flush, of.start + early);
    keep_more(found.flush, chained);
    keep_more(found.span, work + idle_for(of.wait));
    if (!two_ways) keep_more(found.span, chained);

    const auto change = [&](job_kind kind) { return costs.at(rank, 0, kind).change; };
    if (jobs != count || two_ways || !alike || !of.balanced || ahead >= count || ahead < 1 ||
        change(job_kind::backward_input) < 0)
      continue;
    const std::int64_t f = costs.at(rank, 0, job_kind::forward).time;
    const std::int64_t held = of.back - of.start + backward_time(costs, rank, 0).all;
    const std::int64_t chain = (count - 1) / ahead * held + (count - 1) % ahead * f + held;
    keep_more(found.flush, of.start + chain);
    keep_more(found.span, chain);
  }
  return found;
}

}  // namespace stretto
