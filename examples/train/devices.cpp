#include "devices.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#ifdef STRETTO_TRAIN_WITH_CUDA
#include "cuda/on_gpu.hpp"
#endif

namespace train {
namespace {

//! The GPU by this name: cuda, cuda:1.
std::optional<int> gpu_of(std::string_view name) {
  constexpr std::string_view first = "cuda", numbered = "cuda:";
  if (name == first) return 0;
  if (!name.starts_with(numbered)) return std::nullopt;
  name.remove_prefix(numbered.size());
  int number = -1;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  if (read.ec != std::errc() || read.ptr != name.data() + name.size() || number < 0)
    return std::nullopt;
  return number;
}

#if defined(STRETTO_TRAIN_WITH_CUDA)
void run_there(int number, const std::string&, pipeline_settings& to, char**) {
  cuda::run_on_gpu(to, number);
}
#elif defined(STRETTO_TRAIN_ON_GPU)
[[noreturn]] void run_there(int, const std::string& device, pipeline_settings&, char** argv) {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string sister = (here.parent_path() / STRETTO_TRAIN_ON_GPU).string();
  execv(sister.c_str(), argv);
  throw bad_setting("device", device,
                    sister + " cannot be started: " + std::strerror(errno));
}
#else
[[noreturn]] void run_there(int, const std::string& device, pipeline_settings&, char**) {
  throw bad_setting("device", device, "this program was built without CUDA");
}
#endif

}  // namespace

void choose_device(const std::string& device, pipeline_settings& to, char** argv) {
  if (device == "host") return;
  const std::optional<int> number = gpu_of(device);
  if (!number)
    throw bad_setting("device", device, "it is host, cuda, or cuda:1 for the GPU with this number");
  if (to.between != nullptr)
    throw bad_setting("device", device, "a GPU's workers are all in one process");
  run_there(*number, device, to, argv);
}

}  // namespace train
