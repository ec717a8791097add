#include "step_clock.hpp"

#include <algorithm>
#include <chrono>

namespace stretto::executor::cuda {
namespace {

//! In nanoseconds.
double between(const owned_event& first, const owned_event& second) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, first.get(), second.get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e6;
}

double host_time() {
  const std::chrono::duration<double, std::nano> now =
      std::chrono::steady_clock::now().time_since_epoch();
  return now.count();
}

}  // namespace

step_clock::step_clock(std::size_t instructions, cudaStream_t idle) : spans_(instructions) {
  for (span_of_time& each : spans_) each = {make_event(true), make_event(true)};
  for (owned_event& each : origins_) each = make_event(true);
  // Somebody else may have had the host's processor meanwhile.
  constexpr double quick = 2e4;
  look_at_host(idle);
  for (int more = 0; more < 5 && now_.length() > quick; ++more) look_at_host(idle);
}

void step_clock::look_at_host(cudaStream_t idle) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  now_.earliest = host_time();
  check(cudaEventRecord(origin().get(), idle), "cudaEventRecord");
  while (!is_over(cudaEventQuery(origin().get()), "cudaEventQuery"))
    if (std::chrono::steady_clock::now() >= limit) throw error(cudaErrorNotReady, "cudaEventQuery");
  now_.latest = host_time();
}

void step_clock::begin(cudaStream_t on, const mark& what) {
  if (what.step != step_) {
    step_ = what.step;
    before_ = now_;
    for (span_of_time& each : spans_) each.stamp = nullptr;
    issued_ = host_time();
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
  const double seen = host_time();
  if (step_ < 0 || !is_over(cudaEventQuery(origin().get()), "cudaEventQuery")) return;
  double first = 0, last = 0;
  for (span_of_time& each : spans_) {
    each.over = each.stamp != nullptr && is_over(cudaEventQuery(each.end.get()), "cudaEventQuery");
    if (!each.over) continue;
    each.started = between(origin(), each.start);
    each.ended = between(origin(), each.end);
    first = std::min(first, each.started);
    last = std::max(last, each.ended);
  }
  constexpr double finest = 500;  // that events tell
  constexpr double drift = 1e-4;  // more than crystals differ by
  const double since = between(origin_before(), origin());
  const double more = finest + drift * since;
  const limits host{issued_ - first, std::max(seen - last, issued_ - first)};
  now_ = {std::max(before_.earliest + since - more, host.earliest),
          std::min(before_.latest + since + more, host.latest)};
  if (now_.length() < 0) now_ = host;  // whatever the GPU's clock has done
  const double middle = now_.earliest + now_.length() / 2;
  const auto off = static_cast<std::int64_t>(now_.length() / 2 + finest);
  for (const span_of_time& each : spans_)
    if (each.over)
      *each.stamp = {step_, static_cast<std::int64_t>(middle + each.started),
                     static_cast<std::int64_t>(middle + each.ended), off};
}

}  // namespace stretto::executor::cuda
