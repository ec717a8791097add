#include "step_replicas.hpp"

#include <vector>

#include "cost_table.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/gradient_sums.hpp"

namespace stretto::tool {

verdict add_replicas(step& made, int gathered) {
  made.with_replicas.reset();
  const job_table_view costs = made.made.costs.view();
  made.gathers = takes(costs, job_kind::unshard);
  made.sums = !made.forward_only && takes(costs, job_kind::reduce_grad);
  if (made.gathers && !made.has(job_kind::unshard)) {
    if (const int least = least_gathered(made.input().rows); gathered < least) {
      verdict few = refuse(fault::missharded, reason::too_many_gathered);
      few.amount = least;
      few.limit = gathered;
      return few;
    }
    made.with_replicas = with_gathered_weights(made.input(), gathered);
  }
  if (made.sums && !made.has(job_kind::reduce_grad))
    made.with_replicas = with_gradient_sums(made.input());
  return {};
}

void leave_out_replicas(step& made) {
  made.with_replicas.reset();
  made.sums = made.gathers = false;
  leave_out_replicas(made.made.costs);
}

void refuse_too_few(const step& made, const verdict& found) {
  if (found.why == reason::too_many_gathered && !found.has_job)
    refuse_few_gathered(static_cast<int>(found.limit), made.schedule);
}

std::int64_t by_gathers(const step& from, const report& all) {
  if (!from.gathers) return 0;
  job_table at_once = from.made.costs;
  for (int rank = 0; rank < at_once.ranks; ++rank)
    for (int chunk = 0; chunk < at_once.chunks; ++chunk)
      at_once.at(rank, chunk, job_kind::unshard).time = 0;
  replay_input without = from.input();
  without.costs = at_once.view();
  std::vector<rank_report> ranks(static_cast<std::size_t>(without.rows.ranks));
  return all.makespan - measure(without, ranks).makespan;
}

void refuse_nothing_gathered(const step_options& options, const step& made) {
  options.costs.refuse_nothing_gathered(made.has(job_kind::unshard));
}

}  // namespace stretto::tool
