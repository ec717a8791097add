#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::lowering {

//! Storage for one global order: the ranks in the order in which they issue their compute nodes (a
//! pair is one node). Together with the lists it is the proof that no rank can block another: the
//! messages of a node follow it at once, send and receive adjacent.
struct order_sink {
  std::int32_t* ranks = nullptr;
  std::int64_t count = 0;
};

//! The same, read only.
struct order_view {
  const std::int32_t* ranks = nullptr;
  std::int64_t count = 0;

  constexpr order_view() = default;
  constexpr order_view(const std::int32_t* ranks_, std::int64_t count_)
      : ranks(ranks_), count(count_) {}
  constexpr order_view(const order_sink& written) : ranks(written.ranks), count(written.count) {}
};

//! Jobs that the longest list may hold once messages are added: every compute job receives at most
//! one message and sends at most one.
constexpr int with_messages(int compute_jobs) { return 3 * compute_jobs; }

namespace detail {

//! Notes when every job ends and in which order the replay ran them.
struct end_times : replay_observer {
  scratch<std::int64_t>& ends;
  scratch<std::int64_t>& turns;
  int stride;
  std::int64_t turn = 0;

  constexpr end_times(scratch<std::int64_t>& ends_, scratch<std::int64_t>& turns_, int stride_)
      : ends(ends_), turns(turns_), stride(stride_) {}
  constexpr void ran(int rank, int step, const job&, std::int64_t, std::int64_t end) {
    const std::int64_t at = static_cast<std::int64_t>(rank) * stride + step;
    ends[at] = end;
    turns[at] = turn++;
  }
};

//! Appends `made`'s message, if another rank needs what it made, to both ranks' lists.
constexpr void append_message(const job& made, int rank, const placement& where, job_sink& out) {
  const bool ahead = made.kind == job_kind::forward;
  if (!ahead && !is_input_gradient(made.kind)) return;
  const int to = made.stage + (ahead ? 1 : -1);
  if (to < 0 || to >= where.stages()) return;
  const int peer = where.rank_of(to, made.microbatch);
  if (peer == rank) return;
  const job sent{made.stage, made.microbatch, made.slice,
                 ahead ? job_kind::send_forward : job_kind::send_backward, false};
  out.push(rank, sent);
  out.push(peer, matching_receive(sent));
}

}  // namespace detail

//! Adds sends and receives to compute-only lists. All ranks' jobs are put in one order, by the time
//! at which they end under the given costs (ties as the replay ran them, so that causes stay before
//! effects), and each job is followed at once by its message: the send on its own rank, the receive
//! on the peer, wherever the peer stands at that moment. Every rank issues its part of that one
//! order, which is why no mixture of blocking calls can hang (the constructive argument of
//! torch.distributed.pipelining's `_add_send_recv`, with time in place of turns).
//! @param compute lists without messages; @param out empty lists of stride `with_messages(...)`
//! @param order  if not null, filled with the global order; room for every compute job
//! @return what the replay says of the compute lists
constexpr verdict add_messages(const replay_input& compute, job_sink& out,
                               order_sink* order = nullptr) {
  const job_rows& rows = compute.rows;
  const int ranks = rows.ranks;
  const std::int64_t cells = static_cast<std::int64_t>(ranks) * rows.stride;
  scratch<std::int64_t> ends(cells);
  scratch<std::int64_t> turns(cells);
  detail::end_times watch(ends, turns, rows.stride);
  if (const verdict stuck = replay(compute, watch); !stuck.ok()) return stuck;

  // A binary heap of ranks, keyed by the end (then the turn) of the job at each rank's cursor.
  scratch<std::int32_t> heap(ranks + 1);
  scratch<std::int32_t> cursor(ranks);
  scratch<std::int64_t> end(ranks);
  scratch<std::int64_t> turn(ranks);
  int size = 0;
  const auto settle = [&](int top) {
    const int rank = heap[top];
    for (int child = 2 * top + 1; child < size; child = 2 * top + 1) {
      int next = heap[child];
      if (child + 1 < size) {
        const int right = heap[child + 1];
        if (end[right] != end[next] ? end[right] < end[next] : turn[right] < turn[next])
          next = right, ++child;
      }
      if (end[next] != end[rank] ? end[next] > end[rank] : turn[next] > turn[rank]) break;
      heap[top] = next, top = child;
    }
    heap[top] = rank;
  };
  for (int rank = 0; rank < ranks; ++rank) {
    if (rows.counts[rank] == 0) continue;
    const std::int64_t first = static_cast<std::int64_t>(rank) * rows.stride;
    end[rank] = ends[first], turn[rank] = turns[first];
    heap[size++] = rank;
  }
  for (int top = size / 2 - 1; top >= 0; --top) settle(top);

  while (size > 0) {
    const int rank = heap[0];
    const job& work = rows.at(rank, cursor[rank]);
    out.push(rank, work);
    if (order != nullptr) order->ranks[order->count++] = rank;
    if (work.paired && cursor[rank] + 1 < rows.counts[rank]) {
      const job& second = rows.at(rank, ++cursor[rank]);
      out.push(rank, second);
      detail::append_message(work, rank, compute.where, out);
      detail::append_message(second, rank, compute.where, out);
    } else {
      detail::append_message(work, rank, compute.where, out);
    }
    if (++cursor[rank] == rows.counts[rank]) {
      heap[0] = heap[--size];
    } else {
      const std::int64_t next = static_cast<std::int64_t>(rank) * rows.stride + cursor[rank];
      end[rank] = ends[next], turn[rank] = turns[next];
    }
    if (size > 0) settle(0);
  }
  return {};
}

}  // namespace stretto::lowering
