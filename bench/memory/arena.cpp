// How much of a rank's arena lies idle when most is in use: arena over peak, of every rank of every
// schedule's plans over many shapes, where a stage saves so many times what it sends. A ratio of 1
// is the least there can be; for equal stages it is exactly what the two parts of the arena need,
// which is what `bound` says. Then the shapes whose ratio passes 1.05, worst rank first.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "stretto/plan/arena_report.hpp"
#include "stretto/stretto.hpp"

namespace {

struct finding {
  std::string shape;
  double ratio;
  double bound;
};

std::vector<finding> measure(std::int64_t times) {
  std::vector<finding> found;
  stretto::schedule::all::for_each([&]<class Schedule>(const Schedule& schedule) {
    for (const int p : {1, 2, 3, 4, 6, 8})
      for (const int m : {1, 2, 4, 7, 8, 16})
        for (int v = 1; v <= 3; ++v) {
          const stretto::shape sizes{.ranks = p, .microbatches = m, .chunks = v};
          if (!schedule.supports(sizes).ok()) continue;
          const stretto::placement where = stretto::place(schedule.placed(), sizes);
          const stretto::job_table table(p, where.chunks);
          stretto::plan_request request;
          request.stages = {{.output = 4096, .stash = 4096 * times}};
          request.train = !requires {
            requires Schedule::forward_only;
          };
          const stretto::planned made(schedule, sizes, table.view(), stretto::overlap::separate{},
                                      request);
          if (!made.answer().ok()) {
            std::fprintf(stderr, "arena: %s\n", to_text(made.answer()).view().data());
            continue;
          }
          for (const stretto::plan_view& plan : made.plans()) {
            const stretto::arena_report use = stretto::measure_arena(plan);
            found.push_back({std::string(Schedule::name) + " " + std::to_string(p) + "x" +
                                 std::to_string(m) + "x" + std::to_string(v) + " rank " +
                                 std::to_string(plan.rank),
                             use.ratio(), use.bound()});
          }
        }
  });
  std::sort(found.begin(), found.end(),
            [](const finding& one, const finding& other) { return one.ratio > other.ratio; });
  return found;
}

}  // namespace

int main(int count, char** words) {
  const bool whole = count > 1 && std::string(words[1]) == "--all";
  for (const std::int64_t times : {40, 10, 1}) {
    const std::vector<finding> all = measure(times);
    const auto above = static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [](const finding& one) { return one.ratio > 1.05; }));
    std::printf(
        "saved %2lld times a message: %zu ranks, median %.3f, nine in ten at most %.3f, most "
        "%.3f; %zu above 1.05\n",
        static_cast<long long>(times), all.size(), all[all.size() / 2].ratio,
        all[all.size() / 10].ratio, all.front().ratio, above);
    for (std::size_t at = 0; at < above && (whole || at < 10); ++at)
      std::printf("  %-34s %.3f, bound %.3f\n", all[at].shape.c_str(), all[at].ratio,
                  all[at].bound);
    if (!whole && above > 10) std::printf("  ... (--all shows them)\n");
  }
}
