// The functions of the CUDA runtime that the executor calls, on simulated GPUs: devices, streams,
// events. Memory, kernels and graphs are in files of their own.
#include <cuda.h>

#include <cstdio>
#include <string_view>

#include "calls.hpp"

using namespace stretto::test::gpu;

namespace stretto::test::gpu {

void record(cudaEvent_t event, cudaStream_t stream) {
  event->capture = 0;
  if (here().is_captured(*stream)) {
    event->capture = stream->capture;
    event->tail = stream->tail;
    event->of_start = stream->behind_start;
    return;
  }
  // Who looks for the end of the earlier record now never sees it.
  if (event->recorded > event->done)
    here().complaints.push_back(text_of(event) + " is recorded again before it was reached");
  here().push(stream, {operation::kind::record, {}, event, ++event->recorded});
}

}  // namespace stretto::test::gpu

namespace {

CUresult loading_mode(CUmoduleLoadingMode* mode) {
  const guard lock(here().mutex);
  *mode = here().loads_early.value_or(false) ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult state_of_context(CUdevice device, unsigned* flags, int* active) {
  const guard lock(here().mutex);
  *flags = 0;
  *active = here().in_use.count(device) > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

//! Who asks can do without an answer: the call fails only where a test names it.
cudaError_t find_in_driver(const char* symbol, void** to, cudaDriverEntryPointQueryResult* result) {
  constexpr const char* name = "cudaGetDriverEntryPoint";
  const guard lock(here().mutex);
  here().begin();
  if (here().only == name)
    if (const cudaError_t code = here().enter(name, symbol)) return code;
  const std::string_view wanted = symbol;
  *to = wanted == "cuModuleGetLoadingMode"       ? reinterpret_cast<void*>(loading_mode)
        : wanted == "cuDevicePrimaryCtxGetState" ? reinterpret_cast<void*>(state_of_context)
                                                 : nullptr;
  *result = *to != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  ENTER("");
  *count = my.devices;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  ENTER("");
  *version = my.driver;
  return cudaSuccess;
}
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** to, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  return find_in_driver(symbol, to, result);
}
#else
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** to, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
  return find_in_driver(symbol, to, result);
}
#endif
cudaError_t cudaGetDevice(int* device) {
  ENTER("");
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  ENTER(std::to_string(device));
  if (device < 0 || device >= my.devices) return failed(cudaErrorInvalidDevice);
  current = device;
  my.in_use.insert(device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  ENTER(std::to_string(static_cast<int>(which)) + ", " + std::to_string(device));
  if (device < 0 || device >= my.devices) return failed(cudaErrorInvalidDevice);
  *value = which == cudaDevAttrMultiProcessorCount ? 132 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* to, int size, int device) {
  ENTER(std::to_string(device));
  if (device < 0 || device >= my.devices) return failed(cudaErrorInvalidDevice);
  std::snprintf(to, static_cast<std::size_t>(size), "0000:%02x:00.0", 16 + device);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  ENTER("");
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  state& my = here();
  const guard lock(my.mutex);
  // Noted, but no call that fails by itself.
  my.note(__func__, "");
  return my.sticky != cudaSuccess ? my.sticky : std::exchange(last_error, cudaSuccess);
}
const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    default:
      return "cudaErrorOfSomeOtherName";
  }
}
const char* cudaGetErrorString(cudaError_t) {
  return "what CUDA says of it";
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* made, unsigned flags, int priority) {
  ENTER(std::string(flags == cudaStreamNonBlocking ? "non-blocking" : "blocking") + ", priority " +
        std::to_string(priority));
  my.streams.push_back(std::make_unique<CUstream_st>());
  *made = my.streams.back().get();
  (*made)->number = static_cast<int>(my.streams.size()) - 1;
  (*made)->device = current;
  (*made)->weight = std::uint64_t{1} << (my.random() % 12);
  ++my.alive.streams;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  state& my = here();
  const guard lock(my.mutex);
  // Given back even if the call fails: there is no more that the caller can do.
  if (is_alive(stream)) --my.alive.streams;
  stream->destroyed = true;
  return my.enter(__func__, text_of(stream));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  ENTER(text_of(stream));
  FORBID_IN_CAPTURE;
  if (!is_alive(stream)) return failed(cudaErrorInvalidResourceHandle);
  if (my.is_captured(*stream)) return failed(cudaErrorStreamCaptureUnsupported);
  my.run_some();
  return stream->queue.empty() ? cudaSuccess : failed(cudaErrorNotReady);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  ENTER(text_of(stream));
  if (!is_alive(stream)) return failed(cudaErrorInvalidResourceHandle);
  *status = my.is_captured(*stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  ENTER(text_of(stream) + ", " + text_of(event));
  if (!is_alive(stream) || !is_alive(event)) return failed(cudaErrorInvalidResourceHandle);
  if (my.recorded.count(event->capture) > 0) {
    if (my.is_captured(*stream) && stream->capture != event->capture)
      return failed(cudaErrorStreamCaptureMerge);
    if (!my.is_captured(*stream)) stream->tail.clear(), stream->behind_start = false;
    stream->capture = event->capture;
    stream->tail.insert(event->tail.begin(), event->tail.end());
    stream->behind_start = stream->behind_start || event->of_start;
    return cudaSuccess;
  }
  if (my.is_captured(*stream)) return failed(cudaErrorStreamCaptureIsolation);
  if (event->capture != 0) return failed(cudaErrorCapturedEvent);
  // As it was last recorded; never recorded, it holds up nobody.
  my.push(stream, {operation::kind::wait, {}, event, event->recorded});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
  ENTER(flags == cudaEventDisableTiming ? "without times" : "with times");
  my.events.push_back(std::make_unique<CUevent_st>());
  *made = my.events.back().get();
  (*made)->number = static_cast<int>(my.events.size()) - 1;
  (*made)->device = current;
  (*made)->timing = flags != cudaEventDisableTiming;
  ++my.alive.events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  state& my = here();
  const guard lock(my.mutex);
  if (is_alive(event)) --my.alive.events;
  event->destroyed = true;
  return my.enter(__func__, text_of(event));
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  ENTER(text_of(event) + ", " + text_of(stream));
  if (!is_alive(stream) || !is_alive(event)) return failed(cudaErrorInvalidResourceHandle);
  // Others may wait for it and ask, but it is the GPU's whose it was made.
  if (stream->device != event->device) return failed(cudaErrorInvalidResourceHandle);
  record(event, stream);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  ENTER(text_of(event));
  FORBID_IN_CAPTURE;
  if (!is_alive(event)) return failed(cudaErrorInvalidResourceHandle);
  if (event->capture != 0) return failed(cudaErrorCapturedEvent);
  my.run_some();
  if (my.lateness.count() > 0) std::this_thread::sleep_for(my.lateness);
  // This too is an "error" that cudaGetLastError tells.
  return event->done == event->recorded ? cudaSuccess : failed(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  ENTER(text_of(start) + ", " + text_of(end));
  if (!start->timing || !end->timing || start->device != end->device)
    return failed(cudaErrorInvalidResourceHandle);
  if (start->done != start->recorded || end->done != end->recorded)
    return failed(cudaErrorNotReady);
  *milliseconds = static_cast<float>((end->time - start->time) * 1e-6);
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  ENTER(std::to_string(device) + ", " + std::to_string(peer));
  if (device < 0 || device >= my.devices || peer < 0 || peer >= my.devices)
    return failed(cudaErrorInvalidDevice);
  *can = my.peers && device != peer ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  ENTER(std::to_string(peer));
  if (peer < 0 || peer >= my.devices || peer == current) return failed(cudaErrorInvalidDevice);
  if (!my.peers) return failed(cudaErrorPeerAccessUnsupported);
  return my.reached.insert({current, peer}).second ? cudaSuccess
                                                   : failed(cudaErrorPeerAccessAlreadyEnabled);
}
}  // extern "C"
