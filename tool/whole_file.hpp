// Files that people would miss: what one held before stays until all of the new one is written. For
// the tool and the trainer alike, which may be built without one another.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>

namespace stretto::tool {

inline std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

//! What the name leads to through symbolic links, which stay what they are. The last may be one in
//! /proc: that leads to an open file, such as standard output, and to no name.
inline std::filesystem::path behind_links(std::filesystem::path file) {
  std::error_code none;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(file, none); ++links) {
    const std::filesystem::path folder = folder_of(file);
    if (std::filesystem::canonical(folder, none).string().starts_with("/proc/")) break;
    file = folder / std::filesystem::read_symlink(file, none);
  }
  return file;
}

//! Whether what is written to the one would be lost in the other, or the other way round: both are
//! one file, or will be. Pipes and devices lose nothing.
inline bool same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code none;
  const std::filesystem::file_status found = std::filesystem::status(one, none);
  if (std::filesystem::exists(found))
    return std::filesystem::is_regular_file(found) && std::filesystem::equivalent(one, other, none);
  const auto settled = [&](const std::filesystem::path& name) {
    return std::filesystem::weakly_canonical(behind_links(name), none);
  };
  return !settled(one).empty() && settled(one) == settled(other);
}

//! Why no file can be made there now; empty: one can.
inline std::string why_not_filled(const std::filesystem::path& folder) {
  std::error_code none;
  if (std::filesystem::exists(folder, none) && !std::filesystem::is_directory(folder, none))
    return std::strerror(ENOTDIR);
  return ::access(folder.c_str(), W_OK | X_OK) == 0 ? "" : std::strerror(errno);
}

//! Why write_whole() would fail now, as far as that is seen without writing; empty: it would not.
inline std::string why_not_written(const std::filesystem::path& named) {
  const std::filesystem::path file = behind_links(named);
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return why_not_filled(folder_of(file));
  if (std::filesystem::is_directory(file, none)) return std::strerror(EISDIR);
  return ::access(file.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
}

//! Under which name, beside FILE, what is to take its place is written: "FILE.new-PID"; where
//! another has that one, "FILE.new-PID-2", and so on. Processes on other machines, or in other
//! containers, may have the same number, and what was killed leaves its file there.
//! @param count  the first is 1, the last `most_fresh_names`
inline std::filesystem::path fresh_name(const std::filesystem::path& file, int count) {
  std::filesystem::path name = file;
  name += ".new-" + std::to_string(::getpid());
  if (count > 1) name += '-' + std::to_string(count);
  return name;
}
inline constexpr int most_fresh_names = 1000;

//! Writes the file beside the old one, in whose place it is put when it is complete. Written where
//! it is, as it comes, is what another file could not take the place of: a pipe or device, a file
//! that has other names or another owner, and one in a folder that takes no more files. What is
//! complete is copied into a file that keeps its place, as one does that is mounted by itself.
//! @return why it could not be written; empty: it was
inline std::string write_whole(const std::filesystem::path& named,
                               const std::function<void(std::ostream&)>& print) {
  const std::filesystem::path file = behind_links(named);
  struct ::stat old {};
  const bool there = ::lstat(file.c_str(), &old) == 0;
  bool beside = !there || (S_ISREG(old.st_mode) && old.st_nlink == 1 && old.st_uid == ::geteuid());
  // Gone under this name once it has taken the other's place.
  struct removed_at_end {
    std::filesystem::path name;
    ~removed_at_end() {
      if (!name.empty()) ::unlink(name.c_str());
    }
  } fresh;
  if (beside) {
    if (there && ::access(file.c_str(), W_OK) != 0) return std::strerror(errno);
    std::filesystem::path name;
    int made = -1;
    for (int count = 1; made < 0 && count <= most_fresh_names; ++count) {
      name = fresh_name(file, count);
      made = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (made < 0 && errno != EEXIST) break;
    }
    beside = made >= 0;
    if (!beside && errno == EEXIST) return name.string() + ": " + std::strerror(EEXIST);
    if (!beside && errno != EACCES && errno != ENAMETOOLONG) return std::strerror(errno);
    if (beside) fresh.name = name;
    if (beside && there) (void)::fchmod(made, old.st_mode & 07777);
    if (beside) ::close(made);
  }
  std::ofstream to(beside ? fresh.name : file, std::ios::binary);
  if (to) print(to);
  if (to.flush()) to.close();
  if (!to) return std::strerror(errno);
  if (!beside || std::rename(fresh.name.c_str(), file.c_str()) == 0) return {};
  if (errno != EBUSY && errno != EXDEV) return std::strerror(errno);
  std::error_code failed;
  std::filesystem::copy_file(fresh.name, file, std::filesystem::copy_options::overwrite_existing,
                             failed);
  return failed ? failed.message() : "";
}

}  // namespace stretto::tool
