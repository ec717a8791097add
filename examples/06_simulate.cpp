// Every schedule there is, for one shape: how long a step takes, how much of it the worst rank is
// idle, and how many micro-batches' activations the fullest one holds.
// g++ -std=c++20 -Iinclude examples/06_simulate.cpp -o simulate
#include <algorithm>
#include <cstdio>
#include <vector>

#include "stretto/schedule/by_name.hpp"
#include "stretto/stretto.hpp"

int main() {
  // Shapes known only at run time: the same functions, into vectors. A forward of the whole rank
  // takes 2 and its backward 4, whatever the number of chunks.
  std::printf("%-15s %6s %9s %7s %5s\n", "schedule", "chunks", "makespan", "bubble", "peak");
  for (const int chunks : {1, 2})
    for (const stretto::schedule::any& schedule : stretto::schedule::catalogue()) {
      const stretto::shape sizes{.ranks = 4, .microbatches = 8, .chunks = chunks};
      if (const stretto::verdict answer = schedule.supports(sizes); !answer.ok()) {
        std::printf("%-15s %6d   %s\n", schedule.name.data(), chunks,
                    stretto::describe(answer.why).data());
        continue;
      }
      const int time = 2 / chunks;
      // In two directions a rank holds two stages, whatever `chunks` says.
      const stretto::placement where = place(schedule.placed(), sizes);
      const stretto::job_table table(sizes.ranks, where.chunks,
                                     {.forward = time,
                                      .backward_input = time,
                                      .backward_weight = time,
                                      .memory_forward = time,
                                      .memory_backward_weight = -time});
      stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
      stretto::job_sink out = lists.sink();
      if (!schedule.emit(sizes, table.view(), out).ok()) continue;

      const stretto::replay_input jobs{lists.rows(), where, sizes.microbatches, sizes.slices,
                                       table.view()};
      std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
      const stretto::report found = stretto::measure(jobs, ranks);
      if (!found.answer.ok()) continue;
      const auto fullest = std::max_element(ranks.begin(), ranks.end(),
                                            [](auto& a, auto& b) { return a.peak < b.peak; });
      std::printf("%-15s %6d %9d %6.1f%% %5.1f\n", schedule.name.data(), chunks,
                  static_cast<int>(found.makespan), 100 * found.bubble.value(),
                  static_cast<double>(fullest->peak) / 2);
    }
}
