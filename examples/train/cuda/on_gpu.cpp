#include "cuda/on_gpu.hpp"

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "cuda/cuda_math.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"

namespace train::cuda {

namespace executor = stretto::executor;

void run_on_gpu(pipeline_settings& to, int device) {
  const int count = executor::cuda_device_count();
  if (device < 0 || device >= count)
    throw bad_setting("device", "cuda",
                      count == 0 ? "this process finds no GPU (cudaGetDeviceCount)"
                                 : "there are " + std::to_string(count) + " GPUs, no number " +
                                       std::to_string(device));
  executor::cuda::check(cudaSetDevice(device), "cudaSetDevice");
  to.make_math = [](const config& model, precision read) -> std::unique_ptr<math<float>> {
    return std::make_unique<cuda_math>(model, read);
  };
  to.make_device = [device, timing = to.trace_steps > 0](const stretto::plan_view& plan,
                                                         executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.device = device, .timing = timing}, watch);
  };
  to.make_transport = [] { return executor::make_cuda_loopback_transport(); };
}

}  // namespace train::cuda
