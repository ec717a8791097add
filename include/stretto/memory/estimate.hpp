#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/memory/liveness.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/program.hpp"

namespace stretto::memory {

//! Writes what the jobs of a rank's chain change and need at most into the job table. A chain with
//! whole backwards gives theirs, one with split backwards gives those of the halves: tables that
//! serve both kinds of schedules take both chains. Times stay where the chain's ops have none.
//! @return see measure_chain; `rank` is the table's
constexpr verdict estimate(const program_chain& chain, int rank, job_table& table) {
  std::vector<job_cost> made(chain.programs.size());
  verdict answer = measure_chain(chain, {made.data(), made.size()});
  answer.rank = answer.ok() ? -1 : rank;
  if (!answer.ok()) return answer;
  for (std::size_t at = 0; at < made.size(); ++at) {
    const program& job = chain.programs[at];
    job_cost& entry = table.at(rank, job.chunk, job.kind);
    const std::int64_t time = made[at].time > 0 ? made[at].time : entry.time;
    entry = {time, made[at].change, made[at].peak};
  }
  // The table's forwards are those that keep everything: see job_cost.
  for (const program& job : chain.programs)
    if (job.kind == job_kind::recompute) {
      job_cost& forward = table.at(rank, job.chunk, job_kind::forward);
      forward.change += table.at(rank, job.chunk, job_kind::recompute).change;
    }
  return {};
}

}  // namespace stretto::memory
