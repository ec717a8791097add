// Memory of simulated GPUs and the pinned one of the host, and what copies and sets it.
#include <cstring>
#include <functional>
#include <initializer_list>
#include <vector>

#include "calls.hpp"

using namespace stretto::test::gpu;

namespace {

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

enum class where { gpu, host, anywhere };

//! Memory that a call names.
struct piece {
  const void* first = nullptr;
  std::size_t bytes = 0;
  where wanted = where::anywhere;
  int device = -1;  // any
};

//! The number of the allocation that it begins in; -1: in none, but in pageable memory of the host.
std::ptrdiff_t allocation_of(const piece& of) {
  const auto* const first = static_cast<const std::byte*>(of.first);
  const std::vector<allocation>& all = here().memory;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const std::byte* const begin = all[at].bytes.get();
    if (begin != nullptr && first >= begin && first < begin + all[at].size)
      return static_cast<std::ptrdiff_t>(at);
  }
  return -1;
}

//! Empty: nothing.
std::string what_is_wrong_with(const piece& of) {
  const std::ptrdiff_t number = allocation_of(of);
  if (number < 0) return of.wanted == where::gpu ? "is no GPU's" : "";
  const allocation& in = here().memory[static_cast<std::size_t>(number)];
  const auto* const first = static_cast<const std::byte*>(of.first);
  if (first + of.bytes > in.bytes.get() + in.size) return "is longer than what it lies in";
  if (of.wanted == where::gpu && in.pinned) return "is no GPU's";
  if (of.wanted == where::host && !in.pinned) return "is a GPU's";
  if (of.device >= 0 && of.device != in.device) return "is another GPU's";
  return "";
}

//! Of a call, and, where the call is a node of a graph, of what it does later.
bool is_right(const char* name, std::initializer_list<piece> all) {
  for (const piece& each : all)
    if (const std::string wrong = what_is_wrong_with(each); !wrong.empty()) {
      here().complaints.push_back(std::string(name) + ": " + text_of(each.first) + ", " +
                                  std::to_string(each.bytes) + " bytes, " + wrong);
      return false;
    }
  return true;
}

//! Does it when it is its turn, if what it was given is there yet.
cudaError_t enqueue(const char* name, cudaStream_t stream, std::initializer_list<piece> touched,
                    std::function<void()> transfer) {
  if (!is_right(name, touched)) return failed(cudaErrorInvalidValue);
  const std::vector<piece> all(touched);
  std::vector<std::ptrdiff_t> in;
  for (const piece& each : all) in.push_back(allocation_of(each));
  const auto run = [=, transfer = std::move(transfer)] {
    for (std::size_t at = 0; at < all.size(); ++at)
      if (allocation_of(all[at]) != in[at]) {
        here().complaints.push_back(std::string(name) + " runs when its memory is given back");
        return true;
      }
    transfer();
    return true;
  };
  return here().push(stream, {operation::kind::transfer, run});
}

//! By way of the host goes what could go directly.
void look_at_way(const char* name, int target, int source) {
  if (here().peers && !here().reaches(target, source))
    here().complaints.push_back(std::string(name) + ": GPUs " + std::to_string(source) + " and " +
                                std::to_string(target) + " do not reach each other's memory");
}

where side_of(cudaMemcpyKind kind, bool source) {
  if (kind == cudaMemcpyDefault) return where::anywhere;
  const cudaMemcpyKind up = source ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  return kind == cudaMemcpyDeviceToDevice || kind == up ? where::gpu : where::host;
}

}  // namespace

int stretto::test::gpu::gpu_of_memory(const void* address) {
  const std::ptrdiff_t number = allocation_of({address});
  if (number < 0) return -1;
  const allocation& in = here().memory[static_cast<std::size_t>(number)];
  return in.pinned ? -1 : in.device;
}

bool stretto::test::gpu::reaches_memory(int gpu, const void* address) {
  const int of = gpu_of_memory(address);
  return of < 0 || of == gpu || here().reached.count({gpu, of}) > 0;
}

bool stretto::test::gpu::is_right_copy(const char* name, const void* to, const void* from,
                                       std::size_t bytes, cudaMemcpyKind kind) {
  return is_right(name, {{to, bytes, side_of(kind, false)}, {from, bytes, side_of(kind, true)}});
}

extern "C" {

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
cudaError_t cudaMemcpyPeerAsync(void* to, int target, const void* from, int source,
                                std::size_t bytes, cudaStream_t stream) {
  ENTER(text_of(to) + " on " + std::to_string(target) + ", " + text_of(from) + " on " +
        std::to_string(source) + ", " + number(bytes) + ", " + text_of(stream));
  if (!is_alive(stream)) return failed(cudaErrorInvalidResourceHandle);
  if (my.is_captured(*stream)) return failed(cudaErrorStreamCaptureUnsupported);
  const cudaError_t code = enqueue(
      __func__, stream, {{to, bytes, where::gpu, target}, {from, bytes, where::gpu, source}},
      [=] { std::memcpy(to, from, bytes); });
  if (code == cudaSuccess) look_at_way(__func__, target, source);
  return code;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  ENTER(text_of(to) + ", " + std::to_string(value) + ", " + number(bytes) + ", " + text_of(stream));
  // Nothing is promised of another GPU's stream.
  if (!is_alive(stream) || stream->device != current) return failed(cudaErrorInvalidResourceHandle);
  // A graph's is a GPU's.
  const where wanted = my.is_captured(*stream) ? where::gpu : where::anywhere;
  if (allocation_of({to, bytes}) < 0) return failed(cudaErrorInvalidValue);
  return enqueue(__func__, stream, {{to, bytes, wanted}}, [=] { std::memset(to, value, bytes); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  ENTER(text_of(to) + ", " + text_of(from) + ", " + number(bytes) + ", " + text_of(stream));
  if (!is_alive(stream)) return failed(cudaErrorInvalidResourceHandle);
  my.look_at_source(__func__, from, *stream);
  const int target = gpu_of_memory(to), source = gpu_of_memory(from);
  if (target >= 0 && source >= 0) {
    if (my.is_captured(*stream) && !my.reaches(target, source))
      return failed(cudaErrorInvalidValue);
    look_at_way(__func__, target, source);
  }
  return enqueue(__func__, stream,
                 {{to, bytes, side_of(kind, false)}, {from, bytes, side_of(kind, true)}},
                 [=] { std::memcpy(to, from, bytes); });
}

}  // extern "C"
