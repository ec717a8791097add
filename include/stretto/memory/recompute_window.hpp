#pragma once

#include <concepts>

#include "stretto/memory/microbatch_window.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::memory {

//! Which forwards run a second time, right before their backward, and meanwhile keep no more than
//! that needs.
using recompute_window = microbatch_window;

//! Every forward runs a second time.
inline constexpr recompute_window recompute_all{1, 1};

//! What a memory policy recomputes: see memory/concept.hpp.
template <class Memory>
constexpr recompute_window recompute_of(const Memory& made) {
  static_assert(
      !requires(Memory & any) { any.recompute(); } || requires { made.recompute(); },
      "stretto: a memory policy's recompute() must be const");
  static_assert(
      !requires(Memory & any) { any.recompute; } || requires { made.recompute(); },
      "stretto: a memory policy's recompute is a function, recompute()");
  constexpr bool asked = requires { made.recompute(); };
  constexpr bool told = requires {
    { made.recompute() } -> std::convertible_to<recompute_window>;
  };
  static_assert(told || !asked,
                "stretto: a memory policy's recompute() must return recompute_window");
  if constexpr (told)
    return made.recompute();
  else
    return {};
}

//! The most jobs of a list with recomputes, from those without: one for each backward.
constexpr int with_recomputes(const recompute_window& window, int compute) {
  return window.any() ? compute + compute / 2 : compute;
}

//! Copies compute lists with a recompute before each backward that wants one; before the pair when
//! that backward is half of one. Where it waits for its gradient, the recompute fills the wait. A
//! backward right behind its own forward wants none: nothing is kept meanwhile.
//! @return fault::unsupported for sliced micro-batches: the backward of a slice needs what its
//!         earlier ones keep
constexpr verdict insert_recomputes(const recompute_window& window, const job_rows& jobs,
                                    const placement& where, int slices, job_sink& out) {
  if (window.any() && slices > 1) return refuse(fault::unsupported, reason::slices_not_recomputed);
  if (!window.sound()) return refuse(fault::unsupported, reason::bad_recompute_window);
  const auto put = [&](int rank, int before, const job& work) {
    if (!is_input_gradient(work.kind) || !window.holds(where.chunk_of(work), work.microbatch))
      return;
    const job forward{work.stage, work.microbatch, work.slice};
    if (before < 0 || !(jobs.at(rank, before) == forward))
      out.push(rank, {work.stage, work.microbatch, work.slice, job_kind::recompute});
  };
  for (int rank = 0; rank < jobs.ranks; ++rank) {
    const int count = jobs.counts[rank];
    for (int step = 0; step < count; ++step) {
      const job& work = jobs.at(rank, step);
      const bool second = step > 0 && jobs.at(rank, step - 1).paired;
      if (!second) put(rank, step - 1, work);
      if (work.paired && step + 1 < count) put(rank, step - 1, jobs.at(rank, step + 1));
      out.push(rank, work);
    }
  }
  return {};
}

}  // namespace stretto::memory
