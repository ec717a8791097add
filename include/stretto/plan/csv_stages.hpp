#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stretto/model/job.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::detail {

//! A job that a file has, and its cell, from 1.
struct csv_job {
  job work;
  int cell;
};
using csv_rows = std::vector<std::vector<csv_job>>;

//! Where the stages of a file lie, how many micro-batches and slices there are, and which job is
//! missing first, or cannot be where it is. Numbers are held against what the file can hold before
//! anything is sized by them.
class csv_stages {
 public:
  //! @param both_ways  whether stages may lie on two ranks each, in opposite directions
  csv_stages(const csv_rows& rows, bool both_ways) : rows_(rows), both_ways_(both_ways) {}

  //! @return ok, or fault::incomplete: a job that lies elsewhere than most of its stage or asks for
  //!         a stage that is missing, with its rank and step; rank -1: there are no jobs
  verdict find() {
    count();
    const auto ranks = static_cast<int>(rows_.size());
    // A stage is where most of its jobs are, of as many those with more forwards: one that is
    // mistyped must not move it.
    for (const auto& [stage, there] : by_rank_) {
      const auto most = std::max_element(there.begin(), there.end(), [](auto& one, auto& other) {
        return std::pair(one.second.count, one.second.forwards) <
               std::pair(other.second.count, other.second.forwards);
      });
      homes_[stage] = {most->first, most->second.first};
    }
    two_directions_ = both_ways_ && lies_both_ways();
    const placement both = both_ways(microbatches());
    for (int rank = 0; rank < ranks; ++rank)
      for (std::size_t step = 0; step < row(rank).size(); ++step) {
        const job& work = row(rank)[step].work;
        if (!has_cost(work.kind)) continue;
        const auto& [there, known] = homes_.at(work.stage);
        const bool lies = two_directions_ && work.stage < both.stages()
                              ? on_either(both, rank, work.stage)
                              : rank == there;
        if (!lies)
          return refuse(fault::incomplete, reason::wrong_rank, rank, static_cast<int>(step), work,
                        known);
      }
    for (std::int32_t stage = 0; stage < stages_; ++stage)
      if (!homes_.contains(stage))
        return asked_for({stage, 0, 0, job_kind::forward},
                         [&](const job& work) { return work.stage > stage; });
    if (stages_ == 0)
      return refuse(fault::incomplete, reason::missing, -1, -1, {0, 0, 0, job_kind::forward});
    for (int rank = 0; rank < ranks; ++rank)
      for (std::size_t step = 0; step < row(rank).size(); ++step)
        if (row(rank)[step].work.stage >= stages_)
          return refuse(fault::incomplete, reason::out_of_range, rank, static_cast<int>(step),
                        row(rank)[step].work);
    return {};
  }

  //! After find(). Which forward is missing where there are too few for as many micro-batches and
  //! slices: the checks would first set aside memory for all of them. Which job goes the wrong way,
  //! and which slice runs again, or is copied, of which others read what it keeps.
  verdict complete() const {
    const std::int64_t cells = stages_ * microbatches_;  // below 2^62
    if (forwards_ < cells || forwards_ < cells * slices_) {
      const verdict found = stray();
      return found.ok() ? first_gap() : found;
    }
    for (int rank = 0; rank < static_cast<int>(rows_.size()); ++rank)
      for (std::size_t step = 0; step < row(rank).size(); ++step) {
        const job& work = row(rank)[step].work;
        const auto refused = [&](fault what, reason why) {
          return refuse(what, why, rank, static_cast<int>(step), work);
        };
        if (two_directions_ && has_cost(work.kind) && rank != rank_of(work))
          return refused(fault::incomplete, reason::wrong_direction);
        if (slices_ > 1 && work.kind == job_kind::recompute)
          return refused(fault::unsupported, reason::slices_not_recomputed);
        if (slices_ > 1 && is_copy(work.kind))
          return refused(fault::unsupported, reason::slices_not_offloaded);
      }
    return {};
  }

  //! The rank of each stage; of two directions that of the first.
  std::vector<std::int32_t> homes() const {
    std::vector<std::int32_t> all;
    for (std::int32_t stage = 0; stage < stages_; ++stage)
      all.push_back(rank_of({stage, 0, 0, job_kind::forward}));
    return all;
  }
  bool two_directions() const { return two_directions_; }
  //! Stages that a rank has of either of two directions.
  int chunks_one_way() const { return both_ways(1).chunks_one_way(); }
  int microbatches() const {
    return static_cast<int>(
        std::min<std::int64_t>(microbatches_, std::numeric_limits<std::int32_t>::max()));
  }
  int slices() const { return static_cast<int>(slices_); }

 private:
  struct jobs_of_rank {
    std::int64_t count = 0;
    std::int64_t forwards = 0;
    job first{};
  };
  //! Of two of stage, micro-batch and slice, where the third is told.
  using places = std::set<std::pair<std::int32_t, std::int32_t>>;
  struct jobs_there {
    places forwards;
    std::size_t backwards = 0;
  };

  const std::vector<csv_job>& row(int rank) const { return rows_[static_cast<std::size_t>(rank)]; }

  void count() {
    for (int rank = 0; rank < static_cast<int>(rows_.size()); ++rank)
      for (const auto& [work, cell] : row(rank)) {
        if (!has_cost(work.kind)) continue;
        forwards_ += work.kind == job_kind::forward;
        microbatches_ = std::max<std::int64_t>(microbatches_, std::int64_t{1} + work.microbatch);
        stages_ = std::max<std::int64_t>(stages_, std::int64_t{1} + work.stage);
        slices_ = std::max<std::int64_t>(slices_, std::int64_t{1} + work.slice);
        jobs_of_rank& there = by_rank_[work.stage][rank];
        if (there.count++ == 0) there.first = work;
        there.forwards += work.kind == job_kind::forward;
      }
  }

  //! As it is if stages lie on two ranks each, in opposite directions. A stage that is mistyped is
  //! one too many, one that is missing one too few.
  placement both_ways(int microbatches) const {
    const auto ranks = static_cast<int>(rows_.size());
    const int chunks = (static_cast<int>(by_rank_.size()) + (ranks - 1) / 2) / ranks;
    return place(placement_kind::bidirectional,
                 {.ranks = ranks, .microbatches = microbatches, .chunks = chunks > 1 ? chunks : 1});
  }
  static bool on_either(const placement& both, int rank, int stage) {
    return rank == both.rank_in(0, stage) || rank == both.rank_in(1, stage);
  }
  //! The rank of a job; of a stage that no direction has, its own.
  int rank_of(const job& work) const {
    const placement both = both_ways(microbatches());
    return two_directions_ && work.stage < both.stages() ? both.rank_of(work)
                                                         : homes_.at(work.stage).first;
  }

  //! Whether fewer jobs are out of place if stages lie both ways; or a good part is either way, and
  //! nearly all jobs lie on one of the two ranks. One micro-batch goes but one way.
  bool lies_both_ways() const {
    if (rows_.size() < 2) return false;
    std::set<std::int32_t> microbatches;  // the highest may be mistyped
    for (const auto& jobs : rows_)
      for (const auto& [work, cell] : jobs)
        if (has_cost(work.kind)) microbatches.insert(work.microbatch);
    if (microbatches.size() < 2) return false;
    const placement both = both_ways(static_cast<int>(microbatches.size()));
    std::int64_t all = 0;
    std::int64_t out_of_one_way = 0;
    std::int64_t out_of_both = 0;
    std::int64_t elsewhere = 0;
    for (int rank = 0; rank < both.ranks; ++rank)
      for (const auto& [work, cell] : row(rank)) {
        if (!has_cost(work.kind)) continue;
        ++all;
        out_of_one_way += rank != homes_.at(work.stage).first;
        const bool none = work.stage >= both.stages();
        out_of_both += none || rank != both.rank_of(work);
        elsewhere += none || !on_either(both, rank, work.stage);
      }
    return out_of_both < out_of_one_way || (4 * out_of_one_way > all && 8 * elsewhere < all);
  }

  //! A number that is mistyped makes a stage, a micro-batch or a slice of which next to nothing is
  //! there.
  //! @return ok, or the first job of one that has less than half as many forwards as another; of
  //!         micro-batches and slices also half as many, but with its backwards less than half
  verdict stray() const {
    std::map<std::int32_t, jobs_there> by_microbatch;
    std::map<std::int32_t, jobs_there> by_stage;
    std::map<std::int32_t, jobs_there> by_slice;
    for (const auto& jobs : rows_)
      for (const auto& [work, cell] : jobs) {
        if (is_input_gradient(work.kind)) {
          ++by_microbatch[work.microbatch].backwards;
          ++by_slice[work.slice].backwards;
        }
        if (work.kind != job_kind::forward) continue;
        by_microbatch[work.microbatch].forwards.emplace(work.stage, work.slice);
        by_stage[work.stage].forwards.emplace(work.microbatch, work.slice);
        by_slice[work.slice].forwards.emplace(work.stage, work.microbatch);
      }
    // The first of so many that has less than half of what the fullest has, or as many.
    const auto lean = [](std::map<std::int32_t, jobs_there>& all, std::int64_t many) {
      std::size_t forwards = 1;
      std::size_t jobs = 1;
      for (const auto& [number, there] : all) {
        forwards = std::max(forwards, there.forwards.size());
        jobs = std::max(jobs, there.forwards.size() + there.backwards);
      }
      const auto has_half = [&](const jobs_there& there) {
        const std::size_t mine = there.forwards.size();
        return 2 * mine > forwards ||
               (2 * mine == forwards && 2 * (mine + there.backwards) >= jobs);
      };
      std::int64_t at = 0;
      while (at < many && has_half(all[static_cast<std::int32_t>(at)])) ++at;
      return static_cast<std::int32_t>(at);
    };
    const auto absent = [](const places& there, std::int64_t inner) {
      std::pair<std::int32_t, std::int32_t> place{0, 0};
      while (there.contains(place))
        place = place.second + 1 < inner ? std::pair{place.first, place.second + 1}
                                         : std::pair{place.first + 1, 0};
      return place;
    };
    if (const auto at = lean(by_microbatch, microbatches_); at < microbatches_) {
      const places& there = by_microbatch[at].forwards;
      const auto [stage, slice] = absent(there, slices_);
      return asked_for({stage, at, static_cast<std::int16_t>(slice), job_kind::forward},
                       [&](const job& work) {
                         return there.empty() ? work.microbatch >= at : work.microbatch == at;
                       });
    }
    if (const auto at = lean(by_stage, stages_); at < stages_) {
      const auto [microbatch, slice] = absent(by_stage[at].forwards, slices_);
      return asked_for({at, microbatch, static_cast<std::int16_t>(slice), job_kind::forward},
                       [&](const job& work) { return work.stage == at; });
    }
    if (const auto at = lean(by_slice, slices_); at < slices_) {
      const places& there = by_slice[at].forwards;
      const auto [stage, microbatch] = absent(there, microbatches_);
      return asked_for({stage, microbatch, static_cast<std::int16_t>(at), job_kind::forward},
                       [&](const job& work) {
                         return there.empty() ? work.slice >= at : work.slice == at;
                       });
    }
    return {};
  }

  verdict first_gap() const {
    std::vector<std::vector<std::int64_t>> found(static_cast<std::size_t>(stages_));
    for (const auto& jobs : rows_)
      for (const auto& [work, cell] : jobs)
        if (work.kind == job_kind::forward)
          found[static_cast<std::size_t>(work.stage)].push_back(work.microbatch * slices_ +
                                                                work.slice);
    for (std::size_t stage = 0; stage < found.size(); ++stage) {
      auto& there = found[stage];
      std::sort(there.begin(), there.end());
      there.erase(std::unique(there.begin(), there.end()), there.end());
      std::int64_t gap = 0;
      while (static_cast<std::size_t>(gap) < there.size() &&
             there[static_cast<std::size_t>(gap)] == gap)
        ++gap;
      const auto microbatch = static_cast<std::int32_t>(gap / slices_);
      if (microbatch >= microbatches_) continue;
      const job absent{static_cast<std::int32_t>(stage), microbatch,
                       static_cast<std::int16_t>(gap % slices_), job_kind::forward};
      return refuse(fault::incomplete, reason::missing, rank_of(absent), -1, absent);
    }
    return {};
  }

  //! The first job that does asks for one that is missing.
  template <class Asks>
  verdict asked_for(const job& work, const Asks& asks) const {
    for (int rank = 0; rank < static_cast<int>(rows_.size()); ++rank)
      for (std::size_t step = 0; step < row(rank).size(); ++step) {
        const job& here = row(rank)[step].work;
        if (has_cost(here.kind) && asks(here))
          return refuse(fault::incomplete, reason::missing, rank, static_cast<int>(step), work);
      }
    return {};
  }

  const csv_rows& rows_;
  bool both_ways_;
  bool two_directions_ = false;
  std::int64_t forwards_ = 0;
  std::int64_t microbatches_ = 0;
  std::int64_t stages_ = 0;
  std::int64_t slices_ = 1;
  std::unordered_map<std::int32_t, std::map<int, jobs_of_rank>> by_rank_;
  std::unordered_map<std::int32_t, std::pair<int, job>> homes_;
};

}  // namespace stretto::detail
