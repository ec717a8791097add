#pragma once

// What the benchmarks of a GPU share: the GPU, its clock, times by events.

#include <cuda_runtime_api.h>

#include <string>

#include "harness.hpp"
#include "kernels.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/handles.hpp"

namespace stretto::bench {

using executor::cuda::check;
using executor::cuda::make_device_memory;
using executor::cuda::make_event;
using executor::cuda::make_pinned_memory;
using executor::cuda::make_stream;

//! As each benchmark says, and ends well: nothing is wrong where there is no GPU.
inline bool there_is_no_gpu() {
  if (executor::cuda_device_count() > 0) return false;
  std::puts("not measured: this process finds no GPU");
  return true;
}

//! Names and versions of the first GPU.
inline nlohmann::ordered_json about_gpu() {
  cudaDeviceProp seen{};
  int driver = 0;
  int runtime = 0;
  int clock = 0;
  int memory_clock = 0;
  check(cudaGetDeviceProperties(&seen, 0), "cudaGetDeviceProperties");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, 0),
        "cudaDeviceGetAttribute");
  nlohmann::ordered_json made;
  made["device"] = seen.name;
  made["compute_capability"] = std::to_string(seen.major) + '.' + std::to_string(seen.minor);
  made["multiprocessors"] = seen.multiProcessorCount;
  made["l2_bytes"] = seen.l2CacheSize;
  made["memory_bytes"] = seen.totalGlobalMem;
  made["cuda_driver"] = driver;
  made["cuda_runtime"] = runtime;
  made["toolkit"] = CUDART_VERSION;
  made["most_clock_mhz"] = clock / 1000;
  made["memory_clock_mhz"] = memory_clock / 1000;
  return made;
}

inline double microseconds_between(const executor::cuda::owned_event& first,
                                   const executor::cuda::owned_event& last) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, first.get(), last.get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e3;
}

//! The clock that multiprocessors run at, by their own counting: it falls when power or heat is too
//! much, and then figures taken before and after do not compare. And the timer that this is told
//! by.
class clock_check {
 public:
  //! Warms the GPU up first, until a second has passed.
  clock_check() {
    const double begin = seconds_now();
    while (seconds_now() - begin < 1.0) {
      check(launch_delay(10'000'000, stream_.get()), "a delay");
      wait();
    }
    auto* const step = static_cast<std::uint64_t*>(reading_.get());
    check(launch_timer_step(step, 2'000'000, stream_.get()), "a look at the timer");
    wait();
    timer_step_ = static_cast<double>(*step);
    look();
  }
  //! Figures taken from now on are not compared with earlier ones.
  void begin_row() { seen_.begin_row(); }
  //! Right behind what was measured.
  double look() {
    auto* const at = static_cast<clock_reading*>(reading_.get());
    check(launch_clock_reading(at, 200'000, stream_.get()), "a reading of the clock");
    wait();
    const double clock =
        1e3 * static_cast<double>(at->cycles) / static_cast<double>(at->nanoseconds);
    seen_.add(clock);
    return clock;
  }
  double timer_step() const { return timer_step_; }  //!< in nanoseconds
  void tell(report& to) {
    look();
    to.about()["clock_mhz"] = {{"least", rounded(seen_.least())}, {"most", rounded(seen_.most())}};
    to.about()["globaltimer_step_ns"] = rounded(timer_step_);
    if (const std::string doubt = seen_.doubt(); !doubt.empty()) to.note(doubt);
  }

 private:
  void wait() const { check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize"); }

  executor::cuda::owned_stream stream_ = make_stream(0);
  executor::cuda::pinned_memory reading_ = make_pinned_memory(sizeof(clock_reading));
  clocks_seen seen_;
  double timer_step_ = 0;
};

}  // namespace stretto::bench
