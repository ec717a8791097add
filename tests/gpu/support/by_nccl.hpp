// What the tests of NCCL on GPUs share.
#pragma once

#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/nccl_transport.hpp"
#include "stretto/executor/engine.hpp"

namespace stretto::test {

//! All ranks in this process, on so many GPUs in turn.
inline executor::options by_nccl(executor::bootstrap& alone, int gpus) {
  executor::options with;
  with.make_device = [gpus](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.device = plan.rank % gpus}, watch);
  };
  // Its stages launch no kernels, but copies.
  with.wire = executor::make_nccl_transport(alone, {.kernels_loaded = true});
  with.poison = false;
  return with;
}

}  // namespace stretto::test
