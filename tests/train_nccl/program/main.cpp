// The program `train` on simulated GPUs, for several processes: the trainer's own code from its
// options on, with the libraries beneath replaced.
//   SIMULATED_GPUS=N             how many this process sees; 1
//   SIMULATED_HANG=N             the kernel of this number never ends
//   SIMULATED_NCCL=FOLDER        where processes exchange what NCCL would
// A process that ends well has misused nothing, and left nothing behind: or it says so, and ends
// with 3.
#include <cstdlib>
#include <iostream>
#include <string>

#include "nccl/driver/simulated_nccl.hpp"
#include "program.hpp"
#include "train_cuda/simulated_kernels.hpp"

int main(int argc, char** argv) {
  namespace gpu = stretto::test::gpu;
  namespace nccl = stretto::test::nccl;
  const auto told = [](const char* name, const char* otherwise) {
    const char* const set = std::getenv(name);
    return std::string(set == nullptr ? otherwise : set);
  };
  const std::string rank = told("RANK", "0");
  gpu::reset(1 + std::stoull(rank), std::stoi(told("SIMULATED_GPUS", "1")));
  gpu::hang_kernel(std::stol(told("SIMULATED_HANG", "0")));
  gpu::wait_without_limit();
  nccl::reset();
  nccl::share_between_processes(told("SIMULATED_NCCL", ""));
  train_cuda_test::define_kernels();

  const int code = train::program(argc, argv);
  if (code != 0) return code;
  std::string found;
  for (const std::string& each : gpu::complaints()) found += "\n  " + each;
  if (gpu::alive() != gpu::handles{}) found += "\n  what CUDA gave is not given back";
  if (nccl::alive() != 0) found += "\n  communicators are left";
  if (found.empty()) return 0;
  std::cerr << "process " + rank + ':' + found + '\n';
  return 3;
}
