#pragma once

#include <cstdint>
#include <string>

#include "laws/order_laws.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/arena_report.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/all.hpp"

namespace laws {

//! Calls `visit(answer, name, report)` for every rank of every schedule's plan over many shapes,
//! with how its arena is used; once, and without a report, where the plan breaks a rule. What a
//! stage saves is `times` as large as a message, and `more` bytes larger on each stage than on the
//! one before.
template <class Visitor>
void for_each_arena(std::int64_t times, std::int64_t more, Visitor&& visit,
                    const stretto::memory::offload_window& offload = {}) {
  stretto::schedule::all::for_each([&]<class Schedule>(const Schedule& schedule) {
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
          request.train = !is_forward_only<Schedule>();
          if (request.train) request.offload = offload;
          const stretto::planned made(schedule, sizes, table.view(), stretto::overlap::separate{},
                                      request);
          const std::string name = std::string(Schedule::name) + " " + std::to_string(p) + "x" +
                                   std::to_string(m) + "x" + std::to_string(v);
          if (!made.answer().ok()) visit(made.answer(), name, stretto::arena_report{});
          for (const stretto::plan_view& plan : made.plans())
            visit(made.answer(), name + " rank " + std::to_string(plan.rank),
                  stretto::measure_arena(plan));
        }
  });
}

}  // namespace laws
