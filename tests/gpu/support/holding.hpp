#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>

#include "executor/failures.hpp"
#include "gpu/support/kernels.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/executor/stage.hpp"

namespace stretto::test {

//! One of whose jobs launches a kernel that does not end while it is held; no other does anything.
class holding_stage final : public executor::stage {
 public:
  explicit holding_stage(const job& held) : held_(held) {}

  void run(const executor::context& at) override {
    if (at.what == held_)
      executor::cuda::check(
          launch_spin(static_cast<const int*>(flag_.get()), executor::native_stream(at)),
          "a kernel that spins");
  }
  //! Steps pass, and then one does not, for which the engine must have a short deadline: the error
  //! names the job.
  void expect_named(executor::engine& engine) const {
    for (int step = 0; step < 3; ++step) engine.step();
    hold(true);
    const executor::execution_error error = error_of(engine);
    hold(false);
    CHECK(error.kind() == executor::failure::deadline);
    CHECK(error.what_job() == held_);
    expect_part(error.flight_record(), "started     named by the error\n");
  }
  static void be_impatient(executor::options& with) {
    with.deadline = std::chrono::seconds(2);
    with.grace = std::chrono::seconds(1);
  }

 private:
  void hold(bool on) const {
    std::atomic_ref(*static_cast<int*>(flag_.get())).store(on ? 1 : 0);
  }
  static executor::cuda::pinned_memory no_flag() {
    executor::cuda::pinned_memory made = executor::cuda::make_pinned_memory(sizeof(int));
    *static_cast<int*>(made.get()) = 0;
    return made;
  }
  job held_;
  executor::cuda::pinned_memory flag_ = no_flag();
};

}  // namespace stretto::test
