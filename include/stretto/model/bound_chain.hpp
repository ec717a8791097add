#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"

namespace stretto::detail {

//! The least that a backward takes, split or whole.
struct backward_time {
  std::int64_t gradient = 0;  // until the gradient for the stage before is there
  std::int64_t all = 0;
  std::int64_t deferred = 0;  // what of `all` may come after the gradient

  constexpr backward_time(const job_table_view& costs, int rank, int chunk) {
    const std::int64_t input = costs.at(rank, chunk, job_kind::backward_input).time;
    const std::int64_t whole = costs.at(rank, chunk, job_kind::backward).time;
    const std::int64_t split = input + costs.at(rank, chunk, job_kind::backward_weight).time;
    gradient = whole < input ? whole : input;
    all = whole < split ? whole : split;
    deferred = all - gradient;
  }
};

//! One chain of stages: a direction of the placement.
struct bound_chain {
  const placement& where;
  const job_table_view& costs;
  int microbatch;  // any that goes this way

  constexpr int rank(int stage) const { return where.rank_of(stage, microbatch); }
  constexpr std::int64_t forward(int stage) const {
    return costs.at(rank(stage), where.chunk_of(stage, microbatch), job_kind::forward).time;
  }
  constexpr std::int64_t gradient(int stage) const {
    return backward_time(costs, rank(stage), where.chunk_of(stage, microbatch)).gradient;
  }
  constexpr std::int64_t hop(int stage) const {  // from this stage to the next
    return rank(stage) == rank(stage + 1) ? 0 : costs.hops()(rank(stage), rank(stage + 1));
  }
};

}  // namespace stretto::detail
