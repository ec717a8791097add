// The files of --costs and --layer-costs, of any bytes: the table that is made of one fits its
// placement, and a step's times and memory can be summed.
#include <vector>

#include "fuzz/support/tool_file.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "tool/cost_table.hpp"

namespace {

using stretto::placement_kind;
using stretto::shape;
using stretto::tool::cost_cut;
using stretto::tool::cost_options;

void make_table(const cost_options& options, placement_kind kind, const shape& sizes,
                const cost_cut& cut) {
  const stretto::placement where = stretto::place(kind, sizes);
  const stretto::job_table table = stretto::tool::make_costs(options, where, cut);
  fuzz::require(table.view().serves(where.ranks, where.chunks, sizes.microbatches, cut.slices),
                "every job has an entry");
  if (kind == placement_kind::bidirectional || sizes.slices > 1) return;
  const stretto::schedule::gpipe schedule{.placement = kind};
  stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
  stretto::job_sink out = lists.sink();
  if (!schedule.emit(sizes, table.view(), out)) return;
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = where,
                                    .microbatches = sizes.microbatches,
                                    .costs = table.view()};
  fuzz::require(stretto::measure(input, ranks).makespan >= 0, "a makespan");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text(data, size);
  cost_options jobs;
  jobs.costs_file = "costs.json";
  jobs.weights = 3;
  cost_options layers;
  layers.layers.file = "layers.json";
  for (const auto& [kind, sizes, cut] :
       {std::tuple(placement_kind::looped, shape{.ranks = 2, .microbatches = 3}, cost_cut{}),
        std::tuple(placement_kind::wave, shape{.ranks = 2, .microbatches = 2, .chunks = 2},
                   cost_cut{.given = 3, .times = 6, .amounts = 6}),
        std::tuple(placement_kind::bidirectional, shape{.ranks = 2, .microbatches = 4},
                   cost_cut{.given = 1, .times = 100}),
        std::tuple(placement_kind::looped, shape{.ranks = 2, .microbatches = 2, .slices = 2},
                   cost_cut{.given = 1, .slices = 2, .joined = 2})}) {
    fuzz::read_with(text, [&] { make_table(jobs, kind, sizes, cut); });
    for (const char* dealt : {"even:5", "balanced:6"}) {
      layers.layers.text = dealt;
      fuzz::read_with(text, [&] { make_table(layers, kind, sizes, cut); });
    }
  }
  return 0;
}
