#include "links.hpp"

#include <algorithm>
#include <vector>

#include "stretto/base/saturated.hpp"

namespace stretto::tool {

link_load busiest_link(const replay_input& input) {
  const placement& where = input.where;
  const hop_times hops = input.costs.hops();
  link_load most;
  std::vector<link_load> here;  // a rank has few neighbours
  for (int rank = 0; rank < input.rows.ranks; ++rank) {
    here.clear();
    for (const job& work : input.rows.row(rank)) {
      const int step = work.kind == job_kind::forward ? 1 : is_input_gradient(work.kind) ? -1 : 0;
      const int to = work.stage + step;
      if (step == 0 || to < 0 || to >= where.stages()) continue;
      const int peer = where.rank_of(to, work.microbatch);
      if (peer == rank) continue;
      auto link = std::ranges::find(here, peer, &link_load::to);
      if (link == here.end()) link = here.insert(link, {.from = rank, .to = peer});
      ++link->messages;
    }
    for (link_load& one : here) {
      one.time = saturated_product(static_cast<int>(one.messages), hops(one.from, one.to));
      if (one.time > most.time || most.from < 0) most = one;
    }
  }
  return most;
}

}  // namespace stretto::tool
