#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "stretto/executor/device.hpp"
#include "stretto/executor/stage.hpp"

namespace stretto::executor {

//! One call of a kernel that is measured: what to run, and where.
struct kernel_call {
  stream_handle stream{};
  int piece = 0;
  int pieces = 1;
};

//! What is to lie side by side: on the host each does its work in the call, on a GPU it launches
//! it.
struct overlap_kernels {
  std::function<void(const kernel_call&)> compute{};  //!< called once for each of its pieces
  std::function<void(const kernel_call&)> communicate{};
};

//! How long two kernels are measured beside each other.
struct overlap_settings {
  int pieces = 1;   //!< of the computation
  int warmups = 3;  //!< rounds that are not counted
  int rounds = 15;  //!< of which medians are taken; in each, every variant once, in turn
  //! Of one variant of one round. A kernel of the host's cannot be ended from outside: one that
  //! does not return for ten seconds more is told of on the standard error stream, and waited for.
  std::chrono::nanoseconds deadline = std::chrono::minutes(1);
  //! Makes the device, when it is not to be the host; a GPU with cuda_settings::timing. There the
  //! first launch of each kernel counts as its own time, some microseconds: kernels that are to be
  //! compared take a good deal longer.
  std::function<std::unique_ptr<device>(const plan_view&, monitor&)> make_device{};
};

//! Medians, in nanoseconds.
struct overlap_times {
  double compute = 0;             //!< alone
  double communicate = 0;         //!< alone
  double serial = 0;              //!< one behind the other
  double both = 0;                //!< begun together, each on its stream
  double compute_beside = 0;      //!< the computation's part of `both`
  double communicate_beside = 0;  //!< and the communication's

  //! The part of the communication that added no time: at most ceiling(), as medians of which
  //! `both` is below the longer of the two say that it took as long. Below 0 where the two took
  //! longer together than one after the other.
  double hidden() const {
    const double least = compute < communicate ? communicate : compute;
    return (compute + communicate - (both < least ? least : both)) / communicate;
  }
  //! The most that there is to hide it behind.
  double ceiling() const { return compute < communicate ? compute / communicate : 1.0; }
  double compute_slowdown() const { return compute_beside / compute; }
  double communicate_slowdown() const { return communicate_beside / communicate; }
};

//! Measures how much of a communication hides behind a computation on two streams of a device, the
//! communication's the more urgent and issued first.
//! @throws plan_error for settings that make no sense or a kernel that is missing,
//!         execution_error when a kernel throws or a variant does not end in time
overlap_times measure_overlap(const overlap_kernels& kernels, const overlap_settings& with = {});

}  // namespace stretto::executor
