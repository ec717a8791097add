#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver/simulated_gpu.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/model/job_text.hpp"

namespace stretto::test {

//! Puts what another stage does on the simulated GPU's streams.
class enqueueing_stage final : public executor::stage {
 public:
  explicit enqueueing_stage(executor::stage& inner) : inner_(inner) {}
  void run(const executor::context& at) override {
    gpu::enqueue(executor::native_stream(at), to_text(at.what).view(),
                 [this, at] { inner_.run(at); });
  }

 private:
  executor::stage& inner_;
};

inline executor::options on_gpu(executor::cuda_settings settings = {}) {
  executor::options with;
  with.make_device = [settings](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, settings, watch);
  };
  return with;
}

//! Ranks on GPUs in turn.
inline executor::options on_gpus(int gpus) {
  executor::options with;
  with.make_device = [gpus](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.device = plan.rank % gpus}, watch);
  };
  with.wire = executor::make_cuda_loopback_transport();
  return with;
}

struct enqueueing_stages {
  explicit enqueueing_stages(const std::vector<executor::stage*>& inner) {
    owned.reserve(inner.size());
    for (executor::stage* const each : inner) owned.emplace_back(*each);
    for (enqueueing_stage& each : owned) pointers.push_back(&each);
  }
  std::vector<enqueueing_stage> owned{};
  std::vector<executor::stage*> pointers{};
};

}  // namespace stretto::test
