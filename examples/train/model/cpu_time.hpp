// A clock that stands still while others have the processor.
#pragma once

#include <cstdint>
#include <ctime>

namespace train {

//! Processor time of the calling thread so far, in nanoseconds.
inline std::int64_t thread_cpu_time() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace train
