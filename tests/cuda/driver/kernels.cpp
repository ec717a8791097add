// Launches of kernels, by whatever call, and how files with kernels tell of them.
#include "calls.hpp"

using namespace stretto::test::gpu;

extern "C" {

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  state& my = here();
  const guard lock(my.mutex);
  const auto registered = my.functions.find(function);
  const std::string name =
      registered == my.functions.end() ? "an unknown kernel" : registered->second;
  const kernel* const defined = my.find_kernel(name);
  std::string given =
      name + ", " + std::to_string(config->gridDim.x) + " blocks, " + text_of(config->stream);
  copied what{};
  if (defined != nullptr && defined->copies) {
    what = defined->copies(arguments);
    given += ", " + text_of(what.to) + ", " + text_of(what.from) + ", " + number(what.bytes);
  }
  for (unsigned at = 0; at < config->numAttrs; ++at)
    if (config->attrs[at].id == cudaLaunchAttributeLaunchCompletionEvent)
      given +=
          ", " + text_of(config->attrs[at].val.launchCompletionEvent.event) + " as its blocks run";
  if (const cudaError_t code = my.enter(__func__, given)) return code;
  if (!is_alive(config->stream)) return failed(cudaErrorInvalidResourceHandle);
  // A stream takes kernels only while its own GPU is current.
  if (config->stream->device != current) return failed(cudaErrorInvalidResourceHandle);
  if (defined == nullptr) return failed(cudaErrorInvalidDeviceFunction);
  if (what.to != nullptr &&
      !is_right_copy(name.c_str(), what.to, what.from, what.bytes, cudaMemcpyDeviceToDevice))
    return failed(cudaErrorInvalidValue);
  std::vector<const void*> touched{what.to, what.from};
  if (defined->touches)
    for (const void* const each : defined->touches(arguments)) touched.push_back(each);
  for (const void* const each : touched)
    if (!reaches_memory(config->stream->device, each))
      return failed(cudaErrorIllegalAddress);  // later, on a real one
  std::vector<std::vector<std::byte>> values;
  for (const std::size_t size : defined->parameters) {
    const auto* const first = static_cast<const std::byte*>(arguments[values.size()]);
    values.emplace_back(first, first + size);
  }
  for (unsigned at = 0; at < config->numAttrs; ++at) {
    if (config->attrs[at].id != cudaLaunchAttributeLaunchCompletionEvent) continue;
    cudaEvent_t const event = config->attrs[at].val.launchCompletionEvent.event;
    if (event->timing || event->device != config->stream->device)
      return failed(cudaErrorInvalidValue);
    if (my.is_captured(*config->stream)) {
      record(event, config->stream);
      event->of_start = true;
    } else {
      my.push(config->stream, {operation::kind::record, {}, event, ++event->recorded});
    }
  }
  const bool hangs = my.until_hang > 0 && --my.until_hang == 0;
  const auto run = [values = std::move(values), &what = *defined, hangs, end = 0.0]() mutable {
    if (hangs) return false;
    std::vector<void*> addresses;
    for (std::vector<std::byte>& each : values) addresses.push_back(each.data());
    if (what.lasts) {
      if (end == 0) end = here().now() + what.lasts(addresses.data());
      if (!here().is_over(end)) return false;
    }
    if (what.ready && !what.ready(addresses.data())) return false;
    what.run(addresses.data());
    return true;
  };
  return my.push(config->stream, {operation::kind::kernel, run});
}
// As files with kernels launch that nvcc 12 has compiled.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream;
  return cudaLaunchKernelExC(&config, function, arguments);
}
// What files with kernels call before main(), and what a launch in their own syntax does.
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 1;
}
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  here().functions[function] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t, CUstream_st* stream) {
  pushed = {};
  pushed.gridDim = grid;
  pushed.blockDim = block;
  pushed.stream = stream;
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t*, void* stream) {
  *grid = pushed.gridDim;
  *block = pushed.blockDim;
  *static_cast<cudaStream_t*>(stream) = pushed.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

}  // extern "C"
