#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/global_order.hpp"
#include "stretto/lowering/held_messages.hpp"
#include "stretto/lowering/node_order.hpp"
#include "stretto/lowering/reductions.hpp"
#include "stretto/lowering/replica_groups.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! Jobs that the longest list may hold once messages are added: every compute job receives at most
//! one message and sends at most one, and a gather of weights brings one collective.
constexpr int with_messages(int compute_jobs) { return 3 * compute_jobs; }

namespace detail {

//! Appends the message from `made` of `rank` to stage `to` of `peer` to both ranks' lists.
template <class Observer>
constexpr void append_message(const job& made, int rank, int to, int peer, job_sink& out,
                              Observer& observer) {
  const bool ahead = made.kind == job_kind::forward;
  const std::int32_t send = out.counts[rank];
  const std::int32_t receive = out.counts[peer];
  out.push(rank, {made.stage, made.microbatch, made.slice,
                  ahead ? job_kind::send_forward : job_kind::send_backward, false});
  out.push(peer, {to, made.microbatch, made.slice,
                  ahead ? job_kind::receive_forward : job_kind::receive_backward, false});
  observer.met(rank, send, peer, receive);
}

//! Appends the collective behind a gather of weights, which prepares it.
template <class Observer>
constexpr void append_gather(const job& gather, int rank, std::int32_t group, job_sink& out,
                             Observer& observer) {
  const job work{gather.stage, group, 0, job_kind::all_gather, false};
  const std::int32_t index = out.counts[rank];
  out.push(rank, work);
  observer.ran(rank, index, work);
}

//! Appends the collective of `group` to the lists of its members, behind what prepares it.
template <class Observer>
constexpr void append_sum(std::size_t group, const rank_group& of, const placement& where,
                          job_sink& out, std::int32_t* steps, Observer& observer) {
  for (const std::int32_t rank : of.members) {
    const int first = where.stage_of(rank, 0);  // a rank may have none
    job work{of.stage >= 0 ? of.stage
             : first >= 0  ? first
                           : 0,
             static_cast<std::int32_t>(group), 0, job_kind::reduce_grad, false};
    out.push(rank, work);
    steps[rank] = out.counts[rank];
    observer.ran(rank, steps[rank] - 1, work);
    work.kind = job_kind::all_reduce;
    out.push(rank, work);
  }
  observer.joined(of, steps);
}

}  // namespace detail

//! Adds sends and receives to compute-only lists. All ranks' jobs are put in one order, by the time
//! at which they end, and each job is followed at once by its message: the send on
//! its own rank, the receive on the peer, wherever the peer stands at that moment. Every rank
//! issues its part of that one order, which is why no mixture of blocking calls can hang (the
//! constructive argument of torch.distributed.pipelining's `_add_send_recv`, with time in place of
//! turns). Copies to the host and back are nodes without messages. With a receive lead a message
//! may have to wait: it then follows the node of the receiving rank behind which its receive is
//! posted, still before the node that it is for, so that the order stays one of causes before
//! effects. Sums over data-parallel replicas among compute.groups follow as due_sums says. A gather
//! of weights (UNSHARD, of a stage whose group gathers) is a node without messages, too, and its
//! collective follows it.
//! @param compute lists without messages; @param nodes as order_nodes puts them
//! @param out empty lists of stride `with_messages(...)`, and two for each of the rank's sums
//! @param order  if not null, filled with the global order; see order_room
//! @param observer hears of everything as it is appended, as a replay_observer
template <class Observer>
constexpr void add_messages(const replay_input& compute, std::span<const std::int32_t> nodes,
                            job_sink& out, order_sink* order, Observer& observer) {
  const job_rows& rows = compute.rows;
  const int stages = compute.where.stages();
  scratch<std::int32_t> cursors(rows.ranks);
  std::int32_t* const cursor = cursors.data();
  held_messages held(compute);
  const due_sums sums(rows, stages, compute.groups);
  const replica_groups gathers(rows.ranks, stages, compute.groups);
  scratch<std::int32_t> steps(rows.ranks);
  const auto send = [&](const job& made, int rank) {
    const bool ahead = made.kind == job_kind::forward;
    if (!ahead && made.kind != job_kind::backward && made.kind != job_kind::backward_input) return;
    const int to = made.stage + (ahead ? 1 : -1);
    if (to < 0 || to >= stages) return;
    const int peer = compute.where.rank_of(to, made.microbatch);
    if (peer != rank && (compute.receive_lead < 0 || !held.keep(made, rank, to, peer)))
      detail::append_message(made, rank, to, peer, out, observer);
  };
  const std::int32_t* const end = nodes.data() + nodes.size();
  for (const std::int32_t* turn = nodes.data(); turn < end; ++turn) {
    const std::int32_t rank = *turn;
    const std::int32_t at = cursor[rank];
    const job* const work = rows.items + std::int64_t{rank} * rows.stride + at;
    job first = work[0];
    const int jobs = first.paired && at + 1 < rows.counts[rank] ? 2 : 1;
    cursor[rank] = at + jobs;
    const std::int32_t index = out.counts[rank];
    out.push(rank, first);
    observer.ran(rank, index, first);
    if (order != nullptr) order->add_node(rank, first);
    if (jobs == 2) {
      out.push(rank, work[1]);
      observer.ran(rank, index + 1, work[1]);
      if (order != nullptr) order->add_job(rank, work[1]);
    }
    send(first, rank);
    if (jobs == 2) send(work[1], rank);
    if (sums.any) {
      if (gathers.any && first.kind == job_kind::unshard)
        detail::append_gather(first, rank, gathers.of(rank, first.stage), out, observer);
      sums.behind(rank, at + jobs - 1, [&](std::size_t group) {
        detail::append_sum(group, compute.groups[group], compute.where, out, steps.data(),
                           observer);
      });
    }
    if (compute.receive_lead >= 0 && first.kind <= job_kind::recompute)
      held.ended(rank, [&](const job& made, int from) {
        if (order != nullptr) order->add_late(rank);
        detail::append_message(made, from, made.stage + (made.kind == job_kind::forward ? 1 : -1),
                               rank, out, observer);
      });
  }
}

//! The same with nobody watching, from the lists alone.
//! @return what the replay says of the compute lists
constexpr verdict add_messages(const replay_input& compute, job_sink& out,
                               order_sink* order = nullptr) {
  scratch<std::int32_t> ranks(std::int64_t{compute.rows.ranks} * compute.rows.stride);
  std::int64_t nodes = 0;
  if (const verdict stuck = order_nodes(compute, ranks.data(), nodes); !stuck.ok()) return stuck;
  replay_observer nobody;
  add_messages(compute, {ranks.data(), static_cast<std::size_t>(nodes)}, out, order, nobody);
  return {};
}

//! Appends what ends every rank's step: for each group that it is in, but those of data-parallel
//! replicas, `reduce_grad` (the stages write their part) and the collective; the optimizer, when
//! training; the end itself.
template <class Observer = replay_observer>
constexpr void append_ends(job_sink& lists, const placement& where,
                           std::span<const rank_group> groups, bool train,
                           Observer&& observer = {}) {
  scratch<std::int32_t> steps(lists.ranks);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].data_parallel) continue;
    detail::append_sum(group, groups[group], where, lists, steps.data(), observer);
  }
  for (int rank = 0; rank < lists.ranks; ++rank) {
    const int first = where.stage_of(rank, 0);
    const auto append = [&](job_kind kind) {
      const job work{first, 0, 0, kind, false};
      const std::int32_t at = lists.counts[rank];
      lists.push(rank, work);
      observer.ran(rank, at, work);
    };
    if (train) append(job_kind::optimizer);
    append(job_kind::end_step);
  }
}

//! Entries that append_ends adds to a list at most.
constexpr int with_ends(int list, int groups) { return list + 2 * groups + 2; }

}  // namespace stretto::lowering
