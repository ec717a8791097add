// The functions of the CUDA runtime that the executor calls, on simulated GPUs.
#include <cstdio>
#include <cstring>

#include "state.hpp"

using namespace stretto::test::gpu;

namespace {

cudaError_t failed(cudaError_t code) {
  return last_error = code;
}

// Every function begins with it.
#define ENTER(arguments)      \
  state& my = here();         \
  const guard lock(my.mutex); \
  if (const cudaError_t code = my.enter(__func__, arguments)) return code

// And functions that ask, allocate or free with this.
#define FORBID_IN_CAPTURE \
  if (const cudaError_t forbidden = here().forbid(__func__)) return forbidden

std::string number(std::size_t value) {
  return std::to_string(value);
}

cudaError_t allocate(void** to, std::size_t bytes, bool pinned) {
  state& my = here();
  if (bytes > (std::size_t{1} << 30)) return failed(cudaErrorMemoryAllocation);
  allocation fresh;
  fresh.bytes.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256})));
  fresh.size = bytes;
  fresh.pinned = pinned;
  fresh.device = current;
  std::memset(fresh.bytes.get(), 0xcd, bytes);  // nobody may count on what was there
  *to = fresh.bytes.get();
  my.memory.push_back(std::move(fresh));
  ++my.alive.allocations;
  return cudaSuccess;
}

cudaError_t give_back(void* address, bool pinned, const char* name) {
  state& my = here();
  if (address == nullptr) return cudaSuccess;
  for (allocation& each : my.memory) {
    if (each.bytes.get() != address || each.pinned != pinned) continue;
    my.drain(name, each.device);
    each.bytes.reset();
    --my.alive.allocations;
    return cudaSuccess;
  }
  return failed(cudaErrorInvalidValue);
}

bool is_alive(cudaStream_t stream) {
  return stream != nullptr && !stream->destroyed;
}
bool is_alive(cudaEvent_t event) {
  return event != nullptr && !event->destroyed;
}

void record(cudaEvent_t event, cudaStream_t stream) {
  event->capture = 0;
  if (here().is_captured(*stream)) {
    event->capture = stream->capture;
    event->tail = stream->tail;
    return;
  }
  // Who looks for the end of the earlier record now never sees it.
  if (event->recorded > event->done)
    here().complaints.push_back(text_of(event) + " is recorded again before it was reached");
  here().push(stream, {operation::kind::record, {}, event, ++event->recorded});
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
cudaError_t cudaGetDevice(int* device) {
  ENTER("");
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  ENTER(std::to_string(device));
  if (device < 0 || device >= my.devices) return failed(cudaErrorInvalidDevice);
  current = device;
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
    if (!my.is_captured(*stream)) stream->tail.clear();
    stream->capture = event->capture;
    stream->tail.insert(event->tail.begin(), event->tail.end());
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

cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  ENTER(number(bytes));
  FORBID_IN_CAPTURE;
  return allocate(to, bytes, false);
}
cudaError_t cudaHostAlloc(void** to, std::size_t bytes, unsigned) {
  ENTER(number(bytes));
  FORBID_IN_CAPTURE;
  return allocate(to, bytes, true);
}
cudaError_t cudaFree(void* address) {
  const guard lock(here().mutex);
  const cudaError_t code = here().enter(__func__, text_of(address));
  FORBID_IN_CAPTURE;
  const cudaError_t freed = give_back(address, false, __func__);
  return code != cudaSuccess ? code : freed;
}
cudaError_t cudaFreeHost(void* address) {
  const guard lock(here().mutex);
  const cudaError_t code = here().enter(__func__, text_of(address));
  FORBID_IN_CAPTURE;
  const cudaError_t freed = give_back(address, true, __func__);
  return code != cudaSuccess ? code : freed;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  ENTER(std::to_string(device) + ", " + std::to_string(peer));
  *can = my.peers ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  ENTER(std::to_string(peer));
  return my.reached.insert({current, peer}).second ? cudaSuccess
                                                      : failed(cudaErrorPeerAccessAlreadyEnabled);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int target, const void* from, int source,
                                std::size_t bytes, cudaStream_t stream) {
  ENTER(text_of(to) + " on " + std::to_string(target) + ", " + text_of(from) + " on " +
        std::to_string(source) + ", " + number(bytes) + ", " + text_of(stream));
  if (!is_alive(stream)) return failed(cudaErrorInvalidResourceHandle);
  my.push(stream, {operation::kind::work, [=] { return std::memcpy(to, from, bytes), true; }});
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  const auto registered = here().functions.find(function);
  const std::string name =
      registered == here().functions.end() ? "an unknown kernel" : registered->second;
  std::string given =
      name + ", " + std::to_string(config->gridDim.x) + " blocks, " + text_of(config->stream);
  for (unsigned at = 0; at < config->numAttrs; ++at)
    if (config->attrs[at].id == cudaLaunchAttributeLaunchCompletionEvent)
      given +=
          ", " + text_of(config->attrs[at].val.launchCompletionEvent.event) + " as its blocks run";
  ENTER(given);
  if (!is_alive(config->stream)) return failed(cudaErrorInvalidResourceHandle);
  // A stream takes kernels only while its own GPU is current.
  if (config->stream->device != current) return failed(cudaErrorInvalidResourceHandle);
  const kernel* const defined = my.find_kernel(name);
  if (defined == nullptr) return failed(cudaErrorInvalidDeviceFunction);
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
    if (my.is_captured(*config->stream))
      record(event, config->stream);
    else
      my.push(config->stream, {operation::kind::record, {}, event, ++event->recorded});
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
    what.run(addresses.data());
    return true;
  };
  my.push(config->stream, {operation::kind::work, run});
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  ENTER(text_of(to) + ", " + std::to_string(value) + ", " + number(bytes) + ", " + text_of(stream));
  // Nothing is promised of another GPU's stream.
  if (!is_alive(stream) || stream->device != current) return failed(cudaErrorInvalidResourceHandle);
  my.push(stream, {operation::kind::work, [=] { return std::memset(to, value, bytes), true; }});
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  ENTER(text_of(to) + ", " + text_of(from) + ", " + number(bytes) + ", " + text_of(stream));
  if (!is_alive(stream)) return failed(cudaErrorInvalidResourceHandle);
  my.look_at_source(__func__, from, *stream);
  my.push(stream, {operation::kind::work, [=] { return std::memcpy(to, from, bytes), true; }});
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  ENTER(text_of(stream));
  if (!is_alive(stream) || my.is_captured(*stream)) return failed(cudaErrorIllegalState);
  stream->capture = ++my.captures;
  stream->tail.clear();
  my.recorded[my.captures] = {stream, mode, std::this_thread::get_id()};
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* made) {
  state& my = here();
  const guard lock(my.mutex);
  const auto found = my.recorded.find(stream->capture);
  if (found == my.recorded.end() || found->second.origin != stream)
    return failed(cudaErrorIllegalState);
  if (found->second.by != std::this_thread::get_id())
    return failed(cudaErrorStreamCaptureWrongThread);
  // Ended even if the call fails.
  capture of = std::move(found->second);
  my.recorded.erase(found);
  if (const cudaError_t code = my.enter(__func__, text_of(stream))) return code;
  if (of.invalid) return failed(cudaErrorStreamCaptureInvalidated);
  std::set<int> joined = stream->tail;
  for (int at = static_cast<int>(of.nodes.size()); at-- > 0;) {
    if (joined.count(at) == 0) return failed(cudaErrorStreamCaptureUnjoined);
    const std::set<int>& after = of.nodes[static_cast<std::size_t>(at)].after;
    joined.insert(after.begin(), after.end());
  }
  my.graphs.push_back(std::make_unique<CUgraph_st>());
  *made = my.graphs.back().get();
  **made = {std::move(of.nodes), std::move(of.held)};
  ++my.alive.graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph,
                                 unsigned long long flags) {
  ENTER(std::to_string(graph->nodes.size()) + " nodes" +
        (flags == cudaGraphInstantiateFlagUseNodePriority ? ", their priorities" : ""));
  my.executables.push_back(std::make_unique<CUgraphExec_st>());
  *made = my.executables.back().get();
  **made = {graph->nodes, graph->held};
  ++my.alive.graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  ENTER(text_of(stream));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  ENTER(text_of(stream));
  if (!is_alive(stream)) return failed(cudaErrorInvalidResourceHandle);
  const auto run = std::make_shared<graph_run>();
  run->nodes = graph->nodes;
  run->done.resize(run->nodes.size());
  my.push(stream, {operation::kind::graph, {}, nullptr, 0, run});
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const guard lock(here().mutex);
  *graph = {};
  --here().alive.graphs;
  return here().enter(__func__, "");
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const guard lock(here().mutex);
  *graph = {};  // a launch under way has its own
  --here().alive.graphs;
  return here().enter(__func__, "");
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
                               std::size_t, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream;
  return cudaLaunchKernelExC(&config, kernel, arguments);
}

}  // extern "C"
