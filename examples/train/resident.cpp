#include "resident.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

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

std::int64_t absent_code_bytes() {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::ifstream file("/proc/self/smaps");
  std::int64_t kibibytes = 0;
  bool ours = false;
  for (std::string line; !error && std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t value = 0;
    words >> name;
    if (name.find('-') != std::string::npos)  // "from-to ... file", then a line for each figure
      ours = line.ends_with(' ' + program);
    else if (ours && (name == "Size:" || name == "Rss:") && words >> value)
      kibibytes += name == "Size:" ? value : -value;
  }
  return kibibytes * 1024;
}

}  // namespace train
