#include "host_stream.hpp"

#include <chrono>
#include <exception>

#include "thread_name.hpp"

namespace stretto::executor {
namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

host_stream::host_stream(const place& where, host_event* events, monitor& watch)
    : where_(where),
      events_(events),
      watch_(watch),
      ring_(where.depth, watch.stop_flag()),
      // Made here: the thread may start when steps run already, which allocate nothing.
      thread_name_(thread_name(where.rank, where.name)),
      thread_([this] { run(); }) {}

host_stream::~host_stream() {
  if (thread_.joinable()) thread_.join();
}

void host_stream::run() noexcept {
  name_this_thread(thread_name_);
  while (const queued* entry = ring_.front(where_.spins)) {
    if (!execute(*entry)) break;
    ring_.pop();
  }
  over_.store(true, std::memory_order_release);
  ended_.notify();
}

bool host_stream::execute(const queued& entry) noexcept {
  switch (entry.what) {
    case queued::kind::record:
      events_[entry.event].record(entry.work.step);
      return true;
    case queued::kind::wait:
      return events_[entry.event].wait(entry.work.step, where_.spins, watch_.stop_flag());
    case queued::kind::call:
      return call(entry.work);
  }
  return false;
}

bool host_stream::call(const command& work) noexcept {
  if (work.ticket >= 0) started_.store(work.ticket, std::memory_order_release);
  if (work.stamp != nullptr) *work.stamp = {work.step, now(), 0};
  try {
    work.call(work);
  } catch (...) {
    watch_.fail(where_.rank, work.ticket, std::current_exception());
    return false;
  }
  // What was cut short has not ended.
  if (watch_.stopped()) return false;
  if (work.stamp != nullptr) work.stamp->end = now();
  if (work.ticket >= 0) finished_.store(work.ticket, std::memory_order_release);
  return true;
}

bool host_stream::join_until(time_point limit) noexcept {
  if (!thread_.joinable()) return true;
  const auto over = [this] { return over_.load(std::memory_order_acquire); };
  if (!ended_.wait_until(limit, over)) return false;
  thread_.join();
  return true;
}

}  // namespace stretto::executor
