#pragma once

#include <concepts>
#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/memory/microbatch_window.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::memory {

//! What forwards save and the host keeps until their backward: which micro-batches, and when the
//! copies' memory counts. The copies run beside the jobs; a job here is what computes, a pair one.
struct offload_window {
  microbatch_window which{};
  //! Jobs behind the forward until its bytes are free for others, which wait for the copy: 0 copies
  //! while nothing runs, 1 beside the next job.
  int lag = 1;
  //! Jobs ahead of the backward that the bytes are taken again and the copy back may start: 0 lets
  //! the backward wait for all of it.
  int prefetch = 1;

  constexpr bool operator==(const offload_window&) const = default;
  constexpr bool any() const { return which.any(); }
  constexpr bool sound() const { return which.sound() && lag >= 0 && prefetch >= 0; }
};

//! All that is saved long enough.
inline constexpr offload_window offload_all{{1, 1}};

//! What a memory policy offloads: see memory/concept.hpp.
template <class Memory>
constexpr offload_window offload_of(const Memory& made) {
  static_assert(
      !requires(Memory & any) { any.offload(); } || requires { made.offload(); },
      "stretto: a memory policy's offload() must be const");
  static_assert(
      !requires(Memory & any) { any.offload; } || requires { made.offload(); },
      "stretto: a memory policy's offload is a function, offload()");
  constexpr bool asked = requires { made.offload(); };
  constexpr bool told = requires {
    { made.offload() } -> std::convertible_to<offload_window>;
  };
  static_assert(told || !asked, "stretto: a memory policy's offload() must return offload_window");
  if constexpr (told)
    return made.offload();
  else
    return {};
}

//! The most jobs of a list with copies, from those without: two for each forward and backward.
constexpr int with_offloads(const offload_window& window, int compute) {
  return window.any() ? 2 * compute : compute;
}

//! Copies compute lists with an offload `lag` jobs behind each forward that wants one, and a reload
//! `prefetch` jobs before its backward. Where the one would not stand before the other with a job
//! between them, nothing is gained, and what the forward saved is kept.
//! @param again  what is recomputed in these lists
//! @return fault::unsupported for sliced micro-batches, and for what is recomputed, too
constexpr verdict insert_offloads(const offload_window& window, const microbatch_window& again,
                                  const job_rows& jobs, const placement& where, int slices,
                                  job_sink& out) {
  if (window.any() && slices > 1) return refuse(fault::unsupported, reason::slices_not_offloaded);
  if (!window.sound()) return refuse(fault::unsupported, reason::bad_offload_window);
  if (window.which.meets(again)) return refuse(fault::unsupported, reason::offload_recomputed);
  const std::int64_t cells = std::int64_t{where.stages()} * where.microbatches;
  scratch<std::int32_t> forwards(cells);  // the node of each, plus one
  // Before each node, and behind the last: the step of the forward that is offloaded there, and of
  // the backward that is reloaded for, plus one. There is no more than one of each in a node.
  scratch<std::int32_t> gone(jobs.stride + 1);
  scratch<std::int32_t> back(jobs.stride + 1);
  for (int rank = 0; rank < jobs.ranks; ++rank) {
    const job* const list = jobs.items + static_cast<std::int64_t>(rank) * jobs.stride;
    const std::int32_t count = jobs.counts[rank];
    int node = 0;
    for (std::int32_t step = 0; step < count; ++step) {
      const job& work = list[step];
      const std::int64_t cell = std::int64_t{work.stage} * where.microbatches + work.microbatch;
      const bool wanted = work.stage >= 0 && work.microbatch >= 0 &&
                          work.microbatch < where.microbatches && cell < cells &&
                          window.which.holds(where.chunk_of(work), work.microbatch);
      if (wanted && work.kind == job_kind::forward) {
        forwards[cell] = node + 1;
      } else if (wanted && is_input_gradient(work.kind) && forwards[cell] > 0) {
        const std::int64_t from = std::int64_t{forwards[cell]} + window.lag;
        const std::int64_t to = std::int64_t{node} - window.prefetch;
        if (from < to) gone[from] = back[to] = step + 1;
      }
      if (!work.paired || step + 1 == count) ++node;
    }
    node = 0;
    const auto put = [&](std::int32_t step, job_kind kind) {
      if (step > 0) out.push(rank, {list[step - 1].stage, list[step - 1].microbatch, 0, kind});
    };
    for (std::int32_t step = 0; step < count; ++step) {
      put(gone[node], job_kind::offload);
      put(back[node], job_kind::reload);
      gone[node] = back[node] = 0;
      if (list[step].paired && step + 1 < count) out.push(rank, list[step++]);
      out.push(rank, list[step]);
      ++node;
    }
  }
  return {};
}

}  // namespace stretto::memory
