#include "laws/grid/arena_grid.hpp"

#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "support/schedules.hpp"

namespace laws {

void for_each_arena(
    std::int64_t times, std::int64_t more,
    const std::function<void(const stretto::verdict&, const std::string&,
                             const stretto::arena_report&)>& visit,
    const stretto::memory::offload_window& offload) {
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (const int p : {1, 2, 3, 4, 6, 8})
      for (const int m : {1, 2, 4, 7, 8, 16})
        for (int v = 1; v <= 3; ++v) {
          const stretto::shape sizes{.ranks = p, .microbatches = m, .chunks = v};
          if (!schedule.supports(sizes).ok()) continue;
          const stretto::placement where = stretto::place(schedule.placed(), sizes);
          const stretto::job_table table(p, where.chunks);
          stretto::plan_request request;
          request.stages.clear();
          for (int stage = 0; stage < where.stages(); ++stage)
            request.stages.push_back({.output = 4096, .stash = 4096 * times + stage * more});
          request.train = !schedule.forward_only;
          if (request.train) request.offload = offload;
          const stretto::planned made(schedule, sizes, table.view(), stretto::overlap::separate{},
                                      request);
          const std::string name = std::string(schedule.name) + " " + std::to_string(p) + "x" +
                                   std::to_string(m) + "x" + std::to_string(v);
          if (!made.answer().ok()) visit(made.answer(), name, stretto::arena_report{});
          for (const stretto::plan_view& plan : made.plans())
            visit(made.answer(), name + " rank " + std::to_string(plan.rank),
                  stretto::measure_arena(plan));
        }
  }
}

}  // namespace laws
