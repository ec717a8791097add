#include "pipeline/checkpoint_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "model/layer.hpp"
#include "tool/whole_file.hpp"

namespace train {
namespace {

constexpr std::size_t checksum_size = std::string_view("crc32 01234567\n").size();
constexpr std::size_t longest_head = 4096;

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian");

//! A pipe has no places to read from, and opening one waits for who writes.
void refuse_streams(const std::filesystem::path& path) {
  std::error_code none;
  const std::filesystem::file_status found = std::filesystem::status(path, none);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found) &&
      !std::filesystem::is_directory(found))
    throw bad_checkpoint(path, "is no regular file");
}

}  // namespace

std::string checksum_line(std::string_view of) {
  const uLong sum =
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(of.data()), of.size());
  char text[checksum_size + 1];
  std::snprintf(text, sizeof text, "crc32 %08lx\n", sum);
  return text;
}

std::string_view bytes_of(std::span<const float> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

std::filesystem::path with_ending(std::filesystem::path file, const std::string& ending) {
  file += ending;
  return file;
}

descriptor::descriptor(const std::filesystem::path& path, int flags, mode_t mode)
    : number_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}

descriptor::~descriptor() {
  if (number_ >= 0) ::close(number_);
}

bool descriptor::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(number_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool descriptor::sync() const {
  return ::fsync(number_) == 0;
}

bool descriptor::lock() const {
  return ::flock(number_, LOCK_EX | LOCK_NB) == 0;
}

bool descriptor::is_at(const std::filesystem::path& path) const {
  struct ::stat own {};
  struct ::stat there {};
  return ::fstat(number_, &own) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

mode_t descriptor::mode() const {
  struct ::stat own {};
  return ::fstat(number_, &own) == 0 ? own.st_mode : 0;
}

bool descriptor::set_permissions(mode_t mode) const {
  return ::fchmod(number_, mode & 07777) == 0;
}

off_t descriptor::size() const {
  return ::lseek(number_, 0, SEEK_END);
}

ssize_t descriptor::read(std::size_t at, std::span<char> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t count =
        ::pread(number_, to.data() + done, to.size() - done, static_cast<off_t>(at + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

std::string saved_part::words() const {
  return "layer " + std::to_string(layer) + "'s " + name;
}

saved_file::saved_file(const std::filesystem::path& path)
    : path_((refuse_streams(path), path)), file_(path, O_RDONLY) {
  if (!file_.open()) refuse();
  std::string start(longest_head + checksum_size, '\0');
  start.resize(read(0, start));
  if (!start.starts_with(checkpoint_magic))
    throw bad_checkpoint(path_, "is no checkpoint of this trainer");
  const std::size_t magic = checkpoint_magic.size();
  head_ = start.find('\n', magic) + 1;
  const std::string_view text(start);
  if (head_ == 0 || text.substr(head_, checksum_size) != checksum_line(text.substr(0, head_)))
    refuse_as_damaged("the checksum of its header");
  header_ = text.substr(magic, head_ - 1 - magic);
}

std::vector<saved_part> saved_file::parts(const config& model) const {
  std::vector<saved_part> made;
  std::size_t at = head_ + checksum_size;
  for (int layer = 0; layer < model.layer_count(); ++layer)
    for (const auto& [part, name] : saved_parts) {
      made.push_back({layer, part, name, at, parameter_scalars(model, layer)});
      at += made.back().scalars * sizeof(float) + checksum_size;
    }
  const off_t size = file_.size();
  if (size < 0) refuse();
  if (static_cast<std::size_t>(size) != at)
    refuse_as_damaged("its size, " + std::to_string(size) + " bytes and not " +
                      std::to_string(at) + ',');
  return made;
}

std::vector<float> saved_file::numbers(const saved_part& of) const {
  std::vector<float> made(of.scalars);
  const std::span<float> all = made;
  read(of.at, {reinterpret_cast<char*>(all.data()), all.size_bytes()});
  if (checksum(of) != checksum_line(bytes_of(all)))
    refuse_as_damaged("the checksum of " + of.words());
  return made;
}

std::string saved_file::checksum(const saved_part& of) const {
  std::string line(checksum_size, '\0');
  line.resize(read(of.at + of.scalars * sizeof(float), line));
  return line;
}

void saved_file::refuse() const {
  throw bad_checkpoint(path_, std::string("cannot be read: ") + std::strerror(errno));
}

void saved_file::refuse_as_damaged(const std::string& what) const {
  std::error_code none;
  const std::filesystem::path previous = previous_of(path_);
  throw bad_checkpoint(path_, "is damaged: " + what + " is not that of its contents" +
                                  (std::filesystem::exists(previous, none)
                                       ? "; the one before it is " + previous.string()
                                       : ""));
}

std::size_t saved_file::read(std::size_t at, std::span<char> to) const {
  const ssize_t count = file_.read(at, to);
  if (count < 0) refuse();
  return static_cast<std::size_t>(count);
}

}  // namespace train
