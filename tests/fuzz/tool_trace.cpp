// A trace beside which a step is drawn, of any bytes: as `stretto plot --trace` reads and draws it,
// `stretto measured` looks for what its steps were as long as, and `stretto costs --trace` takes
// its stages' times.
#include "fuzz/support/tool_file.hpp"
#include "stretto/plan/csv.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/plan/svg.hpp"
#include "tool/measured_stages.hpp"
#include "tool/measured_trace.hpp"
#include "tool/trace_orders.hpp"
#include "tool/trace_path.hpp"

namespace {

void draw_beside(const stretto::imported_schedule& order) {
  const stretto::placement where = order.where();
  const stretto::tool::measured_trace trace("--trace", "trace.json", where.ranks, where.stages());
  stretto::job_table costs = trace.medians(where);
  for (stretto::job_cost& one : costs.entries) one.time /= 1000;
  const stretto::replay_input input = order.input(costs.view());
  const bool kept = stretto::tool::broken_order(trace, input.rows).empty();
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(where.ranks));
  std::vector<stretto::job_time> times(ranks.size() * static_cast<std::size_t>(input.rows.stride));
  const stretto::report all = stretto::measure(input, ranks, times);
  stretto::timeline_picture drawn = stretto::tool::beside_measured(
      stretto::draw_simulated(input, all, times, false), trace, where);
  for (const std::int64_t step : trace.steps()) {
    const auto path = stretto::tool::measured_path(trace.step(step), input);
    if (!kept) break;
    stretto::tool::outline_measured(drawn, input, path);
    fuzz::require(!path.empty(), "a path");
    std::int64_t now = 0;
    for (const stretto::critical_job& one : path) {
      fuzz::require(one.waited >= 0 && one.when.start <= one.when.end,
                    "jobs that take no less than no time");
      fuzz::require(one.when.start == now + one.waited, "a path without a gap");
      now = one.when.end;
    }
  }
  fuzz::require(makespan_of(trace.last_step()) >= 0, "a makespan");
  fuzz::require(stretto::to_svg(drawn).ends_with("</svg>\n"), "a picture");
}

void count_stages() {
  const stretto::tool::measured_stages found(
      stretto::tool::measured_trace("--trace", "trace.json", 0));
  fuzz::require(!found.stages.empty() && found.ranks > 0 && found.slices > 0, "a stage");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const stretto::csv_result order = stretto::read_csv("0F0,2F0,2B0,0B0\n1F0,1B0\n");
  fuzz::read_with(fuzz::text(data, size), [] { draw_beside(order.schedule); });
  fuzz::read_with(fuzz::text(data, size), count_stages);
  return 0;
}
