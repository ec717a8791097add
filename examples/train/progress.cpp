#include "progress.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

namespace train {

double progress::tokens_per_second() const {
  const std::chrono::duration<double> passed = clock::now() - start_;
  return static_cast<double>(done_) * tokens_ / std::max(passed.count(), 1e-9);
}

void progress::update(long number, const step_result& result, bool last) {
  done_ = number - first_ + 1;
  char text[160];
  if (terminal_) {
    // Ten times a second is as often as anybody looks.
    if (!last && clock::now() - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = clock::now();
    constexpr long width = 30;
    const long filled = number * width / steps_;
    std::snprintf(text, sizeof text, "\r[%s%s] %ld/%ld  loss %.3f  %.0f tokens/s  ",
                  std::string(static_cast<std::size_t>(filled), '#').c_str(),
                  std::string(static_cast<std::size_t>(width - filled), '-').c_str(), number,
                  steps_, result.loss, tokens_per_second());
    out_ << text << (last ? "\n" : "") << std::flush;
    return;
  }
  if (!last && number != first_ && number % std::max(1L, steps_ / 10) != 0 &&
      clock::now() - shown_ < std::chrono::minutes(1))
    return;
  shown_ = clock::now();
  std::snprintf(text, sizeof text, "step %ld/%ld  loss %.3f  %.0f tokens/s\n", number, steps_,
                result.loss, tokens_per_second());
  out_ << text << std::flush;
}

}  // namespace train
