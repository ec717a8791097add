#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "stretto/model/cost.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"

namespace laws {

//! A table in which every rank and chunk differs, and whole backwards often take less.
inline stretto::job_table any_costs(std::mt19937& random, const stretto::placement& where) {
  const auto up_to = [&](unsigned most) {
    return static_cast<std::int64_t>(random() % (most + 1));
  };
  stretto::job_table table(where.ranks, where.chunks);
  const unsigned spread = random() % 2 * 9;
  const std::int64_t times[3] = {1 + up_to(9), 1 + up_to(9), 1 + up_to(9)};
  for (int rank = 0; rank < where.ranks; ++rank)
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const auto time = [&](stretto::job_kind kind) -> std::int64_t& {
        return table.at(rank, chunk, kind).time;
      };
      time(stretto::job_kind::forward) = times[0] + up_to(spread);
      const std::int64_t input = time(stretto::job_kind::backward_input) = times[1] + up_to(spread);
      const std::int64_t both =
          input + (time(stretto::job_kind::backward_weight) = times[2] + up_to(spread));
      time(stretto::job_kind::backward) = (both * (4 + up_to(7)) + 9) / 10;
    }
  table.communication = up_to(3);
  table.pair_hides = static_cast<int>(up_to(2)) * 40;
  return table;
}

//! A step whose jobs, backwards split, stand in any order that can run.
class any_order {
 public:
  //! @param table  on which rank each stage lies
  any_order(std::mt19937& random, int ranks, std::vector<std::int32_t> table, int microbatches)
      : ranks_(ranks),
        table_(std::move(table)),
        microbatches_(microbatches),
        lists_(ranks, 3 * static_cast<int>(table_.size()) * microbatches) {
    std::vector<int> held(static_cast<std::size_t>(ranks));
    for (const std::int32_t rank : table_)
      chunks_ = std::max(chunks_, ++held[static_cast<std::size_t>(rank)]);
    fill(random);
  }
  //! Tiny, with stages on ranks as chance has it.
  explicit any_order(std::mt19937& random) : any_order(random, below(random, 4) + 1) {}

  //! Points into this object.
  stretto::placement where() const {
    return {.kind = stretto::placement_kind::table,
            .ranks = ranks_,
            .chunks = chunks_,
            .microbatches = microbatches_,
            .table = table_.data(),
            .table_stages = static_cast<int>(table_.size())};
  }
  stretto::job_rows rows() const { return lists_.rows(); }

 private:
  static int below(std::mt19937& random, int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  }
  any_order(std::mt19937& random, int ranks)
      : any_order(random, ranks, any_table(random, ranks), 1 + below(random, 3)) {}
  static std::vector<std::int32_t> any_table(std::mt19937& random, int ranks) {
    std::vector<std::int32_t> table(static_cast<std::size_t>(1 + below(random, 6)));
    for (std::int32_t& rank : table) rank = below(random, ranks);
    return table;
  }
  void fill(std::mt19937& random) {
    stretto::job_sink sink = lists_.sink();
    std::vector<stretto::job> ready;
    for (int microbatch = 0; microbatch < microbatches_; ++microbatch)
      ready.push_back({0, microbatch, 0, stretto::job_kind::forward});
    const int stages = static_cast<int>(table_.size());
    while (!ready.empty()) {
      std::swap(ready[static_cast<std::size_t>(below(random, static_cast<int>(ready.size())))],
                ready.back());
      const stretto::job work = ready.back();
      ready.pop_back();
      sink.push(table_[static_cast<std::size_t>(work.stage)], work);
      const auto follow = [&](int stage, stretto::job_kind kind) {
        ready.push_back({stage, work.microbatch, 0, kind});
      };
      if (work.kind == stretto::job_kind::forward && work.stage + 1 < stages)
        follow(work.stage + 1, stretto::job_kind::forward);
      else if (work.kind == stretto::job_kind::forward)
        follow(work.stage, stretto::job_kind::backward_input);
      if (work.kind != stretto::job_kind::backward_input) continue;
      follow(work.stage, stretto::job_kind::backward_weight);
      if (work.stage > 0) follow(work.stage - 1, stretto::job_kind::backward_input);
    }
  }

  int ranks_;
  std::vector<std::int32_t> table_;
  int microbatches_;
  int chunks_ = 0;
  stretto::job_lists lists_;
};

}  // namespace laws
