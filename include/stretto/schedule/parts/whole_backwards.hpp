#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/job.hpp"

namespace stretto::schedule {

//! Whether a whole backward takes less time than its halves one after the other: which may differ
//! from micro-batch to micro-batch.
//! @param work  any job of that micro-batch and stage
constexpr bool whole_takes_less(const job_table_view& table, int rank, int chunk, job work) {
  const auto time = [&](job_kind kind) {
    work.kind = kind;
    return table.of(rank, chunk, work).time;
  };
  return time(job_kind::backward) <
         time(job_kind::backward_input) + time(job_kind::backward_weight);
}

}  // namespace stretto::schedule
