#pragma once

#include <cstdint>

#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! For how many rounds backwards for the weights are put off so that forwards may go before them:
//! no longer than forwards are left behind the first `warmup`.
constexpr int rounds_of_forwards(const shape& sizes, int warmup, int late) {
  const int steps = sizes.microbatches * sizes.chunks * sizes.slices;
  const int left = steps - (warmup + sizes.slices - 1);
  return left < 0 ? 0 : left < late ? left : late;
}

//! One rank's list of a split 1F1B with one chunk: `warmup` forwards, then a backward for the input
//! a round, each followed by the backward for the weights of `late` rounds before and by the next
//! forward, as far as there are any; the weights that are left end it. Of k slices forwards go up,
//! and backwards, for which k - 1 more forwards are ahead, down. At most
//! max(warmup + k - 1, late + k) slices are alive. `whole`: where `late` is 0, backwards are whole.
constexpr void push_late_weights(const shape& sizes, int rank, int warmup, int late, job_sink& out,
                                 bool whole = false) {
  const int slices = sizes.slices;
  const int count = sizes.microbatches * slices;
  const int ahead = warmup + slices - 1;
  const auto push = [&](job_kind kind, int step) {
    const int slice = kind == job_kind::forward ? step % slices : slices - 1 - step % slices;
    out.push(rank, {rank, step / slices, static_cast<std::int16_t>(slice), kind});
  };
  for (int k = 0; k < ahead && k < count; ++k) push(job_kind::forward, k);
  for (int k = 0; k < count; ++k) {
    push(whole ? job_kind::backward : job_kind::backward_input, k);
    if (k >= late && !whole) push(job_kind::backward_weight, k - late);
    if (k + ahead < count) push(job_kind::forward, k + ahead);
  }
  for (int k = late < count ? count - late : 0; k < count; ++k) push(job_kind::backward_weight, k);
}

}  // namespace stretto::schedule
