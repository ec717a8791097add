#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stretto/memory/offload_window.hpp"
#include "stretto/memory/recompute_window.hpp"
#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::memory {

//! What a memory policy puts into a schedule's lists, which knows of neither.
struct windows {
  recompute_window recompute{};
  offload_window offload{};

  constexpr bool any() const { return recompute.any() || offload.any(); }
  constexpr bool sound() const { return recompute.sound() && offload.sound(); }
  //! Whether a job table says all of it; see fold.
  constexpr bool folded_whole() const {
    return !offload.any() && (!recompute.any() || recompute.all());
  }
  //! The most jobs of a list, from those that the schedule emits.
  constexpr int room(int emitted) const {
    return with_offloads(offload, with_recomputes(recompute, emitted));
  }
};

//! What a memory policy puts in: see memory/concept.hpp.
template <class Memory>
constexpr windows windows_of(const Memory& made) {
  return {recompute_of(made), offload_of(made)};
}

namespace detail {

//! A forward leaves to its backward what that brings back first, by a job of so much time and at
//! most so much memory.
//! @param costs  of a rank's chunk, an entry a kind
constexpr void put_off(job_cost* costs, std::int64_t back, std::int64_t time, std::int64_t peak) {
  job_cost& forward = costs[static_cast<int>(job_kind::forward)];
  if (forward.peak == 0) forward.peak = forward.change;
  forward.change -= back;
  for (const job_kind kind : {job_kind::backward, job_kind::backward_input}) {
    job_cost& backward = costs[static_cast<int>(kind)];
    backward.time += time;
    backward.peak += back;
    backward.change += back;
    if (backward.peak < back) backward.peak = back;
    if (backward.peak < peak) backward.peak = peak;
  }
}

}  // namespace detail

//! The job table as a schedule should see it. A backward takes what its recompute takes, too, in
//! time and in memory; where only some micro-batches recompute, time is that of those and memory
//! that of the others: enough for both. What is copied to the host takes no time, and where all
//! micro-batches are, a forward leaves it to its backward.
//! @param entries  of a job table of so many ranks and chunks, see job_table_view
//! @param limits   of memory, an entry a rank, or empty: each is lowered by what copies may hold at
//!                 any time, the stashes of `lag` forwards that are still to go out and of
//!                 `prefetch` backwards that have come in
constexpr void fold(const windows& put, std::span<job_cost> entries, int ranks, int chunks,
                    std::span<std::int64_t> limits) {
  if (!put.any()) return;
  const recompute_window& again = put.recompute;
  const microbatch_window& away = put.offload.which;
  const auto cells = static_cast<int>(entries.size()) / cost_kinds;
  scratch<std::int64_t> copied(ranks);  // the most at once of each rank's chunks, of any class
  for (int cell = 0; cell < cells; ++cell) {
    job_cost* const costs = entries.data() + cell * cost_kinds;
    if (again.holds(cell % chunks)) {
      const job_cost second = costs[static_cast<int>(job_kind::recompute)];
      detail::put_off(costs, again.all() ? second.change : 0, second.time,
                      again.all() ? second.peak : 0);
    }
    if (away.all() && away.holds(cell % chunks)) {
      const std::int64_t back = costs[static_cast<int>(job_kind::reload)].change;
      std::int64_t& most = copied[cell / chunks % ranks];
      if (back > most) most = back;
      detail::put_off(costs, back, 0, 0);
    }
  }
  for (int rank = 0; rank < ranks && !limits.empty(); ++rank) {
    std::int64_t& limit = limits[static_cast<std::size_t>(rank)];
    const std::int64_t most = copied[rank];
    const std::int64_t copies = std::int64_t{put.offload.lag} + put.offload.prefetch;
    // More than that no limit has room for, and the product would not fit.
    constexpr std::int64_t beyond = std::int64_t{1} << 62;
    if (limit != unlimited) limit -= most > 0 && copies > beyond / most ? beyond : most * copies;
  }
}

//! A refusal of a schedule that has seen folded limits, in those that it was folded from.
constexpr verdict unfolded(verdict answer, std::span<const std::int64_t> limits,
                           std::span<const std::int64_t> folded) {
  if (answer.what != fault::over_limit || answer.rank < 0 || limits.empty()) return answer;
  std::int64_t most = 0;  // `amount` is enough for every rank, and so it stays
  for (std::size_t rank = 0; rank < limits.size(); ++rank)
    if (limits[rank] - folded[rank] > most) most = limits[rank] - folded[rank];
  answer.amount += most;
  answer.limit = limits[static_cast<std::size_t>(answer.rank)];
  return answer;
}

}  // namespace stretto::memory
