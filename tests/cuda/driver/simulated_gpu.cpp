#include "simulated_gpu.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "state.hpp"

namespace stretto::test::gpu {

state& here() {
  static state only;
  return only;
}

std::string to_text(const call& made) {
  return std::string(made.name) + '(' + made.arguments + ')';
}

void reset(std::uint64_t seed, int devices, bool peers) {
  const guard lock(here().mutex);
  state& my = here();
  my.calls.clear();
  my.complaints.clear();
  my.streams.clear();
  my.events.clear();
  my.memory.clear();
  my.alive = {};
  my.random.seed(seed);
  my.devices = devices;
  my.driver = CUDART_VERSION;
  my.loads_early.reset();
  current = 0;
  my.peers = peers;
  my.recorded.clear();
  my.graphs.clear();
  my.executables.clear();
  my.reached.clear();
  my.in_use.clear();
  my.own_time = -1;
  my.sticky = last_error = cudaSuccess;
  my.countdown = -1;
  my.hit = false;
  my.until_hang = 0;
  my.patient = false;
  limit_queues(1024);
  answer_late(std::chrono::nanoseconds(0));
}

void limit_queues(std::size_t depth, std::chrono::nanoseconds patience) {
  const guard lock(here().mutex);
  here().depth = depth;
  here().room_patience = patience;
}

void answer_late(std::chrono::nanoseconds by) {
  const guard lock(here().mutex);
  here().lateness = by;
}

void keep_own_time() {
  const guard lock(here().mutex);
  here().own_time = 0;
}

void set_driver(int version) {
  const guard lock(here().mutex);
  here().driver = version;
}

const std::vector<call>& calls() {
  return here().calls;
}
handles alive() {
  handles all = here().alive;
  all.captures = static_cast<int>(here().recorded.size());
  return all;
}
std::set<int> in_use() {
  const guard lock(here().mutex);
  return here().in_use;
}
const std::vector<std::string>& complaints() {
  return here().complaints;
}
void complain(std::string_view text) {
  const guard lock(here().mutex);
  here().complaints.emplace_back(text);
}

void fail_call(int n, cudaError_t code, std::string_view function) {
  state& my = here();
  my.countdown = n;
  my.code = code;
  my.only = function;
  my.hit = false;
}
bool has_failed() {
  return here().hit;
}

// Work is run by who holds the lock.
void fault(cudaError_t code) {
  here().sticky = code;
}
void hang_kernel(long n) {
  const guard lock(here().mutex);
  here().until_hang = n;
}
void wait_without_limit() {
  const guard lock(here().mutex);
  here().patient = true;
}

void define(const char* name, kernel what) {
  here().kernels[name] = std::move(what);
}
void define(const void* function, kernel what) {
  define(here().functions.at(function).c_str(), std::move(what));
}

void define_part(const char* part, kernel what) {
  here().kernel_parts[part] = std::move(what);
}

void define_later(std::function<void()> definitions) {
  here().later.push_back(std::move(definitions));
}

void enqueue(cudaStream_t stream, std::string_view name, std::function<void()> work) {
  const guard lock(here().mutex);
  here().note("kernel", std::string(name) + ", " + text_of(stream));
  here().push(stream, {operation::kind::kernel, [work = std::move(work)] { return work(), true; }});
}

void enqueue_for(cudaStream_t stream, std::string_view name, double nanoseconds) {
  enqueue_until(stream, name, [nanoseconds, end = 0.0]() mutable {
    if (end == 0) end = here().now() + nanoseconds;
    return here().is_over(end);
  });
}

void enqueue_until(cudaStream_t stream, std::string_view name, std::function<bool()> is_over) {
  const guard lock(here().mutex);
  here().note("kernel", std::string(name) + ", " + text_of(stream));
  here().push(stream, {operation::kind::kernel, std::move(is_over)});
}

std::string text_of(cudaStream_t stream) {
  return stream == nullptr ? "the default stream" : "stream " + std::to_string(stream->number);
}
std::string text_of(cudaEvent_t event) {
  return event == nullptr ? "no event" : "event " + std::to_string(event->number);
}
std::string text_of(const void* address) {
  const state& my = here();
  for (std::size_t at = 0; at < my.memory.size(); ++at) {
    const allocation& each = my.memory[at];
    const auto* const first = each.bytes.get();
    const auto* const wanted = static_cast<const std::byte*>(address);
    if (first == nullptr || wanted < first || wanted >= first + each.size) continue;
    return "memory " + std::to_string(at) + '+' + std::to_string(wanted - first);
  }
  return "memory of the host";
}

const kernel* state::find_kernel(const std::string& name) {
  for (const auto& definitions : std::exchange(later, {})) definitions();
  if (const auto found = kernels.find(name); found != kernels.end()) return &found->second;
  for (const auto& [part, what] : kernel_parts)
    if (name.find(part) != std::string::npos) return &what;
  return nullptr;
}

void state::note(const char* name, std::string arguments) {
  if (own_time >= 0)
    own_time += 500;
  else
    calls.push_back({name, std::move(arguments)});
}

void state::begin() {
  if (loads_early) return;
  const char* const wanted = std::getenv("CUDA_MODULE_LOADING");
  loads_early = wanted != nullptr && std::string_view(wanted) == "EAGER";
}

namespace {

//! What asks of GPUs, and begins to use none.
bool only_asks(std::string_view name) {
  constexpr std::string_view all[] = {
      "cudaGetDevice",           "cudaSetDevice",          "cudaGetDeviceCount",
      "cudaDriverGetVersion",    "cudaDeviceGetAttribute", "cudaDeviceGetPCIBusId",
      "cudaDeviceCanAccessPeer", "cudaGetLastError",       "cudaGetDriverEntryPoint"};
  return std::ranges::find(all, name) != std::end(all);
}

//! Those behind which the process is to be terminated, as driver_types.h says, or ends by itself.
bool sticks(cudaError_t code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

}  // namespace

cudaError_t state::enter(const char* name, std::string arguments) {
  note(name, std::move(arguments));
  begin();
  if (!only_asks(name)) in_use.insert(current);
  if (sticky != cudaSuccess) return last_error = sticky;
  if (countdown > 0 && (only.empty() || only == name) && --countdown == 0) {
    hit = true;
    countdown = -1;
    last_error = code;
    if (sticks(code)) sticky = code;
    return code;
  }
  return cudaSuccess;
}

cudaError_t state::forbid(const char* name) {
  for (auto& [number, each] : recorded) {
    if (each.mode == cudaStreamCaptureModeThreadLocal && each.by != std::this_thread::get_id())
      continue;
    each.invalid = true;
    complaints.push_back(std::string(name) + " while a graph is recorded");
    return last_error = cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

void state::look_at_source(const char* name, const void* from, const CUstream_st& stream) {
  if (is_captured(stream) && text_of(from) == "memory of the host")
    complaints.push_back(std::string(name) +
                         " is recorded from memory that may be gone when it runs");
}

cudaError_t state::push(cudaStream_t stream, operation what) {
  // NCCL would put its kernel in front of that or behind it.
  if (!stream->taken.empty())
    complaints.push_back(text_of(stream) + " gets work while a call on " + stream->taken +
                         " is in progress");
  if (!is_captured(*stream)) make_room(*stream);
  return append(stream, std::move(what));
}

cudaError_t state::append(cudaStream_t stream, operation what) {
  if (!is_captured(*stream)) {
    stream->queue.push_back(std::move(what));
    return cudaSuccess;
  }
  // Edges from a kernel's start lead to kernels alone.
  if (std::exchange(stream->behind_start, false) && what.what != operation::kind::kernel)
    return last_error = cudaErrorNotSupported;
  std::vector<graph_node>& nodes = recorded.at(stream->capture).nodes;
  nodes.push_back({std::move(what.work), stream->tail});
  stream->tail = {static_cast<int>(nodes.size()) - 1};
  return cudaSuccess;
}

void state::make_room(const CUstream_st& stream) {
  auto limit = std::chrono::steady_clock::now() + room_patience;
  while (!has_room(stream)) {
    if (skip()) {
      limit = std::chrono::steady_clock::now() + room_patience;
    } else if (std::chrono::steady_clock::now() < limit) {
      // Other threads, or processes, may be what the work waits for.
      mutex.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      mutex.lock();
    } else {
      complaints.push_back("a call waits for room in " +
                           text_of(const_cast<cudaStream_t>(&stream)) + ", and nothing ends");
      return;
    }
  }
}

bool state::may_run(const CUstream_st& stream) const {
  if (stream.queue.empty()) return false;
  const operation& front = stream.queue.front();
  return front.what != operation::kind::wait || front.event->done >= front.version;
}

//! Some streams are far quicker than others, or nobody would overtake anybody by much.
std::size_t state::choose(const std::vector<CUstream_st*>& ready) {
  std::uint64_t sum = 0;
  for (const CUstream_st* each : ready) sum += each->weight;
  std::uint64_t left = random() % sum;
  std::size_t chosen = 0;
  while (left >= ready[chosen]->weight) left -= ready[chosen++]->weight;
  return chosen;
}

bool state::run_one() {
  std::vector<CUstream_st*> ready;
  for (const auto& each : streams)
    if (may_run(*each)) ready.push_back(each.get());
  while (!ready.empty()) {
    const std::size_t chosen = choose(ready);
    CUstream_st& stream = *ready[chosen];
    operation& front = stream.queue.front();
    if (front.what == operation::kind::graph && front.run->advance(random) && !front.run->is_over())
      return true;
    if ((front.work && !front.work()) ||
        (front.what == operation::kind::graph && !front.run->is_over())) {
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
      continue;
    }
    if (front.what == operation::kind::record) {
      front.event->done = std::max(front.event->done, front.version);
      front.event->time = time_on(stream.device);
    }
    stream.queue.pop_front();
    return true;
  }
  return false;
}

bool graph_run::advance(std::mt19937_64& random) {
  std::vector<std::size_t> ready;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const auto is_done = [this](int before) { return done[static_cast<std::size_t>(before)]; };
    if (!done[at] && std::all_of(nodes[at].after.begin(), nodes[at].after.end(), is_done))
      ready.push_back(at);
  }
  std::shuffle(ready.begin(), ready.end(), random);
  for (const std::size_t chosen : ready) {
    if (!nodes[chosen].work()) continue;
    done[chosen] = true;
    return true;
  }
  return false;
}

double state::now() const {
  if (own_time >= 0) return own_time;
  const std::chrono::duration<double, std::nano> host =
      std::chrono::steady_clock::now().time_since_epoch();
  return host.count();
}

bool state::is_over(double end) {
  if (now() >= end) return true;
  next_end = std::min(next_end, end);
  return false;
}

bool state::skip() {
  next_end = std::numeric_limits<double>::infinity();
  if (run_one()) return true;
  if (own_time < 0 || std::isinf(next_end)) return false;
  own_time = next_end;
  return true;
}

double state::time_on(int device) const {
  if (own_time >= 0) return own_time;
  return device > 1 ? now() : device == 0 ? now() / 2 : now() * 2;
}

void state::run_some() {
  for (std::uint64_t left = random() % 12; left > 0 && run_one();) --left;
}

void state::drain(const char* why, int device) {
  while (run_one()) {
  }
  for (const auto& each : streams) {
    if (each->device != device || each->queue.empty()) continue;
    while (patient) std::this_thread::sleep_for(std::chrono::seconds(1));
    complaints.push_back(std::string(why) + " would wait without limit for " + text_of(each.get()));
  }
}

}  // namespace stretto::test::gpu
