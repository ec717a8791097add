#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

//! GPUs that exist in the host's memory only, for the CUDA runtime's functions that the executor
//! calls (runtime.cpp), linked in the place of the runtime. Every call is kept; streams are queues
//! that are worked off in a random order whenever somebody asks for an event or a stream, and only
//! as far as streams and events allow: where an event is missing, bits come out wrong. Functions
//! that wait, allocate behind a stream or call the host back are not there: who uses one does not
//! link.
namespace stretto::test::gpu {

struct call {
  const char* name = nullptr;
  std::string arguments{};
  bool operator==(const call&) const = default;
};
std::string to_text(const call& made);

//! What was made and not given back.
struct handles {
  int streams = 0;
  int events = 0;
  int allocations = 0;
  int graphs = 0;
  int captures = 0;  //!< under way
  bool operator==(const handles&) const = default;
};

//! What a kernel copies within a GPU.
struct copied {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

//! What a kernel does, on the host: it gets what the launch was given.
struct kernel {
  std::vector<std::size_t> parameters{};  //!< their sizes
  std::function<void(void* const* arguments)> run{};
  //! Nanoseconds that it lasts, where that matters.
  std::function<double(void* const* arguments)> lasts{};
  //! Whether it may run, where that is not at once.
  std::function<bool(void* const* arguments)> ready{};
  //! What it copies, where that is all: looked at and told as a copy of the runtime's is.
  std::function<copied(void* const* arguments)> copies{};
  //! What else it reads or writes, which its GPU must reach.
  std::function<std::vector<const void*>(void* const* arguments)> touches{};
};

//! Forgets everything, errors too, and starts anew. Nothing may be alive.
//! @param seed  of the order in which streams are worked off
//! @param peers  whether GPUs can reach one another's memory
void reset(std::uint64_t seed = 1, int devices = 1, bool peers = true);

//! From now on kernels and products last by a clock of the simulation's own, which goes on with
//! calls of the runtime and stands still otherwise, so that times are the same wherever it runs;
//! until the next reset. Calls are not kept.
void keep_own_time();

//! The newest CUDA that the driver serves, until the next reset: it is this runtime's else.
void set_driver(int version);

const std::vector<call>& calls();
handles alive();
//! The GPUs that the process has begun to use, knowingly or not: where a thread has chosen none,
//! most calls begin with GPU 0.
std::set<int> in_use();
//! What CUDA would have let pass, or waited for without limit, and nobody meant: such as a record
//! over one that is not over, a free while work is under way, or a question while a step is
//! recorded.
const std::vector<std::string>& complaints();
//! One of another library's.
void complain(std::string_view text);

//! The n-th call from now on, of any function or of the one named, fails with the code instead of
//! doing anything. Codes that are sticky stick.
void fail_call(int n, cudaError_t code, std::string_view function = {});
//! Whether it did.
bool has_failed();
//! What a kernel calls that touches what it may not: from now on every call fails with the code.
void fault(cudaError_t code);
//! The n-th kernel launched from now on never ends.
void hang_kernel(long n);
//! A stream takes so many pieces of work, records and waits that are not done; then the call that
//! brings one more waits until one is. They are 1024 until the next reset, which is what others
//! remember of real ones.
//! @param patience  when nothing has ended for so long, a call that waits complains and goes on
void limit_queues(std::size_t depth, std::chrono::nanoseconds patience = std::chrono::seconds(10));
//! Who asks for an event is answered so much later than it was looked for, until the next reset.
void answer_late(std::chrono::nanoseconds by);
//! Calls that give memory back really wait for all work on its GPU from now on, without limit as
//! CUDA does, in the place of a complaint; for programs, which somebody can end.
void wait_without_limit();
//! Kernels are known by the names of their functions (extern "C"), or by what is launched; they
//! stay known for ever.
void define(const char* name, kernel what);
void define(const void* function, kernel what);
//! And by others, whose names compilers make: every name with this part in it.
void define_part(const char* part, kernel what);

//! And some when the first is launched: by then all files have told what their functions are
//! called.
void define_later(std::function<void()> definitions);

//! Work of a test on a stream, in the place of a kernel.
void enqueue(cudaStream_t stream, std::string_view name, std::function<void()> work);
//! Work that takes so many nanoseconds, and does nothing.
void enqueue_for(cudaStream_t stream, std::string_view name, double nanoseconds);
//! Work that is not done until it says so.
void enqueue_until(cudaStream_t stream, std::string_view name, std::function<bool()> is_over);

}  // namespace stretto::test::gpu
