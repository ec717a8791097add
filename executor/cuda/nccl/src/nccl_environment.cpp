#include "nccl_environment.hpp"

#include <cuda.h>
#include <nccl.h>
#include <strings.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "stretto/executor/cuda/driver_function.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::executor {
namespace {

//! Whether kernels are loaded before they are launched. The driver reads the variable once, when
//! the process begins with CUDA: what was set later says nothing, so that it stands for the driver
//! only where that does not answer.
bool loads_early() {
  CUmoduleLoadingMode mode{};
  if (const auto mode_of =
          cuda::driver_function<decltype(cuModuleGetLoadingMode)>("cuModuleGetLoadingMode", 11070);
      mode_of != nullptr && mode_of(&mode) == CUDA_SUCCESS)
    return mode == CU_MODULE_EAGER_LOADING;
  const char* const wanted = std::getenv("CUDA_MODULE_LOADING");
  return wanted != nullptr && std::strcmp(wanted, "EAGER") == 0;
}

std::string version_text(int code) {
  return std::to_string(code / 10000) + '.' + std::to_string(code / 100 % 100) + '.' +
         std::to_string(code % 100);
}

bool is_on(const char* name) {
  const char* const set = std::getenv(name);
  return set != nullptr && std::strcmp(set, "0") != 0;
}

//! 0: it is not set, or to nothing that counts.
int number(const char* name) {
  const char* const set = std::getenv(name);
  return set == nullptr ? 0 : std::max(std::atoi(set), 0);
}

//! NCCL 2.28.9: NCCL_MAX_CTAS goes before what a communicator was made with, and to the least
//! number of channels channels are added again, whatever was the most. NCCL_MIN_CTAS raises
//! nothing.
block_count blocks_of(int asked) {
  block_count made{asked, {}};
  const auto take = [&made](const char* name, int blocks) {
    if (blocks > 0) made = {blocks, std::string(name) + '=' + std::to_string(blocks)};
  };
  take("NCCL_MAX_CTAS", number("NCCL_MAX_CTAS"));
  // The older name, where the newer is not set.
  const char* const least =
      std::getenv("NCCL_MIN_NCHANNELS") != nullptr ? "NCCL_MIN_NCHANNELS" : "NCCL_MIN_NRINGS";
  if (number(least) > made.blocks) take(least, number(least));
  return made;
}

}  // namespace

std::string nccl_version() {
  int version = 0;
  ncclGetVersion(&version);
  // Several may lie about, and whichever the loader finds first is taken.
  constexpr int oldest = 22700;
  if (version < oldest)
    throw plan_error(
        "the NCCL that was loaded is " + version_text(version) + ", older than the " +
        version_text(oldest) + " that the transport needs; it was built with " +
        version_text(NCCL_VERSION_CODE) +
        ": LD_LIBRARY_PATH, or what else the program is linked with, leads to another");
  return version_text(version);
}

block_count blocks_of_message(int asked) {
  block_count made = blocks_of(asked);
  constexpr const char* least = "NCCL_MIN_P2P_NCHANNELS";
  if (const int blocks = number(least); blocks > made.blocks)
    made = {blocks, std::string(least) + '=' + std::to_string(blocks)};
  // Of as many NCCL makes the next power of two; sums get what they are given.
  made.blocks = static_cast<int>(std::bit_ceil(static_cast<unsigned>(made.blocks)));
  return made;
}

block_count blocks_of_sum(int asked) {
  return blocks_of(asked);
}

//! Launches that wait for others may wait for a kernel that waits for what they would launch.
void check_environment(bool kernels_loaded, int ranks) {
  if (is_on("CUDA_LAUNCH_BLOCKING"))
    throw plan_error("CUDA_LAUNCH_BLOCKING is set, and NCCL's kernels wait for one another");
  // They go before what a communicator is made with.
  if (is_on("NCCL_COMM_BLOCKING"))
    throw plan_error("NCCL_COMM_BLOCKING is set, and only calls that do not block can be ended");
  if (std::getenv("NCCL_COMM_ID") != nullptr)
    throw plan_error("NCCL_COMM_ID is set, and each of the communicators has an id of its own");
  // Each launch then waits until every rank of the communicator that is in this process has come to
  // its own, which the one thread that issues would only call next.
  if (const char* const mode = std::getenv("NCCL_LAUNCH_MODE");
      ranks > 1 && mode != nullptr && strcasecmp(mode, "GROUP") == 0)
    throw plan_error("NCCL_LAUNCH_MODE=GROUP is set, with which the launches of the " +
                     std::to_string(ranks) +
                     " ranks of this process wait for one another: one thread issues them one by "
                     "one");
  if (kernels_loaded || loads_early()) return;
  throw plan_error(
      "a kernel that is loaded at its first launch may wait for NCCL's, which wait for other "
      "ranks: start the process with CUDA_MODULE_LOADING=EAGER, which CUDA reads at its first "
      "call alone, or let every kernel of the stages run once and say so "
      "(nccl_settings::kernels_loaded)");
}

}  // namespace stretto::executor
