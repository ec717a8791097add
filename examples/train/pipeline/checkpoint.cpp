#include "pipeline/checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "model/layer.hpp"
#include "model/shards.hpp"
#include "tool/whole_file.hpp"

namespace train {
namespace {

using stretto::tool::behind_links;
using stretto::tool::folder_of;
using stretto::tool::why_not_filled;

// A line that says what it is and one of JSON; then part by part the numbers as they lie in memory.
// Behind each of these a line with its checksum, so that whoever needs a few parts reads no others.
constexpr std::string_view magic = "stretto train checkpoint 2\n";
constexpr std::string_view any_version = magic.substr(0, magic.size() - 2);
constexpr std::size_t checksum_size = std::string_view("crc32 01234567\n").size();
constexpr std::size_t longest_head = 4096;

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian");

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

constexpr std::pair<layer_part, const char*> saved_parts[] = {
    {layer_part::parameters, "parameters"}, {layer_part::mean, "mean"}, {layer_part::square, "square"}};

//! Hands over what is saved, part by part and in its order, where this process leads.
void each_saved(const pipeline& from, auto&& take) {
  for (int layer = 0; layer < from.model().layer_count(); ++layer)
    for (const auto& [part, name] : saved_parts) take(from.gathered(layer, part));
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
  //! Of the file. -1: `errno` says why
  off_t size() const { return ::lseek(number_, 0, SEEK_END); }
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

std::filesystem::path with_ending(std::filesystem::path file, const char* ending) {
  file += ending;
  return file;
}

//! Why it may not make way for a checkpoint; empty: it may.
std::string why_kept(const std::filesystem::path& file) {
  std::error_code none;
  const std::filesystem::file_status found = std::filesystem::symlink_status(file, none);
  if (!std::filesystem::exists(found)) return {};
  if (std::filesystem::is_directory(found)) return std::strerror(EISDIR);
  if (!std::filesystem::is_regular_file(found)) return "is no regular file";
  const descriptor old(file, O_RDONLY);
  std::string start(any_version.size(), '\0');
  const ssize_t size = old.open() ? old.read(0, start) : -1;
  if (size < 0) return std::strerror(errno);
  start.resize(static_cast<std::size_t>(size));
  // A part of the beginning is what is left of one that could not be written.
  if (any_version.starts_with(start)) return {};
  return "holds something else than a checkpoint, which would be lost";
}

//! Numbers in the file, with their checksum behind them.
struct saved_part {
  int layer = 0;
  layer_part part = layer_part::parameters;
  const char* name = "";
  std::size_t at = 0, scalars = 0;
};

//! A checkpoint, of which no more is read than asked for.
class saved_file {
 public:
  //! @throws bad_checkpoint when it cannot be read, is none, or says of itself what is damaged
  explicit saved_file(const std::filesystem::path& path) : path_(path), file_(path, O_RDONLY) {
    if (!file_.open()) refuse();
    std::string start(longest_head + checksum_size, '\0');
    start.resize(read(0, start));
    if (!start.starts_with(magic)) throw bad_checkpoint(path_, "is no checkpoint of this trainer");
    head_ = start.find('\n', magic.size()) + 1;
    const std::string_view text(start);
    if (head_ == 0 || text.substr(head_, checksum_size) != checksum_line(text.substr(0, head_)))
      refuse_as_damaged("the checksum of its header");
    header_ = text.substr(magic.size(), head_ - 1 - magic.size());
  }

  const std::string& header() const { return header_; }

  //! Where the model's parts are.
  //! @throws bad_checkpoint when the file is not as long
  std::vector<saved_part> parts(const config& model) {
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

  //! @throws bad_checkpoint when it is damaged
  std::vector<float> numbers(const saved_part& of) const {
    std::vector<float> made(of.scalars);
    const std::span<float> all = made;
    read(of.at, {reinterpret_cast<char*>(all.data()), all.size_bytes()});
    if (checksum(of) != checksum_line(bytes_of(all)))
      refuse_as_damaged("the checksum of layer " + std::to_string(of.layer) + "'s " + of.name);
    return made;
  }

  //! What is behind the numbers.
  std::string checksum(const saved_part& of) const {
    std::string line(checksum_size, '\0');
    line.resize(read(of.at + of.scalars * sizeof(float), line));
    return line;
  }

 private:
  [[noreturn]] void refuse() const {
    throw bad_checkpoint(path_, std::string("cannot be read: ") + std::strerror(errno));
  }
  [[noreturn]] void refuse_as_damaged(const std::string& what) const {
    std::error_code none;
    const std::filesystem::path previous = with_ending(behind_links(path_), ".previous");
    throw bad_checkpoint(path_, "is damaged: " + what + " is not that of its contents" +
                                    (std::filesystem::exists(previous, none)
                                         ? "; the one before it is " + previous.string()
                                         : ""));
  }
  std::size_t read(std::size_t at, std::span<char> to) const {
    const ssize_t count = file_.read(at, to);
    if (count < 0) refuse();
    return static_cast<std::size_t>(count);
  }

  std::filesystem::path path_;
  descriptor file_;
  std::string header_;
  std::size_t head_ = 0;  // with the line's end
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

std::string why_not_saved(const std::filesystem::path& named) {
  const std::filesystem::path file = behind_links(named);
  for (const char* ending : {"", ".previous", ".new"}) {
    const std::filesystem::path each = with_ending(file, ending);
    const std::string why = why_kept(each);
    if (!why.empty()) return each == named ? why : each.string() + ": " + why;
  }
  return why_not_filled(folder_of(file));
}

void save_checkpoint(const std::filesystem::path& named, const pipeline& from) {
  if (!from.leads()) {
    each_saved(from, [](const std::vector<float>&) {});
    return;
  }
  if (const std::string why = why_not_saved(named); !why.empty()) throw bad_checkpoint(named, why);
  const std::filesystem::path file = behind_links(named);
  const auto refuse = [&](const char* what) {
    const std::string why = std::strerror(errno);
    throw bad_checkpoint(file, std::string(what) + ": " + why);
  };
  const std::filesystem::path fresh = with_ending(file, ".new");
  std::error_code error;
  {
    const descriptor out(fresh, O_WRONLY | O_CREAT | O_TRUNC);
    if (!out.open()) refuse("cannot be written");
    int why = 0;  // it could not be written
    const auto write = [&](std::string_view text) {
      if (why == 0 && !(out.write(text) && out.write(checksum_line(text)))) why = errno;
    };
    nlohmann::ordered_json header = identity(from);
    header["step"] = from.steps_done();
    write(std::string(magic) + header.dump() + '\n');
    each_saved(from, [&](const std::vector<float>& part) { write(bytes_of(part)); });
    if (why == 0 && !out.sync()) why = errno;
    if (why != 0) {
      std::filesystem::remove(fresh, error);
      errno = why;
      refuse("cannot be written");
    }
  }
  // The old one gets its second name first: at no time is there none. Where a file can have but one,
  // there is the previous one for a moment.
  const std::filesystem::path previous = with_ending(file, ".previous");
  if (std::filesystem::exists(file, error)) {
    std::filesystem::remove(previous, error);
    if (::link(file.c_str(), previous.c_str()) != 0 &&
        std::rename(file.c_str(), previous.c_str()) != 0)
      refuse("the old one cannot be kept");
  }
  if (std::rename(fresh.c_str(), file.c_str()) != 0) refuse("cannot be put in its place");
  // A folder that cannot be synchronised leaves the rename to the system.
  if (const descriptor names(folder_of(file), O_RDONLY | O_DIRECTORY); names.open()) names.sync();
}

void load_checkpoint(const std::filesystem::path& file, pipeline& into) {
  std::optional<saved_file> from;
  std::vector<saved_part> mine;
  long step = 0;
  // What the others must have found, too: it has all checksums, and so all numbers.
  std::string found;
  std::optional<bad_checkpoint> wrong;
  try {
    from.emplace(file);
    step = checked_step(file, from->header(), into);
    std::string checksums;
    for (const saved_part& each : from->parts(unsharded(into.model()))) {
      checksums += from->checksum(each);
      if (into.holds(each.layer)) mine.push_back(each);
    }
    for (const saved_part& each : mine) from->numbers(each);
    found = "step " + std::to_string(step) + ", " + checksum_line(checksums);
    found.pop_back();
  } catch (const bad_checkpoint& here) {
    wrong = here;
  }
  // None goes on when one cannot.
  const std::vector<std::string> all = into.exchange("checkpoint", wrong ? wrong->what() : found);
  if (wrong) throw bad_checkpoint(*wrong);
  for (std::size_t process = 0; process < all.size(); ++process)
    if (all[process] != found)
      throw bad_checkpoint(file, found + ", but process " + std::to_string(process) + " has " +
                                     all[process]);
  for (const saved_part& each : mine) into.set_whole(each.layer, each.part, from->numbers(each));
  into.resume_after(step);
}

}  // namespace train
