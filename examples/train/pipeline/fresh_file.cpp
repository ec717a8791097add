#include "pipeline/fresh_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "tool/whole_file.hpp"

namespace train {
namespace {

constexpr std::string_view ending = ".new-";

//! "12-3", which is what stands behind the ending.
bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char one) {
    return (one >= '0' && one <= '9') || one == '-';
  });
}

}  // namespace

fresh_file::fresh_file(std::filesystem::path file) : file_(std::move(file)) {
  using namespace stretto::tool;
  for (int count = 1; count <= most_fresh_names; ++count) {
    std::filesystem::path name = fresh_name(file_, count);
    to_.emplace(name, O_WRONLY | O_CREAT | O_EXCL, 0666 | S_ISVTX);
    if (!to_->open() && errno == EEXIST) continue;
    if (!to_->open()) return;
    // Whoever has found it before it was locked removes it.
    if (!to_->lock() && errno == EWOULDBLOCK) continue;
    if (!to_->is_at(name)) continue;
    name_ = std::move(name);
    return;
  }
  to_.reset();
  errno = EEXIST;
}

fresh_file::~fresh_file() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

bool fresh_file::put() {
  // Still locked: without its name nobody can take it for left.
  if (std::rename(name_.c_str(), file_.c_str()) != 0) return false;
  name_.clear();
  to_->set_permissions(to_->mode() & ~mode_t{S_ISVTX});
  return true;
}

void remove_leftovers(const std::filesystem::path& file) {
  const std::string own = file.filename().string() + std::string(ending);
  std::error_code none;
  std::filesystem::directory_iterator at(stretto::tool::folder_of(file), none);
  for (; !none && at != std::filesystem::directory_iterator(); at.increment(none)) {
    const std::string name = at->path().filename().string();
    std::error_code gone;
    if (!name.starts_with(own) || !is_number(std::string_view(name).substr(own.size())) ||
        !std::filesystem::is_regular_file(at->symlink_status(gone)))
      continue;
    // To be locked, some file systems want it open for writing.
    const descriptor left(at->path(), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (left.open() && (left.mode() & S_ISVTX) != 0 && left.lock() && left.is_at(at->path()))
      ::unlink(at->path().c_str());
  }
}

}  // namespace train
