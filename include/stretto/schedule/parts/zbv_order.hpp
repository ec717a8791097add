#pragma once

#include "stretto/model/job.hpp"
#include "stretto/model/shape.hpp"

namespace stretto::schedule {

//! The fixed order of ZB-V on one rank: calls `visit(chunk, kind)` job by job; which micro-batch a
//! job is of follows from how many of its kind came before it, and there may be more of them than
//! `microbatches` when that is below 2 p - 1.
template <class Visitor>
constexpr void zbv_order(int ranks, int rank, int microbatches, Visitor&& visit) {
  const int full = 2 * ranks - 1 > microbatches ? 2 * ranks - 1 : microbatches;
  const auto weights = job_kind::backward_weight;
  const auto input = job_kind::backward_input;
  const auto forward = job_kind::forward;
  const int ahead = 2 * (ranks - rank) - 1;
  // Beyond so many turns of a phase, what it visits is of no micro-batch that exists.
  const auto turns = [microbatches](int count) {
    return count < microbatches ? count : microbatches;
  };
  const int first = turns(ahead);
  const int front = turns(rank);
  const int back = turns(ranks - rank);
  const int steady = turns(full - ranks);
  // 1. Warm-up: 2 (p - r) - 1 forwards, until the first comes back up the V.
  for (int k = 0; k < first; ++k) visit(0, forward);
  // 2. r times both forwards, until the first gradient comes.
  for (int k = 0; k < front; ++k) {
    visit(1, forward);
    visit(0, forward);
  }
  // 3. p - r times the upper chunk alone.
  for (int k = 0; k < back; ++k) {
    visit(1, forward);
    visit(1, input);
    visit(1, weights);
  }
  // 4. Steady: all of the lower chunk, all of the upper one.
  for (int k = 0; k < steady; ++k) {
    if (k < full - ahead - rank) visit(0, forward);
    visit(0, input);
    visit(0, weights);
    visit(1, forward);
    visit(1, input);
    visit(1, weights);
  }
  // 5. Cool-down: gradients first, the weights fill what is left.
  for (int k = 0; k < front; ++k) {
    visit(0, input);
    visit(1, input);
  }
  for (int k = 0; k < back; ++k) {
    visit(0, input);
    visit(0, weights);
  }
  for (int k = 0; k < front; ++k) visit(1, weights);
  for (int k = 0; k < front; ++k) visit(0, weights);
}

}  // namespace stretto::schedule
