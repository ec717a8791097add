#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/receive_gates.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::lowering {

//! Storage for one global order: the ranks in the order in which they issue their compute nodes (a
//! pair is one node). Together with the lists it is the proof that no rank can block another: the
//! messages of a node follow it at once, send and receive adjacent. Where a receive lead keeps a
//! message back, an entry of its own says when it comes: `late` of the receiving rank.
struct order_sink {
  std::int32_t* ranks = nullptr;
  std::int64_t count = 0;
  bool has_late = false;

  static constexpr std::int32_t late(int receiver) { return ~receiver; }
};

//! Entries of the order of so many compute jobs, at most.
constexpr std::int64_t order_room(std::int64_t compute_jobs, int receive_lead) {
  return receive_lead < 0 ? compute_jobs : 2 * compute_jobs;
}

//! The same, read only.
struct order_view {
  const std::int32_t* ranks = nullptr;
  std::int64_t count = 0;
  bool has_late = false;

  constexpr order_view() = default;
  constexpr order_view(const std::int32_t* ranks_, std::int64_t count_, bool has_late_ = false)
      : ranks(ranks_), count(count_), has_late(has_late_) {}
  constexpr order_view(const order_sink& written)
      : ranks(written.ranks), count(written.count), has_late(written.has_late) {}
};

//! Jobs that the longest list may hold once messages are added: every compute job receives at most
//! one message and sends at most one.
constexpr int with_messages(int compute_jobs) { return 3 * compute_jobs; }

namespace detail {

//! When a job ends, and when the replay ran it.
struct job_end {
  std::int64_t time;
  std::int64_t turn;
};

//! Notes them of every job; of a copy, those of the job before it: whatever takes so long, messages
//! behind it need not wait.
struct end_times : replay_observer {
  job_end* ends;
  int stride;
  std::int64_t turn = 0;

  constexpr end_times(job_end* ends_, int stride_) : ends(ends_), stride(stride_) {}
  constexpr void ran(int rank, int step, const job& work, std::int64_t, std::int64_t end) {
    job_end& here = ends[static_cast<std::int64_t>(rank) * stride + step];
    if (work.kind > job_kind::recompute) here = *(&here - 1);
    else here.time = end, here.turn = turn++;
  }
};

//! Messages whose receives are not to be posted yet.
class held_messages {
 public:
  constexpr explicit held_messages(const replay_input& compute)
      : gates_(compute),
        stride_(compute.rows.stride),
        ended_(compute.receive_lead < 0 ? 0 : compute.rows.ranks),
        made_(compute.receive_lead < 0 ? 0 : 2 * std::int64_t{compute.rows.ranks} * stride_) {}
  constexpr ~held_messages() = default;  // nvcc does not find it constexpr by itself

  //! Keeps what `made` of `rank` has for stage `to` of `peer` until that has run the node behind
  //! which it may post the receive. @return false when it has
  constexpr bool keep(const job& made, int rank, int to, int peer) {
    if (ended_.size() == 0) return false;
    const std::int32_t gate = gates_.of(to, made, made.kind == job_kind::forward);
    if (gate < ended_[peer]) return false;
    message* const here = &made_[2 * (std::int64_t{peer} * stride_ + gate)];
    (here->from == 0 ? here[0] : here[1]) = {made, rank + 1};  // a node has two jobs at most
    return true;
  }
  //! The rank has run its next node: tells `send(made, rank)` of what it may receive now.
  template <class Send>
  constexpr void ended(int rank, const Send& send) {
    if (ended_.size() == 0) return;
    const message* const here = &made_[2 * (std::int64_t{rank} * stride_ + ended_[rank]++)];
    for (int one = 0; one < 2 && here[one].from > 0; ++one)
      send(here[one].made, here[one].from - 1);
  }

 private:
  struct message {
    job made{};
    std::int32_t from = 0;  // its rank, plus one
  };
  receive_gates gates_;
  int stride_;
  scratch<std::int32_t> ended_;  // nodes of each rank
  scratch<message> made_;        // two for each node of a rank
};

//! Appends the message from `made` of `rank` to stage `to` of `peer` to both ranks' lists.
constexpr void append_message(const job& made, int rank, int to, int peer, job_sink& out) {
  const bool ahead = made.kind == job_kind::forward;
  out.push(rank, {made.stage, made.microbatch, made.slice,
                  ahead ? job_kind::send_forward : job_kind::send_backward, false});
  out.push(peer, {to, made.microbatch, made.slice,
                  ahead ? job_kind::receive_forward : job_kind::receive_backward, false});
}

}  // namespace detail

//! Adds sends and receives to compute-only lists. All ranks' jobs are put in one order, by the time
//! at which they end under the given costs (ties as the replay ran them, so that causes stay before
//! effects), and each job is followed at once by its message: the send on its own rank, the receive
//! on the peer, wherever the peer stands at that moment. Every rank issues its part of that one
//! order, which is why no mixture of blocking calls can hang (the constructive argument of
//! torch.distributed.pipelining's `_add_send_recv`, with time in place of turns). Copies to the
//! host and back are nodes without messages. With a receive lead a message may have to wait: it then
//! follows the node of the receiving rank behind which its receive is posted, still before the node
//! that it is for, so that the order stays one of causes before effects.
//! @param compute lists without messages; @param out empty lists of stride `with_messages(...)`
//! @param order  if not null, filled with the global order; see order_room
//! @return what the replay says of the compute lists
constexpr verdict add_messages(const replay_input& compute, job_sink& out,
                               order_sink* order = nullptr) {
  const job_rows& rows = compute.rows;
  const int ranks = rows.ranks;
  const int stages = compute.where.stages();
  scratch<detail::job_end> ends(static_cast<std::int64_t>(ranks) * rows.stride);
  detail::end_times watch(ends.data(), rows.stride);
  if (const verdict stuck = replay(compute, watch); !stuck.ok()) return stuck;

  // A binary heap of ranks, keyed by the end (then the turn) of the job at each rank's cursor.
  scratch<std::int32_t> heap_of(ranks + 1);
  scratch<std::int32_t> cursors(ranks);
  scratch<const detail::job_end*> keys(ranks);
  std::int32_t* const heap = heap_of.data();
  std::int32_t* const cursor = cursors.data();
  const detail::job_end** const key = keys.data();
  int size = 0;
  const auto settle = [&](int top) {
    const int rank = heap[top];
    const std::int64_t time = key[rank]->time;
    const std::int64_t turn = key[rank]->turn;
    for (int child = 2 * top + 1; child < size; child = 2 * top + 1) {
      const detail::job_end* least = key[heap[child]];
      if (child + 1 < size) {
        const detail::job_end* const right = key[heap[child + 1]];
        if (right->time != least->time ? right->time < least->time : right->turn < least->turn)
          least = right, ++child;
      }
      if (least->time != time ? least->time > time : least->turn > turn) break;
      heap[top] = heap[child], top = child;
    }
    heap[top] = rank;
  };
  for (int rank = 0; rank < ranks; ++rank) {
    if (rows.counts[rank] == 0) continue;
    key[rank] = ends.data() + static_cast<std::int64_t>(rank) * rows.stride;
    heap[size++] = rank;
  }
  for (int top = size / 2 - 1; top >= 0; --top) settle(top);

  detail::held_messages held(compute);
  const auto send = [&](const job& made, int rank) {
    const bool ahead = made.kind == job_kind::forward;
    if (!ahead && made.kind != job_kind::backward && made.kind != job_kind::backward_input) return;
    const int to = made.stage + (ahead ? 1 : -1);
    if (to < 0 || to >= stages) return;
    const int peer = compute.where.rank_of(to, made.microbatch);
    if (peer != rank && !held.keep(made, rank, to, peer))
      detail::append_message(made, rank, to, peer, out);
  };
  while (size > 0) {
    const int rank = heap[0];
    const std::int32_t count = rows.counts[rank];
    std::int32_t& at = cursor[rank];
    const job* const work = rows.items + static_cast<std::int64_t>(rank) * rows.stride + at;
    const int jobs = work->paired && at + 1 < count ? 2 : 1;
    out.push(rank, work[0]);
    if (jobs == 2) out.push(rank, work[1]);
    if (order != nullptr) order->ranks[order->count++] = rank;
    send(work[0], rank);
    if (jobs == 2) send(work[1], rank);
    if (work->kind <= job_kind::recompute)
      held.ended(rank, [&](const job& made, int from) {
        if (order != nullptr)
          order->ranks[order->count++] = order_sink::late(rank), order->has_late = true;
        detail::append_message(made, from, made.stage + (made.kind == job_kind::forward ? 1 : -1),
                               rank, out);
      });
    at += jobs;
    if (at == count) heap[0] = heap[--size];
    else key[rank] += jobs;
    if (size > 0) settle(0);
  }
  return {};
}

}  // namespace stretto::lowering
