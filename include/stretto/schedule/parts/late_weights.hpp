#pragma once

#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! One rank's list of a split 1F1B with one chunk: `warmup` forwards, then a backward for the input
//! a round, each followed by the backward for the weights of `late` rounds before and by the next
//! forward, as far as there are any; the weights that are left end it. At most
//! max(warmup, late + 1) micro-batches are alive. `whole`: where `late` is 0, backwards are whole.
constexpr void push_late_weights(const shape& sizes, int rank, int warmup, int late, job_sink& out,
                                 bool whole = false) {
  const int count = sizes.microbatches;
  const auto push = [&](job_kind kind, int microbatch) {
    out.push(rank, {rank, microbatch, 0, kind});
  };
  for (int k = 0; k < warmup && k < count; ++k) push(job_kind::forward, k);
  for (int k = 0; k < count; ++k) {
    push(whole ? job_kind::backward : job_kind::backward_input, k);
    if (k >= late && !whole) push(job_kind::backward_weight, k - late);
    if (k + warmup < count) push(job_kind::forward, k + warmup);
  }
  for (int k = late < count ? count - late : 0; k < count; ++k) push(job_kind::backward_weight, k);
}

}  // namespace stretto::schedule
