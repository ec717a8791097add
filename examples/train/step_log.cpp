#include "step_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

#include "pipeline/settings.hpp"

namespace train {
namespace {

constexpr std::string_view header =
    "step,time,loss,gradient_norm,learning_rate,seconds,tokens_per_second,idle_share\n";

//! As few digits as are read back to the same number, with a point whatever the locale.
std::string digits(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

//! "2026-01-31T12:00:00Z".
std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace

step_log::step_log(const std::filesystem::path& file, bool goes_on) : file_(file) {
  const auto refuse = [&](const std::string& why) {
    if (number_ >= 0) ::close(number_);
    throw bad_setting("log", file.string(), why);
  };
  struct ::stat found {};
  // Opening a pipe waits for who reads it, and nothing of it can be taken back.
  if (::stat(file.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) refuse("is no regular file");
  number_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (number_ < 0 || ::fstat(number_, &found) != 0)
    refuse(std::string("cannot be written: ") + std::strerror(errno));
  if (found.st_size > 0) {
    std::string start(header.size(), '\0');
    const ssize_t size = ::pread(number_, start.data(), start.size(), 0);
    if (size < 0) refuse(std::string("cannot be read: ") + std::strerror(errno));
    start.resize(static_cast<std::size_t>(size));
    if (!header.starts_with(start)) refuse("holds something else than the steps of a run");
    if (start.size() == header.size() && found.st_size > size && !goes_on)
      refuse("has the steps of another run: with --resume more are added to it");
    // Of a line that was being written when its process or machine ended, there may be a part.
    if (start.size() == header.size()) {
      char last = '\0';
      for (end_ = found.st_size; end_ > 0; --end_)
        if (::pread(number_, &last, 1, end_ - 1) != 1 || last == '\n') break;
    }
    if (end_ < found.st_size && ::ftruncate(number_, end_) != 0)
      refuse(std::string("cannot be written: ") + std::strerror(errno));
  }
  if (end_ == 0 && !write(header)) refuse(std::string("cannot be written: ") + std::strerror(why_));
}

step_log::~step_log() {
  ::close(number_);
}

bool step_log::write(std::string_view line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(number_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      why_ = written < 0 ? errno : ENOSPC;
      // What remains is no part of a line; who reads it may have it otherwise.
      if (rest.size() < line.size() && ::ftruncate(number_, end_) != 0) why_ = errno;
      return false;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  end_ += static_cast<std::int64_t>(line.size());
  return true;
}

std::string step_log::add(const logged_step& step) {
  std::string line = std::to_string(step.number) + ',' + now();
  for (const double each : {step.result.loss, step.result.gradient_norm, step.learning_rate,
                            step.seconds, step.tokens / step.seconds})
    line += ',' + digits(each);
  line += ',' + (step.idle ? digits(*step.idle) : "") + '\n';
  if (write(line) || ++missing_ > 1) return {};
  return "--log " + file_.string() + ": step " + std::to_string(step.number) +
         " cannot be written: " + std::strerror(why_) + "; training goes on";
}

std::string step_log::complaint() const {
  if (missing_ == 0) return {};
  return "--log " + file_.string() + ": " + std::to_string(missing_) +
         (missing_ == 1 ? " step is" : " steps are") + " missing: " + std::strerror(why_);
}

}  // namespace train
