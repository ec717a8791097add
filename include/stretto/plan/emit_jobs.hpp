#pragma once

#include <cstdint>
#include <vector>

#include "stretto/base/scratch.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/check/bounded.hpp"
#include "stretto/check/complete.hpp"
#include "stretto/check/doubled.hpp"
#include "stretto/memory/windows.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/list_score.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto {

namespace detail {

constexpr job_table_view without_limits(job_table_view table) {
  table.limit = {};
  return table;
}

//! Whether what a schedule sees says all of what its jobs take, and when messages are there.
constexpr bool sees_all(const memory::windows& put, const job_table_view& costs) {
  return put.folded_whole() && costs.classes.empty() && !costs.serial_links;
}

//! Puts recomputes and then copies into lists.
//! @return fault::unsupported for windows that are unsound, do not go together or are asked for
//!         with slices
constexpr verdict put_in(const memory::windows& put, const job_rows& plain, const placement& where,
                         int slices, job_sink& out) {
  scratch_lists again(out.ranks, memory::with_recomputes(put.recompute, plain.stride), out.refused);
  const verdict answer = memory::insert_recomputes(put.recompute, plain, where, slices, again.sink);
  if (!answer.ok()) return answer;
  return memory::insert_offloads(put.offload, put.recompute, again.sink.rows(), where, slices, out);
}

//! How good lists are with what is put in between their jobs, by a replay: they fit where that can
//! be, and what they then keep is within the limits of `costs`.
//! @param out  takes them
template <class Schedule>
constexpr schedule::variant_score judged(const Schedule& made, const shape& sizes,
                                         const memory::windows& put, const job_table_view& costs,
                                         const job_rows& plain, job_sink& out) {
  const placement where = place(made.placed(), sizes);
  for (int rank = 0; rank < sizes.ranks; ++rank) out.counts[rank] = 0;
  if (!put_in(put, plain, where, sizes.slices, out).ok()) return {};
  const replay_input input{.rows = out.rows(),
                           .where = where,
                           .microbatches = sizes.microbatches,
                           .slices = sizes.slices,
                           .costs = costs};
  if (!check::bounded(input).ok()) return {};
  return schedule::score_lists(schedule::aim_of(made), sizes, where, without_limits(costs),
                               out.rows());
}

}  // namespace detail

//! How good one order of a search is with what is put in between its jobs. Where what it sees does
//! not say all of that, or links carry one message at a time, how long a step then takes, and
//! whether it fits, is asked of the lists. Limits that it sees leave room for copies that may never
//! be there at once, and all micro-batches are as the largest: what finds no place within these, or
//! only a late one, may do better without; and so may a pass that does not look at what is on its
//! way.
//! @param put    see emit_jobs
//! @param costs  the same
//! @param seen   the same
//! @param out    where the lists go; none: only measures
template <class Schedule>
constexpr schedule::variant_score score_with(const Schedule& made, const shape& sizes,
                                             const memory::windows& put,
                                             const job_table_view& costs,
                                             const job_table_view& seen, int tried,
                                             job_sink* out = nullptr) {
  if (detail::sees_all(put, costs) || !put.sound())
    return made.score(sizes, seen, tried, out);
  const int room = made.capacity(sizes);
  verdict unread{};
  verdict* const refused = out == nullptr ? &unread : out->refused;
  scratch_lists plain(sizes.ranks, room, refused);
  scratch_lists own(sizes.ranks, out == nullptr ? put.room(room) : 0, refused);
  job_sink& lists = out == nullptr ? own.sink : *out;
  bool placed = false;  // within the limits that it saw
  const auto made_within = [&](const job_table_view& limits) -> schedule::variant_score {
    for (int rank = 0; rank < sizes.ranks; ++rank) plain.sink.counts[rank] = 0;
    schedule::variant_score found = made.score(sizes, limits, tried, &plain.sink);
    placed = found.fits;
    if (!placed) return found;
    const std::int32_t kept = found.room;
    found = detail::judged(made, sizes, put, costs, plain.sink.rows(), lists);
    found.room = kept;
    return found;
  };
  schedule::variant_score found = made_within(seen);
  const bool unlimited_too = !seen.limit.empty() && (!placed || !costs.classes.empty());
  job_table_view best = seen;
  bool written = true;
  const auto try_also = [&](const job_table_view& other) {
    const schedule::variant_score score = made_within(other);
    written = score.fits && (!found.fits || score.is_better_than(found));
    if (written) found = score, best = other;
  };
  if (costs.serial_links) try_also(seen.at_once());
  if (unlimited_too) try_also(detail::without_limits(seen));
  if (out != nullptr && found.fits && !written) made_within(best);
  return found;
}

//! What no order can be better than with what is put in between its jobs: that only makes it
//! longer, but what a limit says of jobs without, it says of no others.
template <class Schedule>
constexpr schedule::variant_score possible_with(const Schedule& made, const shape& sizes,
                                                const memory::windows& put,
                                                const job_table_view& costs,
                                                const job_table_view& seen) {
  if (detail::sees_all(put, costs)) return schedule::best_possible(made, sizes, seen);
  return schedule::best_possible(made, sizes, detail::without_limits(costs));
}

//! The jobs of a schedule that has no choice, or none of whose orders fits: then why not.
//! @return as emit_jobs
template <schedule::Policy Schedule>
constexpr verdict emit_one(const Schedule& made, const shape& sizes, const memory::windows& put,
                           const job_table_view& costs, const job_table_view& seen, job_sink& out) {
  const placement where = place(made.placed(), sizes);
  const auto put_into = [&](const job_rows& order, job_sink& lists) {
    for (int rank = 0; rank < sizes.ranks; ++rank) lists.counts[rank] = 0;
    return detail::put_in(put, order, where, sizes.slices, lists);
  };
  scratch_lists plain(sizes.ranks, made.capacity(sizes), out.refused);
  const verdict answer = made.emit(sizes, seen, plain.sink);
  // As in score_with: without limits an order may do that has no place within what was seen of
  // them, or be shorter.
  const bool alike = costs.classes.empty();
  const bool may_do =
      !(put.folded_whole() && alike) && !seen.limit.empty() && schedule::orders_of(made) == 0 &&
      (answer.ok() ? !alike && !schedule::is_one_variant(made) : answer.what == fault::over_limit);
  if (may_do) {
    scratch_lists free(sizes.ranks, made.capacity(sizes), out.refused);
    const auto judged = [&](const job_rows& order) {
      return detail::judged(made, sizes, put, costs, order, out);
    };
    if (made.emit(sizes, detail::without_limits(seen), free.sink).ok()) {
      const schedule::variant_score within =
          answer.ok() ? judged(plain.sink.rows()) : schedule::variant_score{};
      const schedule::variant_score without = judged(free.sink.rows());
      if (without.fits && (!within.fits || without.is_better_than(within))) return {};
    }
  }
  if (answer.ok()) return put_into(plain.sink.rows(), out);
  for (int rank = 0; rank < sizes.ranks; ++rank) out.counts[rank] = 0;
  return memory::unfolded(answer, costs.limit, seen.limit);
}

//! The compute jobs of every rank: the schedule's, with recomputes and then copies put in; of a
//! search those of the order that is best with them.
//! @param made      a schedule that serves the shape
//! @param costs     the job table, which fits the shape's placement
//! @param seen      the same as memory::fold leaves it, where anything is put in
//! @param out       room for `put.room(made.capacity(sizes))` jobs a rank
//! @return what the schedule says of the costs; fault::unsupported for windows that are unsound, do
//!         not go together or are asked for with slices
template <schedule::Policy Schedule>
constexpr verdict emit_jobs(const Schedule& made, const shape& sizes, const memory::windows& put,
                            const job_table_view& costs, const job_table_view& seen,
                            job_sink& out) {
  const bool sees_all = detail::sees_all(put, costs);
  if (!put.any() && put.sound() && sees_all) return made.emit(sizes, costs, out);
  if constexpr (requires { made.score(sizes, seen, 0, &out); }) {
    const int orders = put.sound() && !sees_all ? schedule::orders_of(made) : 0;
    const schedule::variant_score possible = possible_with(made, sizes, put, costs, seen);
    schedule::variant_choice choice;
    for (int tried = 0; tried < orders && !choice.is_settled(possible); ++tried)
      choice = choice.with(tried, score_with(made, sizes, put, costs, seen, tried));
    if (choice.best >= 0 && score_with(made, sizes, put, costs, seen, choice.best, &out).fits)
      return {};
    for (int rank = 0; rank < sizes.ranks; ++rank) out.counts[rank] = 0;
  }
  return emit_one(made, sizes, put, costs, seen, out);
}

//! The verdict on lists that have no place for a job: one that is doubled, misplaced or of another
//! kind may have taken it.
//! @param refused  what the sink says; ok: there was place for all
//! @param lists    all that there was place for, over costs that fit
constexpr verdict refused_or_taken(const verdict& refused, const replay_input& lists) {
  if (refused.what != fault::capacity) return refused;
  const verdict found = check::complete(lists, check::lists_of::jobs);
  switch (found.why) {
    case reason::none: {  // all are there already
      const verdict twice =
          check::doubled(fault::incomplete, lists.rows, refused.rank, -1, refused.where);
      return twice.has_other ? twice : refused;
    }
    case reason::unexpected_communication:
    case reason::out_of_range:
    case reason::wrong_rank:
    case reason::duplicate:
    case reason::both_whole_and_split: return found;
    default: return refused;
  }
}

//! The same into lists of its own making, at run time.
//! @return that, or what was wrong with the first job that there is no place for; see
//!         schedule::capacity_or_refuse
template <schedule::Policy Schedule>
verdict emit_jobs(const Schedule& made, const shape& sizes, const memory::windows& put,
                  const job_table_view& costs, job_lists& lists) {
  if (const verdict sound = schedule::capacity_or_refuse(made, sizes); !sound.ok())
    return sound;
  std::vector<job_cost> entries(costs.entries.begin(), costs.entries.end());
  std::vector<std::int64_t> limits(costs.limit.begin(), costs.limit.end());
  memory::fold(put, {entries.data(), entries.size()}, costs.ranks, costs.chunks,
               {limits.data(), limits.size()});
  job_table_view seen = costs;
  seen.entries = viewed(entries);
  seen.limit = viewed(limits);
  lists = job_lists(sizes.ranks, put.room(made.capacity(sizes)));
  verdict refused{};
  job_sink out = lists.sink();
  out.refused = &refused;
  const verdict answer = emit_jobs(made, sizes, put, costs, seen, out);
  if (refused.ok()) return answer;
  return refused_or_taken(refused, {.rows = out.rows(),
                                    .where = place(made.placed(), sizes),
                                    .microbatches = sizes.microbatches,
                                    .slices = sizes.slices,
                                    .costs = costs});
}

}  // namespace stretto
