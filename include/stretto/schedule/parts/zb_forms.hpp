#pragma once

#include <cstdint>
#include <span>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/late_weights.hpp"
#include "stretto/schedule/parts/whole_backwards.hpp"

namespace stretto::schedule {

//! A closed form of split 1F1B with one chunk: rank r begins with ahead (p - 1 - r) + 1 forwards
//! and puts its backwards for the weights off by late r rounds. If that is 0 on all ranks, or only
//! those of the first rounds are put off, the other backwards are whole where that takes less.
struct zb_form {
  int ahead;
  int late;
  late_kind which = late_kind::all;
  //! So many of the last backwards of the cool-down are split all the same, but none on rank 0,
  //! whose gradients nobody waits for.
  int split = 0;
};
inline constexpr int all_ahead = 1 << 30;
inline constexpr zb_form zb_forms[] = {
    {.ahead = 1, .late = 1},  // ZB-H1
    {.ahead = 2, .late = 2},  // ZB-H2
    {.ahead = 2, .late = 0},  // eager 1F1B
    {.ahead = 1, .late = 0},  // 1F1B
    // Fill-drain, but for the last rank, which loses nothing by turning at once.
    {.ahead = all_ahead, .late = 0},
};
//! Those with few splits.
inline constexpr zb_form zb_light_forms[] = {
    {.ahead = 1, .late = 1, .which = late_kind::first, .split = all_ahead},  // light ZB-H1
    {.ahead = 1, .late = 1, .which = late_kind::first, .split = 1},          // partial ZB-H1
};

//! Whether the rank's list stays within its limit.
constexpr bool zb_form_fits(const job_table_view& table, const job_sink& lists, int rank) {
  const std::int64_t limit = table.limit_of(rank);
  if (limit == unlimited) return true;
  std::int64_t level = table.base_of(rank);
  const std::span<const job> list = lists.rows().row(rank);
  for (const job& work : list) {
    const job_cost& cost = table.of(rank, 0, work);
    if (level + (cost.peak > cost.change ? cost.peak : cost.change) > limit) return false;
    level += cost.change;
  }
  return true;
}

//! Writes the form, with fewer micro-batches alive on ranks whose limit is too small for it: never
//! fewer forwards ahead than the next rank, whose first backward they lead to.
//! @return false when not even one at a time fits
constexpr bool write_zb_form(const shape& sizes, const job_table_view& table, const zb_form& form,
                             job_sink& out) {
  const bool first = form.which == late_kind::first;
  int before = sizes.microbatches;
  for (int rank = 0; rank < sizes.ranks; ++rank) {
    const std::int64_t wanted = std::int64_t{form.ahead} * (sizes.ranks - 1 - rank) + 1;
    int warmup = wanted < before ? static_cast<int>(wanted) : before;
    int late = form.late * rank < sizes.microbatches ? form.late * rank : sizes.microbatches - 1;
    if (form.late > 1) late = rounds_of_forwards(sizes, static_cast<int>(wanted), late);
    const auto fits = [&](int alive) {
      const int ahead = warmup < alive ? warmup : alive;
      const int most_late = first ? alive - ahead : alive - 1;
      const int split = rank == 0 ? 0 : form.split < ahead ? form.split : ahead;
      const auto whole = [&](int k) {
        return (first ? k + split < sizes.microbatches : form.late == 0) &&
               whole_takes_less(table, rank, 0, {rank, k});
      };
      out.counts[rank] = 0;
      push_late_weights(sizes, rank, ahead, late < most_late ? late : most_late, out, form.which,
                        whole);
      return zb_form_fits(table, out, rank);
    };
    int alive = first ? warmup + late : warmup > late ? warmup : late + 1;
    if (!fits(alive)) {
      int above = alive;
      for (alive = 0; above - alive > 1;) {
        const int middle = alive + (above - alive) / 2;
        (fits(middle) ? alive : above) = middle;
      }
      if (alive == 0 || !fits(alive)) return false;
    }
    if (warmup > alive) warmup = alive;
    before = warmup;
  }
  return true;
}

}  // namespace stretto::schedule
