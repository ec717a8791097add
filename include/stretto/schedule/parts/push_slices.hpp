#pragma once

#include <cstdint>

#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"

namespace stretto::schedule {

//! Appends a job of a rank for every slice of its micro-batch: forwards from the first slice up,
//! backwards from the last down.
constexpr void push_slices(const shape& sizes, int rank, job work, job_sink& out) {
  const bool ahead = work.kind == job_kind::forward;
  for (int k = 0; k < sizes.slices; ++k) {
    work.slice = static_cast<std::int16_t>(ahead ? k : sizes.slices - 1 - k);
    out.push(rank, work);
  }
}

}  // namespace stretto::schedule
