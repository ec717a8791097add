#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "stretto/model/job.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/rows.hpp"

namespace stretto {

namespace detail {

//! The stages that a rank needs next, so many of them, at one job of its list after another.
class next_stages {
 public:
  next_stages(std::span<const job> row, std::size_t most) : row_(row), moves_(row.size()) {
    for (std::size_t at = row.size(); at-- > 0;) {
      if (!is_compute(row[at].kind)) continue;
      const auto found = std::find(stages_.begin(), stages_.end(), row[at].stage);
      if (found != stages_.end()) {
        moves_[at].from = static_cast<std::int32_t>(found - stages_.begin());
        std::rotate(stages_.begin(), found, found + 1);
        continue;
      }
      stages_.insert(stages_.begin(), row[at].stage);
      if (stages_.size() <= most) continue;
      moves_[at].out = stages_.back();
      stages_.pop_back();
    }
    entered_ = stages_;
  }

  //! To the next job: what the one that is left had put in front goes back to where it was.
  void advance() {
    const move& made = moves_[at_];
    if (!is_compute(row_[at_++].kind)) return;
    if (made.from >= 0) {
      std::rotate(stages_.begin(), stages_.begin() + 1, stages_.begin() + made.from + 1);
      return;
    }
    change(left_, entered_, stages_.front());
    stages_.erase(stages_.begin());
    if (made.out < 0) return;
    change(entered_, left_, made.out);
    stages_.push_back(made.out);
  }
  //! Of those there are at this job the ones that were not when this was asked before, in the order
  //! in which they are needed.
  std::vector<std::int32_t> entered() { return std::exchange(entered_, {}); }
  //! And those that no longer are, ascending.
  std::vector<std::int32_t> left() {
    std::sort(left_.begin(), left_.end());
    return std::exchange(left_, {});
  }

 private:
  //! What a job did to the stages behind it, seen from the end of the list.
  struct move {
    std::int32_t from = -1;  //!< the place that its stage had; -1: none
    std::int32_t out = -1;   //!< the stage that it pushed out; -1: none
  };
  //! What has changed to and fro is as it was.
  static void change(std::vector<std::int32_t>& to, std::vector<std::int32_t>& back,
                     std::int32_t stage) {
    if (std::erase(back, stage) == 0) to.push_back(stage);
  }

  std::span<const job> row_;
  std::vector<move> moves_;
  std::vector<std::int32_t> stages_;  // the next first
  std::vector<std::int32_t> entered_;
  std::vector<std::int32_t> left_;
  std::size_t at_ = 0;
};

//! One rank's list with its gathers.
inline std::vector<job> gathered_row(std::span<const job> row, int most) {
  std::vector<job> made;
  next_stages next(row, static_cast<std::size_t>(most));
  const auto add = [&](const std::vector<std::int32_t>& stages, job_kind kind) {
    for (const std::int32_t stage : stages) made.push_back({.stage = stage, .kind = kind});
  };
  bool second_half = false;
  for (const job& work : row) {
    if (is_compute(work.kind)) {  // copies and messages need no weights
      if (!second_half) {
        add(next.left(), job_kind::reshard);
        add(next.entered(), job_kind::unshard);
      }
      second_half = work.paired && !second_half;
    }
    made.push_back(work);
    next.advance();
  }
  add(next.left(), job_kind::reshard);
  return made;
}

}  // namespace detail

//! Of how many stages at once some rank must have the weights: 2 where it pairs jobs of two,
//! else 1.
constexpr int least_gathered(const job_rows& rows) {
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (int step = 0; step + 1 < rows.counts[rank]; ++step)
      if (rows.at(rank, step).paired && rows.at(rank, step).stage != rows.at(rank, step + 1).stage)
        return 2;
  return 1;
}

//! What a step takes at least before its first job, which is of the first stage: the shortest
//! gather of that.
constexpr std::int64_t least_gather(const placement& where, const job_table_view& costs) {
  std::int64_t least = unlimited;
  for (const int microbatch : {0, where.microbatches - 1}) {
    const int rank = where.rank_of(0, microbatch);
    const std::int64_t time = costs.at(rank, where.chunk_of(0, microbatch), job_kind::unshard).time;
    if (time < least) least = time;
  }
  return least;
}

//! Lists with each stage's weights, of which its data-parallel replicas hold a part each, gathered
//! (UNSHARD) before its jobs and dropped (RESHARD) where torch.distributed.pipelining has it
//! (`_add_unshard_reshard`, with `most` 3): in front of a job, or pair, the stages that the rank
//! needs next are gathered in the order in which it does, and others dropped, the lowest first.
//! They keep rule `sharded`. Linear in the jobs, and in `most` for each.
//! @param lists  that keep all rules of lists, and have none
//! @param most   of how many stages at once a rank has the weights: at least as least_gathered says
inline job_lists with_gathered_weights(const replay_input& lists, int most) {
  std::vector<std::vector<job>> rows;
  std::size_t longest = 0;
  for (int rank = 0; rank < lists.rows.ranks; ++rank) {
    rows.push_back(detail::gathered_row(lists.rows.row(rank), most));
    longest = std::max(longest, rows.back().size());
  }
  job_lists made(lists.rows.ranks, static_cast<int>(longest));
  job_sink sink = made.sink();
  for (int rank = 0; rank < lists.rows.ranks; ++rank)
    for (const job& work : rows[static_cast<std::size_t>(rank)]) sink.push(rank, work);
  return made;
}

}  // namespace stretto
