#include "stretto/executor/host_device.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "host_stream.hpp"
#include "stretto/executor/arena.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/model/plan_names.hpp"

namespace stretto::executor {
namespace {

//! Room for all commands that a step puts on the stream: for each instruction its waits, the work,
//! a delay, a record and one more that a decorator may add; for each buffer that it gives back, one
//! that poisons it, and where they are guarded, for each that it uses one that sets its guard; and
//! one that ends the step.
std::uint32_t whole_step(const plan_view& plan, int stream, bool guarded) {
  std::uint32_t count = 1;
  for (std::size_t index = 0; index < plan.instructions.size(); ++index) {
    const instruction& each = plan.instructions[index];
    if (each.stream == stream)
      count += 4U + static_cast<std::uint32_t>(each.wait_count + (guarded ? each.use_count : 0));
    for (const std::int32_t id : plan.released_before(each)) {
      const bool as_ends = plan.released_as_ends(id, static_cast<std::int32_t>(index));
      if (plan.instructions[index - (as_ends ? 1 : 0)].stream == stream) ++count;
    }
  }
  return count;
}

//! How long a thread sleeps before a full queue until it sees that everything was stopped: nobody
//! may be there to wake it.
constexpr std::chrono::milliseconds look_again{20};

std::uint32_t depth_of(const plan_view& plan, int stream, const host_settings& settings) {
  return settings.queue_depth > 0 ? static_cast<std::uint32_t>(settings.queue_depth)
                                  : whole_step(plan, stream, settings.guarded);
}

//! @throws plan_error where there is not so much
arena allocated(const plan_view& plan, const char* what, std::int64_t bytes) {
  try {
    return arena(bytes);
  } catch (const std::bad_alloc&) {
    throw plan_error("plan of rank " + std::to_string(plan.rank) + ": its " + what + " of " +
                     std::to_string(bytes) + " bytes cannot be allocated");
  }
}

class host_device final : public device {
 public:
  host_device(const plan_view& plan, const host_settings& settings, monitor& watch)
      : rank_(plan.rank),
        watch_(watch),
        arena_(allocated(plan, "arena", plan.arena_bytes)),
        host_memory_(allocated(plan, "memory for what the host keeps", plan.host_bytes)),
        events_(std::make_unique<host_event[]>(static_cast<std::size_t>(plan.events))),
        event_count_(plan.events) {
    const int count = static_cast<int>(plan.streams.size());
    const int threads = settings.threads > 0 ? settings.threads : count;
    const int spins = spins_for(threads);
    streams_.reserve(plan.streams.size());
    try {
      for (int index = 0; index < count; ++index) {
        const stream_info& info = plan.streams[static_cast<std::size_t>(index)];
        const host_stream::place where{rank_, info.priority, std::string(name(info)), spins,
                                       depth_of(plan, index, settings)};
        streams_.push_back(std::make_unique<host_stream>(where, events_.get(), watch));
      }
    } catch (const std::system_error& none) {
      end_threads();
      throw plan_error("rank " + std::to_string(rank_) + ": stream " +
                       std::string(name(plan.streams[streams_.size()])) +
                       " gets no thread: " + none.what());
    } catch (...) {
      // The threads that did start must not outlive the failure of one that did not.
      end_threads();
      throw;
    }
  }

  ~host_device() override { end_threads(); }

  void enqueue(int stream, const command& work) override {
    push(stream, {work, -1, queued::kind::call});
  }
  void record(int stream, int event, std::int64_t step) override {
    push(stream, {{nullptr, nullptr, nullptr, 0, step}, event, queued::kind::record});
  }
  void wait(int stream, int event, std::int64_t step) override {
    if (step < 0) return;
    push(stream, {{nullptr, nullptr, nullptr, 0, step}, event, queued::kind::wait});
  }

  void submit() override {
    for (const auto& each : streams_) each->submit();
  }

  std::span<std::byte> arena() override { return arena_.bytes(); }
  std::span<std::byte> host_memory() override { return host_memory_.bytes(); }
  stream_handle stream(int index) const override {
    return {index, streams_[static_cast<std::size_t>(index)]->priority(), nullptr};
  }
  int streams() const override { return static_cast<int>(streams_.size()); }
  progress progress_of(int stream) const override {
    return streams_[static_cast<std::size_t>(stream)]->done();
  }

  void wake() noexcept override {
    for (std::int32_t event = 0; event < event_count_; ++event) events_.get()[event].wake();
    for (const auto& each : streams_) each->wake();
  }

  int join(time_point limit) noexcept override {
    int left = 0;
    for (const auto& each : streams_)
      if (!each->join_until(limit)) ++left;
    return left;
  }

 private:
  void push(int stream, const queued& entry) {
    host_stream& to = *streams_[static_cast<std::size_t>(stream)];
    // What the full stream waits for may have been enqueued on another one, and not been submitted.
    if (to.full()) wait_for_space(to);
    to.push(entry);
  }

  //! The thread that issues may be the one that watches the time, so it must not sleep for longer.
  void wait_for_space(host_stream& full) {
    submit();
    while (!watch_.stopped()) {
      const time_point now = std::chrono::steady_clock::now();
      if (now >= watch_.deadline())
        watch_.stop();
      else if (full.wait_for_space(std::min(watch_.deadline(), now + look_again)))
        return;
    }
  }

  void end_threads() noexcept {
    watch_.stop();
    wake();
    if (join(std::chrono::steady_clock::now() + std::chrono::seconds(10)) == 0) return;
    for (const auto& each : streams_)
      if (!each->join_until(time_point::min()))
        std::fprintf(
            stderr, "stretto: waiting for a callback on rank %d, stream %s, that does not return\n",
            rank_, each->name().c_str());
    // The streams' destructors wait without limit: the callback may still use what we own.
  }

  int rank_;
  monitor& watch_;
  stretto::executor::arena arena_;
  stretto::executor::arena host_memory_;
  std::unique_ptr<host_event[]> events_;
  std::int32_t event_count_;
  std::vector<std::unique_ptr<host_stream>> streams_;
};

}  // namespace

std::int64_t host_queue_bytes(const plan_view& plan, const host_settings& settings) {
  std::int64_t entries = 0;
  for (int stream = 0; stream < static_cast<int>(plan.streams.size()); ++stream)
    entries += command_ring::room_for(depth_of(plan, stream, settings));
  return entries * static_cast<std::int64_t>(sizeof(queued));
}

std::int64_t host_event_bytes(const plan_view& plan) {
  return std::int64_t{plan.events} * static_cast<std::int64_t>(sizeof(host_event));
}

std::unique_ptr<device> make_host_device(const plan_view& plan, const host_settings& settings,
                                         monitor& watch) {
  return std::make_unique<host_device>(plan, settings, watch);
}

}  // namespace stretto::executor
