#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "stretto/schedule/all.hpp"
#include "support/check_oracle.hpp"

//! Valid lists of every sort that the rules distinguish, to be spoilt.
namespace samples {

using oracle::lists;
using stretto::job;
using stretto::job_kind;
using stretto::placement_kind;
using stretto::shape;

//! The same with these jobs.
inline lists with_rows(lists made, const stretto::job_rows& rows) {
  made.ranks.clear();
  for (int rank = 0; rank < rows.ranks; ++rank) {
    const auto row = rows.row(rank);
    made.ranks.emplace_back(row.begin(), row.end());
  }
  return made;
}
//! Behind begin().
inline std::ptrdiff_t at(std::size_t index) {
  return static_cast<std::ptrdiff_t>(index);
}

template <class Schedule>
lists emitted(const Schedule& schedule, const shape& sizes) {
  lists made{.where = stretto::place(schedule.placed(), sizes),
             .table = stretto::job_table(sizes.ranks, sizes.chunks)};
  stretto::job_lists storage(sizes.ranks, schedule.capacity(sizes));
  auto sink = storage.sink();
  (void)schedule.emit(sizes, made.table.view(), sink);
  return with_rows(std::move(made), storage.rows());
}

//! Whole backwards taken apart; the halves for the weights wait for `delay` more jobs, or the end.
inline lists split(lists made, std::size_t delay) {
  for (auto& row : made.ranks) {
    std::vector<job> apart;
    std::vector<std::pair<std::size_t, job>> waiting;
    const auto release = [&](std::size_t at) {
      while (!waiting.empty() && waiting.front().first <= at) {
        apart.push_back(waiting.front().second);
        waiting.erase(waiting.begin());
      }
    };
    for (std::size_t at = 0; at < row.size(); ++at) {
      job work = row[at];
      if (work.kind == job_kind::backward) {
        work.kind = job_kind::backward_weight;
        waiting.push_back({at + delay, work});
        work.kind = job_kind::backward_input;
      }
      apart.push_back(work);
      release(at);
    }
    release(row.size() + delay);
    row = std::move(apart);
  }
  return made;
}

//! A recompute before every second backward.
inline lists recomputed(lists made) {
  for (auto& row : made.ranks)
    for (std::size_t at = 0; at < row.size(); ++at)
      if (oracle::makes_gradient(row[at]) && row[at].microbatch % 2 == 0) {
        job again = row[at];
        again.kind = job_kind::recompute;
        row.insert(row.begin() + static_cast<std::ptrdiff_t>(at++), again);
      }
  return made;
}

//! What every second micro-batch saves goes to the host two jobs behind its forward, and comes back
//! one before its backward, where there are jobs between.
inline lists offloaded(lists made) {
  for (auto& row : made.ranks) {
    const std::vector<job> plain = row;
    const auto find = [&](const job& work) { return std::find(row.begin(), row.end(), work); };
    for (const job& work : plain) {
      if (!oracle::makes_gradient(work) || work.microbatch % 2 != 0) continue;
      job copy{work.stage, work.microbatch, work.slice};
      if (find(work) - find(copy) < 5) continue;
      copy.kind = job_kind::reload;
      row.insert(find(work) - 1, copy);
      copy.kind = job_kind::forward;
      const auto behind = find(copy) + 3;
      copy.kind = job_kind::offload;
      row.insert(behind, copy);
    }
  }
  return made;
}

//! Fill and drain with every micro-batch cut in `slices`: backwards from the last slice to the
//! first.
inline lists sliced(int ranks, int microbatches, int slices) {
  const shape sizes{.ranks = ranks, .microbatches = microbatches, .slices = slices};
  lists made{.where = stretto::place(placement_kind::looped, sizes),
             .slices = slices,
             .table = stretto::job_table(ranks, 1)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& row = made.ranks.emplace_back();
    for (int microbatch = 0; microbatch < microbatches; ++microbatch)
      for (int slice = 0; slice < slices; ++slice)
        row.push_back({rank, microbatch, static_cast<std::int16_t>(slice), job_kind::forward});
    for (int microbatch = 0; microbatch < microbatches; ++microbatch)
      for (int slice = slices - 1; slice >= 0; --slice)
        row.push_back({rank, microbatch, static_cast<std::int16_t>(slice), job_kind::backward});
  }
  return made;
}

//! Two replicas, filled and drained one from each end.
inline lists both_ways(int ranks, int microbatches) {
  const shape sizes{.ranks = ranks, .microbatches = microbatches};
  lists made{.where = stretto::place(placement_kind::bidirectional, sizes),
             .table = stretto::job_table(ranks, 2)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& row = made.ranks.emplace_back();
    for (const job_kind kind : {job_kind::forward, job_kind::backward})
      for (int microbatch = 0; microbatch < microbatches; ++microbatch)
        row.push_back(
            {made.where.stage_of(rank, made.where.direction(microbatch)), microbatch, 0, kind});
  }
  return made;
}

//! 1F1B with a longer warm-up, so that each steady forward overlaps with an older backward.
inline lists paired(int ranks, int microbatches) {
  const shape sizes{.ranks = ranks, .microbatches = microbatches};
  lists made{.where = stretto::place(placement_kind::looped, sizes),
             .table = stretto::job_table(ranks, 1)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& row = made.ranks.emplace_back();
    const int warmup = std::min(2 * (ranks - 1 - rank) + 1, microbatches);
    for (int k = 0; k < warmup; ++k) row.push_back({rank, k, 0, job_kind::forward});
    for (int k = warmup; k < microbatches; ++k) {
      row.push_back({rank, k, 0, job_kind::forward, true});
      row.push_back({rank, k - warmup, 0, job_kind::backward});
    }
    for (int k = microbatches - warmup; k < microbatches; ++k)
      row.push_back({rank, k, 0, job_kind::backward});
  }
  return made;
}

struct sample {
  std::string name;
  lists made;
};

inline std::vector<sample> all() {
  using namespace stretto::schedule;
  const shape narrow{.ranks = 3, .microbatches = 5};
  const shape wide{.ranks = 3, .microbatches = 4, .chunks = 2};
  return {{"gpipe", emitted(gpipe{}, narrow)},
          {"gpipe on a wave", emitted(gpipe{.placement = placement_kind::wave}, wide)},
          {"1f1b", emitted(one_f_one_b{}, narrow)},
          {"1f1b on one rank", emitted(one_f_one_b{}, {.ranks = 1, .microbatches = 4})},
          {"interleaved", emitted(interleaved{}, wide)},
          {"1f1b split at once", split(emitted(one_f_one_b{}, narrow), 0)},
          {"interleaved split, weights late", split(emitted(interleaved{}, wide), 3)},
          {"1f1b recomputed", recomputed(emitted(one_f_one_b{}, narrow))},
          {"split and recomputed", recomputed(split(emitted(gpipe{}, narrow), 2))},
          {"gpipe offloaded", offloaded(emitted(gpipe{}, narrow))},
          {"split and offloaded", offloaded(split(emitted(gpipe{}, narrow), 2))},
          {"forward only", emitted(inference{}, wide)},
          {"sliced", sliced(3, 3, 2)},
          {"both ways", both_ways(4, 5)},
          {"both ways, odd ranks", both_ways(3, 4)},
          {"paired", paired(3, 7)}};
}

}  // namespace samples
