#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stretto/lowering/communication.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/gradient_sums.hpp"

namespace stretto {

namespace detail {

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
//! @param most     of how many stages at once a rank has the weights; 3, as PyTorch has it
inline job_lists with_pytorch_comms(const replay_input& compute, int most = 3) {
  const job_lists lists = with_gathered_weights(compute, most);
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
