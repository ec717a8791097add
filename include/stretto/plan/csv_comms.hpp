#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "stretto/base/fixed_vector.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/plan/gradient_sums.hpp"

namespace stretto {

namespace detail {

//! A rank's list with its stages' weights gathered (UNSHARD) and dropped (RESHARD) where
//! torch.distributed.pipelining has it (`_add_unshard_reshard`): in front of a node the next three
//! stages are gathered in the order of their use, and others dropped, the lowest first.
inline std::vector<job> with_parameters(std::span<const job> row) {
  // 1. From the end: the stages that are next at each job.
  using some_stages = fixed_vector<std::int32_t, 3>;
  std::vector<some_stages> next(row.size());
  some_stages stages;
  for (std::size_t at = row.size(); at-- > 0; next[at] = stages) {
    std::int32_t* place = std::find(stages.begin(), stages.end(), row[at].stage);
    if (place == stages.end()) {
      if (stages.size() < some_stages::capacity()) stages.push_back(row[at].stage);
      place = stages.end() - 1;
    }
    std::copy_backward(stages.begin(), place, place + 1);
    stages[0] = row[at].stage;
  }
  // 2. From the beginning: what is there follows them.
  std::vector<job> made;
  std::vector<std::int32_t> there;  // ascending
  const auto drop_all_but = [&](const some_stages& kept) {
    std::erase_if(there, [&](std::int32_t stage) {
      const bool drop = std::find(kept.begin(), kept.end(), stage) == kept.end();
      if (drop) made.push_back({.stage = stage, .kind = job_kind::reshard});
      return drop;
    });
  };
  for (std::size_t at = 0; at < row.size();) {
    const std::size_t jobs = row[at].paired && at + 1 < row.size() ? 2 : 1;
    drop_all_but(next[at]);
    for (std::int32_t stage : next[at]) {
      const auto place = std::lower_bound(there.begin(), there.end(), stage);
      if (place != there.end() && *place == stage) continue;
      there.insert(place, stage);
      made.push_back({.stage = stage, .kind = job_kind::unshard});
    }
    const auto node = row.subspan(at, jobs);
    made.insert(made.end(), node.begin(), node.end());
    at += jobs;
  }
  drop_all_but({});
  return made;
}

//! The ranks in the order in which `_add_send_recv` takes their nodes: in turns, one each, of those
//! whose next node has its input. Lists must be live.
inline std::vector<std::int32_t> in_turns(const replay_input& lists) {
  const job_rows& rows = lists.rows;
  const int stages = lists.where.stages();
  const auto cells = static_cast<std::size_t>(stages) *
                     static_cast<std::size_t>(lists.microbatches) *
                     static_cast<std::size_t>(lists.slices);
  std::vector<bool> done[] = {std::vector<bool>(cells), std::vector<bool>(cells)};
  const auto cell = [&](std::int32_t stage, const job& work) {
    return (static_cast<std::size_t>(stage) * static_cast<std::size_t>(lists.microbatches) +
            static_cast<std::size_t>(work.microbatch)) *
               static_cast<std::size_t>(lists.slices) +
           static_cast<std::size_t>(work.slice);
  };
  // Of forwards, then of what makes the gradient of the input: what comes before, and after, it.
  const auto directions = [&](const job& work) {
    const bool ahead = work.kind == job_kind::forward;
    return std::pair(ahead                          ? 0
                     : is_input_gradient(work.kind) ? 1
                                                    : -1,
                     work.stage + (ahead ? -1 : 1));
  };
  const auto ready = [&](const job& work) {
    const auto [way, from] = directions(work);
    return way < 0 || from < 0 || from >= stages || done[way][cell(from, work)];
  };
  std::vector<std::int32_t> order;
  std::vector<int> at(static_cast<std::size_t>(rows.ranks));
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < rows.ranks; ++rank) {
      int& step = at[static_cast<std::size_t>(rank)];
      if (step >= rows.counts[rank]) continue;
      const job& first = rows.at(rank, step);
      const int jobs = first.paired && step + 1 < rows.counts[rank] ? 2 : 1;
      if (!ready(first) || !ready(rows.at(rank, step + jobs - 1))) continue;
      for (int end = step + jobs; step < end; ++step) {
        const job& work = rows.at(rank, step);
        if (const int way = directions(work).first; way >= 0)
          done[way][cell(work.stage, work)] = true;
      }
      order.push_back(rank);
      moved = true;
    }
  }
  return order;
}

}  // namespace detail

//! Compute-only lists as torch.distributed.pipelining lowers them for its runtime
//! (`compute_comms`): with UNSHARD, RESHARD and REDUCE_GRAD, and with messages that follow one
//! another by turns.
//! @param compute  lists that keep all rules of compute lists
inline job_lists with_pytorch_comms(const replay_input& compute) {
  std::vector<std::vector<job>> rows;
  std::size_t longest = 0;
  for (int rank = 0; rank < compute.rows.ranks; ++rank) {
    rows.push_back(detail::with_parameters(compute.rows.row(rank)));
    longest = std::max(longest, rows.back().size());
  }
  job_lists lists(compute.rows.ranks, static_cast<int>(longest));
  job_sink sink = lists.sink();
  for (int rank = 0; rank < compute.rows.ranks; ++rank)
    for (const job& work : rows[static_cast<std::size_t>(rank)]) sink.push(rank, work);
  replay_input gathered = compute;
  gathered.rows = lists.rows();
  const job_lists reduced = with_gradient_sums(gathered);
  gathered.rows = reduced.rows();
  job_lists lowered(compute.rows.ranks, lowering::with_messages(gathered.rows.stride));
  job_sink out = lowered.sink();
  replay_observer nobody;
  lowering::add_messages(gathered, detail::in_turns(gathered), out, nullptr, nobody);
  return lowered;
}

}  // namespace stretto
