// How much of a communication hides behind a computation on the host's streams. Computation is a
// matrix product in pieces; communication a stand-in that moves bytes no faster than a link would:
// it copies them chunk by chunk and waits until each is due, busily, as a spinning kernel would.
//
//   hidden   (compute + communicate - both) / communicate, of medians
//   at most  min(1, compute / communicate); where cores are fewer than busy streams, not even that
//
// Usage: overlap_host [rounds]
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "stretto/executor/overlap_meter.hpp"

namespace executor = stretto::executor;
using stopwatch = std::chrono::steady_clock;

namespace {

//! rows x size times size x size, a row of the result at a time.
class product {
 public:
  explicit product(std::size_t size) : size_(size), a_(size * size, 1), b_(a_), c_(a_) {}
  void operator()(const executor::kernel_call& at) {
    const auto piece = static_cast<std::size_t>(at.piece);
    const auto pieces = static_cast<std::size_t>(at.pieces);
    for (std::size_t row = size_ * piece / pieces; row < size_ * (piece + 1) / pieces; ++row) {
      float* const result = &c_[row * size_];
      std::memset(result, 0, size_ * sizeof(float));
      for (std::size_t inner = 0; inner < size_; ++inner) {
        const float scale = a_[row * size_ + inner];
        const float* const from = &b_[inner * size_];
        for (std::size_t column = 0; column < size_; ++column)
          result[column] += scale * from[column];
      }
    }
  }

 private:
  std::size_t size_;
  std::vector<float> a_, b_, c_;
};

//! Bytes at a rate, in chunks.
class paced_copy {
 public:
  paced_copy(std::size_t bytes, std::chrono::nanoseconds time)
      : from_(bytes, std::byte{1}), to_(bytes), time_(time) {}
  void operator()(const executor::kernel_call&) {
    constexpr std::size_t chunk = 16384;
    const auto begin = stopwatch::now();
    for (std::size_t at = 0; at < from_.size(); at += chunk) {
      const std::size_t end = std::min(from_.size(), at + chunk);
      std::memcpy(&to_[at], &from_[at], end - at);
      const auto due =
          begin + time_ * static_cast<std::int64_t>(end) / static_cast<std::int64_t>(from_.size());
      while (stopwatch::now() < due) {
      }
    }
  }

 private:
  std::vector<std::byte> from_, to_;
  std::chrono::nanoseconds time_;
};

}  // namespace

int main(int count, char** words) {
  const int rounds = count > 1 ? std::atoi(words[1]) : 15;
  if (rounds < 1) return std::fprintf(stderr, "overlap_host: rounds must be at least 1\n"), 2;
  std::printf("%u cores, one thread computes, one communicates; medians of %d rounds\n\n",
              std::thread::hardware_concurrency(), rounds);
  std::printf("%6s %8s %7s %11s %11s %11s %8s %8s %9s %9s\n", "size", "MiB", "pieces", "compute us",
              "comm. us", "both us", "hidden", "at most", "c. slows", "m. slows");
  for (const std::size_t size : {128U, 256U, 384U}) {
    product compute(size);
    const double alone =
        executor::measure_overlap({std::ref(compute), [](const executor::kernel_call&) {}},
                                  {.rounds = rounds})
            .compute;
    for (const double ratio : {0.5, 1.0, 2.0, 4.0})
      for (const int pieces : {1, 4}) {
        const auto time = std::chrono::nanoseconds(static_cast<std::int64_t>(alone / ratio));
        const auto bytes = static_cast<std::size_t>(time.count()) * 4;  // 4 GB/s
        paced_copy communicate(bytes, time);
        const executor::overlap_times made = executor::measure_overlap(
            {std::ref(compute), std::ref(communicate)}, {.pieces = pieces, .rounds = rounds});
        std::printf("%6zu %8.2f %7d %11.1f %11.1f %11.1f %7.1f%% %7.1f%% %8.2fx %8.2fx\n", size,
                    static_cast<double>(bytes) / (1 << 20), pieces, made.compute / 1e3,
                    made.communicate / 1e3, made.both / 1e3, 100 * made.hidden(),
                    100 * made.ceiling(), made.compute_slowdown(), made.communicate_slowdown());
      }
  }
}
