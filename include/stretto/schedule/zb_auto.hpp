#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/variants.hpp"
#include "stretto/schedule/zb_pass.hpp"

namespace stretto::schedule {

//! Automatic zero bubble: an order made for the costs at hand, within each rank's limit of memory.
//! Eight greedy passes, the best taken. ZB-1p and ZB-2p (Qi et al. 2023) are limits of p and 2 p
//! activations.
struct zb_auto {
  static constexpr std::string_view name = "zb_auto";
  objective_kind objective = objective_kind::flush;
  int variant = -1;                   //!< a single pass, 0 to 7; -1: the best of all
  static constexpr int variants = 8;  //!< the last of them is the one that the authors try first

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const {
    if (sizes.chunks > 1) return refuse(fault::unsupported, reason::chunks_not_one);
    if (sizes.slices > 1) return refuse(fault::unsupported, reason::slices_not_one);
    const verdict sound = positive_or_refuse(sizes);
    if (!sound) return sound;
    if (variant < -1 || variant >= variants)
      return refuse(fault::unsupported, reason::variant_out_of_range);
    return {};
  }
  constexpr int capacity(const shape& sizes) const { return 3 * sizes.microbatches; }
  constexpr variant_score score(const shape& sizes, const job_table_view& table, int tried) const {
    scratch<zb_rank> ranks(sizes.ranks);
    scratch<std::int64_t> ends(std::int64_t{2} * sizes.ranks * sizes.microbatches);
    zb_pass pass(sizes, table, lowest, tried, ranks, ends);
    if (!pass.run()) return {};
    return score_of(objective, pass.makespan(), pass.span());
  }
  //! @return fault::over_limit when no pass fits: `rank` that does not, its `limit`, and as
  //!         `amount` the smallest that is enough for every rank below it.
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    const int chosen = variant < 0 ? best_variant(*this, sizes, table) : variant;
    if (chosen < 0) return over(sizes, table);
    scratch<zb_rank> ranks(sizes.ranks);
    scratch<std::int64_t> ends(std::int64_t{2} * sizes.ranks * sizes.microbatches);
    if (zb_pass(sizes, table, lowest, chosen, ranks, ends, &out).run()) return {};
    for (int rank = 0; rank < sizes.ranks; ++rank) out.counts[rank] = 0;
    return over(sizes, table);
  }

 private:
  static constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();

  //! The smallest limit, for all ranks whose own is lower, under which some pass fits: by halving
  //! between one that does not and the peak of a pass without limits.
  constexpr verdict over(const shape& sizes, const job_table_view& table) const {
    scratch<zb_rank> ranks(sizes.ranks);
    scratch<std::int64_t> ends(std::int64_t{2} * sizes.ranks * sizes.microbatches);
    const int first = variant < 0 ? 0 : variant;
    const int last = variant < 0 ? variants - 1 : variant;
    int failed = -1;
    const auto fits = [&](std::int64_t limit, std::int64_t& peak) {
      for (int tried = last; tried >= first; --tried) {
        zb_pass pass(sizes, table, limit, tried, ranks, ends);
        if (pass.run()) {
          peak = pass.peak();
          return true;
        }
        failed = pass.failed_rank();
      }
      return false;
    };
    std::int64_t enough = 0;
    fits(lowest, enough);
    const int rank = failed;
    fits(unlimited, enough);
    std::int64_t short_of = table.limit_of(rank);
    while (enough - short_of > 1) {
      const std::int64_t middle = short_of + (enough - short_of) / 2;
      std::int64_t peak = 0;
      (fits(middle, peak) ? enough : short_of) = middle;
    }
    verdict answer = refuse(fault::over_limit, reason::above_limit);
    answer.rank = rank;
    answer.limit = table.limit_of(rank);
    answer.amount = enough;
    return answer;
  }
};

}  // namespace stretto::schedule
