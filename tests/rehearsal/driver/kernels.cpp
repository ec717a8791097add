// How the simulation begins, and the kernels of the benchmarks, of the tests and of the executor:
// those of the benchmarks last as long as they would, by the simulation's own time, and compute
// nothing.
//   SIMULATED_GPUS=N        how many the process sees; 1
//   SIMULATED_NCCL=FOLDER   where processes exchange what NCCL would; none: there is but this one
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cuda/executor_kernels.hpp"
#include "nccl/driver/simulated_nccl.hpp"

namespace {

namespace gpu = stretto::test::gpu;

template <class Value>
Value value(void* const* arguments, int number) {
  return *static_cast<const Value*>(arguments[number]);
}

void nothing(void* const*) {}

struct clock_reading {
  std::uint64_t cycles, nanoseconds;
};

//! Behind main(), so that no program has to ask.
struct telling {
  telling() { static_cast<void>(gpu::complaints()); }  // which then outlive it
  ~telling() {
    for (const std::string& each : gpu::complaints())
      std::fprintf(stderr, "simulated GPU: %s\n", each.c_str());
  }
} tells_complaints;

// Before main(): nothing here is asked to.
const bool defined = [] {
  const char* const devices = std::getenv("SIMULATED_GPUS");
  gpu::reset(1, devices == nullptr ? 1 : std::atoi(devices));
  gpu::keep_own_time();
  if (const char* const folder = std::getenv("SIMULATED_NCCL"))
    stretto::test::nccl::share_between_processes(folder);
  stretto::test::define_executor_kernels();
  gpu::define_part("7nothing", {{}, nothing, [](void* const*) { return 1e3; }});
  const auto wait = [](void* const* given) {
    return static_cast<double>(value<std::uint64_t>(given, 0));
  };
  gpu::define_part("5delay", {{8}, nothing, wait});
  gpu::define_part("10read_clock", {{8, 8}, [](void* const* given) {
                      const auto time = value<std::uint64_t>(given, 1);
                      *value<clock_reading*>(given, 0) = {time * 7 / 4, time};
                    }});
  gpu::define_part("15find_timer_step",
                   {{8, 8}, [](void* const* given) { *value<std::uint64_t*>(given, 0) = 32; }});
  gpu::define_part("4spin", {{8}, nothing, {}, [](void* const* given) {
                               return *value<const volatile int*>(given, 0) == 0;
                             }});
  gpu::define_part("5fault", {{}, [](void* const*) { gpu::fault(cudaErrorIllegalAddress); }});
  gpu::define_part("4fill", {{8, 8, 4}, nothing});
  gpu::define_part("4link", {{8, 8, 8, 8, 8, 4}, nothing, [](void* const* given) {
                               // No quicker than 8 multiprocessors move it, at 48 GB/s each.
                               constexpr double least = 16 / (8 * 48.0);
                               return static_cast<double>(value<std::size_t>(given, 2)) *
                                          std::max(value<double>(given, 3), least) +
                                      value<double>(given, 4);
                             }});
  return true;
}();

}  // namespace
