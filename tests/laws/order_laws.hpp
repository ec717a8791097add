#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "stretto/model/cost.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/schedule/concept.hpp"

namespace laws {

//! A schedule's orders with unit costs. Throws what a row longer than capacity() throws.
template <class Schedule>
stretto::job_lists emitted(const Schedule& schedule, const stretto::shape& sizes) {
  stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
  const stretto::job_table table(sizes.ranks, stretto::place(schedule.placed(), sizes).chunks);
  stretto::job_sink sink = lists.sink();
  const stretto::verdict made = schedule.emit(sizes, table.view(), sink);
  if (!made) throw std::string("emit: ") + std::string(stretto::to_text(made).view());
  return lists;
}

//! What is wrong with compute orders; empty when nothing is. Counts on its own that every (stage,
//! micro-batch, slice) has its forward and, unless `forward_only`, its backward, whole or in two
//! halves, once, on the placement's rank and after what it needs of the same rank; asks the replay
//! whether the ranks together come to an end.
inline std::string broken_law(const stretto::job_rows& rows, const stretto::placement& where,
                              const stretto::shape& sizes, bool forward_only) {
  using stretto::job_kind;
  const int stages = where.stages();
  const int count = sizes.microbatches;
  const auto cells = static_cast<std::size_t>(stages * count * sizes.slices);
  std::vector<int> forward_at(cells, -1);
  std::vector<int> backward_at(cells, -1);
  std::vector<int> weight_at(cells, -1);
  const auto cell = [&](int stage, const stretto::job& work, int slice) {
    return static_cast<std::size_t>((stage * count + work.microbatch) * sizes.slices + slice);
  };
  if (rows.ranks != sizes.ranks) return "wrong number of ranks";
  for (int rank = 0; rank < rows.ranks; ++rank) {
    for (int step = 0; step < rows.counts[rank]; ++step) {
      const stretto::job& work = rows.at(rank, step);
      const auto blame = [&](const char* what) {
        return "rank " + std::to_string(rank) + " step " + std::to_string(step) + " " +
               std::string(stretto::to_text(work).view()) + ": " + what;
      };
      if (work.stage < 0 || work.stage >= stages || work.microbatch < 0 ||
          work.microbatch >= count || work.slice < 0 || work.slice >= sizes.slices)
        return blame("out of range");
      if (work.paired && (work.kind != job_kind::forward || step + 1 == rows.counts[rank] ||
                          rows.at(rank, step + 1).kind == job_kind::forward ||
                          rows.at(rank, step + 1).kind == job_kind::backward_weight))
        return blame("half a pair");
      if (where.rank_of(work) != rank) return blame("on the wrong rank");
      const bool ahead = work.kind == job_kind::forward;
      const std::size_t here = cell(work.stage, work, work.slice);
      if (!ahead && (forward_only || work.kind > job_kind::backward_weight))
        return blame("wrong kind");
      if (work.kind == job_kind::backward_weight) {
        if (backward_at[here] < 0) return blame("before the backward for its input");
        if (std::exchange(weight_at[here], step) >= 0) return blame("a second time");
        continue;
      }
      int& at = (ahead ? forward_at : backward_at)[here];
      if (at >= 0) return blame("a second time");
      at = step;
      if (work.kind == job_kind::backward) weight_at[here] = step;
      if (!ahead && forward_at[here] < 0) return blame("before its forward");
      // A stage of the same rank that it needs directly must have been there already.
      const int before = ahead ? work.stage - 1 : work.stage + 1;
      if (before >= 0 && before < stages && where.rank_of(before, work.microbatch) == rank &&
          (ahead ? forward_at : backward_at)[cell(before, work, work.slice)] < 0)
        return blame("before the neighbouring stage");
      // Attention looks back: forwards go up the slices, backwards down.
      const int beside = ahead ? work.slice - 1 : work.slice + 1;
      if (beside >= 0 && beside < sizes.slices &&
          (ahead ? forward_at : backward_at)[cell(work.stage, work, beside)] < 0)
        return blame("before the neighbouring slice");
    }
  }
  const auto missing = [](int at) { return at < 0; };
  if (std::any_of(forward_at.begin(), forward_at.end(), missing)) return "a forward is missing";
  if (!forward_only && std::any_of(backward_at.begin(), backward_at.end(), missing))
    return "a backward is missing";
  if (!forward_only && std::any_of(weight_at.begin(), weight_at.end(), missing))
    return "a backward for the weights is missing";

  const stretto::job_table table(sizes.ranks, where.chunks);
  const stretto::verdict live = stretto::replay({.rows = rows,
                                                 .where = where,
                                                 .microbatches = count,
                                                 .slices = sizes.slices,
                                                 .costs = table.view()});
  return live ? std::string() : std::string(stretto::to_text(live).view());
}

//! The same for a schedule at a shape that it supports.
template <class Schedule>
std::string broken_law(const Schedule& schedule, const stretto::shape& sizes) {
  const stretto::job_lists lists = emitted(schedule, sizes);
  return broken_law(lists.rows(), stretto::place(schedule.placed(), sizes), sizes,
                    stretto::schedule::forward_only(schedule));
}

//! Whether two sets of lists hold the same jobs.
inline bool same(const stretto::job_rows& one, const stretto::job_rows& other) {
  if (one.ranks != other.ranks) return false;
  for (int rank = 0; rank < one.ranks; ++rank)
    if (!std::ranges::equal(one.row(rank), other.row(rank))) return false;
  return true;
}

inline std::string words(const stretto::shape& sizes) {
  return "p=" + std::to_string(sizes.ranks) + " m=" + std::to_string(sizes.microbatches) +
         " v=" + std::to_string(sizes.chunks) +
         (sizes.slices > 1 ? " k=" + std::to_string(sizes.slices) : "");
}

//! Calls `visit` with every shape up to these sizes, of one slice.
template <class Visitor>
void for_each_shape(int ranks, int microbatches, int chunks, Visitor&& visit) {
  for (int p = 1; p <= ranks; ++p)
    for (int v = 1; v <= chunks; ++v)
      for (int m = 1; m <= microbatches; ++m)
        visit(stretto::shape{.ranks = p, .microbatches = m, .chunks = v});
}

}  // namespace laws
