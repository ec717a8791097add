#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "simulated_gpu.hpp"

namespace stretto::test::gpu {

struct graph_node {
  std::function<bool()> work{};
  std::set<int> after{};
};
//! A launch of a graph, under way.
struct graph_run {
  std::vector<graph_node> nodes;
  std::vector<bool> done;
  bool advance(std::mt19937_64& random);
  bool is_over() const { return std::find(done.begin(), done.end(), false) == done.end(); }
};

struct operation {
  //! Transfers are all work but kernels.
  enum class kind { kernel, transfer, record, wait, graph };
  kind what = kind::kernel;
  std::function<bool()> work{};  // whether it is over
  CUevent_st* event = nullptr;
  std::uint64_t version = 0;
  std::shared_ptr<graph_run> run{};
};

struct allocation {
  struct release {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{256}); }
  };
  std::unique_ptr<std::byte, release> bytes;
  std::size_t size = 0;
  bool pinned = false;
  int device = 0;  // current at its making
};

}  // namespace stretto::test::gpu

// What the runtime's handles point to.
struct CUstream_st {
  int number = 0;
  int device = 0;
  bool destroyed = false;
  std::uint64_t weight = 1;  // how often it is its turn, beside others
  std::deque<stretto::test::gpu::operation> queue{};
  std::string taken{};        // by a call of NCCL's that is in progress, on this communicator
  int capture = 0;            // into which it is recorded
  std::set<int> tail{};       // the nodes that come before the next one
  bool behind_start = false;  // which waits for some kernel's start, not its end
};
struct CUevent_st {
  int number = 0;
  int device = 0;
  bool timing = false;
  bool destroyed = false;
  std::uint64_t recorded = 0;  // how often, by the host
  std::uint64_t done = 0;      // the last of these that was reached
  double time = 0;             // nanoseconds
  int capture = 0;             // in which it was recorded last
  std::set<int> tail{};
  bool of_start = false;
};
//! `held`: whatever the nodes use that must outlive them.
struct CUgraph_st {
  std::vector<stretto::test::gpu::graph_node> nodes{};
  std::set<const void*> held{};
};
struct CUgraphExec_st {
  std::vector<stretto::test::gpu::graph_node> nodes{};
  std::set<const void*> held{};
};

namespace stretto::test::gpu {

using guard = std::lock_guard<std::recursive_mutex>;

//! A capture under way.
struct capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode{};
  std::thread::id by{};
  bool invalid = false;
  std::vector<graph_node> nodes{};
  std::set<const void*> held{};
};

struct state {
  std::recursive_mutex mutex;
  std::vector<call> calls;
  std::vector<std::string> complaints;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::vector<std::unique_ptr<CUevent_st>> events;
  std::vector<allocation> memory;
  std::map<std::string, kernel> kernels, kernel_parts;
  std::map<const void*, std::string> functions;  // as registered by the kernels' files
  std::vector<std::function<void()>> later;      // define more
  handles alive;
  bool peers = true;                      // whether GPUs can reach one another's memory
  std::set<std::pair<int, int>> reached;  // and do
  std::set<int> in_use;                   // GPUs
  int captures = 0;
  std::map<int, capture> recorded;  // by number, those under way
  std::vector<std::unique_ptr<CUgraph_st>> graphs;
  std::vector<std::unique_ptr<CUgraphExec_st>> executables;
  std::mt19937_64 random{1};
  int devices = 1;
  int driver = CUDART_VERSION;
  // Whether kernels are loaded before their launch; none: there was no call yet.
  std::optional<bool> loads_early{};
  cudaError_t sticky = cudaSuccess;
  double own_time = -1;  // negative: the host's counts
  double next_end = 0;   // of what was found to last
  int countdown = -1;
  cudaError_t code = cudaSuccess;
  std::string only;
  bool hit = false;
  long until_hang = 0;  // kernels; 0: none hangs
  std::size_t depth = 0;
  std::chrono::nanoseconds room_patience{};
  std::chrono::nanoseconds lateness{};  // of answers
  bool patient = false;

  //! Null: it is not defined.
  const kernel* find_kernel(const std::string& name);
  //! Of a call.
  void note(const char* name, std::string arguments);
  //! At the first call: reads what the driver reads once.
  void begin();
  //! Notes the call. @return what it is to fail with
  cudaError_t enter(const char* name, std::string arguments);
  //! Of a call that asks, allocates or frees: what it fails with where a capture forbids it.
  cudaError_t forbid(const char* name);
  //! Whether work of the one GPU reaches the other's memory, or the other way round.
  bool reaches(int one, int other) const {
    return one == other || reached.count({one, other}) > 0 || reached.count({other, one}) > 0;
  }
  bool is_captured(const CUstream_st& stream) const { return recorded.count(stream.capture) > 0; }
  //! Of a copy on the stream: a graph finds what it is from when it runs.
  void look_at_source(const char* name, const void* from, const CUstream_st& stream);
  //! As a call of the runtime, which waits for room in the stream's queue.
  cudaError_t push(cudaStream_t stream, operation what);
  //! At once; into the graph that is recorded from the stream, if one is.
  cudaError_t append(cudaStream_t stream, operation what);
  bool has_room(const CUstream_st& stream) const { return stream.queue.size() < depth; }
  //! Until there is. What waits for the caller itself does so for ever: that is a complaint.
  void make_room(const CUstream_st& stream);
  bool may_run(const CUstream_st& stream) const;
  std::size_t choose(const std::vector<CUstream_st*>& ready);
  bool run_one();
  //! Nanoseconds of the host's clock, or of the simulation's.
  double now() const;
  //! Whether what lasts until then is over; else somebody may go on to that time.
  bool is_over(double end);
  //! Nothing else can run: goes on to when something ends. @return whether anything does
  bool skip();
  //! Nanoseconds of a clock of its own: the first GPU's is slower than the host's, the second one's
  //! quicker.
  double time_on(int device) const;
  void run_some();
  void drain(const char* why, int device);
};
state& here();
// Each thread's own.
inline thread_local cudaError_t last_error = cudaSuccess;
inline thread_local int current = 0;  // GPU
inline thread_local cudaLaunchConfig_t pushed{};

std::string text_of(cudaStream_t stream);
std::string text_of(cudaEvent_t event);
std::string text_of(const void* address);
//! Whose memory it is; negative: the host's.
int gpu_of_memory(const void* address);

}  // namespace stretto::test::gpu
