#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

//! Whether a job table speaks of this placement's ranks and chunks and of so many micro-batches and
//! slices, of no time below 0 or above job_table_view::most_time (less with many jobs of a kind),
//! of no memory beyond most_memory, of no base below 0, and of no limit as far below 0.
//! @return ok, or fault::unsupported with the first number that is none, the most that it may be,
//!         and of what: a job with its rank and stage, a rank's base or limit
constexpr verdict costs_fit(const job_table_view& costs, const placement& where, int microbatches,
                            int slices) {
  constexpr std::int64_t much = job_table_view::most_memory;
  const std::int64_t jobs = std::int64_t{where.stages()} * microbatches * slices;  // of a kind
  const std::int64_t longest =
      jobs > 1 << 14 ? (std::int64_t{1} << 60) / jobs : job_table_view::most_time;
  const auto refused = [](reason why, int rank, std::int64_t amount, std::int64_t most) {
    verdict found = refuse(fault::unsupported, why);
    found.rank = rank;
    found.amount = amount;
    found.limit = most;
    return found;
  };
  const auto has = [&](std::span<const std::int64_t> each) {
    return each.empty() || each.size() == static_cast<std::size_t>(where.ranks);
  };
  if (costs.ranks != where.ranks || costs.chunks != where.chunks || !has(costs.base) ||
      !has(costs.limit) || !costs.serves(where.ranks, where.chunks, microbatches, slices) ||
      static_cast<std::int64_t>(costs.entries.size()) !=
          costs.class_count() * costs.class_entries())
    return refuse(fault::unsupported, reason::costs_do_not_fit);
  int rank = 0, chunk = 0, kind = 0;
  for (const job_cost& one : costs.entries) {
    const bool timed = one.time >= 0 && one.time <= longest;
    const bool changes = one.change >= -much && one.change <= much;
    if (!timed || !changes || one.peak < -much || one.peak > much) {
      verdict found = refuse(fault::unsupported,
                             timed ? reason::memory_out_of_range : reason::time_out_of_range, rank,
                             -1,
                             {.stage = where.stage_of(rank, chunk),
                              .kind = static_cast<job_kind>(kind)});
      found.amount = !timed ? one.time : changes ? one.peak : one.change;
      found.limit = timed ? much : longest;
      return found;
    }
    if (++kind < cost_kinds) continue;
    kind = 0;
    if (++chunk < costs.chunks) continue;
    chunk = 0;
    if (++rank == costs.ranks) rank = 0;  // the next class
  }
  rank = 0;
  for (const std::int64_t one : costs.base) {
    if (one < 0 || one > much) return refused(reason::base_out_of_range, rank, one, much);
    ++rank;
  }
  rank = 0;
  for (const std::int64_t one : costs.limit) {
    if (one < -much) return refused(reason::limit_out_of_range, rank, one, unlimited);
    ++rank;
  }
  for (const std::int64_t one : {costs.communication, costs.between_nodes})
    if (one < 0 || one > longest) return refused(reason::hop_out_of_range, -1, one, longest);
  if (costs.node_ranks < 0)
    return refused(reason::node_out_of_range, -1, costs.node_ranks,
                   std::numeric_limits<int>::max());
  if (costs.pair_hides < 0 || costs.pair_hides > 100)
    return refused(reason::hiding_out_of_range, -1, costs.pair_hides, 100);
  return {};
}

}  // namespace stretto
