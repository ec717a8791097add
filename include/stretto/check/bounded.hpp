#pragma once

#include <cstdint>

#include "stretto/model/memory_curve.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

//! Rule `bounded`. At every point of its list a rank uses no more memory than its limit: its base,
//! plus the changes so far (at a job's start or end: see job_cost), plus the peak of
//! the job that runs; the halves of a pair run together. In the end no less is in use than the
//! base, or a limit would be held by what there is not. Linear in the jobs.
//! @return ok; fault::over_limit with rank, step, job, amount and limit (step -1: the base alone is
//!         too much); fault::unsupported with rank, amount and base where less than that is left in
//!         the end; fault::incomplete for a job that has no entry in the job table.
constexpr verdict bounded(const replay_input& input) {
  const auto above = [](verdict found, std::int64_t amount, std::int64_t limit) {
    found.amount = amount;
    found.limit = limit;
    return found;
  };
  for (int rank = 0; rank < input.rows.ranks; ++rank) {
    const std::int64_t limit = input.costs.limit_of(rank);
    memory_curve curve(input, rank);
    if (curve.highest() > limit) {
      verdict found = refuse(fault::over_limit, reason::above_limit);
      found.rank = rank;
      return above(found, curve.highest(), limit);
    }
    const int jobs = input.rows.counts[rank];
    for (int step = 0; step < jobs;) {
      const int count = curve.run(step);
      if (count == 0)
        return refuse(fault::incomplete, reason::out_of_range, rank, step,
                      input.rows.at(rank, step));
      if (curve.used() > limit)
        return above(refuse(fault::over_limit, reason::above_limit, rank, step,
                            input.rows.at(rank, step)),
                     curve.used(), limit);
      step += count;
    }
    if (curve.level() < input.costs.base_of(rank)) {
      verdict found = refuse(fault::unsupported, reason::below_base);
      found.rank = rank;
      return above(found, curve.level(), input.costs.base_of(rank));
    }
  }
  return {};
}

}  // namespace stretto::check
