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

std::string checksum_line(std::string_view text) {
  uLong sum = crc32_z(0, nullptr, 0);
  sum = crc32_z(sum, reinterpret_cast<const Bytef*>(text.data()), text.size());
  char line[checksum_size + 1];
  std::snprintf(line, sizeof line, "crc32 %08lx\n", sum);
  return line;
}

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

std::string contents(const pipeline& from) {
  nlohmann::ordered_json header = identity(from);
  header["step"] = from.steps_done();
  std::string text(magic);
  text += header.dump() + "\n";
  for (int layer = 0; layer < from.model().layer_count(); ++layer)
    for (const layer_part each : saved_parts) {
      const std::vector<float> part = from.whole(layer, each);
      text.append(reinterpret_cast<const char*>(part.data()), part.size() * sizeof(float));
    }
  return text + checksum_line(text);
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

 private:
  int number_;
};

std::string read_file(const std::filesystem::path& path) {
  const descriptor file(path, O_RDONLY);
  std::string text;
  std::vector<char> part(1 << 20);
  ssize_t count = -1;
  while (file.open() && (count = ::read(file.number(), part.data(), part.size())) > 0)
    text.append(part.data(), static_cast<std::size_t>(count));
  if (count < 0)
    throw bad_checkpoint(path, std::string("cannot be read: ") + std::strerror(errno));
  return text;
}

//! Everything between the first line and the checksum.
std::string_view checked_body(const std::filesystem::path& path, std::string_view text) {
  if (!text.starts_with(magic)) throw bad_checkpoint(path, "is no checkpoint of this trainer");
  const std::string_view damaged = "is damaged: its checksum is not that of its contents";
  if (text.size() < magic.size() + checksum_size) throw bad_checkpoint(path, std::string(damaged));
  const std::string_view before = text.substr(0, text.size() - checksum_size);
  if (text.substr(before.size()) != checksum_line(before)) {
    std::error_code none;
    std::filesystem::path previous = path;
    previous += ".previous";
    throw bad_checkpoint(path,
                         std::string(damaged) + (std::filesystem::exists(previous, none)
                                                     ? "; the one before it is " + previous.string()
                                                     : ""));
  }
  return before.substr(magic.size());
}

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
  const std::string text = contents(from);
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
    if (!out.write(text) || !out.sync()) {
      const int why = errno;
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
  const std::string text = read_file(file);
  std::string_view body = checked_body(file, text);
  const std::size_t end = body.find('\n');
  const long step = checked_step(file, body.substr(0, end), into);
  body.remove_prefix(end + 1);
  const config model = unsharded(into.model());
  std::size_t bytes = 0;
  for (int layer = 0; layer < model.layer_count(); ++layer)
    bytes += std::size(saved_parts) * sizeof(float) * parameter_scalars(model, layer);
  if (body.size() != bytes)
    throw bad_checkpoint(file, "holds " + std::to_string(body.size()) + " bytes of numbers, the " +
                                   "model has " + std::to_string(bytes));
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    std::vector<float> part(parameter_scalars(model, layer));
    for (const layer_part each : saved_parts) {
      std::memcpy(part.data(), body.data(), part.size() * sizeof(float));
      body.remove_prefix(part.size() * sizeof(float));
      into.set_whole(layer, each, part);
    }
  }
  into.resume_after(step);
}

}  // namespace train
