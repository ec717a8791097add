// A step allocates nothing and takes no mutex.
#include <doctest/doctest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "pipeline.hpp"
#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/engine.hpp"
#include "support/sanitized.hpp"

// Sanitizers have their own malloc, which tells of what is taken, and mutexes, which are not
// counted.
#if defined(STRETTO_TEST_SANITIZED)
// As in their allocator_interface.h, which gcc comes without.
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*taken)(const volatile void* memory, std::size_t bytes),
    void (*given_back)(const volatile void* memory));
#elif defined(__GLIBC__)
#define STRETTO_TEST_HOOKS
#include <dlfcn.h>
#endif

namespace {

std::atomic<long> allocations{0};
std::atomic<long> locks{0};

#if defined(STRETTO_TEST_SANITIZED)

const int hooked = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { ++allocations; }, [](const volatile void*) {});

}  // namespace

#else

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Inlined, gcc takes std::free in operator delete for a mistake.
#define NOINLINE [[gnu::noinline]]

NOINLINE void* operator new(std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t));
}
NOINLINE void* operator new[](std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t));
}
NOINLINE void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
NOINLINE void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
NOINLINE void operator delete(void* memory) noexcept {
  std::free(memory);
}
NOINLINE void operator delete[](void* memory) noexcept {
  std::free(memory);
}
NOINLINE void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
NOINLINE void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
NOINLINE void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
NOINLINE void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
NOINLINE void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
NOINLINE void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

#endif

#if defined(STRETTO_TEST_HOOKS)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);

void* malloc(std::size_t bytes) noexcept {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  ++allocations;
  return __libc_realloc(memory, bytes);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using function = int (*)(pthread_mutex_t*);
  static const auto original = reinterpret_cast<function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++locks;
  return original(mutex);
}
}
#endif

using namespace stretto;
using namespace stretto::test;

TEST_CASE("the counters count") {
#if defined(STRETTO_TEST_SANITIZED)
  REQUIRE(hooked != 0);
#endif
  const long before = allocations;
  ::operator delete(::operator new(1));
  CHECK(allocations > before);
#if defined(STRETTO_TEST_HOOKS)
  const long between = allocations;
  // Called through a pointer that the compiler does not see through.
  void* (*volatile take)(std::size_t) = std::malloc;
  std::free(take(1));
  CHECK(allocations == between + 1);
  const long unlocked = locks;
  std::mutex mutex;
  { const std::lock_guard<std::mutex> hold(mutex); }
  CHECK(locks == unlocked + 1);
#endif
}

namespace {

//! Threads of the process that bear its own name still: those of the executor give themselves
//! others as they begin.
int unnamed_threads() {
  const auto name_of = [](const std::filesystem::path& task) {
    std::ifstream file(task / "comm");
    std::string name;
    std::getline(file, name);
    return name;
  };
  const std::string own = name_of("/proc/self");
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    count += name_of(task.path()) == own ? 1 : 0;
  return count;
}

// This one, and what ThreadSanitizer starts with the first that somebody else does.
const int others = [] {
  std::thread([] { pthread_setname_np(pthread_self(), "first"); }).join();
  return unnamed_threads();
}();

//! Waits until all threads of the executor have begun: some that have nothing to do in a plan may
//! begin late, and sanitizers take memory as a thread begins.
void wait_for_threads() {
  while (unnamed_threads() > others) std::this_thread::yield();
}

}  // namespace

TEST_CASE("no allocation and no mutex from the second step on") {
  for (const executor::issuing issue :
       {executor::issuing::caller, executor::issuing::thread_per_rank})
    for (const int capacity : {0, 2})
      for (const int trace_steps : {0, 3}) {
        const bool checked = trace_steps > 0 && issue == executor::issuing::caller;
        CAPTURE(capacity);
        CAPTURE(trace_steps);
        std::vector<plan_builder> plans = pipeline_plans(4, 6, 16, layout::separate);
        for (plan_builder& each : plans) each.release_all();
        sample_stages stages(4);
        executor::options with;
        with.issue = issue;
        with.capacity = capacity;
        with.trace_steps = trace_steps;
        with.poison = true;
        with.checked = checked;
        executor::engine engine(views(plans), stages.pointers, std::move(with));
        engine.step();
        wait_for_threads();
        const long allocated = allocations;
        const long locked = locks;
        for (int step = 0; step < 100; ++step) engine.step();
        CHECK(allocations == allocated);
        CHECK(locks == locked);
      }
}

TEST_CASE("nor with collectives, callbacks and queues of little depth") {
  std::vector<plan_builder> plans;
  for (int r = 0; r < 3; ++r) {
    plan_builder plan(r, 3, {"compute", "collective"});
    plan.add_group({0, 1, 2}, 1000, true);
    const int where = plan.add_buffer(buffer_role::collective, 0, 0, 8000);
    const int ready = plan.run({r, 0, 0, job_kind::reduce_grad}, 0,
                               {{where, buffer_role::collective, access::write}});
    const int done = plan.all_reduce(0, 1, where, {ready});
    plan.run({r, 0, 0, job_kind::optimizer}, 0, {{where, buffer_role::collective, access::read}},
             {done});
    plans.push_back(plan.end());
  }
  std::atomic<double> total{0};
  executor::job_callbacks callbacks;
  callbacks.reduce_grad = [](const executor::context& at) {
    for (double& each : at.view<double>(buffer_role::collective)) each = at.rank + 1;
  };
  callbacks.optimizer = [&](const executor::context& at) {
    total = at.view<double>(buffer_role::collective, 0).back();
  };
  executor::callback_stage stage(callbacks);
  executor::stage* const stages[] = {&stage, &stage, &stage};
  executor::options with;
  with.issue = executor::issuing::thread_per_rank;
  with.host.queue_depth = 1;
  executor::engine engine(views(plans), stages, std::move(with));
  engine.step();
  wait_for_threads();
  const long allocated = allocations;
  const long locked = locks;
  for (int step = 0; step < 100; ++step) engine.step();
  CHECK(allocations == allocated);
  CHECK(locks == locked);
  CHECK(total == 6);
}
