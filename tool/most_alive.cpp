#include "most_alive.hpp"

#include <algorithm>
#include <cstddef>

namespace stretto::tool {

namespace {

//! What jobs of that kind change in memory, of one micro-batch through all stages.
std::int64_t change_of(const job_table_view& costs, job_kind kind) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < costs.ranks; ++rank)
    for (int chunk = 0; chunk < costs.chunks; ++chunk) sum += costs.at(rank, chunk, kind).change;
  return sum;
}

}  // namespace

std::vector<std::int32_t> most_alive(const replay_input& order, bool whole) {
  // One micro-batch counts so much, and so much between the halves of its backward.
  const std::int64_t one = std::max<std::int64_t>(1, change_of(order.costs, job_kind::forward));
  const std::int64_t rest = whole
                                ? one
                                : std::clamp(one + change_of(order.costs, job_kind::backward_input),
                                             std::int64_t{0}, one);
  struct kept {
    int stage = -1;
    std::int64_t amount = 0;
  };
  std::vector<std::int32_t> all(static_cast<std::size_t>(order.where.stages()));
  for (int rank = 0; rank < order.rows.ranks; ++rank) {
    std::vector<kept> now(static_cast<std::size_t>(order.where.chunks));
    std::vector<kept> most = now;
    std::int64_t sum = 0;
    std::int64_t fullest = 0;
    for (const job& work : order.rows.row(rank)) {
      const std::int64_t change = work.kind == job_kind::forward           ? one
                                  : work.kind == job_kind::backward_input  ? rest - one
                                  : work.kind == job_kind::backward_weight ? -rest
                                  : work.kind == job_kind::backward        ? -one
                                                                           : 0;
      if (change == 0) continue;
      kept& here = now[static_cast<std::size_t>(order.where.chunk_of(work))];
      here.stage = work.stage;
      here.amount += change;
      sum += change;
      if (sum <= fullest) continue;
      fullest = sum;
      most = now;
    }
    for (const kept& part : most) {
      if (part.stage < 0) continue;
      const std::int64_t of_one = one * order.slices;
      std::int32_t& of = all[static_cast<std::size_t>(part.stage)];
      of = std::max(of, static_cast<std::int32_t>((part.amount + of_one - 1) / of_one));
    }
  }
  return all;
}

}  // namespace stretto::tool
