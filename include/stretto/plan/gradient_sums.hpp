#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/scratch.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/plan/job_time.hpp"

namespace stretto {

namespace detail {

//! What the job table says of a reduction's time. @return below 0 for one of a stage that the rank
//! or the table has not, or of a group that there is not
constexpr std::int64_t reduction_time(const replay_input& in, int rank, const job& work) {
  const int chunk = in.where.chunk_on(rank, work.stage);
  if (chunk < 0 || work.microbatch < 0 ||
      (!in.groups.empty() && static_cast<std::size_t>(work.microbatch) >= in.groups.size()) ||
      !in.costs.serves(rank + 1, chunk + 1, in.microbatches, in.slices))
    return -1;
  return in.costs.at(rank, chunk, job_kind::reduce_grad).time;
}

//! The sums of gradients of a replay, which run beside its jobs, and which none of these waits for.
class gradient_sums {
 public:
  //! @param parts  how many reductions there are; 0 where none takes time
  constexpr gradient_sums(const replay_input& in, std::int64_t parts) : in_(in), parts_(parts) {}
  constexpr ~gradient_sums() = default;  // nvcc needs it written

  //! A reduction that the replay has passed.
  constexpr void add(int rank, int step, const job& work, std::int64_t due) {
    if (parts_.size() == 0) return;
    const std::int64_t time = reduction_time(in_, rank, work);
    const bool grouped = !in_.groups.empty();
    parts_[count_++] = {grouped ? work.microbatch : work.stage, rank, step, due, time};
  }
  constexpr bool any() const { return count_ > 0; }

  //! @param ends      of each rank's last sum, written where it has one
  //! @param timeline  see stretto::measure; their entries are written
  constexpr void run(scratch<std::int64_t>& ends, std::span<job_time> timeline) {
    const auto sums =
        in_.groups.empty() ? in_.where.stages() : static_cast<std::int64_t>(in_.groups.size());
    scratch<std::int64_t> due(sums);  // when all parts of each are there
    for (std::int64_t at = 0; at < count_; ++at)
      if (const part& one = parts_[at]; one.due > due[one.sum]) due[one.sum] = one.due;
    // One order for all ranks: what two of them sum would else wait for one another.
    std::sort(parts_.data(), parts_.data() + count_, [&](const part& one, const part& other) {
      return due[one.sum] != due[other.sum] ? due[one.sum] < due[other.sum] : one.sum < other.sum;
    });
    for (std::int64_t first = 0, last = 0; first < count_; first = last) {
      job_time when{.start = due[parts_[first].sum]};
      std::int64_t time = 0;
      for (; last < count_ && parts_[last].sum == parts_[first].sum; ++last) {
        const part& one = parts_[last];
        when.start = std::max(when.start, ends[one.rank]);
        time = std::max(time, one.time);
      }
      if (time == 0) continue;
      when.end = when.start + time;
      for (std::int64_t at = first; at < last; ++at) {
        const part& one = parts_[at];
        ends[one.rank] = when.end;
        if (!timeline.empty())
          timeline[static_cast<std::size_t>(std::int64_t{one.rank} * in_.rows.stride + one.step)] =
              when;
      }
    }
  }

 private:
  //! What one rank gives to a sum.
  struct part {
    std::int32_t sum = 0;  // its group's number, or its stage's
    std::int32_t rank = 0;
    std::int32_t step = 0;
    std::int64_t due = 0;  // when the jobs before it have ended
    std::int64_t time = 0;
  };
  const replay_input& in_;
  scratch<part> parts_;
  std::int64_t count_ = 0;
};

}  // namespace detail

//! What a training step takes at least behind its last job, which adds to the gradients of a stage
//! (the last of each rank does): the shortest sum of any stage.
constexpr std::int64_t least_gradient_sum(const placement& where, const job_table_view& costs) {
  std::int64_t least = unlimited;
  for (int rank = 0; rank < where.ranks; ++rank)
    for (int chunk = 0; chunk < where.chunks; ++chunk)
      least = std::min(least, costs.at(rank, chunk, job_kind::reduce_grad).time);
  return least == unlimited ? 0 : least;
}

//! Lists with the sums of each stage's gradients over its replicas (REDUCE_GRAD): right behind the
//! last job that adds to them, or the pair that this is of, as torch.distributed.pipelining has
//! them (`_add_reduce_grad`). Linear in the jobs.
//! @param lists  that keep all rules of compute lists, and have none
inline job_lists with_gradient_sums(const replay_input& lists) {
  const job_rows& rows = lists.rows;
  const auto adds = [](job_kind kind) {
    return kind == job_kind::backward || kind == job_kind::backward_weight;
  };
  std::vector<std::vector<std::int32_t>> behind(static_cast<std::size_t>(rows.ranks));
  std::vector<int> seen(static_cast<std::size_t>(lists.where.stages()), -1);  // on which rank
  int longest = 0;
  for (int rank = 0; rank < rows.ranks; ++rank) {
    const std::span<const job> row = rows.row(rank);
    std::vector<std::int32_t>& places = behind[static_cast<std::size_t>(rank)];
    for (std::size_t at = row.size(); at-- > 0;) {
      int& last = seen[static_cast<std::size_t>(row[at].stage)];
      if (!adds(row[at].kind) || last == rank) continue;
      last = rank;
      places.push_back(static_cast<std::int32_t>(at));
    }
    longest = std::max(longest, static_cast<int>(row.size() + places.size()));
  }
  job_lists made(rows.ranks, longest);
  job_sink out = made.sink();
  for (int rank = 0; rank < rows.ranks; ++rank) {
    const std::span<const job> row = rows.row(rank);
    std::vector<std::int32_t>& places = behind[static_cast<std::size_t>(rank)];
    std::vector<std::int32_t> due;  // behind a pair: of both its halves
    for (std::size_t at = 0; at < row.size(); ++at) {
      out.push(rank, row[at]);
      if (!places.empty() && static_cast<std::size_t>(places.back()) == at) {
        due.push_back(row[at].stage);
        places.pop_back();
      }
      if (row[at].paired && at + 1 < row.size()) continue;
      for (const std::int32_t stage : due)
        out.push(rank, {.stage = stage, .kind = job_kind::reduce_grad});
      due.clear();
    }
  }
  return made;
}

}  // namespace stretto
