// What of a process's environment, and of what it asks of NCCL, cannot be: refused before any step.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <utility>

#include "executor/failures.hpp"
#include "nccl/run.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

using std::chrono::milliseconds;

//! A variable of this process, while it lives.
struct variable {
  variable(const char* of, const char* value) : name(of) { ::setenv(of, value, 1); }
  ~variable() { ::unsetenv(name); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  const char* name;
};

}  // namespace

TEST_CASE("settings that make no sense, and kernels that would fill a GPU, are refused") {
  const auto alone = executor::make_local_bootstraps(1);
  const auto refused = [&](const executor::nccl_settings& settings, const char* part) {
    expect_part(refusal_of([&] { executor::make_nccl_transport(*alone[0], settings); }), part);
  };
  refused({.message_blocks = 0}, "from 1 to 32 blocks");
  refused({.sum_blocks = 33}, "from 1 to 32 blocks");
  refused({.cluster = -1}, "clusters");
  refused({.opening = milliseconds(0)}, "deadlines");
  nccl_run full(3, layout::separate, {.message_blocks = 32, .sum_blocks = 8});
  expect_part(refusal_of([&] { full.start(); }),
              "rank 1: communication that waits may take 136 multiprocessors, and the GPU has 132");
  // Of 17 blocks NCCL makes 32 for messages, and 17 for sums.
  nccl_run rounded(3, layout::separate, {.message_blocks = 17, .sum_blocks = 8});
  expect_part(refusal_of([&] { rounded.start(); }), "may take 136 multiprocessors");
  // What NCCL takes from its environment instead counts.
  const variable most("NCCL_MAX_CTAS", "32");
  nccl_run more(3, layout::separate, {.message_blocks = 1, .sum_blocks = 1});
  expect_part(refusal_of([&] { more.start(); }),
              "may take 160 multiprocessors, and the GPU has 132; NCCL_MAX_CTAS=32 goes before "
              "nccl_settings");
  const variable less("NCCL_MAX_CTAS", "2");
  nccl_run fewer(3, layout::separate, {.message_blocks = 32, .sum_blocks = 8});
  CHECK_NOTHROW(fewer.start());
}

TEST_CASE("the least channels that NCCL is told to have count, whatever it was given at most") {
  const auto taken = [](std::initializer_list<std::pair<const char*, const char*>> given) {
    for (const auto& [name, value] : given) ::setenv(name, value, 1);
    nccl_run of(3, layout::separate, {.message_blocks = 4, .sum_blocks = 8});
    std::string text;
    try {
      of.start();
    } catch (const executor::plan_error& refused) {
      text = refused.what();
    }
    for (const auto& [name, value] : given) ::unsetenv(name);
    return text;
  };
  const std::string both =
      "rank 1: communication that waits may take 160 multiprocessors, and the "
      "GPU has 132; NCCL_MIN_NCHANNELS=32 goes before nccl_settings";
  // Messages alone, of which NCCL makes a power of two; sums have 8 as they were given.
  CHECK(taken({{"NCCL_MIN_P2P_NCHANNELS", "31"}}) ==
        "rank 1: communication that waits may take 136 multiprocessors, and the GPU has 132; "
        "NCCL_MIN_P2P_NCHANNELS=31 goes before nccl_settings");
  CHECK(taken({{"NCCL_MIN_NCHANNELS", "32"}}) == both);
  CHECK(taken({{"NCCL_MIN_NCHANNELS", "32"}, {"NCCL_MIN_NRINGS", "2"}}) == both);
  CHECK(taken({{"NCCL_MIN_NCHANNELS", "2"}, {"NCCL_MIN_NRINGS", "32"}}) == "");
  expect_part(taken({{"NCCL_MIN_NRINGS", "32"}}), "; NCCL_MIN_NRINGS=32 goes before");
  // To the most that it may have NCCL adds again what is the least; but this one it takes back.
  CHECK(taken({{"NCCL_MIN_NCHANNELS", "32"}, {"NCCL_MAX_CTAS", "2"}}) == both);
  CHECK(taken({{"NCCL_MIN_CTAS", "32"}}) == "");
}

TEST_CASE("ranks that share a GPU share its multiprocessors") {
  const auto start = [](int blocks) {
    nccl_run of(4, layout::separate, {.message_blocks = blocks});
    of.plans = pipeline_plans(4, 4, 7, layout::separate);  // whose neighbours alone exchange
    of.with.make_device = [](const plan_view& plan, executor::monitor& watch) {
      return executor::make_cuda_device(plan, {.device = plan.rank % 2}, watch);
    };
    of.start();
    for (int step = 0; step < 2; ++step) of.engine->step();
    CHECK(of.inner.sums() == expected_sums(4, 4, 7, 2));
    of.engine.reset();
    of.check_left();
  };
  CHECK_NOTHROW(start(16));
  expect_part(refusal_of([&] { start(32); }),
              "rank 2: communication that waits may take 192 multiprocessors, and the GPU has 132");
}

TEST_CASE(
    "an NCCL older than is needed, which the loader may find, is refused with both versions") {
  nccl_run of(2);
  nccl::be_version(22105);
  expect_part(refusal_of([&] { of.start(); }),
              "the NCCL that was loaded is 2.21.5, older than the 2.27.0 that the transport needs; "
              "it was built with 2.");
  of.check_left();
  nccl_run enough(2);
  nccl::be_version(22700);
  CHECK_NOTHROW(enough.start());
}

TEST_CASE("launches that may wait for a message's kernel are refused before the first step") {
  const auto start = [](bool loaded) {
    const auto alone = executor::make_local_bootstraps(1);
    nccl_run of(2);
    of.with.wire = executor::make_nccl_transport(*alone[0], {.kernels_loaded = loaded});
    of.start();
  };
  const auto is_refused = [&](bool loaded, const char* part) {
    expect_part(refusal_of([&] { start(loaded); }), part);
  };
  ::unsetenv("CUDA_MODULE_LOADING");
  is_refused(false, "CUDA_MODULE_LOADING=EAGER, which CUDA reads at its first call alone");
  CHECK_NOTHROW(start(true));
  ::setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  is_refused(false, "nccl_settings::kernels_loaded");
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  CHECK_NOTHROW(start(false));
  ::unsetenv("CUDA_MODULE_LOADING");
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  is_refused(true, "CUDA_LAUNCH_BLOCKING is set");
  ::setenv("CUDA_LAUNCH_BLOCKING", "0", 1);
  CHECK_NOTHROW(start(true));
  ::unsetenv("CUDA_LAUNCH_BLOCKING");
  ::setenv("NCCL_COMM_BLOCKING", "1", 1);
  is_refused(true, "NCCL_COMM_BLOCKING is set");
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  CHECK_NOTHROW(start(true));
  ::unsetenv("NCCL_COMM_BLOCKING");
  ::setenv("NCCL_COMM_ID", "host:1234", 1);
  is_refused(true, "NCCL_COMM_ID is set");
  ::unsetenv("NCCL_COMM_ID");
}

TEST_CASE("launches that wait for those of the process's other ranks are refused") {
  const auto start = [](const char* mode) {
    const variable set("NCCL_LAUNCH_MODE", mode);
    nccl_run(2).start();
  };
  expect_part(
      refusal_of([&] { start("group"); }),
      "NCCL_LAUNCH_MODE=GROUP is set, with which the launches of the 2 ranks of this process "
      "wait for one another");
  CHECK_NOTHROW(start("PARALLEL"));
  // One rank has no other.
  const variable set("NCCL_LAUNCH_MODE", "GROUP");
  nccl_run lone(1);
  lone.plans = pipeline_plans(1, 4, 7, layout::serial);
  CHECK_NOTHROW(lone.start());
}

TEST_CASE("the driver says how kernels are loaded, which has read that at the first call of CUDA") {
  const auto start = [](const char* before, const char* behind, bool answers) {
    const auto alone = executor::make_local_bootstraps(1);
    nccl_run of(2);
    of.with.wire = executor::make_nccl_transport(*alone[0]);
    ::setenv("CUDA_MODULE_LOADING", before, 1);
    CHECK(executor::cuda_device_count() == 2);
    ::setenv("CUDA_MODULE_LOADING", behind, 1);
    if (!answers) gpu::fail_call(1, cudaErrorNotSupported, "cudaGetDriverEntryPoint");
    of.start();
  };
  const auto is_refused = [&](const char* before, const char* behind, bool answers) {
    expect_part(refusal_of([&] { start(before, behind, answers); }), "at its first call alone");
  };
  CHECK_NOTHROW(start("EAGER", "LAZY", true));
  is_refused("LAZY", "EAGER", true);
  // Where it does not answer, the variable does; and no launch is taken for what failed.
  CHECK_NOTHROW(start("LAZY", "EAGER", false));
  CHECK(gpu::has_failed());
  CHECK(cudaGetLastError() == cudaSuccess);
  is_refused("EAGER", "LAZY", false);
  CHECK(gpu::has_failed());
  ::unsetenv("CUDA_MODULE_LOADING");
}
