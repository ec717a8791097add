// A schedule of one's own: one struct, one function. Checked, simulated, drawn as a grid.
// g++ -std=c++20 -Iinclude examples/03_write_a_schedule.cpp -o write_a_schedule
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "stretto/stretto.hpp"

//! 1F1B in pairs of micro-batches: two forwards, two backwards. Each message has twice as long to
//! arrive, for twice the memory.
struct two_f_two_b {
  static constexpr std::string_view name = "2f2b";

  constexpr stretto::placement_kind placed() const { return stretto::placement_kind::looped; }
  constexpr stretto::verdict supports(const stretto::shape& sizes) const {
    if (sizes.chunks > 1)
      return stretto::refuse(stretto::fault::unsupported, stretto::reason::chunks_not_one);
    return stretto::schedule::positive_or_refuse(sizes);
  }
  constexpr int capacity(const stretto::shape& sizes) const { return 2 * sizes.microbatches; }
  constexpr stretto::verdict emit(const stretto::shape& sizes, const stretto::job_table_view&,
                                  stretto::job_sink& out) const {
    const int count = sizes.microbatches;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const int warmup = std::min(2 * (sizes.ranks - 1 - rank), count);
      for (int k = 0; k < warmup; ++k) out.push(rank, {rank, k, 0, stretto::job_kind::forward});
      for (int pair = 0; pair < count; pair += 2) {
        for (int k = warmup + pair; k < std::min(warmup + pair + 2, count); ++k)
          out.push(rank, {rank, k, 0, stretto::job_kind::forward});
        for (int k = pair; k < std::min(pair + 2, count); ++k)
          out.push(rank, {rank, k, 0, stretto::job_kind::backward});
      }
    }
    return {};
  }
};

using step = stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 6}, two_f_two_b>;
static_assert(stretto::valid<step>);

int main() {
  const stretto::replay_input jobs = step::compute();  // a forward takes 1, a backward 2
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(jobs.rows.ranks));
  std::vector<stretto::job_time> times(ranks.size() * static_cast<std::size_t>(jobs.rows.stride));
  const stretto::report found = stretto::measure(jobs, ranks, times);
  for (int rank = 0; rank < jobs.rows.ranks; ++rank) {
    std::string line(static_cast<std::size_t>(2 * found.makespan), '.');
    for (int at = 0; at < jobs.rows.counts[rank]; ++at) {
      const auto when = times[static_cast<std::size_t>(rank * jobs.rows.stride + at)];
      const stretto::job& work = jobs.rows.at(rank, at);
      for (auto now = when.start; now < when.end; ++now)
        line.replace(static_cast<std::size_t>(2 * now), 2,
                     std::string(stretto::letters(work.kind)) + std::to_string(work.microbatch));
    }
    std::cout << line << "  peak " << ranks[static_cast<std::size_t>(rank)].peak << '\n';
  }
  std::cout << "makespan " << found.makespan << ", idle " << found.bubble.numerator << '\n';
}
