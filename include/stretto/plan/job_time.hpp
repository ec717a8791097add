#pragma once

#include <cstdint>

namespace stretto {

//! When a job runs, in the units of the costs.
struct job_time {
  std::int64_t start = 0;
  std::int64_t end = 0;

  constexpr bool operator==(const job_time&) const = default;
};

}  // namespace stretto
