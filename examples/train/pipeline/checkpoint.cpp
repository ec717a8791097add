#include "pipeline/checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>
#include <vector>

#include "model/layer.hpp"
#include "model/shards.hpp"

namespace train {
namespace {

// A line that says what it is, one of JSON, the numbers as they lie in memory, and at the end the
// checksum of all before it.
constexpr std::string_view magic = "stretto train checkpoint 1\n";
constexpr std::string_view checksum_name = "crc32 ";
constexpr std::size_t checksum_size = checksum_name.size() + 8 + 1;

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian");

//! Of all that it was given, part by part.
class checksum {
 public:
  void add(std::string_view text) {
    sum_ = crc32_z(sum_, reinterpret_cast<const Bytef*>(text.data()), text.size());
  }
  std::string line() const {
    char text[checksum_size + 1];
    std::snprintf(text, sizeof text, "crc32 %08lx\n", sum_);
    return text;
  }

 private:
  uLong sum_ = crc32_z(0, nullptr, 0);
};

//! What must be the same when training goes on.
nlohmann::ordered_json identity(const pipeline& of) {
  const config& model = of.model();
  return {{"layers", model.layers},
          {"width", model.width},
          {"heads", model.heads},
          {"context", model.context},
          {"vocabulary", model.vocabulary},
          {"expansion", model.expansion},
          {"tied", model.tied},
          {"seed", of.seed()}};
}

constexpr layer_part saved_parts[] = {layer_part::parameters, layer_part::mean,
                                      layer_part::square};

//! Hands over what is saved, part by part and in its order, where this process leads.
void each_saved(const pipeline& from, auto&& take) {
  for (int layer = 0; layer < from.model().layer_count(); ++layer)
    for (const layer_part each : saved_parts) take(from.gathered(layer, each));
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

//! An open file, closed at the end.
class descriptor {
 public:
  descriptor(const std::filesystem::path& path, int flags)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  bool open() const { return number_ >= 0; }
  int number() const { return number_; }
  bool write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(number_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  bool sync() const { return ::fsync(number_) == 0; }
  //! From a place in the file. @return how many bytes there were; -1: `errno` says why
  ssize_t read(std::size_t at, std::span<char> to) const {
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

 private:
  int number_;
};

//! A checkpoint that is whole: never in memory as a whole.
class saved_file {
 public:
  //! @throws bad_checkpoint when it cannot be read, is none, or is damaged
  explicit saved_file(const std::filesystem::path& path) : path_(path), file_(path, O_RDONLY) {
    if (!file_.open()) refuse();
    std::vector<char> block(std::size_t{1} << 20U);
    checksum sum;
    std::string line;  // of JSON, once it is whole
    std::string last;  // that may be the checksum's
    std::size_t at = 0;
    for (std::string_view text; !(text = read(at, block)).empty(); at += text.size()) {
      if (at == 0 && !text.starts_with(magic))
        throw bad_checkpoint(path_, "is no checkpoint of this trainer");
      if (numbers_ == 0) {
        line += at == 0 ? text.substr(magic.size()) : text;
        const std::size_t end = line.find('\n');
        if (end != std::string::npos) {
          numbers_ = magic.size() + end + 1;
          header_ = line.substr(0, end);
        }
      }
      last += text;
      const std::size_t sure = last.size() - std::min(last.size(), checksum_size);
      sum.add(std::string_view(last).substr(0, sure));
      last.erase(0, sure);
    }
    if (at == 0) throw bad_checkpoint(path_, "is no checkpoint of this trainer");
    if (at < magic.size() + checksum_size || last != sum.line()) refuse_as_damaged();
    end_ = at - checksum_size;
    if (numbers_ == 0 || numbers_ > end_) numbers_ = end_;
  }

  const std::string& header() const { return header_; }
  //! Of the numbers.
  std::size_t bytes() const { return end_ - numbers_; }
  //! @param at  of the numbers' first byte
  void read_numbers(std::size_t at, std::span<float> to) const {
    const std::span<char> bytes(reinterpret_cast<char*>(to.data()), to.size_bytes());
    if (read(numbers_ + at, bytes).size() != bytes.size()) refuse_as_damaged();
  }

 private:
  [[noreturn]] void refuse() const {
    throw bad_checkpoint(path_, std::string("cannot be read: ") + std::strerror(errno));
  }
  [[noreturn]] void refuse_as_damaged() const {
    std::error_code none;
    std::filesystem::path previous = path_;
    previous += ".previous";
    throw bad_checkpoint(
        path_, std::string("is damaged: its checksum is not that of its contents") +
                   (std::filesystem::exists(previous, none)
                        ? "; the one before it is " + previous.string()
                        : ""));
  }
  std::string_view read(std::size_t at, std::span<char> to) const {
    const ssize_t count = file_.read(at, to);
    if (count < 0) refuse();
    return {to.data(), static_cast<std::size_t>(count)};
  }

  std::filesystem::path path_;
  descriptor file_;
  std::string header_;
  std::size_t numbers_ = 0, end_ = 0;
};

long checked_step(const std::filesystem::path& path, std::string_view line, const pipeline& into) {
  const auto header = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!header.is_object() || !header.value("step", nlohmann::ordered_json()).is_number_unsigned())
    throw bad_checkpoint(path, "has no header that says its step");
  const nlohmann::ordered_json mine = identity(into);
  for (const auto& [name, wanted] : mine.items()) {
    const auto found = header.value(name, nlohmann::ordered_json());
    if (found != wanted)
      throw bad_checkpoint(path, "is of another run: " + name + " is " + found.dump() +
                                     " there and " + wanted.dump() + " here");
  }
  return header["step"].get<long>();
}

}  // namespace

bool can_save(const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::is_directory(file, none)) {
    errno = EISDIR;
    return false;
  }
  return ::access(folder_of(file).c_str(), W_OK | X_OK) == 0;
}

void save_checkpoint(const std::filesystem::path& file, const pipeline& from) {
  if (!from.leads()) {
    each_saved(from, [](const std::vector<float>&) {});
    return;
  }
  const auto refuse = [&](const char* what) {
    const std::string why = std::strerror(errno);
    throw bad_checkpoint(file, std::string(what) + ": " + why);
  };
  std::filesystem::path fresh = file;
  fresh += ".new";
  std::error_code error;
  {
    const descriptor out(fresh, O_WRONLY | O_CREAT | O_TRUNC);
    if (!out.open()) refuse("cannot be written");
    checksum sum;
    int why = 0;  // it could not be written
    const auto write = [&](std::string_view text) {
      if (why == 0 && !out.write(text)) why = errno;
      sum.add(text);
    };
    nlohmann::ordered_json header = identity(from);
    header["step"] = from.steps_done();
    write(magic);
    write(header.dump() + "\n");
    each_saved(from, [&](const std::vector<float>& part) {
      write({reinterpret_cast<const char*>(part.data()), part.size() * sizeof(float)});
    });
    write(sum.line());
    if (why == 0 && !out.sync()) why = errno;
    if (why != 0) {
      std::filesystem::remove(fresh, error);
      errno = why;
      refuse("cannot be written");
    }
  }
  // The old one gets its second name first: at no time is there none.
  std::filesystem::path previous = file;
  previous += ".previous";
  if (std::filesystem::exists(file, error)) {
    std::filesystem::remove(previous, error);
    if (::link(file.c_str(), previous.c_str()) != 0) refuse("the old one cannot be kept");
  }
  if (std::rename(fresh.c_str(), file.c_str()) != 0) refuse("cannot be put in its place");
  // A folder that cannot be synchronised leaves the rename to the system.
  if (const descriptor names(folder_of(file), O_RDONLY | O_DIRECTORY); names.open()) names.sync();
}

void load_checkpoint(const std::filesystem::path& file, pipeline& into) {
  const saved_file from(file);
  const long step = checked_step(file, from.header(), into);
  const config model = unsharded(into.model());
  std::size_t bytes = 0;
  for (int layer = 0; layer < model.layer_count(); ++layer)
    bytes += std::size(saved_parts) * sizeof(float) * parameter_scalars(model, layer);
  if (from.bytes() != bytes)
    throw bad_checkpoint(file, "holds " + std::to_string(from.bytes()) + " bytes of numbers, the " +
                                   "model has " + std::to_string(bytes));
  std::size_t at = 0;
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    std::vector<float> part(parameter_scalars(model, layer));
    for (const layer_part each : saved_parts) {
      if (into.holds(layer)) {
        from.read_numbers(at, part);
        into.set_whole(layer, each, part);
      }
      at += part.size() * sizeof(float);
    }
  }
  into.resume_after(step);
}

}  // namespace train
