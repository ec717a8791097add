#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/half_merge.hpp"
#include "stretto/schedule/parts/list_score.hpp"
#include "stretto/schedule/parts/merge_search.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! Which backwards that a schedule has split are whole again.
enum class merge_kind : std::uint8_t {
  none,
  adjacent,  //!< whose halves stand side by side, whatever it costs (PyTorch's `_merge_bw`)
  shortest,  //!< as many as the shortest step has that is found, by the costs at hand
};

//! A schedule of split backwards with some of them whole: to split one only pays where somebody
//! waits for its first half, and a whole one takes less than both where what they read is read once
//! (unit_costs::whole_saves). The step is never longer than the schedule's own by the costs that it
//! is made for, and keeps within limits that this one keeps within; with more room it may keep
//! more. Of what is put between its jobs later, copies to the host, recomputes, and of receives
//! that are posted late it knows nothing. A search is made whole order by order, and then the best
//! is taken. With merge_kind::adjacent what one gets is only what is written: it may be longer, and
//! need more.
template <class Schedule>
struct merged : Schedule {
  static_assert(Policy<Schedule>, "stretto: merged's argument must be a schedule");
  merge_kind merge = merge_kind::shortest;
  //! What is made short, unless the schedule is a search, which is told by its own option.
  objective_kind aimed_at = objective_kind::flush;

  constexpr merged() = default;
  constexpr explicit merged(const Schedule& made, merge_kind how = merge_kind::shortest,
                            objective_kind aim = objective_kind::flush)
      : Schedule(made), merge(how), aimed_at(aim) {}

  constexpr verdict emit(const shape& sizes, const job_table_view& costs, job_sink& out) const {
    const job_table_view table = costs.at_once();
    if (merge == merge_kind::none) return Schedule::emit(sizes, table, out);
    if constexpr (Search<Schedule>) {
      const int chosen = this->variant >= 0 ? this->variant : best_variant(*this, sizes, table);
      if (chosen >= 0 && score(sizes, table, chosen, &out).fits) return {};
      for (int rank = 0; rank < sizes.ranks; ++rank) out.counts[rank] = 0;
      return why_none(sizes, table, out);
    } else {
      scratch_lists halved(sizes.ranks, Schedule::capacity(sizes), out.refused);
      const verdict answer = Schedule::emit(sizes, table, halved.sink);
      if (answer.ok()) join(sizes, table, halved.sink.rows(), out);
      return answer;
    }
  }
  //! What is made short.
  constexpr objective_kind aim() const {
    if constexpr (Search<Schedule>) return this->objective;
    return aimed_at;
  }
  //! Of any other than a search: whole again, or split. Of these one is the schedule, but with jobs
  //! put between its own either may be the shorter.
  constexpr int orders() const
    requires(!Search<Schedule>)
  {
    return merge == merge_kind::shortest ? 2 : 0;
  }
  constexpr variant_score score(const shape& sizes, const job_table_view& table, int tried,
                                job_sink* out = nullptr) const
    requires(!Search<Schedule>)
  {
    const int room = Schedule::capacity(sizes);
    verdict unread{};
    scratch_lists own(out == nullptr ? sizes.ranks : 0, room, &unread);
    job_sink& lists = out == nullptr ? own.sink : *out;
    const merged order(*this, tried == 0 ? merge : merge_kind::none, aimed_at);
    if (!order.emit(sizes, table, lists).ok()) return {};
    return replayed(lists.rows(), sizes, table);  // no schedule but a search looks at limits
  }
  //! Of a search: a variant's, with its backwards whole where that is best.
  constexpr variant_score score(const shape& sizes, const job_table_view& table, int tried,
                                job_sink* out = nullptr) const
    requires Search<Schedule>
  {
    if (merge == merge_kind::none) return Schedule::score(sizes, table, tried, out);
    const int room = Schedule::capacity(sizes);
    verdict unread{};
    scratch_lists halved(sizes.ranks, room, out == nullptr ? &unread : out->refused);
    variant_score as_split = Schedule::score(sizes, table, tried, &halved.sink);
    if (!as_split.fits) return as_split;
    scratch_lists own(out == nullptr ? sizes.ranks : 0, room, &unread);
    job_sink& lists = out == nullptr ? own.sink : *out;
    variant_score whole = join(sizes, table, halved.sink.rows(), lists);
    // What is joined knows of no other message on a link.
    if (table.serial_links && merge == merge_kind::shortest) {
      const std::int64_t split = length_of(halved.sink.rows(), sizes, table);
      whole.first = length_of(lists.rows(), sizes, table);
      if (!whole.fits || split < whole.first) {
        for (int rank = 0; rank < sizes.ranks; ++rank) lists.counts[rank] = 0;
        copy(halved.sink.rows(), lists);
        whole = {true, split};
      }
    }
    // What else a search knows of its order stays: the room that it was found in, the lesser of its
    // two lengths, and whether it is the last resort. So it ends where it would.
    if (as_split.first != unlimited) as_split.first = whole.first;
    as_split.fits = whole.fits;
    return as_split;
  }

 private:
  //! Of a search no order of which fits: what would do. Where one fits split, and what is adjacent
  //! is to be joined whatever it keeps, the least limit under which that does.
  constexpr verdict why_none(const shape& sizes, const job_table_view& table, job_sink& out) const {
    const verdict answer = Schedule::emit(sizes, table, out);
    if (!answer.ok()) return answer;
    for (int rank = 0; rank < sizes.ranks; ++rank) out.counts[rank] = 0;
    const Schedule& halved = *this;
    const int chosen = this->variant >= 0 ? this->variant : best_variant(halved, sizes, table);
    return variant_over_limit(*this, sizes, table, chosen);
  }

  //! The score of lists whatever limits there are, and what is to be short of it.
  constexpr variant_score replayed(const job_rows& lists, const shape& sizes,
                                   job_table_view table) const {
    table.limit = {};
    return score_lists(aim(), sizes, place(this->placed(), sizes), table, lists);
  }
  constexpr std::int64_t length_of(const job_rows& lists, const shape& sizes,
                                   const job_table_view& table) const {
    const variant_score found = replayed(lists, sizes, table);
    return found.fits ? found.first : unlimited;
  }
  static constexpr void copy(const job_rows& lists, job_sink& out) {
    for (int rank = 0; rank < lists.ranks; ++rank)
      for (const job& work : lists.row(rank)) out.push(rank, work);
  }

  //! Writes the lists with halves joined.
  //! @return what they then score
  constexpr variant_score join(const shape& sizes, const job_table_view& table,
                               const job_rows& halved, job_sink& out) const {
    half_merge halves(sizes, place(this->placed(), sizes), table, halved);
    if (!halves.live()) {  // whoever checks the lists says why
      copy(halved, out);
      return {};
    }
    const merge_search search{aim()};
    return merge == merge_kind::adjacent ? search.run_adjacent(halves, out)
                                         : search.run_shortest(halves, table, out);
  }
};

}  // namespace stretto::schedule
