#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/global_order.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::lowering {

//! A walk that looks at nothing but the order: what the lists say has been proven.
struct proven_lists {
  static constexpr bool proves = false;
};

//! Tells `observer` of everything in lists with messages, in the global order that `add_messages`
//! noted: what a replay would tell, without simulating. The order is a certificate, not trusted: a
//! list that is not the rank's part of it ends the walk.
//! @param observer hears of `ran(rank, index, work)`, and of met and joined as a replay_observer
//! @param proof asked of every entry before the observer hears of it, when it `proves`: `runs(rank,
//!        work)` of jobs; `sends(first, last, sent, ahead, to)` of a message behind its node, the
//!        jobs `first` and `last`, which goes ahead or back, to `to`, one of the stages;
//!        `sends_late(sent)` of one that was kept back; `reduces(rank, work)` of a sum over
//!        data-parallel replicas behind them; `ends(cursor)` of the lists from there on
//! @return ok, or fault::rendezvous at the first entry that departs from the order or the proof
template <class Observer, class Proof = const proven_lists>
constexpr verdict walk(const replay_input& input, const order_view& order, Observer& observer,
                       Proof& proof = proven_lists{}) {
  job_rows rows = input.rows;
  placement where = input.where;
  const int stages = where.stages();
  scratch<std::int32_t> cursors(rows.ranks);
  std::int32_t* const cursor = cursors.data();
  const auto left = [&](int rank) { return cursor[rank] < rows.counts[rank]; };
  const auto broken = [&](int rank) {
    const int at = cursor[rank] < rows.counts[rank] ? cursor[rank] : rows.counts[rank] - 1;
    return at < 0 ? refuse(fault::rendezvous, reason::never_replayed)
                    : refuse(fault::rendezvous, reason::message_unmatched, rank, at,
                             rows.at(rank, at));
  };
  bool reduces = false;
  bool gathers = false;
  for (const rank_group& group : input.groups) {
    reduces = reduces || group.data_parallel;
    gathers = gathers || group.gathers;
  }
  // Sums over data-parallel replicas that the rank stands at.
  const auto reduce = [&](int rank) {
    const job* const list = rows.items + static_cast<std::int64_t>(rank) * rows.stride;
    const std::int32_t count = rows.counts[rank];
    std::int32_t& at = cursor[rank];
    for (; at + 1 < count && input.is_data_parallel(rank, list[at]); ++at) {
      const job& work = list[at];
      if constexpr (Proof::proves)
        if (!proof.reduces(rank, work)) return false;
      if (work.kind != job_kind::reduce_grad) return false;
      observer.ran(rank, at, work);
      const job& collective = list[++at];
      if (collective.kind != job_kind::all_reduce || collective.microbatch != work.microbatch)
        return false;
      observer.joined(input.groups[static_cast<std::size_t>(work.microbatch)], cursor);
    }
    return true;
  };
  // A gather of weights, or their end, which the rank stands at.
  const auto gather = [&](int rank, const job& work) {
    const job* const list = rows.items + static_cast<std::int64_t>(rank) * rows.stride;
    std::int32_t& at = cursor[rank];
    if (!is_gather(work.kind)) return false;
    if constexpr (Proof::proves)
      if (!proof.runs(rank, work)) return false;
    observer.ran(rank, at++, work);
    if (work.kind == job_kind::reshard) return true;
    if (at == rows.counts[rank] || list[at].stage != work.stage ||
        !input.gathers_weights(rank, list[at]))
      return false;
    observer.ran(rank, at, list[at]);
    ++at;
    return true;
  };
  // Jobs are copied before they are read, and lie here: compilers are slow to read a member of what
  // lies in a constant, to make what a loop holds, and to move a pointer.
  const std::int32_t* const turns = order.ranks;
  const std::int64_t nodes = order.count;
  std::int32_t rank = 0;
  std::int32_t at = 0;
  job first;
  job last;
  job sent;
  job taken;
  for (std::int64_t turn = 0; turn < nodes; ++turn) {
    rank = turns[turn];
    if (rank >= rows.ranks) return refuse(fault::rendezvous, reason::never_replayed);
    if (rank < 0) {
      const int receiver = order_sink::late(rank);
      if (receiver >= rows.ranks) return refuse(fault::rendezvous, reason::never_replayed);
      if (!left(receiver)) return broken(receiver);
      taken = rows.at(receiver, cursor[receiver]);
      if (!is_receive(taken.kind)) return broken(receiver);
      sent = matching_send(taken);
      const int sender = sent.stage < 0 || sent.stage >= stages
                             ? receiver
                             : where.rank_of(sent.stage, sent.microbatch);
      if (sender == receiver || !left(sender) || !(rows.at(sender, cursor[sender]) == sent))
        return broken(sender);
      if constexpr (Proof::proves)
        if (!proof.sends_late(sent)) return broken(sender);
      observer.met(sender, cursor[sender]++, receiver, cursor[receiver]++);
      if (reduces && !reduce(sender)) return broken(sender);
      continue;
    }
    const job* const list = rows.items + std::int64_t{rank} * rows.stride;
    const std::int32_t count = rows.counts[rank];
    at = cursor[rank];
    if (at >= count) return broken(rank);
    first = list[at];
    if (first.kind > job_kind::reload) {
      if (!gathers || !gather(rank, first) || !reduce(rank)) return broken(rank);
      continue;
    }
    if constexpr (Proof::proves)
      if (!proof.runs(rank, first)) return broken(rank);
    observer.ran(rank, at, first);
    last = first;
    if (first.paired && at + 1 < count) {
      cursor[rank] = ++at;
      last = list[at];
      if constexpr (Proof::proves)
        if (!proof.runs(rank, last)) return broken(rank);
      observer.ran(rank, at, last);
    }
    for (cursor[rank] = ++at; at < count; cursor[rank] = ++at) {
      sent = list[at];
      const bool ahead = sent.kind == job_kind::send_forward;
      if (!ahead && sent.kind != job_kind::send_backward) break;
      const int to = sent.stage + (ahead ? 1 : -1);
      if constexpr (Proof::proves)
        if (to < 0 || to >= stages) return broken(rank);
      const int peer = where.rank_of(to, sent.microbatch);
      const std::int32_t there = cursor[peer];
      bool meets = peer != rank && there < rows.counts[peer];
      if (meets) {
        taken = rows.items[std::int64_t{peer} * rows.stride + there];
        meets = taken.stage == to && taken.microbatch == sent.microbatch &&
                taken.slice == sent.slice && !taken.paired &&
                taken.kind == (ahead ? job_kind::receive_forward : job_kind::receive_backward);
      }
      if (!meets) {
        if (order.has_late) break;  // its turn may come
        return broken(peer);
      }
      if constexpr (Proof::proves)
        if (!proof.sends(first, last, sent, ahead, to)) return broken(rank);
      observer.met(rank, at, peer, there);
      cursor[peer] = there + 1;
    }
    if (reduces && !reduce(rank)) return broken(rank);
  }
  if constexpr (Proof::proves)
    if (const verdict found = proof.ends(cursor); !found.ok()) return found;
  // The ends of the step: group by group, then what is left of every rank.
  for (std::size_t group = 0; group < input.groups.size(); ++group) {
    if (input.groups[group].data_parallel) continue;
    for (std::int32_t member : input.groups[group].members) {
      if (!left(member) || rows.at(member, cursor[member]).kind != job_kind::reduce_grad)
        return broken(member);
      observer.ran(member, cursor[member], rows.at(member, cursor[member]));
      if (++cursor[member] == rows.counts[member]) return broken(member);
      const job& collective = rows.at(member, cursor[member]);
      if (collective.kind != job_kind::all_reduce ||
          collective.microbatch != static_cast<std::int32_t>(group))
        return broken(member);
    }
    observer.joined(input.groups[group], cursor);
    for (std::int32_t member : input.groups[group].members) ++cursor[member];
  }
  for (rank = 0; rank < rows.ranks; ++rank)
    for (; left(rank); ++cursor[rank]) {
      const job& work = rows.at(rank, cursor[rank]);
      const bool ends = cursor[rank] + 1 == rows.counts[rank];
      if (work.kind != (ends ? job_kind::end_step : job_kind::optimizer)) return broken(rank);
      observer.ran(rank, cursor[rank], work);
    }
  return {};
}

}  // namespace stretto::lowering
