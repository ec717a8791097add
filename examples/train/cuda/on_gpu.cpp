#include "cuda/on_gpu.hpp"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "cuda/cuda_math.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"

namespace train::cuda {

namespace executor = stretto::executor;

void widen_queues() {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

void run_on_gpus(pipeline_settings& to, const std::vector<int>& devices) {
  widen_queues();
  const int count = executor::cuda_device_count();
  for (const int device : devices) {
    if (device < 0 || device >= count)
      throw bad_setting("device", "cuda",
                        count == 0 ? "this process finds no GPU (cudaGetDeviceCount)"
                                   : "there are " + std::to_string(count) + " GPUs, no number " +
                                         std::to_string(device));
    executor::cuda::check(cudaSetDevice(device), "cudaSetDevice");
  }
  const auto gpu_of = [devices](int worker) {
    return devices[static_cast<std::size_t>(worker) % devices.size()];
  };
  to.make_math = [gpu_of](int worker, const config& model,
                           precision read) -> std::unique_ptr<math<float>> {
    executor::cuda::check(cudaSetDevice(gpu_of(worker)), "cudaSetDevice");
    return std::make_unique<cuda_math>(model, read);
  };
  to.make_device = [gpu_of, timing = to.trace_steps > 0](
                       int worker, const stretto::plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.device = gpu_of(worker), .timing = timing}, watch);
  };
  to.make_transport = [] { return executor::make_cuda_loopback_transport(); };
  to.make_graph = executor::make_cuda_graph;
}

}  // namespace train::cuda
