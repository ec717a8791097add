#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

//! The ranks that one collective joins; ascending.
struct rank_group {
  std::span<const std::int32_t> members;

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
};

//! Told of everything that runs, in an order in which every cause precedes its effects. Derive and
//! override by hiding what you need.
struct replay_observer {
  //! A job of `rank`, at `step` of its list. Both halves of a pair are told of, one by one.
  constexpr void ran(int /*rank*/, int /*step*/, const job& /*work*/, std::int64_t /*start*/,
                     std::int64_t /*end*/) {}
  //! A send and the receive it meets; only with replay_input::messages.
  constexpr void met(int /*sender*/, int /*send_step*/, int /*receiver*/, int /*receive_step*/) {}
  //! The collective of `group`, at steps[r] of every member r.
  constexpr void joined(const rank_group& /*group*/, const std::int32_t* /*steps*/) {}
};

namespace detail {

//! The state of one replay. A rank runs its list in order; a job runs when its inputs are there.
//! Ranks that cannot go on wait until the job that feeds them wakes them, so every job is looked at
//! a bounded number of times whatever the number of ranks.
template <class Observer>
class replay_engine {
 public:
  constexpr replay_engine(const replay_input& input, Observer& observer)
      : in_(input),
        observer_(observer),
        stages_(input.where.stages()),
        ended_(2 * cells()),
        arrived_(input.messages ? 2 * cells() : 1),
        clock_(input.rows.ranks),
        cursor_(input.rows.ranks),
        queue_(input.rows.ranks),
        queued_(input.rows.ranks) {}

  constexpr verdict run() {
    const int ranks = in_.rows.ranks;
    for (int rank = 0; rank < ranks; ++rank) wake(rank);
    while (waiting_ > 0) {
      const int rank = queue_[head_];
      head_ = head_ + 1 == ranks ? 0 : head_ + 1;
      --waiting_;
      queued_[rank] = false;
      while (cursor_[rank] < in_.rows.counts[rank] && advance(rank)) {
      }
      if (broken_.what != fault::none) return broken_;
    }
    for (int rank = 0; rank < ranks; ++rank)
      if (cursor_[rank] < in_.rows.counts[rank]) return stuck(rank);
    return {};
  }

 private:
  static constexpr std::int64_t never = 0;  // times are kept plus one

  constexpr std::int64_t cells() const {
    return static_cast<std::int64_t>(in_.where.stages()) * in_.microbatches * in_.slices;
  }
  constexpr std::int64_t cell(int backward, int stage, int microbatch, int slice) const {
    return ((static_cast<std::int64_t>(backward) * stages_ + stage) * in_.microbatches +
            microbatch) * in_.slices + slice;
  }
  constexpr bool inside(const job& work) const {
    return work.stage >= 0 && work.stage < stages_ && work.microbatch >= 0 &&
           work.microbatch < in_.microbatches && work.slice >= 0 && work.slice < in_.slices;
  }
  constexpr void wake(int rank) {
    if (rank < 0 || rank >= in_.rows.ranks || queued_[rank]) return;
    const int ranks = in_.rows.ranks;
    const int tail = head_ + waiting_ < ranks ? head_ + waiting_ : head_ + waiting_ - ranks;
    queue_[tail] = rank;
    ++waiting_;
    queued_[rank] = true;
  }

  //! When the input (backward: gradient) that `stage` makes is there for `rank`; never if not yet.
  constexpr std::int64_t ready_at(int rank, int backward, int stage, const job& work) const {
    const std::int64_t at = cell(backward, stage, work.microbatch, work.slice);
    if (in_.where.rank_of(stage, work.microbatch) == rank) return ended_[at];
    if (in_.messages) return arrived_[at];
    return ended_[at] == never ? never : ended_[at] + in_.costs.communication;
  }

  //! The earliest start of `work`, plus one; never while an input is missing, and then `missing`
  //! is the job that makes it.
  constexpr std::int64_t start_of(int rank, const job& work) {
    std::int64_t start = clock_[rank] + 1;
    const auto need = [&](std::int64_t when, int stage, job_kind kind, int slice) {
      if (when == never) {
        missing_ = {stage, work.microbatch, static_cast<std::int16_t>(slice), kind, false};
        start = never;
      } else if (start != never && when > start) {
        start = when;
      }
    };
    if (work.kind == job_kind::forward) {
      if (work.stage > 0)
        need(ready_at(rank, 0, work.stage - 1, work), work.stage - 1, job_kind::forward, work.slice);
      if (work.slice > 0)
        need(ended_[cell(0, work.stage, work.microbatch, work.slice - 1)], work.stage,
             job_kind::forward, work.slice - 1);
    } else if (is_input_gradient(work.kind)) {
      need(ended_[cell(0, work.stage, work.microbatch, work.slice)], work.stage,
           job_kind::forward, work.slice);
      if (work.stage + 1 < stages_)
        need(ready_at(rank, 1, work.stage + 1, work), work.stage + 1, work.kind, work.slice);
      if (work.slice + 1 < in_.slices)
        need(ended_[cell(1, work.stage, work.microbatch, work.slice + 1)], work.stage, work.kind,
             work.slice + 1);
    } else if (work.kind == job_kind::backward_weight) {
      need(ended_[cell(1, work.stage, work.microbatch, work.slice)], work.stage,
           job_kind::backward_input, work.slice);
    } else if (work.kind == job_kind::recompute) {
      need(ended_[cell(0, work.stage, work.microbatch, work.slice)], work.stage,
           job_kind::forward, work.slice);
    }
    return start;
  }

  constexpr void finish(int rank, int step, const job& work, std::int64_t start, std::int64_t end) {
    if (work.kind == job_kind::forward) {
      ended_[cell(0, work.stage, work.microbatch, work.slice)] = end;
      if (!in_.messages && work.stage + 1 < stages_)
        wake(in_.where.rank_of(work.stage + 1, work.microbatch));
    } else if (is_input_gradient(work.kind)) {
      ended_[cell(1, work.stage, work.microbatch, work.slice)] = end;
      if (!in_.messages && work.stage > 0)
        wake(in_.where.rank_of(work.stage - 1, work.microbatch));
    }
    observer_.ran(rank, step, work, start - 1, end - 1);
  }

  constexpr std::int64_t time_of(int rank, const job& work) const {
    if (!is_compute(work.kind)) return 0;
    return in_.costs.at(rank, in_.where.chunk_of(work), work.kind).time;
  }

  //! Runs what stands at the rank's cursor; false when it cannot run yet.
  constexpr bool advance(int rank) {
    const int step = cursor_[rank];
    const job& work = in_.rows.at(rank, step);
    if (is_message(work.kind)) return in_.messages ? meet(rank, step, work) : skip(rank);
    if (work.kind == job_kind::all_reduce && in_.messages) return join(rank, work);
    if (is_compute(work.kind) && !inside(work)) {
      broken_ = refuse(fault::incomplete, reason::out_of_range, rank, step, work);
      return false;
    }
    const bool pair = work.paired && step + 1 < in_.rows.counts[rank];
    std::int64_t start = start_of(rank, work);
    if (start == never) return false;
    std::int64_t time = time_of(rank, work);
    if (pair) {
      const job& second = in_.rows.at(rank, step + 1);
      if (!is_compute(second.kind) || !inside(second)) {
        broken_ = refuse(fault::incomplete, reason::out_of_range, rank, step + 1, second);
        return false;
      }
      const std::int64_t other = start_of(rank, second);
      if (other == never) return false;
      if (other > start) start = other;
      const std::int64_t other_time = time_of(rank, second);
      if (other_time > time) time = other_time;
    }
    const std::int64_t end = start + time;
    clock_[rank] = end - 1;
    cursor_[rank] = step + (pair ? 2 : 1);
    finish(rank, step, work, start, end);
    if (pair) finish(rank, step + 1, in_.rows.at(rank, step + 1), start, end);
    return true;
  }

  constexpr bool skip(int rank) {
    ++cursor_[rank];
    return true;
  }

  //! A message runs when both ranks stand at its halves.
  constexpr bool meet(int rank, int step, const job& work) {
    const bool sends = is_send(work.kind);
    const job partner = sends ? matching_receive(work) : matching_send(work);
    if (!inside(work) || !inside(partner)) {
      broken_ = refuse(fault::incomplete, reason::out_of_range, rank, step, work);
      return false;
    }
    missing_ = partner;
    const int peer = in_.where.rank_of(partner);
    const bool ahead =
        work.kind == job_kind::send_forward || work.kind == job_kind::receive_forward;
    const job& sender = sends ? work : partner;
    const std::int64_t made = cell(ahead ? 0 : 1, sender.stage, sender.microbatch, sender.slice);
    if (sends && ended_[made] == never) {
      missing_ = {sender.stage, sender.microbatch, sender.slice,
                  ahead ? job_kind::forward : job_kind::backward, false};
      return false;
    }
    if (cursor_[peer] >= in_.rows.counts[peer]) return false;
    const job& found = in_.rows.at(peer, cursor_[peer]);
    if (!(found == partner)) {
      // The peer stands at another message of the same channel: the k-th halves differ.
      const bool opposite = sends ? is_receive(found.kind) : is_send(found.kind);
      if (opposite && inside(found) &&
          in_.where.rank_of(sends ? matching_send(found) : matching_receive(found)) == rank)
        broken_ = refuse(fault::rendezvous, reason::message_mismatch, rank, step, work, found);
      return false;
    }
    if (ended_[made] == never) return false;
    arrived_[made] = ended_[made] + in_.costs.communication;
    const int from = sends ? rank : peer;
    const int to = sends ? peer : rank;
    const int send_step = cursor_[from]++;
    const int receive_step = cursor_[to]++;
    observer_.met(from, send_step, to, receive_step);
    wake(peer);
    return true;
  }

  //! A collective runs when all of its members stand at it.
  constexpr bool join(int rank, const job& work) {
    const auto group = static_cast<std::size_t>(work.microbatch);
    if (work.microbatch < 0 || group >= in_.groups.size() || !in_.groups[group].holds(rank)) {
      broken_ = refuse(fault::incomplete, reason::out_of_range, rank, cursor_[rank], work);
      return false;
    }
    missing_ = work;
    for (std::int32_t member : in_.groups[group].members) {
      if (cursor_[member] >= in_.rows.counts[member]) return false;
      const job& found = in_.rows.at(member, cursor_[member]);
      if (found.kind != job_kind::all_reduce || found.microbatch != work.microbatch) return false;
    }
    std::int64_t latest = 0;
    for (std::int32_t member : in_.groups[group].members)
      if (clock_[member] > latest) latest = clock_[member];
    observer_.joined(in_.groups[group], cursor_.data());
    for (std::int32_t member : in_.groups[group].members) {
      clock_[member] = latest;
      ++cursor_[member];
      if (member != rank) wake(member);
    }
    return true;
  }

  constexpr verdict stuck(int rank) {
    const int step = cursor_[rank];
    const job& work = in_.rows.at(rank, step);
    advance(rank);  // leaves what is missing in missing_
    const bool message = is_message(work.kind) || work.kind == job_kind::all_reduce;
    return refuse(message ? fault::rendezvous : fault::deadlocked,
                  message ? reason::message_unmatched : reason::waits_forever, rank, step, work,
                  missing_);
  }

  const replay_input& in_;
  Observer& observer_;
  int stages_;
  scratch<std::int64_t> ended_;
  scratch<std::int64_t> arrived_;
  scratch<std::int64_t> clock_;
  scratch<std::int32_t> cursor_;
  scratch<std::int32_t> queue_;
  scratch<bool> queued_;
  int head_ = 0;
  int waiting_ = 0;
  job missing_{};
  verdict broken_{};
};

}  // namespace detail

//! Runs the lists: the one engine behind the deadlock check, the timeline, the memory curve and the
//! lowering. A rank runs its jobs in order; a job starts when the rank is free and its inputs are
//! there (the maker's end, plus one hop if the maker is another rank); both halves of a pair start
//! together and their outputs leave at the end of the longer. Linear in the number of jobs.
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
