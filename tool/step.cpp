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
  const job_rows rows = input().rows;
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (const job& work : rows.row(rank))
      if (work.kind == kind) return true;
  return false;
}

}  // namespace stretto::tool
