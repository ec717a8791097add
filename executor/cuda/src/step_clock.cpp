#include "step_clock.hpp"

#include <chrono>
#include <thread>

namespace stretto::executor::cuda {
namespace {

//! In nanoseconds.
double between(const owned_event& first, const owned_event& second) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, first.get(), second.get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e6;
}

}  // namespace

step_clock::step_clock(std::size_t instructions, cudaStream_t idle) : spans_(instructions) {
  for (span_of_time& each : spans_) each = {make_event(true), make_event(true)};
  for (owned_event& each : origins_) each = make_event(true);
  check(cudaEventRecord(origin().get(), idle), "cudaEventRecord");
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (true) {
    const cudaError_t status = cudaEventQuery(origin().get());
    const auto now = std::chrono::steady_clock::now();
    now_ = std::chrono::duration<double, std::nano>(now.time_since_epoch()).count();
    if (status == cudaErrorNotReady && now < limit) continue;
    check(status, "cudaEventQuery");
    return;
  }
}

void step_clock::begin(cudaStream_t on, const mark& what) {
  if (what.step != step_) {
    step_ = what.step;
    before_ = now_;
    for (span_of_time& each : spans_) each.stamp = nullptr;
    check(cudaEventRecord(origin().get(), on), "cudaEventRecord");
  }
  check(cudaEventRecord(spans_[static_cast<std::size_t>(what.instruction)].start.get(), on),
        "cudaEventRecord");
}

void step_clock::end(cudaStream_t on, const mark& what) {
  span_of_time& mine = spans_[static_cast<std::size_t>(what.instruction)];
  check(cudaEventRecord(mine.end.get(), on), "cudaEventRecord");
  mine.stamp = what.stamp;
}

void step_clock::resolve() {
  if (step_ < 0 || cudaEventQuery(origin().get()) != cudaSuccess) return;
  now_ = before_ + between(origin_before(), origin());
  for (span_of_time& each : spans_) {
    if (each.stamp == nullptr || cudaEventQuery(each.end.get()) != cudaSuccess) continue;
    const auto since = [this](const owned_event& at) {
      return static_cast<std::int64_t>(now_ + between(origin(), at));
    };
    *each.stamp = {step_, since(each.start), since(each.end)};
  }
}

}  // namespace stretto::executor::cuda
