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
//! is made for, nor, where limits are given, does it need more memory than they allow; it may keep
//! less long, never more. A search is made whole order by order, and then the best is taken. With
//! merge_kind::adjacent what one gets is only what is written: it may be longer.
template <class Schedule>
struct merged : Schedule {
  static_assert(Policy<Schedule>, "stretto: merged's argument must be a schedule");
  merge_kind merge = merge_kind::shortest;

  constexpr merged() = default;
  constexpr explicit merged(const Schedule& made, merge_kind how = merge_kind::shortest)
      : Schedule(made), merge(how) {}

  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    if (merge == merge_kind::none) return Schedule::emit(sizes, table, out);
    if constexpr (Search<Schedule>) {
      const int chosen = this->variant < 0 ? best_variant(*this, sizes, table) : this->variant;
      if (chosen >= 0 && score(sizes, table, chosen, &out).fits) return {};
      for (int rank = 0; rank < sizes.ranks; ++rank) out.counts[rank] = 0;
      return Schedule::emit(sizes, table, out);  // why nothing fits
    } else {
      lists_of split(sizes.ranks, Schedule::capacity(sizes), out.refused);
      const verdict answer = Schedule::emit(sizes, table, split.sink);
      if (answer.ok()) join(sizes, table, split.sink.rows(), out);
      return answer;
    }
  }
  //! Of `any`, which chooses before anything is made whole, so that there is nothing to choose.
  constexpr int orders() const
    requires requires(const Schedule& made) { made.orders(); }
  {
    return 0;
  }
  //! Of a search: a variant's, with its backwards whole where that is best.
  constexpr variant_score score(const shape& sizes, const job_table_view& table, int tried,
                                job_sink* out = nullptr) const requires Search<Schedule> {
    if (merge == merge_kind::none) return Schedule::score(sizes, table, tried, out);
    const int room = Schedule::capacity(sizes);
    lists_of split(sizes.ranks, room, out == nullptr ? nullptr : out->refused);
    variant_score as_split = Schedule::score(sizes, table, tried, &split.sink);
    if (!as_split.fits) return as_split;
    lists_of unread(out == nullptr ? sizes.ranks : 0, room, nullptr);
    const variant_score whole =
        join(sizes, table, split.sink.rows(), out == nullptr ? unread.sink : *out);
    // What else a search knows of its order stays: the room that it was found in, the lesser of its
    // two lengths, and whether it is the last resort. So it ends where it would.
    if (as_split.first != unlimited) as_split.first = whole.first;
    as_split.fits = whole.fits;
    return as_split;
  }

 private:
  struct lists_of {
    scratch<job> items;
    scratch<std::int32_t> counts;
    job_sink sink;

    constexpr lists_of(int ranks, int stride, verdict* refused)
        : items(std::int64_t{ranks} * stride),
          counts(ranks),
          sink{items.data(), counts.data(), ranks, stride, refused} {}
    constexpr ~lists_of() = default;  // nvcc needs it written
  };
  //! As short as any comes first, then as whole as any.
  struct choice {
    variant_score score;
    int joined;
    std::int64_t length;  // that no path was to be longer than
    bool exchanged;
    std::int64_t makespan;

    constexpr bool is_better_than(const choice& other) const {
      if (score.fits != other.score.fits) return score.fits;
      if (score.first != other.score.first) return score.first < other.score.first;
      return joined != other.joined ? joined > other.joined : score.second < other.score.second;
    }
  };

  constexpr variant_score scored(const half_merge::result& made) const {
    return made.fits ? score_of(aim_of(*this), made.makespan, made.span) : variant_score{};
  }
  //! Whether a whole backward of any rank takes less than its halves.
  static constexpr bool saves(const job_table_view& table) {
    const auto time = [&](int rank, int chunk, job_kind kind) {
      return table.at(rank, chunk, kind).time;
    };
    for (int rank = 0; rank < table.ranks; ++rank)
      for (int chunk = 0; chunk < table.chunks; ++chunk)
        if (time(rank, chunk, job_kind::backward) <
            time(rank, chunk, job_kind::backward_input) +
                time(rank, chunk, job_kind::backward_weight))
          return true;
    return false;
  }

  //! Writes the lists with halves joined.
  //! @return what they then score
  constexpr variant_score join(const shape& sizes, const job_table_view& table,
                               const job_rows& split, job_sink& out) const {
    half_merge halves(sizes, place(this->placed(), sizes), table, split);
    if (!halves.live()) {  // whoever checks the lists says why
      for (int rank = 0; rank < split.ranks; ++rank)
        for (const job& work : split.row(rank)) out.push(rank, work);
      return {};
    }
    const auto tried = [&](std::int64_t length, bool exchanged) {
      const half_merge::result made = halves.run(length, exchanged, nullptr);
      return choice{scored(made), made.joined, length, exchanged, made.makespan};
    };
    choice best{{}, 0, half_merge::any_length, false, 0};
    if (merge == merge_kind::shortest) {
      // No path need be longer than the step is now, nor, once a shorter one is known, than that.
      best = tried(halves.makespan(), true);
      const auto consider = [&](const choice& other) {
        if (other.is_better_than(best)) best = other;
      };
      if (aim_of(*this) == objective_kind::span) consider(tried(half_merge::no_length, false));
      if (saves(table)) {
        consider(tried(half_merge::any_length, false));
        consider(tried(half_merge::any_length, true));
        consider(tried(best.makespan - 1, true));
      }
    }
    return scored(halves.run(best.length, best.exchanged, &out));
  }
};

}  // namespace stretto::schedule
