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

//! Which backwards for the weights are put off.
enum class late_kind : std::uint8_t {
  all,    //!< each, by `late` rounds
  first,  //!< those of the first `late` rounds, to the end
};

//! Of no round are backwards whole.
struct never_whole {
  constexpr bool operator()(int) const { return false; }
};

//! One rank's list of a split 1F1B with one chunk: `warmup` forwards, then a backward for the input
//! a round, each followed by the backward for the weights that is not put off any longer and by the
//! next forward, as far as there are any; the weights that are left end it. Of k slices forwards go
//! up, and backwards, for which k - 1 more forwards are ahead, down. At most
//! max(warmup + k - 1, late + k) slices are alive; with late_kind::first, warmup + k - 1 + late.
//! `whole`: whether the backward of a round whose weights are not put off is whole.
template <class Whole = never_whole>
constexpr void push_late_weights(const shape& sizes, int rank, int warmup, int late, job_sink& out,
                                 late_kind which = late_kind::all, const Whole& whole = {}) {
  const int slices = sizes.slices;
  const int count = sizes.microbatches * slices;
  const int ahead = warmup + slices - 1;
  const bool own = which == late_kind::first || late == 0;  // none of another round's
  const auto push = [&](job_kind kind, int round) {
    const int slice = kind == job_kind::forward ? round % slices : slices - 1 - round % slices;
    out.push(rank, {rank, round / slices, static_cast<std::int16_t>(slice), kind});
  };
  for (int k = 0; k < ahead && k < count; ++k) push(job_kind::forward, k);
  for (int k = 0; k < count; ++k) {
    const bool joined = own && k >= late && whole(k);
    push(joined ? job_kind::backward : job_kind::backward_input, k);
    if (k >= late && !joined) push(job_kind::backward_weight, own ? k : k - late);
    if (k + ahead < count) push(job_kind::forward, k + ahead);
  }
  const int left = late < count ? late : count;
  for (int k = own ? 0 : count - left, end = k + left; k < end; ++k)
    push(job_kind::backward_weight, k);
}

}  // namespace stretto::schedule
