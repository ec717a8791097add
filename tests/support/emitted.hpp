#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/stretto.hpp"

namespace support {

//! A schedule's jobs with what recomputes and copies add to them, and what a replay says of it.
struct emitted {
  stretto::placement where;
  stretto::shape sizes;
  stretto::job_table table;
  stretto::job_lists lists;
  stretto::verdict answer;

  //! The schedule's jobs for costs with the windows' folded in, and then with these themselves.
  template <class Schedule>
  emitted(const Schedule& schedule, const stretto::shape& shape, const stretto::job_table& costs,
          const stretto::memory::windows& put)
      : where(stretto::place(schedule.placed(), shape)), sizes(shape), table(costs) {
    answer = stretto::emit_jobs(schedule, shape, put, table.view(), lists);
  }
  stretto::replay_input input() const {
    return {lists.rows(), where, sizes.microbatches, sizes.slices, table.view(), false, {}};
  }
  std::vector<stretto::rank_report> report(std::int64_t* makespan = nullptr) const {
    std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
    const auto all = stretto::measure(input(), ranks);
    REQUIRE(all.answer.ok());
    if (makespan != nullptr) *makespan = all.makespan;
    return ranks;
  }
  std::vector<std::int64_t> peaks(std::int64_t* makespan = nullptr) const {
    std::vector<std::int64_t> made;
    for (const auto& rank : report(makespan)) made.push_back(rank.peak);
    return made;
  }
  std::string text(int rank) const {
    std::string made;
    for (const stretto::job& work : lists.rows().row(rank))
      made += (made.empty() ? "" : " ") + std::string(stretto::to_text(work).view());
    return made;
  }
  int count(int rank, stretto::job_kind kind) const {
    return static_cast<int>(std::ranges::count(lists.rows().row(rank), kind, &stretto::job::kind));
  }
  //! Nodes of the rank's list that compute: a job, or a pair.
  std::vector<std::vector<stretto::job>> nodes(int rank) const {
    std::vector<std::vector<stretto::job>> made;
    bool joined = false;
    for (const stretto::job& work : lists.rows().row(rank)) {
      if (!stretto::is_compute(work.kind)) continue;
      if (!joined) made.emplace_back();
      made.back().push_back(work);
      joined = work.paired;
    }
    return made;
  }
};

}  // namespace support
