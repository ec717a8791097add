#include "resident.hpp"

#include <fstream>
#include <string>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/resource.h>
#endif

namespace train {
namespace {

//! "VmHWM:     1234 kB" of Linux.
std::optional<std::int64_t> status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::int64_t kibibytes = 0;
    if (word == name + ':' && file >> kibibytes) return kibibytes * 1024;
  }
  return {};
}

}  // namespace

std::optional<std::int64_t> resident_bytes() {
  return status("VmRSS");
}

std::optional<std::int64_t> most_resident_bytes() {
  if (const auto most = status("VmHWM")) return most;
#if defined(__unix__) || defined(__APPLE__)
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) != 0) return {};
#if defined(__APPLE__)
  return used.ru_maxrss;  // bytes
#else
  return std::int64_t{used.ru_maxrss} * 1024;
#endif
#else
  return {};
#endif
}

}  // namespace train
