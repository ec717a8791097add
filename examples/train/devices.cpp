#include "devices.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#ifdef STRETTO_TRAIN_WITH_CUDA
#include "cuda/on_gpu.hpp"
#endif
#ifdef STRETTO_TRAIN_WITH_NCCL
#include "cuda/over_nccl.hpp"
#endif

namespace train {
namespace {

//! "0,1". @return whether it is nothing else
bool read_numbers(std::string_view typed, std::vector<int>& to) {
  const char* const end = typed.data() + typed.size();
  for (const char* at = typed.data();; ++at) {
    const auto read = std::from_chars(at, end, to.emplace_back(-1));
    at = read.ptr;
    if (read.ec != std::errc() || to.back() < 0) return false;
    if (at == end) return true;
    if (*at != ',') return false;
  }
}

#if !defined(STRETTO_TRAIN_WITH_CUDA) && defined(STRETTO_TRAIN_ON_GPU)
[[noreturn]] void become_sister(const std::string& device, char** argv) {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string sister = (here.parent_path() / STRETTO_TRAIN_ON_GPU).string();
  execv(sister.c_str(), argv);
  throw bad_setting("device", device,
                    sister + " cannot be started: " + std::strerror(errno));
}
#endif

}  // namespace

device_choice read_device(const std::string& device, const std::string& transport) {
  device_choice made{.typed = device};
  constexpr std::string_view word = "cuda";
  if (device != "host") {
    made.gpu = true;
    const std::string_view typed = device;
    const bool numbered = typed.size() > word.size() && typed[word.size()] == ':';
    if (!typed.starts_with(word) ||
        (numbered ? !read_numbers(typed.substr(word.size() + 1), made.numbers) : typed != word))
      throw bad_setting("device", device,
                        "it is host, cuda, or cuda:1 for the GPU with this number, or several with "
                        "commas between them");
  }
  if (transport == "mpi" && made.gpu)
    throw bad_setting("device", device,
                      "--transport mpi is between hosts; between GPUs of several processes it is "
                      "nccl");
  if (transport == "nccl" && !made.gpu)
    throw bad_setting("transport", transport,
                      "it is between GPUs, and --device host has none: --device cuda");
  return made;
}

void go_to([[maybe_unused]] const device_choice& device,
           [[maybe_unused]] const std::string& transport, [[maybe_unused]] char** argv) {
  if (!device.gpu) return;
#if !defined(STRETTO_TRAIN_WITH_CUDA)
#if defined(STRETTO_TRAIN_ON_GPU)
  become_sister(device.typed, argv);
#else
  throw bad_setting("device", device.typed, "this program was built without CUDA");
#endif
#elif !defined(STRETTO_TRAIN_WITH_NCCL)
  if (transport == "nccl")
    throw bad_setting("transport", transport, "this program was built without NCCL");
#endif
}

void use([[maybe_unused]] const device_choice& device, [[maybe_unused]] int local,
         [[maybe_unused]] pipeline_settings& to) {
  if (!device.gpu) return;
#ifdef STRETTO_TRAIN_WITH_NCCL
  if (to.between != nullptr) {
    cuda::run_over_nccl(to, device.numbers, local);
    return;
  }
#endif
#ifdef STRETTO_TRAIN_WITH_CUDA
  cuda::run_on_gpus(to, device.numbers.empty() ? std::vector<int>{0} : device.numbers);
#endif
}

}  // namespace train
