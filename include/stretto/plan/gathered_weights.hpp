#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

namespace detail {

//! The stages that a rank needs next, so many of them, at one job of its list after another. Arrays
//! and loops, because compilers are slow to evaluate more.
class next_stages {
 public:
  constexpr next_stages(std::span<const job> row, int most)
      : row_(row.data()),
        from_(static_cast<std::int64_t>(row.size())),
        out_(static_cast<std::int64_t>(row.size())),
        stages_(most + 1),
        entered_(most + 1),
        left_(most + 1) {
    for (auto at = static_cast<std::int32_t>(row.size()); at-- > 0;) {
      const job work = row_[at];
      if (!is_compute(work.kind) || (count_ > 0 && stages_[0] == work.stage)) continue;
      int place = 0;
      while (place < count_ && stages_[place] != work.stage) ++place;
      if (place < count_) {
        from_[at] = place;
      } else {
        from_[at] = -1;
        out_[at] = count_ == most ? stages_[--count_] + 1 : 0;
        place = count_++;
      }
      for (; place > 0; --place) stages_[place] = stages_[place - 1];
      stages_[0] = work.stage;
    }
    for (; entered_count_ < count_; ++entered_count_)
      entered_[entered_count_] = stages_[entered_count_];
  }
  constexpr ~next_stages() = default;  // nvcc does not find it constexpr by itself

  //! To the next job: what the one that is left had put in front goes back to where it was.
  constexpr void advance() {
    const std::int32_t at = at_++;
    const std::int32_t from = from_[at];
    if (from == 0) return;
    const std::int32_t stage = stages_[0];
    const std::int32_t last = from > 0 ? from : count_ - 1;
    for (std::int32_t place = 0; place < last; ++place) stages_[place] = stages_[place + 1];
    stages_[last] = stage;
    if (from > 0) return;
    --count_;
    change(left_, left_count_, entered_, entered_count_, stage);
    if (out_[at] == 0) return;
    stages_[count_++] = out_[at] - 1;
    change(entered_, entered_count_, left_, left_count_, out_[at] - 1);
  }
  //! Of those there are at this job the ones that were not when this was asked before, in the order
  //! in which they are needed.
  template <class Visitor>
  constexpr void entered(const Visitor& visit) {
    for (int one = 0; one < entered_count_; ++one) visit(entered_[one]);
    entered_count_ = 0;
  }
  //! And those that no longer are, ascending.
  template <class Visitor>
  constexpr void left(const Visitor& visit) {
    if (left_count_ > 1) std::sort(left_.data(), left_.data() + left_count_);
    for (int one = 0; one < left_count_; ++one) visit(left_[one]);
    left_count_ = 0;
  }

 private:
  //! What has changed to and fro is as it was.
  static constexpr void change(scratch<std::int32_t>& to, int& count, scratch<std::int32_t>& back,
                               int& back_count, std::int32_t stage) {
    int place = 0;
    while (place < back_count && back[place] != stage) ++place;
    if (place == back_count) {
      to[count++] = stage;
      return;
    }
    for (--back_count; place < back_count; ++place) back[place] = back[place + 1];
  }

  const job* row_;
  // What each job did to the stages behind it, seen from the end of the list: the place that its
  // own had, 0 where nothing has changed, or -1, none; and the one that it pushed out, plus one.
  scratch<std::int32_t> from_;
  scratch<std::int32_t> out_;
  scratch<std::int32_t> stages_;  // the next first
  int count_ = 0;
  scratch<std::int32_t> entered_;
  int entered_count_ = 0;
  scratch<std::int32_t> left_;
  int left_count_ = 0;
  std::int32_t at_ = 0;
};

//! Visits one rank's list with its gathers, in order.
template <class Visitor>
constexpr void gather_row(std::span<const job> row, int most, const Visitor& visit) {
  // There are no more stages than jobs.
  const int jobs = static_cast<int>(row.size());
  next_stages next(row, most < jobs ? most : jobs);
  const auto drop = [&](std::int32_t stage) {
    visit(job{.stage = stage, .kind = job_kind::reshard});
  };
  const auto gather = [&](std::int32_t stage) {
    visit(job{.stage = stage, .kind = job_kind::unshard});
  };
  bool second_half = false;
  for (const job* work = row.data(); work != row.data() + jobs; ++work) {
    if (is_compute(work->kind)) {  // copies and messages need no weights
      if (!second_half) {
        next.left(drop);
        next.entered(gather);
      }
      second_half = work->paired && !second_half;
    }
    visit(*work);
    next.advance();
  }
  next.left(drop);
}

//! How long the longest list is with its gathers.
constexpr int longest_gathered(const job_rows& rows, int most) {
  int longest = 0;
  for (int rank = 0; rank < rows.ranks; ++rank) {
    int count = 0;
    gather_row(rows.row(rank), most, [&](const job&) { ++count; });
    if (count > longest) longest = count;
  }
  return longest;
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

//! Whether a rank can have the weights of so many stages at once, and gather them.
//! @param replicas  whether it has data-parallel ones, each with a part
//! @return ok, or fault::unsupported
constexpr verdict may_gather(const job_rows& rows, bool replicas, int most) {
  if (!replicas) return refuse(fault::unsupported, reason::nothing_to_gather);
  if (most < least_gathered(rows)) return refuse(fault::unsupported, reason::too_few_gathered);
  return {};
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
//! @param out    empty, with room for detail::longest_gathered jobs a list
constexpr void write_gathered_weights(const job_rows& lists, int most, job_sink& out) {
  for (int rank = 0; rank < lists.ranks; ++rank)
    detail::gather_row(lists.row(rank), most, [&](const job& work) { out.push(rank, work); });
}

//! The same.
inline job_lists with_gathered_weights(const replay_input& lists, int most) {
  job_lists made(lists.rows.ranks, detail::longest_gathered(lists.rows, most));
  job_sink sink = made.sink();
  write_gathered_weights(lists.rows, most, sink);
  return made;
}

}  // namespace stretto
