#include "step.hpp"

namespace stretto::tool {

replay_input step::input() const {
  replay_input input = imported ? imported->input(made.costs.view())
                                : replay_input{.rows = made.lists.rows(),
                                               .where = made.where,
                                               .microbatches = microbatches,
                                               .slices = slices,
                                               .costs = made.costs.view()};
  if (with_replicas) input.rows = with_replicas->rows();
  input.receive_lead = receive_lead;
  return input;
}

bool step::has(job_kind kind) const {
  return any_job(input().rows, [&](const job& work) { return work.kind == kind; });
}

}  // namespace stretto::tool
