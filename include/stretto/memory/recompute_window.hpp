#pragma once

#include <cstddef>
#include <span>

#include "stretto/memory/microbatch_window.hpp"
#include "stretto/model/cost.hpp"
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
constexpr recompute_window window_of(const Memory& made) {
  static_assert(!requires(Memory& any) { any.recompute(); } || requires { made.recompute(); },
                "stretto: a memory policy's recompute() must be const");
  if constexpr (requires { made.recompute(); })
    return made.recompute();
  else
    return {};
}

//! The job table as a schedule should see it, which knows of no recompute: a backward takes what
//! its recompute takes, too, in time and in memory. Where only some micro-batches recompute, time
//! is that of those and memory that of the others: enough for both.
//! @param entries  of a job table, see job_table_view
constexpr void fold_recompute(const recompute_window& window, std::span<job_cost> entries,
                              int chunks) {
  const auto cells = static_cast<int>(entries.size()) / cost_kinds;
  for (int cell = 0; cell < cells; ++cell) {
    if (!window.holds(cell % chunks)) continue;
    const auto of = [&](job_kind kind) -> job_cost& {
      return entries[static_cast<std::size_t>(cell * cost_kinds + static_cast<int>(kind))];
    };
    const job_cost again = of(job_kind::recompute);
    const std::int64_t back = window.all() ? again.change : 0;
    job_cost& forward = of(job_kind::forward);
    if (forward.peak == 0) forward.peak = forward.change;
    forward.change -= back;
    for (const job_kind kind : {job_kind::backward, job_kind::backward_input}) {
      job_cost& backward = of(kind);
      backward.time += again.time;
      backward.peak += back;
      backward.change += back;
      if (backward.peak < back) backward.peak = back;
      if (window.all() && backward.peak < again.peak) backward.peak = again.peak;
    }
  }
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
  if (!window.sound())
    return refuse(fault::unsupported, reason::bad_recompute_window);
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
