#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/lowering/receive_gates.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/plan/report.hpp"

namespace stretto {

//! How long the receives of every rank stand posted before their messages are made, summed: the
//! time for which a waiting receive keeps multiprocessors from the kernels beside it. A receive is
//! posted when the one before it from the same rank is done, and not before its gate
//! (replay_input::receive_lead; without a lead, from the start of the step).
//! @param compute   lists without messages
//! @param timeline  as `measure` writes it
//! @return time by rank, in the units of the costs
inline std::vector<std::int64_t> receive_waits(const replay_input& compute,
                                               std::span<const job_time> timeline) {
  struct message {
    std::int64_t made = 0;
    std::int64_t gate = 0;   // when the node ended behind which it is posted
    std::size_t number = 0;  // of its channel, by who needs it first
  };
  const job_rows& rows = compute.rows;
  const auto index = [](std::int64_t at) { return static_cast<std::size_t>(at); };
  const auto time_of = [&](int rank, int step) {
    return timeline[index(std::int64_t{rank} * rows.stride + step)];
  };
  const std::int64_t cells =
      std::int64_t{compute.where.stages()} * compute.microbatches * compute.slices;
  const auto cell = [&](int stage, const job& work) {
    return (std::int64_t{stage} * compute.microbatches + work.microbatch) * compute.slices +
           work.slice;
  };
  std::vector<std::int64_t> made_at(index(2 * cells));  // outputs, then input gradients
  std::vector<std::vector<std::int64_t>> node_end(index(rows.ranks));
  lowering::node_counter nodes(rows.ranks);
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (int step = 0; step < rows.counts[rank]; ++step) {
      const job& work = rows.at(rank, step);
      if (!is_compute(work.kind)) continue;
      const std::int64_t end = time_of(rank, step).end;
      auto& ends = node_end[index(rank)];
      ends.resize(index(nodes.come(rank, work)) + 1);
      ends.back() = end;
      if (work.kind == job_kind::forward) made_at[index(cell(work.stage, work))] = end;
      if (is_input_gradient(work.kind)) made_at[index(cells + cell(work.stage, work))] = end;
    }
  const lowering::receive_gates gates(compute);
  std::vector<std::int64_t> waits(index(rows.ranks));
  std::vector<std::vector<message>> channel(index(rows.ranks));
  for (int rank = 0; rank < rows.ranks; ++rank) {
    std::vector<int> peers;  // that it hears from, of ranks in their thousands
    for (const job& work : rows.row(rank)) {
      if (!is_compute(work.kind) || !compute.receives(work)) continue;
      const bool ahead = work.kind == job_kind::forward;
      const int from = work.stage + (ahead ? -1 : 1);
      const std::int32_t gate = gates.of(work.stage, work, ahead);
      const int peer = compute.where.rank_of(from, work.microbatch);
      auto& sent = channel[index(peer)];
      if (sent.empty()) peers.push_back(peer);
      sent.push_back({made_at[index((ahead ? 0 : cells) + cell(from, work))],
                      gate < 0 ? 0 : node_end[index(rank)][index(gate)], sent.size()});
    }
    for (const int peer : peers) {
      auto& from = channel[index(peer)];
      const auto leaves = [](const message& one) { return std::max(one.made, one.gate); };
      std::sort(from.begin(), from.end(), [&](const message& one, const message& other) {
        return leaves(one) != leaves(other) ? leaves(one) < leaves(other)
                                            : one.number < other.number;
      });
      std::int64_t before = 0;
      for (const message& one : from) {
        const std::int64_t posted = std::max(before, one.gate);
        waits[index(rank)] += std::max<std::int64_t>(0, one.made - posted);
        before = std::max(one.made, posted) + compute.costs.hops()(peer, rank);
      }
      from.clear();
    }
  }
  return waits;
}

}  // namespace stretto
