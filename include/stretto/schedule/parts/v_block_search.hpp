#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/kept_room.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_close_up.hpp"
#include "stretto/schedule/parts/v_compaction.hpp"
#include "stretto/schedule/parts/v_cool_down.hpp"
#include "stretto/schedule/parts/v_exchange.hpp"
#include "stretto/schedule/parts/v_fill.hpp"
#include "stretto/schedule/parts/v_launch.hpp"
#include "stretto/schedule/parts/v_orders.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! How the orders of blocks end.
enum class v_end_kind : std::uint8_t {
  block,      //!< as the last block does
  cool_down,  //!< as v_cool_down lays them,
  close_up,   //!< and closed up once more
};

//! The variants of a search over blocks of V schedules that keep as much as every rank's limit of
//! memory allows, or the flattest, begun less often, where that is less than any of them needs:
//! each with each of the rules by which its backwards for the weights run.
struct v_block_search {
  objective_kind objective;
  bool alone;  //!< one variant is asked for, not the best
  v_end_kind end = v_end_kind::block;

  //! Slots a rank, fast and slow: with these alone, the best is on average within 0.1% of that with
  //! all from 1 to 5; the first are those that most often cannot be beaten. How many ranks are
  //! fast, the limit says.
  static constexpr std::array<v_steps, 5> steps{{
      {.fast = 5, .slow = 2},
      {.fast = 2, .slow = 1},
      {.fast = 3, .slow = 1},
      {.fast = 5, .slow = 5},
      {.fast = 3, .slow = 3},
  }};
  static constexpr int ways = 2;  //!< in which slots are left free, the fewest first
  static constexpr int steady = static_cast<int>(steps.size()) * ways;
  //! The blocks of the least memory, for limits that they just fit or do not: begun when memory
  //! lets them. Which of them has no two jobs in a slot, depends on the number of ranks.
  static constexpr std::array<v_steps, 3> launched{{{}, {.back = 2}, {.up = 2, .home = 2}}};
  static constexpr int orders = steady + static_cast<int>(launched.size());
  //! When backwards for the weights run; those that keep less come first.
  static constexpr std::array<v_fill_rules, 4> fills{{
      {},
      {.share = 2},
      {.to_the_limit = true},
      {.share = 2, .to_the_limit = true},
  }};
  static constexpr int variants = orders * static_cast<int>(fills.size());
  //! With another end. Those in even steps hardly ever make the best of all then, nor, closed up,
  //! those that are begun less often.
  static constexpr int uneven = 3 * ways;
  static constexpr int closed_variants = uneven * static_cast<int>(fills.size());
  static constexpr int cooled_variants =
      closed_variants + (orders - steady) * static_cast<int>(fills.size());

  //! On which placement: best_possible asks.
  constexpr placement_kind placed() const { return placement_kind::wave; }

  //! A block's order, made better by exchanges; written if there is `out`. Of steps that are too
  //! large for those, only the order of the first rules, as it is.
  constexpr variant_score run(const shape& sizes, const job_table_view& table, int tried,
                              job_sink* out) const {
    const std::int64_t jobs = std::int64_t{v_streams} * sizes.ranks * sizes.microbatches;
    const int tries = effort / jobs < most_tries ? static_cast<int>(effort / jobs) : most_tries;
    const int rule = tried % static_cast<int>(fills.size());
    int arranged = tried / static_cast<int>(fills.size());
    if (end != v_end_kind::block && arranged >= uneven) arranged += steady - uneven;
    if (tries == 0 && rule > 0 && !alone) return {};
    const v_fill_rules& rules = fills[static_cast<std::size_t>(rule)];
    v_orders slots(sizes, activations(sizes, table));
    if (!arrange(sizes, arranged, slots)) return {};
    if (end != v_end_kind::block) v_cool_down(sizes, slots);
    if (end == v_end_kind::close_up && !v_close_up(sizes, slots)) return {};
    const int room = rules.to_the_limit ? kept_room::widest(sizes, table) : 0;
    if (tries > 0) {
      v_exchange order(sizes, table, slots, objective, rules);
      order.run(tries, best_possible(*this, sizes, table));
      variant_score found = order.best();
      found.room = room;
      if (out == nullptr || !found.fits) return found;
    }
    const v_fill fill(sizes, table, slots, out, rules, tries > 0 || end != v_end_kind::block);
    if (!fill.fits()) return {};
    return score_of(objective, fill.makespan(), fill.span(), room);
  }

  //! The same with one activation of a chunk less than the limits allow.
  constexpr variant_score run_less(const shape& sizes, const job_table_view& table, int tried,
                                   job_sink* out) const {
    if (!alone && !kept_room::is_tight(sizes, table)) return {};
    const kept_room less(sizes, table, kept_room::one_less);
    return run(sizes, less.table(), tried, out);
  }

 private:
  static constexpr int effort = 1 << 19;  // jobs that are replayed to make a block's order better
  static constexpr int most_tries = 512;

  //! Activations of a chunk for which every rank has room, at most those of 1F1B.
  static constexpr int activations(const shape& sizes, const job_table_view& table) {
    std::int64_t most = std::int64_t{2} * sizes.ranks;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      if (table.limit_of(rank) == unlimited) continue;
      const kept_memory of = kept_memory_of(table, rank);
      const std::int64_t room = table.limit_of(rank) - table.base_of(rank) - of.above;
      if (room < 0) return 0;
      if (of.one > 0 && room / of.one < most) most = room / of.one;
    }
    return static_cast<int>(most);
  }

  //! Repeats a block within what may be kept.
  //! @return false when it cannot be
  constexpr bool arrange(const shape& sizes, int tried, v_orders& to) const {
    scratch<v_block> laid(sizes.ranks);
    if (tried >= steady) {
      for (const v_steps& flat : launched)
        if (!alone && lay(flat, sizes.ranks, laid.data()) &&
            most_kept(laid.data(), sizes) < to.most())
          return false;  // it is not memory that keeps micro-batches from beginning
      lay(launched[static_cast<std::size_t>(tried - steady)], sizes.ranks, laid.data());
      return v_launch(sizes, laid.data(), to).fits();
    }
    if (!lay_fullest(sizes, to.most(), tried, laid.data())) return false;
    v_compaction(sizes, laid.data(), false, to);
    return true;
  }

  //! The block with the most fast ranks that keeps no more activations.
  //! @return false when there is none
  static constexpr bool lay_fullest(const shape& sizes, int most, int tried, v_block* laid) {
    const int p = sizes.ranks;
    v_steps made = steps[static_cast<std::size_t>(tried / ways)];
    const bool mixed = made.fast != made.slow;
    int way = -1;
    for (made.ranks = !mixed ? 0 : p > 2 ? p - 2 : 0; made.ranks >= 0; --made.ranks) {
      for (int free = 0; free <= 3 * (v_period - 1); ++free)
        for (made.up = 0; made.up < v_period; ++made.up)
          for (made.back = 0; made.back < v_period; ++made.back) {
            made.home = free - made.up - made.back;
            if (made.home < 0 || made.home >= v_period || !keeps(made, sizes, most, laid)) continue;
            if (++way == tried % ways) return true;
          }
    }
    return false;
  }
  static constexpr bool keeps(const v_steps& made, const shape& sizes, int most, v_block* laid) {
    for (int rank = 0; rank < sizes.ranks; ++rank)
      if (!made.lay(sizes.ranks, rank, laid[rank]) ||
          laid[rank].most_kept(sizes.microbatches) > most)
        return false;
    return true;
  }
};

}  // namespace stretto::schedule
