#include "end_threads.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "after.hpp"

namespace stretto::executor {
namespace {

//! Grows with every instruction that ends.
std::int64_t finished(std::span<const std::unique_ptr<device>> devices) {
  std::int64_t sum = 0;
  for (const auto& each : devices)
    for (int stream = 0; stream < each->streams(); ++stream)
      sum += each->progress_of(stream).finished;
  return sum;
}

//! What a GPU was given it works off, whoever failed: that is waited for as long as it goes on,
//! and then for as long as it was to be waited at all.
int end_streams(std::span<const std::unique_ptr<device>> devices, bool polled,
                time_point limit) noexcept {
  const std::chrono::nanoseconds grace = limit - std::min(limit, std::chrono::steady_clock::now());
  std::int64_t seen = finished(devices);
  while (true) {
    int left = 0;
    for (const auto& each : devices) left += each->join(polled ? time_point::min() : limit);
    if (left == 0 || !polled) return left;
    for (const auto& each : devices) each->poll();
    if (const std::int64_t now = finished(devices); now != seen) {
      seen = now;
      limit = after(grace);
    }
    if (std::chrono::steady_clock::now() >= limit) return left;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace

unfinished end_threads(const running_parts& all, time_point limit) noexcept {
  all.watch.stop();
  all.wire.abort();
  for (const auto& each : all.devices) each->wake();
  unfinished left;
  if (all.threads != nullptr) {
    all.threads->wake();
    left.threads = all.threads->join(limit);
  }
  left.streams = end_streams(all.devices, all.polled, limit);
  return left;
}

}  // namespace stretto::executor
