#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "stretto/model/replay_input.hpp"
#include "stretto/plan/job_time.hpp"

namespace stretto {

//! One job (or copy, gather, sum) of a critical path.
struct critical_job {
  std::int32_t rank = 0;
  std::int32_t step = 0;  //!< in its rank's list; of a pair the first half's
  //! Both halves of a pair, which ran as one (those that were measured may have run one after the
  //! other: each is then a job by itself).
  bool pair = false;
  std::int32_t messages = 0;  //!< that come between the one before it and this, one after the other
  job_time when{};
  std::int64_t waited = 0;  //!< from the end of the one before it (or from 0) to its start

  constexpr bool operator==(const critical_job&) const = default;
};

namespace detail {

//! Goes back from what ends last to what let it begin when it did: of all that it waits for, as
//! replay and measure have it, what came last.
class critical_tracer {
 public:
  critical_tracer(const replay_input& input, std::span<const job_time> timeline)
      : in_(input),
        rows_(input.rows),
        timeline_(timeline),
        stages_(input.where.stages()),
        hop_(input.costs.hops()),
        made_(index(makers * stages_ * input.microbatches * input.slices), -1),
        link_(input.costs.serial_links ? made_.size() / 2 : 0),
        joined_(input.groups.size()),
        is_joined_(input.groups.size()) {
    for (int rank = 0; rank < rows_.ranks; ++rank)
      for (int step = 0; step < rows_.counts[rank]; ++step) note(rank, step);
    if (in_.costs.serial_links)
      for (int rank = 0; rank < rows_.ranks; ++rank) fill_links(rank);
  }

  std::vector<critical_job> run() const {
    std::vector<critical_job> path;
    std::int64_t last = -1;
    for (int rank = 0; rank < rows_.ranks; ++rank)
      for (int step = 0; step < rows_.counts[rank]; ++step)
        if (takes_time(rank, step) && (last < 0 || time(place(rank, step)).end > time(last).end))
          last = place(rank, step);
    const auto most = static_cast<std::size_t>(rows_.total());
    while (last >= 0) {
      if (path.size() > most) return {};  // in a circle, by a job that is there twice
      path.push_back(entry(first_half(last)));
      const cause before = before_of(first_half(last));
      path.back().messages = before.messages;
      path.back().waited =
          before.place < 0 ? time(last).start : time(last).start - time(before.place).end;
      last = before.place;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  //! What each (stage, micro-batch, slice) has one of, in this order.
  enum maker { output, gradient, away, back, makers };
  struct cause {
    std::int64_t place = -1;  // in the timeline; below 0: nothing
    std::int32_t messages = 0;
    std::int64_t there = -1;  // when it ended, or they were there

    //! The later one; of two at once the first.
    void add(const cause& other) {
      if (other.place >= 0 && (place < 0 || other.there > there)) *this = other;
    }
  };
  //! A message, where those of a link follow one another.
  struct link_message {
    std::int64_t there = -1;   // when
    std::int64_t before = -1;  // the one before it on its link
  };

  static std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }
  std::int64_t place(int rank, int step) const { return std::int64_t{rank} * rows_.stride + step; }
  int rank_of(std::int64_t at) const { return static_cast<int>(at / rows_.stride); }
  int step_of(std::int64_t at) const { return static_cast<int>(at % rows_.stride); }
  const job& work_at(std::int64_t at) const { return rows_.items[at]; }
  //! Of a pair the time of both.
  job_time time(std::int64_t at) const {
    const std::int64_t first = first_half(at);
    const job_time one = timeline_[index(first)];
    if (!is_pair(first)) return one;
    const job_time& other = timeline_[index(first + 1)];
    return {std::min(one.start, other.start), std::max(one.end, other.end)};
  }
  critical_job entry(std::int64_t at) const {
    return {.rank = rank_of(at), .step = step_of(at), .pair = is_pair(at), .when = time(at)};
  }
  std::int64_t cell(maker of, int stage, const job& work) const {
    return ((std::int64_t{of} * stages_ + stage) * in_.microbatches + work.microbatch) *
               in_.slices +
           work.slice;
  }
  std::int64_t made_by(maker of, int stage, const job& work) const {
    return made_[index(cell(of, stage, work))];
  }
  bool is_listed_pair(std::int64_t first) const {
    return is_compute(work_at(first).kind) && work_at(first).paired &&
           step_of(first) + 1 < rows_.counts[rank_of(first)];
  }
  //! And ran as one.
  bool is_pair(std::int64_t first) const {
    if (!is_listed_pair(first)) return false;
    const job_time &one = timeline_[index(first)], &other = timeline_[index(first + 1)];
    return one == other || (one.start < other.end && other.start < one.end);
  }
  bool is_second_half(std::int64_t at) const { return step_of(at) > 0 && is_pair(at - 1); }
  std::int64_t first_half(std::int64_t at) const { return is_second_half(at) ? at - 1 : at; }
  bool takes_time(int rank, int step) const {
    const job_kind kind = rows_.at(rank, step).kind;
    const job_time when = time(place(rank, step));
    return has_cost(kind) || (is_of_stage(kind) && when.end > when.start);
  }

  void note(int rank, int step) {
    const job& work = rows_.at(rank, step);
    const std::int64_t at = place(rank, step);
    if (work.kind == job_kind::forward) made_[index(cell(output, work.stage, work))] = at;
    if (is_input_gradient(work.kind)) made_[index(cell(gradient, work.stage, work))] = at;
    if (work.kind == job_kind::offload) made_[index(cell(away, work.stage, work))] = at;
    if (work.kind == job_kind::reload) made_[index(cell(back, work.stage, work))] = at;
    if (work.kind == job_kind::reduce_grad && takes_time(rank, step)) sums_.push_back(at);
    gathers_ = gathers_ || (work.kind == job_kind::unshard && time(at).end > time(at).start);
  }
  //! Messages of a rank leave in the order of its jobs, or of its sends where the list has them.
  void fill_links(int rank) {
    std::vector<std::int64_t> sent(index(rows_.ranks), -1);
    for (const job& work : rows_.row(rank)) {
      if (in_.messages ? !is_send(work.kind)
                       : work.kind != job_kind::forward && !is_input_gradient(work.kind))
        continue;
      const bool ahead = work.kind == job_kind::forward || work.kind == job_kind::send_forward;
      const int to = work.stage + (ahead ? 1 : -1);
      if (to < 0 || to == stages_) continue;
      const int peer = in_.where.rank_of(to, work.microbatch);
      if (peer == rank) continue;
      const std::int64_t at = cell(ahead ? output : gradient, work.stage, work);
      if (link_[index(at)].there >= 0) continue;  // of lists that have it twice the first
      std::int64_t& before = sent[index(peer)];
      const std::int64_t free = before < 0 ? 0 : link_[index(before)].there;
      link_[index(at)] = {std::max(free, time(made_[index(at)]).end) + hop_(rank, peer), before};
      before = at;
    }
  }

  //! What ended last of all that `at`, which is no second half, waits for.
  cause before_of(std::int64_t at) const {
    const job& work = work_at(at);
    if (work.kind == job_kind::reduce_grad) return before_sum(at);
    // A copy away waits for its forward, wherever it stands.
    cause last =
        work.kind == job_kind::offload ? ended(made_by(output, work.stage, work)) : on_rank(at);
    if (!is_compute(work.kind)) {
      const auto beside = [&](job_kind kind) {
        return is_copy(work.kind) ? is_copy(kind) : kind == work.kind;
      };
      last.add(ended(latest(at, [&](const job& other) { return beside(other.kind); })));
      return last;
    }
    for (std::int64_t half = at; half <= at + (is_pair(at) ? 1 : 0); ++half) {
      const job& one = work_at(half);
      last.add(input_of(one, rank_of(at)));
      if (is_input_gradient(one.kind)) last.add(ended(made_by(back, one.stage, one)));
      // Its weights are those that were gathered last.
      if (gathers_)
        last.add(ended(latest(at, [&](const job& other) {
          return other.kind == job_kind::unshard && other.stage == one.stage;
        })));
      last.add(posted(at, one));
    }
    return last;
  }
  cause ended(std::int64_t at) const {
    return at < 0 ? cause{} : cause{.place = at, .there = time(at).end};
  }
  //! The last in front of `at` in its list that is so; below 0: none.
  template <class Is>
  std::int64_t latest(std::int64_t at, const Is& is) const {
    for (std::int64_t other = at - 1; other >= place(rank_of(at), 0); --other)
      if (is(work_at(other))) return other;
    return -1;
  }
  //! What of the rank's own list is in front of `at`: its jobs, and copies away, which all behind
  //! them wait for; where it has come to a group with others what was in front of any of them.
  cause on_rank(std::int64_t at) const {
    cause last;
    for (std::int64_t other = at - 1; other >= place(rank_of(at), 0); --other) {
      const job& work = work_at(other);
      if (work.kind == job_kind::offload || is_compute(work.kind)) last.add(ended(other));
      if (is_compute(work.kind)) break;
      if (work.kind != job_kind::all_reduce || !in_.messages) continue;
      last.add(joined(index(work.microbatch)));
      break;
    }
    return last;
  }
  //! Of a group: found once, or all that come to several would be asked again for each.
  cause joined(std::size_t group) const {
    if (is_joined_[group]) return joined_[group];
    is_joined_[group] = true;  // nothing while it is looked for, by a list that has it twice
    cause last;
    for (const std::int32_t member : in_.groups[group].members) {
      const std::int64_t at = latest(place(member, rows_.counts[member]), [&](const job& one) {
        return one.kind == job_kind::all_reduce && index(one.microbatch) == group;
      });
      if (at >= 0) last.add(on_rank(at));
    }
    return joined_[group] = last;
  }
  //! What brought the input, or the gradient, of `work`.
  cause input_of(const job& work, int rank) const {
    const bool ahead = work.kind == job_kind::forward;
    const int from = work.stage + (ahead ? -1 : 1);
    if ((!ahead && !is_input_gradient(work.kind)) || from < 0 || from == stages_) return {};
    const maker of = ahead ? output : gradient;
    const std::int64_t made = made_by(of, from, work);
    const int peer = in_.where.rank_of(from, work.microbatch);
    if (peer == rank) return ended(made);
    const std::int64_t takes = hop_(peer, rank);
    if (!in_.costs.serial_links) return {made, 1, time(made).end + takes};
    std::int64_t sent = cell(of, from, work);
    const std::int64_t there = link_[index(sent)].there;
    // From the message back to the first that left as soon as it was made.
    std::int32_t messages = 1;
    for (; link_[index(sent)].before >= 0 &&
           time(made_[index(sent)]).end + takes != link_[index(sent)].there;
         ++messages)
      sent = link_[index(sent)].before;
    return {made_[index(sent)], messages, there};
  }
  //! What let the receive of `work`, of the node at `at`, be posted: its message leaves no sooner.
  cause posted(std::int64_t at, const job& work) const {
    if (in_.receive_lead < 0 || !in_.receives(work)) return {};
    const auto is_inner = [&](std::int64_t half) {
      return half >= 0 && step_of(half) > 0 && is_listed_pair(half - 1);
    };
    std::int64_t node = is_inner(at) ? at - 1 : at;
    for (int left = in_.receive_lead; left >= 0 && node >= 0; --left) do
        node = latest(node, [](const job& one) { return is_compute(one.kind); });
      while (is_inner(node));
    if (node < 0) return {};
    if (is_listed_pair(node) && time(node + 1).end > time(node).end) ++node;
    const int from = work.stage + (work.kind == job_kind::forward ? -1 : 1);
    const std::int64_t takes = hop_(in_.where.rank_of(from, work.microbatch), rank_of(at));
    return {node, 1, time(node).end + takes};
  }
  //! What a sum of gradients, which is one on all its ranks, waits for: their jobs, and the sums
  //! before it.
  cause before_sum(std::int64_t at) const {
    const auto key = [&](std::int64_t of) {
      return in_.groups.empty() ? work_at(of).stage : work_at(of).microbatch;
    };
    cause last;
    for (const std::int64_t part : sums_) {
      if (key(part) != key(at)) continue;
      last.add(on_rank(part));
      for (const std::int64_t other : sums_)
        if (rank_of(other) == rank_of(part) && time(other).end <= time(at).start)
          last.add(ended(other));
    }
    return last;
  }

  const replay_input& in_;
  job_rows rows_;
  std::span<const job_time> timeline_;
  int stages_;
  hop_times hop_;
  std::vector<std::int64_t> made_;     // places, by cell
  std::vector<link_message> link_;     // by the cell of what is sent
  std::vector<std::int64_t> sums_;     // places of those that take time
  bool gathers_ = false;               // there are some
  mutable std::vector<cause> joined_;  // of each group, where it is known
  mutable std::vector<bool> is_joined_;
};

inline void require_places(const job_rows& rows, std::span<const job_time> timeline) {
  for (std::int64_t rank = 0; rank < rows.ranks; ++rank)
    if (rows.counts[rank] > 0 && std::ssize(timeline) < rank * rows.stride + rows.counts[rank])
      throw std::invalid_argument("stretto: a timeline has not a place for every job");
}

}  // namespace detail

//! The chain of jobs and messages that a step is as long as: back from what ends last, each time to
//! what came last of all that it waited for. In a step that was simulated the chain has no gap: it
//! waits for messages alone, and what on it takes longer makes the step longer by as much (unless
//! sums of gradients then follow one another in another order). In one that was measured what else
//! is waited is neither job nor message. Where there are several such chains, one that changes
//! ranks where it must.
//! @param input     that keeps its rules, as `measure` replayed it; of a measured step its costs
//! say what messages take
//! @param timeline  as `measure` wrote it, sums of gradients included; or as it was measured
//! @return in the order of time; their times and waits sum to the makespan
//! @throws std::invalid_argument for a timeline without a place for every job
inline std::vector<critical_job> critical_path(const replay_input& input,
                                               std::span<const job_time> timeline) {
  detail::require_places(input.rows, timeline);
  return detail::critical_tracer(input, timeline).run();
}

}  // namespace stretto
