// How much of a rank's arena lies idle when most is in use: arena over peak, of every rank of every
// schedule's plans over many shapes, where a stage saves so many times what it sends. A ratio of 1
// is the least there can be; for equal stages it is exactly what the two parts of the arena need,
// which is what `bound` says. Then the shapes whose ratio passes 1.05, worst rank first.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "laws/grid/arena_grid.hpp"
#include "stretto/model/verdict_text.hpp"

namespace {

struct finding {
  std::string shape;
  double ratio;
  double bound;
};

//! Worst first.
std::vector<finding> measure(std::int64_t times) {
  std::vector<finding> found;
  laws::for_each_arena(times, 0, [&](const auto& answer, const auto& name, const auto& use) {
    if (answer.ok())
      found.push_back({name, use.ratio(), use.bound()});
    else
      std::fprintf(stderr, "arena: %s: %s\n", name.c_str(), to_text(answer).view().data());
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
