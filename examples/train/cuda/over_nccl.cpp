#include "cuda/over_nccl.hpp"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "cuda/on_gpu.hpp"
#include "cuda/warm_up.hpp"
#include "pipeline/share.hpp"
#include "pipeline/stage_ops.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/nccl_transport.hpp"

namespace train::cuda {

namespace executor = stretto::executor;

namespace {

//! What makes a machine's GPUs its own, as NCCL sees it: two processes that share none of it may
//! have the same bus numbers.
std::string machine() {
  if (const char* const told = std::getenv("NCCL_HOSTID")) return told;
  std::array<char, 256> name{};
  static_cast<void>(gethostname(name.data(), name.size() - 1));
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return name.data() + (' ' + boot);
}

std::string bus_of(int device) {
  std::array<char, 32> text{};
  executor::cuda::check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device),
                        "cudaDeviceGetPCIBusId");
  return text.data();
}

//! @return what is wrong; empty: nothing
std::string choose(const pipeline_settings& to, int local, std::vector<int>& devices) {
  const int count = executor::cuda_device_count();
  const std::size_t workers = share_of(to, to.between->process()).count();
  if (count == 0) return "it finds no GPU (cudaGetDeviceCount)";
  if (to.graph && workers > 1)
    return "it has " + std::to_string(workers) +
           " workers, and a graph with NCCL's operations (--graph) needs a process for each";
  for (const int device : devices)
    if (device >= count)
      return "there are " + std::to_string(count) + " GPUs, no number " + std::to_string(device);
  const std::string of_workers = std::to_string(workers) +
                                 (workers == 1 ? " worker, which needs" : " workers, which need") +
                                 " a GPU each, and ";
  if (!devices.empty())
    return devices.size() == workers
               ? std::string()
               : "it has " + of_workers + std::to_string(devices.size()) + " are named";
  if (workers > config::size(count))
    return "it has " + of_workers + "sees " + std::to_string(count);
  if (local < 0 && workers < config::size(count))
    return "the launcher does not say which process of its machine it is (LOCAL_RANK), and so not "
           "which GPU: name it, as in cuda:1";
  // Where it sees no more than it needs, that is all there is to choose from.
  const std::size_t place = config::size(std::max(local, 0));
  std::size_t most = 0;
  for (int process = 0; process < to.between->processes(); ++process)
    most = std::max(most, share_of(to, process).count());
  for (std::size_t worker = 0; worker < workers; ++worker)
    devices.push_back(static_cast<int>((place * most + worker) % config::size(count)));
  return {};
}

//! What the processes tell one another: a complaint, or the machine and the bus numbers of the
//! GPUs.
struct claim {
  std::string complaint{}, machine{};
  std::vector<std::string> buses{};

  std::string text() const {
    std::string made = complaint + '\n' + machine + '\n';
    for (const std::string& each : buses) made += each + '\n';
    return made;
  }
  static claim from(const std::string& text) {
    claim made;
    std::istringstream lines(text);
    std::getline(lines, made.complaint);
    std::getline(lines, made.machine);
    for (std::string line; std::getline(lines, line);) made.buses.push_back(line);
    return made;
  }
};

//! What is wrong with all of them; empty: nothing.
std::string wrong_with(const std::vector<std::string>& claims) {
  std::map<std::pair<std::string, std::string>, std::size_t> owners;
  for (std::size_t process = 0; process < claims.size(); ++process) {
    const claim said = claim::from(claims[process]);
    const std::string name = "process " + std::to_string(process);
    if (!said.complaint.empty()) return name + ": " + said.complaint;
    for (const std::string& bus : said.buses) {
      const auto [owner, fresh] = owners.try_emplace({said.machine, bus}, process);
      if (!fresh)
        return name + " has a worker on the GPU " + bus + ", where process " +
               std::to_string(owner->second) +
               " has one, and NCCL is between different GPUs: there are more workers on a machine "
               "than GPUs, or the same are named twice";
    }
  }
  return {};
}

}  // namespace

void run_over_nccl(pipeline_settings& to, std::vector<int> devices, int local) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  widen_queues();
  executor::bootstrap& between = *to.between;
  to.make_transport = [&between] { return executor::make_nccl_transport(between); };
  claim mine;
  mine.complaint = choose(to, local, devices);
  mine.machine = machine();
  if (mine.complaint.empty())
    for (const int device : devices) mine.buses.push_back(bus_of(device));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  const std::string wrong = wrong_with(between.all_gather("GPUs", mine.text(), limit));
  if (!wrong.empty()) throw bad_setting("device", "cuda", wrong);
  const auto by_nccl = to.make_transport;
  run_on_gpus(to, devices);
  to.make_transport = by_nccl;
  const int pieces = most_pieces(to);
  to.warm_up = [pieces](stage& one) { warm_up(one, pieces); };
}

}  // namespace train::cuda
