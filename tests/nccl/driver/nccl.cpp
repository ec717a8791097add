// The functions of NCCL that the executor calls, on simulated GPUs.
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "cuda/driver/state.hpp"
#include "simulated_nccl.hpp"
#include "world.hpp"

namespace gpu = stretto::test::gpu;
namespace nccl = stretto::test::nccl;

struct ncclComm {
  std::shared_ptr<nccl::world> all{};
  nccl::made how{};
  bool gone = false;
  bool aborted = false;
  bool finalized = false;
  bool revoked = false;
  int busy = 0;               // so often it is in progress yet
  bool in_call = false;       // until somebody has seen the call's good end
  // For operations of these sizes: messages and sums, and gathers, which take other ways.
  std::set<int> connected[3]{};
  bool opened = false;        // what it was used for once is used again
  std::int64_t issued = 0;    // operations
  std::int64_t done = 0;
  // Of the capture that it is recorded into, and the last node there.
  int capture = 0, node = -1;
  cudaStream_t stream = nullptr;  // of the call in progress
  //! What the call's thread has not launched yet: its stream takes no more.
  std::deque<gpu::operation> waiting{};
};

namespace {

struct nccl_state {
  std::map<std::string, std::shared_ptr<nccl::world>> worlds{};
  std::string folder{};  // of those that processes share
  std::vector<std::unique_ptr<ncclComm>> comms{};
  std::vector<nccl::made> made{};
  std::map<std::string, ncclResult_t> failing{};
  std::map<std::string, bool> stalled{};  // calls, too
  int ids = 0;
  std::map<ncclComm_t, const void*> registered{};  // arenas
  std::set<void*> own{};  // memory
  int aborted = 0;
  int aborting_groups = 0;
  int revoked = 0;
  int revoking_groups = 0;
  int version = NCCL_VERSION_CODE;
  int countdown = -1;
  ncclResult_t code = ncclSuccess;
  std::string only{};
  bool hit = false;
};

//! A thread's own.
struct group {
  int depth = 0;
  ncclResult_t failed = ncclSuccess;  // of a call in it, which then does nothing at its end
  bool aborts = false;
  bool revokes = false;
  std::set<ncclComm*> asked{};
  std::map<std::pair<ncclComm*, cudaStream_t>, std::vector<std::function<bool()>>> calls{};
};
thread_local group grouped;

nccl_state& mine() {
  static nccl_state only;
  return only;
}

ncclResult_t enter(const char* name, const std::string& arguments) {
  nccl_state& my = mine();
  gpu::here().note(name, arguments);
  if (my.countdown > 0 && (my.only.empty() || my.only == name) && --my.countdown == 0) {
    my.hit = true;
    my.countdown = -1;
    if (grouped.depth > 0) grouped.failed = my.code;
    return my.code;
  }
  return ncclSuccess;
}

#define LOOK_AT(memory) \
  if (const ncclResult_t wrong = look_at(*comm, memory, stream)) return wrong
#define ENTER(arguments)                    \
  const gpu::guard lock(gpu::here().mutex); \
  if (const ncclResult_t code = enter(__func__, arguments)) return code

//! As far as its stream takes it.
void launch(ncclComm& comm) {
  while (!comm.waiting.empty() && gpu::here().has_room(*comm.stream)) {
    gpu::here().append(comm.stream, std::move(comm.waiting.front()));
    comm.waiting.pop_front();
  }
}

//! Nobody waits for the call any more, or it is done.
void end_call(ncclComm& comm) {
  comm.in_call = false;
  if (comm.stream != nullptr) comm.stream->taken.clear();
  comm.stream = nullptr;
}

//! Every call outside of a group, and every end of one, is done by a thread.
ncclResult_t in_progress(ncclComm& comm) {
  if (comm.how.blocking != 0) return ncclSuccess;
  if (grouped.depth > 0) {
    grouped.asked.insert(&comm);
    return ncclSuccess;
  }
  if (comm.in_call && !comm.revoked)
    gpu::here().complaints.push_back(comm.how.name + " gets a call while one is in progress");
  comm.busy = 1 + static_cast<int>(gpu::here().random() % 3);
  comm.in_call = true;
  if (comm.stream != nullptr) comm.stream->taken = comm.how.name;
  return ncclInProgress;
}

//! What the communicator reports of a peer; success: nothing.
ncclResult_t failure_of(const ncclComm& comm) {
  const auto found = mine().failing.find(comm.how.name);
  return found == mine().failing.end() ? ncclSuccess : found->second;
}

std::atomic<bool> destroyed_held = false;

//! Who ends a communicator makes its GPU current, and what was as good as chosen before again.
void come_back() {
  gpu::here().in_use.insert(gpu::current);
}

bool is_stuck(const ncclComm& comm) {
  return mine().stalled.count(comm.how.name) != 0 || mine().failing.count(comm.how.name) != 0;
}

//! In a graph, too, what a communicator has is done in the order of the calls.
void record(ncclComm& comm, cudaStream_t stream, std::function<bool()> work) {
  comm.stream = stream;
  if (std::exchange(comm.capture, stream->capture) == stream->capture)
    stream->tail.insert(comm.node);
  gpu::capture& into = gpu::here().recorded.at(stream->capture);
  into.held.insert(&comm);
  gpu::here().append(stream, {gpu::operation::kind::kernel,
                              [&comm, work = std::move(work)]() mutable {
                                return comm.aborted || (!is_stuck(comm) && work());
                              },
                              nullptr, 0});
  comm.node = static_cast<int>(into.nodes.size()) - 1;
}

//! By a graph.
bool is_held(const ncclComm& comm) {
  for (const auto& each : gpu::here().executables)
    if (each->held.count(&comm) > 0) return true;
  return false;
}

//! NCCL would wait.
void look_for_graphs(const ncclComm& ended) {
  if (is_held(ended))
    gpu::here().complaints.push_back(ended.how.name + " is ended while a graph holds it");
}

//! In the communicator's order, whatever the stream.
void enqueue(ncclComm& comm, cudaStream_t stream, std::function<bool()> work) {
  const std::int64_t number = comm.issued++;
  comm.waiting.push_back({gpu::operation::kind::kernel,
                          [&comm, number, work = std::move(work)] {
                            if (comm.aborted) return true;
                            if (comm.done != number || is_stuck(comm) || !work()) return false;
                            ++comm.done;
                            return true;
                          },
                          nullptr, 0});
  comm.stream = stream;
  if (comm.how.blocking != 0) gpu::here().make_room(*stream);
  launch(comm);
}

ncclResult_t push(ncclComm& comm, cudaStream_t stream, std::function<bool()> work) {
  if (comm.gone || comm.revoked) {
    gpu::here().complaints.push_back(comm.how.name + " is used when it is gone");
    return ncclInvalidUsage;
  }
  if (!stream->taken.empty())
    gpu::here().complaints.push_back(comm.how.name + " gets a stream that a call on " +
                                     stream->taken + " has not done with");
  if (grouped.depth > 0)
    grouped.calls[{&comm, stream}].push_back(std::move(work));
  else if (gpu::here().is_captured(*stream))
    record(comm, stream, std::move(work));
  else
    enqueue(comm, stream, std::move(work));
  return in_progress(comm);
}

//! Freeing and allocating wait for the GPU.
void look_for_others(const ncclComm& one, const char* what) {
  for (const auto& each : mine().comms)
    if (!each->gone && !each->aborted && each->how.device == one.how.device &&
        each->issued > each->done)
      gpu::here().complaints.push_back(one.how.name + ' ' + what + " while " + each->how.name +
                                       " has a kernel that waits");
}

//! What operations of a size take is connected at the first of them, which allocates and meets the
//! other ranks' hosts. Messages of all sizes take the same, sums of different ones not.
enum class takes { others, gathers, scatters };
void connect(ncclComm& comm, int size, takes what = takes::others) {
  if (!comm.connected[static_cast<int>(what)].insert(size).second) {
    comm.opened = true;
    return;
  }
  if (comm.opened)
    gpu::here().complaints.push_back(comm.how.name + " connects once more, for another size");
  look_for_others(comm, "connects");
}

//! A message. Of registered memory the other side is told with the first that does not go by the
//! protocol for small ones, which takes what all take, and more.
void connect_message(ncclComm& comm, std::size_t bytes) {
  constexpr std::size_t most_of_small = 16384;  // NCCL_P2P_LL_THRESHOLD
  constexpr int large = -1;
  if (mine().registered.count(&comm) == 0 || bytes <= most_of_small) {
    connect(comm, 0);
    return;
  }
  connect(comm, large);
  comm.connected[static_cast<int>(takes::others)].insert(0);
}

//! What it is given must be its GPU's: the stream that it launches on, and memory that it reaches.
ncclResult_t look_at(const ncclComm& comm, const void* memory, cudaStream_t stream) {
  if (stream->device != comm.how.device) return ncclUnhandledCudaError;
  const int of = gpu::gpu_of_memory(memory);
  if (of != comm.how.device)
    gpu::here().complaints.push_back(comm.how.name + " on GPU " + std::to_string(comm.how.device) +
                                     " is given memory of " +
                                     (of < 0 ? "the host" : "GPU " + std::to_string(of)));
  return ncclSuccess;
}

std::string text_of(const ncclComm& comm, std::size_t count, cudaStream_t stream) {
  return comm.how.name + ", " + std::to_string(count) + ", " + gpu::text_of(stream);
}

}  // namespace

namespace stretto::test::nccl {

void reset() {
  mine() = {};
  grouped = {};
}
const std::vector<made>& communicators() {
  return mine().made;
}
int open_groups() {
  return grouped.depth;
}
int alive() {
  int count = 0;
  for (const auto& each : mine().comms) count += each->gone ? 0 : 1;
  return count;
}
int registered() {
  return static_cast<int>(mine().registered.size());
}
int aborted() {
  return mine().aborted;
}
int aborting_groups() {
  return mine().aborting_groups;
}
int revoked() {
  return mine().revoked;
}
int revoking_groups() {
  return mine().revoking_groups;
}
void be_version(int code) {
  mine().version = code;
}
void fail_call(int n, ncclResult_t code, std::string_view function) {
  const gpu::guard lock(gpu::here().mutex);
  mine().countdown = n;
  mine().code = code;
  mine().only = function;
  mine().hit = false;
}
bool has_failed() {
  return mine().hit;
}
void fail_async(const std::string& name, ncclResult_t code) {
  const gpu::guard lock(gpu::here().mutex);
  mine().failing[name] = code;
}
void share_between_processes(const std::string& folder) {
  mine().folder = folder;
}
void complain_of_sizes() {
  gpu::here().complaints.push_back("sizes differ, and NCCL would not say so");
}
void hold_destroyed(bool holds) {
  destroyed_held = holds;
}
void stall(const std::string& name, bool calls) {
  const gpu::guard lock(gpu::here().mutex);
  mine().stalled[name] = calls;
}

}  // namespace stretto::test::nccl

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = mine().version;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t code) {
  return code == ncclRemoteError ? "a remote process has gone" : "some NCCL error";
}
const char* ncclGetLastError(ncclComm_t) {
  return "what NCCL says of it";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  ENTER("");
  *id = {};
  const std::string& folder = mine().folder;
  const std::string number = std::to_string(mine().ids++);
  const std::string text =
      folder.empty() ? "id " + number : folder + '/' + std::to_string(getpid()) + '-' + number;
  if (text.size() >= sizeof id->internal) return ncclInternalError;
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const char* const name = config->commName == nullptr ? "nameless" : config->commName;
  ENTER(std::string(name) + ", rank " + std::to_string(rank));
  nccl_state& my = mine();
  auto& all = my.worlds[id.internal];
  if (!all)
    all = id.internal[0] == '/' ? nccl::make_file_world(id.internal) : nccl::make_local_world();
  if (!all->join(rank, gpu::current)) return ncclInvalidUsage;  // "Duplicate GPU"
  my.comms.push_back(std::make_unique<ncclComm>());
  ncclComm& made = *my.comms.back();
  made.all = all;
  made.how = {name,
              size,
              rank,
              gpu::current,
              config->blocking,
              config->maxCTAs,
              config->cgaClusterSize,
              config->splitShare};
  my.made.push_back(made.how);
  *comm = &made;
  return in_progress(made);
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  ENTER(comm->how.name);
  *device = comm->how.device;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  ENTER(comm->how.name);
  *state = failure_of(*comm);
  if (*state != ncclSuccess) return ncclSuccess;
  const auto stalled = mine().stalled.find(comm->how.name);
  const bool stuck = stalled != mine().stalled.end() && stalled->second;
  if (comm->busy > 0 && !stuck) --comm->busy;
  if (!comm->waiting.empty()) {
    gpu::here().run_some();
    launch(*comm);
  }
  // Everyone must have come, or nobody is waited for any more.
  const bool ready = comm->busy == 0 && comm->waiting.empty() &&
                     (comm->revoked || comm->all->ranks() == comm->how.size);
  *state = ready && !stuck ? ncclSuccess : ncclInProgress;
  if (*state == ncclSuccess) end_call(*comm);
  // Revoked is what was under way; what a replay has of it later is not.
  if (*state == ncclSuccess && comm->revoked && is_held(*comm)) comm->aborted = false;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ENTER("");
  ++grouped.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  const gpu::guard lock(gpu::here().mutex);
  const ncclResult_t refused = enter(__func__, "");
  nccl_state& my = mine();
  if (grouped.depth == 0) return ncclInvalidUsage;
  if (--grouped.depth > 0) return refused;
  ncclResult_t code = std::exchange(grouped.failed, ncclSuccess);
  if (code != ncclSuccess) {
    grouped.calls.clear();
    grouped.asked.clear();
  }
  for (auto& [where, calls] : grouped.calls) {
    // All at once: none waits for another.
    const auto all_are_over = [left = std::move(calls)]() mutable {
      std::erase_if(left, [](const std::function<bool()>& each) { return each(); });
      return left.empty();
    };
    if (gpu::here().is_captured(*where.second))
      record(*where.first, where.second, all_are_over);
    else
      enqueue(*where.first, where.second, all_are_over);
  }
  grouped.calls.clear();
  for (ncclComm* const each : std::exchange(grouped.asked, {})) code = in_progress(*each);
  if (std::exchange(grouped.aborts, false)) ++my.aborting_groups;
  if (std::exchange(grouped.revokes, false)) ++my.revoking_groups;
  return code;
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  ENTER(text_of(*comm, count, stream));
  if (peer < 0 || peer >= comm->how.size) return ncclInvalidArgument;
  LOOK_AT(from);
  connect_message(*comm, count);
  return push(*comm, stream, comm->all->send(comm->how.rank, peer, from, count));
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  ENTER(text_of(*comm, count, stream));
  if (peer < 0 || peer >= comm->how.size) return ncclInvalidArgument;
  LOOK_AT(to);
  connect_message(*comm, count);
  const auto take = comm->all->receive(peer, comm->how.rank, to, count);
  if (gpu::here().own_time < 0) return push(*comm, stream, take);
  // As over a link of 100 GB/s.
  const double time = static_cast<double>(count) / 100;
  return push(*comm, stream, [take, time, end = 0.0]() mutable {
    if (end == 0) {
      if (!take()) return false;
      end = gpu::here().now() + time;
    }
    return gpu::here().is_over(end);
  });
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  ENTER(text_of(*comm, count, stream));
  if (from != to) return ncclInvalidArgument;
  LOOK_AT(to);
  connect(*comm, 1 + static_cast<int>(std::bit_width(count)));
  return push(*comm, stream,
              comm->all->all_reduce(comm->how.rank, comm->how.size, to, count, type));
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  ENTER(text_of(*comm, count, stream));
  // In place, as the library has it.
  const std::size_t bytes = count * (type == ncclDouble ? sizeof(double) : sizeof(float));
  char* const all = static_cast<char*>(to) - static_cast<std::size_t>(comm->how.rank) * bytes;
  if (from != all) return ncclInvalidArgument;
  LOOK_AT(to);
  connect(*comm, 1 + static_cast<int>(std::bit_width(count)), takes::scatters);
  return push(*comm, stream,
              comm->all->reduce_scatter(comm->how.rank, comm->how.size, all, count, type));
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t,
                           ncclComm_t comm, cudaStream_t stream) {
  ENTER(text_of(*comm, count, stream));
  // In place, as the library has it.
  if (from != static_cast<char*>(to) + static_cast<std::size_t>(comm->how.rank) * count)
    return ncclInvalidArgument;
  LOOK_AT(to);
  connect(*comm, 1 + static_cast<int>(std::bit_width(count)), takes::gathers);
  return push(*comm, stream, comm->all->all_gather(comm->how.rank, comm->how.size, to, count));
}
ncclResult_t ncclMemAlloc(void** to, std::size_t bytes) {
  ENTER(std::to_string(bytes));
  if (cudaMalloc(to, bytes) != cudaSuccess) return ncclUnhandledCudaError;
  mine().own.insert(*to);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void* memory) {
  const ncclResult_t code = enter(__func__, "");
  for (const auto& [comm, registered] : mine().registered)
    if (registered == memory)
      gpu::here().complaints.push_back(comm->how.name +
                                       " has memory registered that is given back");
  mine().own.erase(memory);
  return cudaFree(memory) == cudaSuccess ? code : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, std::size_t, void** handle) {
  ENTER(comm->how.name);
  nccl_state& my = mine();
  if (my.own.count(memory) == 0) return ncclInvalidUsage;
  if (gpu::gpu_of_memory(memory) != comm->how.device) return ncclUnhandledCudaError;
  *handle = comm;
  my.registered[comm] = memory;
  return in_progress(*comm);
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  ENTER(comm->how.name);
  if (handle != comm || comm->gone) return ncclInvalidUsage;
  mine().registered.erase(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  ENTER(comm->how.name);
  if (comm->revoked) return ncclInvalidUsage;
  look_for_graphs(*comm);
  comm->finalized = true;
  return in_progress(*comm);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  while (destroyed_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ENTER(comm->how.name);
  if (comm->busy > 0)
    gpu::here().complaints.push_back(comm->how.name + " is destroyed while a call is in progress");
  look_for_others(*comm, "is freed");
  look_for_graphs(*comm);
  come_back();
  comm->gone = true;
  mine().registered.erase(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  ENTER(comm->how.name);
  if (flags != NCCL_REVOKE_DEFAULT || comm->finalized || comm->revoked || comm->gone)
    return ncclInvalidArgument;
  if (comm->in_call)
    gpu::here().complaints.push_back(comm->how.name +
                                     " is revoked while a call is in progress or has failed");
  comm->aborted = comm->revoked = true;
  ++mine().revoked;
  grouped.revokes = grouped.depth > 0;
  const ncclResult_t code = in_progress(*comm);
  return grouped.depth > 0 ? failure_of(*comm) : code;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const gpu::guard lock(gpu::here().mutex);
  // Else it waits for graphs.
  if (comm->revoked) look_for_graphs(*comm);
  come_back();
  comm->gone = comm->aborted = true;
  mine().registered.erase(comm);
  comm->waiting.clear();
  end_call(*comm);
  if (grouped.depth == 0)
    look_for_others(*comm, "is freed");  // in groups all stop before any is freed
  ++mine().aborted;
  grouped.aborts = grouped.depth > 0;
  return enter(__func__, comm->how.name);
}

}  // extern "C"
