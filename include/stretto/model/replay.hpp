#pragma once

#include <cstddef>
#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/link_clocks.hpp"
#include "stretto/model/node_ends.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/replay_state.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

namespace detail {

//! The state of one replay. A rank runs its list in order; a job runs when its inputs are there.
//! Ranks that cannot go on wait until the job that feeds them wakes them, so every job is looked at
//! a bounded number of times whatever the number of ranks. Written in few, large statements: what a
//! compiler counts in a constant evaluation is statements and calls.
template <class Observer>
class replay_engine : replay_state {
 public:
  constexpr replay_engine(const replay_input& input, Observer& observer)
      : replay_state(input),
        observer_(observer),
        clocks_((3 + std::int64_t{input.where.chunks}) * input.rows.ranks),
        clock_(clocks_.data()),
        copy_clock_(clock_ + input.rows.ranks),
        gather_clock_(copy_clock_ + input.rows.ranks),
        gathered_(gather_clock_ + input.rows.ranks),
        links_(input.costs, input.rows.ranks, input.where.chunks),
        may_be_held_(input.receive_lead >= 0),
        places_(3 * std::int64_t{input.rows.ranks}),
        cursor_(places_.data()),
        queue_(cursor_ + input.rows.ranks),
        queued_(queue_ + input.rows.ranks),
        nodes_(input) {}
  constexpr ~replay_engine() = default;  // nvcc does not find it constexpr by itself

  constexpr verdict run() {
    const int ranks = in_.rows.ranks;
    for (int rank = 0; rank < ranks; ++rank) wake(rank);
    while (waiting_ > 0) {
      const int rank = queue_[head_];
      head_ = head_ + 1 == ranks ? 0 : head_ + 1;
      --waiting_;
      queued_[rank] = 0;
      while (cursor_[rank] < in_.rows.counts[rank] && advance(rank)) {
      }
      if (broken_.what != fault::none) return broken_;
    }
    for (int rank = 0; rank < ranks; ++rank)
      if (cursor_[rank] < in_.rows.counts[rank]) return stuck(rank);
    return {};
  }
  //! After run(), unless it found a job out of range: at what the rank stands still; ok when it has
  //! come to its end.
  constexpr verdict standing(int rank) const {
    return cursor_[rank] < in_.rows.counts[rank] ? stuck(rank) : verdict{};
  }

 private:
  constexpr void wake(int rank) {
    if (queued_[rank] != 0) return;
    const int tail = head_ + waiting_++;
    queue_[tail < in_.rows.ranks ? tail : tail - in_.rows.ranks] = rank;
    queued_[rank] = 1;
  }

  constexpr void finish(int rank, int step, const job& work, std::int64_t at, std::int64_t start,
                        std::int64_t end) {
    observer_.ran(rank, step, work, start - 1, end - 1);
    const bool ahead = work.kind == job_kind::forward;
    if (!ahead && work.kind != job_kind::backward && work.kind != job_kind::backward_input) return;
    (ahead ? forward_end_ : backward_end_)[at] = end;
    const int to = work.stage + (ahead ? 1 : -1);
    if (to < 0 || to == stages_) return;
    const int peer = in_.where.rank_of(to, work.microbatch);
    if (peer != rank && in_.messages) return;
    std::int64_t& there = ahead ? input_at_[at + stride_] : gradient_at_[at - stride_];
    there = peer == rank    ? end
            : links_.plain ? end + links_.hop.within
                           : links_.there(rank, peer, end);
    if (peer != rank && queued_[peer] == 0) wake(peer);
  }

  constexpr std::int64_t time_of(int rank, const job& work) const {
    // Asked once whether there are classes: a call a job costs a compiler.
    if (!alike_)
      return in_.costs.of(rank, in_.where.chunk_of(work.stage, work.microbatch), work).time;
    return in_.costs.at(rank, in_.where.chunk_of(work.stage, work.microbatch), work.kind).time;
  }

  //! Runs what stands at the rank's cursor; false when it cannot run yet.
  constexpr bool advance(int rank) {
    const int step = cursor_[rank];
    const job& work = in_.rows.items[static_cast<std::ptrdiff_t>(rank) * in_.rows.stride + step];
    if (work.kind > job_kind::recompute) return pass(rank, step, work);
    if (!inside(work)) return breaks(fault::incomplete, reason::out_of_range, rank, step, work);
    if (work.paired && step + 1 < in_.rows.counts[rank]) return pair(rank, step, work);
    const std::int64_t at = cell(work);
    const std::int64_t ready = inputs_at(work, at);
    if (ready == never) return false;
    std::int64_t start = ready > clock_[rank] ? ready : clock_[rank] + 1;
    if (may_be_held_) start = held(rank, start, work);
    const std::int64_t end = start + time_of(rank, work);
    clock_[rank] = end - 1;
    ++cursor_[rank];
    if (in_.receive_lead >= 0) nodes_.ended(rank, end);
    finish(rank, step, work, at, start, end);
    return true;
  }

  //! `start`, or later: when the weights are gathered, and the job's message comes, which it does
  //! late when its receive was posted late.
  constexpr std::int64_t held(int rank, std::int64_t start, const job& work) const {
    const std::int64_t weights =
        gathered_[std::int64_t{rank} * in_.where.chunks + in_.where.chunk_of(work)];
    if (weights > start) start = weights;
    if (in_.receive_lead < 0) return start;
    const std::int64_t posted = nodes_.posted(rank);
    if (posted == 0 || !in_.receives(work)) return start;
    const int from = work.stage + (work.kind == job_kind::forward ? -1 : 1);
    const std::int64_t there = posted + links_.hop(in_.where.rank_of(from, work.microbatch), rank);
    return there > start ? there : start;
  }

  //! Both halves start when all their inputs are there and end together, so what they make leaves
  //! then.
  constexpr bool pair(int rank, int step, const job& work) {
    const job& second = in_.rows.at(rank, step + 1);
    if (!is_compute(second.kind) || !inside(second))
      return breaks(fault::incomplete, reason::out_of_range, rank, step + 1, second);
    const std::int64_t one = inputs_at(work, cell(work));
    const std::int64_t two = inputs_at(second, cell(second));
    if (one == never || two == never) return false;
    std::int64_t start = one > two ? one : two;
    if (start <= clock_[rank]) start = clock_[rank] + 1;
    if (may_be_held_) start = held(rank, held(rank, start, work), second);
    const std::int64_t end =
        start + in_.costs.pair_time(time_of(rank, work), time_of(rank, second));
    clock_[rank] = end - 1;
    cursor_[rank] += 2;
    if (in_.receive_lead >= 0) nodes_.ended(rank, end);
    finish(rank, step, work, cell(work), start, end);
    finish(rank, step + 1, second, cell(second), start, end);
    return true;
  }

  //! What takes no time of the rank's: copies, messages, collectives, and the ends of a step.
  constexpr bool pass(int rank, int step, const job& work) {
    if (is_copy(work.kind)) return copy(rank, step, work);
    if (in_.messages && is_message(work.kind)) return meet(rank, step, work);
    if (in_.messages && work.kind == job_kind::all_reduce) return join(rank, work);
    if (work.kind == job_kind::unshard) return gather(rank, step, work);
    ++cursor_[rank];
    if (!is_message(work.kind)) observer_.ran(rank, step, work, clock_[rank], clock_[rank]);
    return true;
  }

  //! Copies follow one another beside the jobs. An offload starts as soon as its forward has ended,
  //! wherever it stands; who stands behind it may use the bytes that it gives back, and waits for
  //! its end: all do, whether they use them or not. A reload may use whatever is given back by
  //! those before it, and waits for them; none but its backward waits for it.
  constexpr bool copy(int rank, int step, const job& work) {
    if (!inside(work)) return breaks(fault::incomplete, reason::out_of_range, rank, step, work);
    const std::int64_t at = cell(work);
    const bool away = work.kind == job_kind::offload;
    if (away ? forward_end_[at] == never || backward_end_[at] != never || copied_[at] != 0
             : copied_[at] >= 0)
      return false;
    const std::int64_t ready = away ? forward_end_[at] : clock_[rank] + 1;
    const std::int64_t start = ready > copy_clock_[rank] ? ready : copy_clock_[rank] + 1;
    const std::int64_t end = start + time_of(rank, work);
    copied_[at] = away ? -end : end;
    copy_clock_[rank] = end - 1;
    if (away && clock_[rank] < end - 1) clock_[rank] = end - 1;
    ++cursor_[rank];
    observer_.ran(rank, step, work, start - 1, end - 1);
    return true;
  }

  //! Weights are gathered beside the jobs, one stage's after another's. They may take the room of
  //! what is dropped before them, and wait for all jobs there; those of their stage behind them
  //! wait for their end.
  constexpr bool gather(int rank, int step, const job& work) {
    const int chunk = work.stage < stages_ ? in_.where.chunk_on(rank, work.stage) : -1;
    if (chunk < 0) return breaks(fault::incomplete, reason::out_of_range, rank, step, work);
    const std::int64_t start =
        clock_[rank] > gather_clock_[rank] ? clock_[rank] : gather_clock_[rank];
    const std::int64_t end = start + in_.costs.at(rank, chunk, job_kind::unshard).time;
    gather_clock_[rank] = end;
    gathered_[std::int64_t{rank} * in_.where.chunks + chunk] = end + 1;
    may_be_held_ = true;
    ++cursor_[rank];
    observer_.ran(rank, step, work, start, end);
    return true;
  }

  //! A message runs when both ranks stand at its halves.
  constexpr bool meet(int rank, int step, const job& work) {
    const bool sends = is_send(work.kind);
    if (!inside(work)) return breaks(fault::incomplete, reason::out_of_range, rank, step, work);
    const job partner = sends ? matching_receive(work) : matching_send(work);
    if (!inside(partner)) return breaks(fault::incomplete, reason::out_of_range, rank, step, work);
    const int peer = in_.where.rank_of(partner);
    if (cursor_[peer] >= in_.rows.counts[peer]) return false;
    const job& found = in_.rows.at(peer, cursor_[peer]);
    if (found.kind != partner.kind || !(found == partner)) {
      // The peer stands at another message of the same channel: the k-th halves differ.
      const bool opposite = sends ? is_receive(found.kind) : is_send(found.kind);
      if (opposite && inside(found) &&
          in_.where.rank_of(sends ? matching_send(found) : matching_receive(found)) == rank) {
        broken_ = refuse(fault::rendezvous, reason::message_mismatch, rank, step, work, found);
      }
      return false;
    }
    const bool ahead = (sends ? work : partner).kind == job_kind::send_forward;
    const std::int64_t from = cell(sends ? work : partner);
    const std::int64_t made = ahead ? forward_end_[from] : backward_end_[from];
    if (made == never) return false;
    (ahead ? input_at_[from + stride_] : gradient_at_[from - stride_]) =
        links_.there(sends ? rank : peer, sends ? peer : rank, made);
    const int mine = cursor_[rank]++;
    const int theirs = cursor_[peer]++;
    observer_.met(sends ? rank : peer, sends ? mine : theirs, sends ? peer : rank,
                  sends ? theirs : mine);
    wake(peer);
    return true;
  }

  //! A collective runs when all of its members stand at it.
  constexpr bool join(int rank, const job& work) {
    const auto group = static_cast<std::size_t>(work.microbatch);
    if (work.microbatch < 0 || group >= in_.groups.size() || !in_.groups[group].holds(rank))
      return breaks(fault::incomplete, reason::out_of_range, rank, cursor_[rank], work);
    std::int64_t latest = 0;
    for (std::int32_t member : in_.groups[group].members) {
      if (cursor_[member] >= in_.rows.counts[member]) return false;
      const job& found = in_.rows.at(member, cursor_[member]);
      if (found.kind != job_kind::all_reduce || found.microbatch != work.microbatch) return false;
      if (clock_[member] > latest) latest = clock_[member];
    }
    observer_.joined(in_.groups[group], cursor_);
    for (std::int32_t member : in_.groups[group].members) {
      clock_[member] = latest;
      ++cursor_[member];
      if (member != rank) wake(member);
    }
    return true;
  }

  constexpr bool breaks(fault what, reason why, int rank, int step, const job& work) {
    broken_ = refuse(what, why, rank, step, work);
    return false;
  }

  //! The verdict on a rank that stands still: its job, and the one that it waits for.
  constexpr verdict stuck(int rank) const {
    const int step = cursor_[rank];
    const job& work = in_.rows.at(rank, step);
    if (is_message(work.kind))
      return refuse(fault::rendezvous, reason::message_unmatched, rank, step, work,
                    is_send(work.kind) ? matching_receive(work) : matching_send(work));
    if (!has_cost(work.kind))
      return refuse(fault::rendezvous, reason::message_unmatched, rank, step, work);
    job missing = missing_for(work);
    if (work.paired && step + 1 < in_.rows.counts[rank] && !is_copy(work.kind) &&
        inputs_at(work, cell(work)) != never)
      missing = missing_for(in_.rows.at(rank, step + 1));
    return refuse(fault::deadlocked, reason::waits_forever, rank, step, work, missing);
  }

  Observer& observer_;
  scratch<std::int64_t> clocks_;  // behind the pointers
  std::int64_t* clock_;
  std::int64_t* copy_clock_;
  std::int64_t* gather_clock_;
  std::int64_t* gathered_;  // when each rank's chunks have weights that were gathered, plus one
  link_clocks links_;
  bool may_be_held_;        // jobs wait for more than inputs: late messages, weights
  scratch<std::int32_t> places_;  // behind the pointers
  std::int32_t* cursor_;
  std::int32_t* queue_;
  std::int32_t* queued_;
  int head_ = 0;
  int waiting_ = 0;
  verdict broken_{};
  node_ends nodes_;  // while a lead is asked for
};

}  // namespace detail

//! Runs the lists: the one engine behind the deadlock check, the timeline, the memory curve and the
//! lowering. A rank runs its jobs in order; a job starts when the rank is free and its inputs are
//! there (the maker's end, plus one hop if the maker is another rank, behind the messages before it
//! where links carry one at a time); both halves of a pair start
//! together and their outputs leave at the end of the longer. Copies to the host and back follow
//! one another beside the jobs, and so do gathers of sharded weights, for which the jobs of their
//! stage wait. With a receive lead a message leaves when its receive is posted, if that is later.
//! Linear in the number of jobs.
//! @return ok when every job ran; otherwise `deadlocked` or `rendezvous` with the first rank that
//!         is stuck, its job and the job it waits for, or `incomplete` for a job out of range.
template <class Observer>
constexpr verdict replay(const replay_input& input, Observer& observer) {
  return detail::replay_engine<Observer>(input, observer).run();
}

//! The same with nobody watching: only whether it ends.
constexpr verdict replay(const replay_input& input) {
  replay_observer nobody;
  return replay(input, nobody);
}

}  // namespace stretto
