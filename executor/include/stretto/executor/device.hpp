#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "stretto/executor/monitor.hpp"
#include "stretto/executor/stage.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! As floats and as doubles, bytes with this value are NaN.
inline constexpr unsigned char poison_byte = 0xff;

//! When a command of a step ran, in nanoseconds of std::chrono::steady_clock; `end` is 0 while it
//! runs.
struct timing {
  std::int64_t step = -1;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t off = 0;  //!< at most, to either side; of one device's, in one step, all by the same
};

//! Work for a stream: one plain call. What it points to is kept alive by its issuer.
struct command {
  void (*call)(const command&) = nullptr;
  void* self = nullptr;
  const void* payload = nullptr;
  std::int64_t argument = 0;  //!< for the call's own use
  std::int64_t step = 0;
  //! Grows in issue order; names the instruction that the command belongs to. Negative: none, and
  //! the command leaves no mark in the stream's progress.
  std::int64_t ticket = -1;
  timing* stamp = nullptr;  //!< filled when not null
};

//! The last ticket that a stream has started and the last that it has finished; -1 at first.
struct progress {
  std::int64_t started = -1;
  std::int64_t finished = -1;
};

//! A copy between the arena and the host's memory, as a command of an instruction. What it points
//! to is kept alive by its issuer.
struct copy {
  std::span<const std::byte> from{};
  std::span<std::byte> to{};  //!< as large
  std::int64_t step = 0;
  std::int64_t ticket = -1;
  timing* stamp = nullptr;
};

//! The instruction whose work the calls between begin() and end() enqueue.
struct mark {
  int instruction = 0;
  std::int64_t step = 0;
  std::int64_t ticket = -1;
  timing* stamp = nullptr;  //!< filled when not null, at the latest when the step has ended
};

//! One rank's place of work: streams, events, an arena and the host's memory that stashes wait in,
//! all made at construction. Work on one
//! stream runs in the order of the calls; different streams are ordered by events alone. The calls
//! of one step come from one thread at a time, allocate nothing, and may block while a stream's
//! queue is full. What they enqueue may be held back until submit().
//!
//! A command that throws is reported to the monitor with its ticket, and its stream runs nothing
//! more. Once the monitor is stopped, streams run nothing more either, as soon as wake() is called.
class device {
 public:
  virtual ~device() = default;

  //! Runs the command on the stream.
  virtual void enqueue(int stream, const command& work) = 0;
  //! The event counts as recorded for `step` once the stream's work so far is done.
  virtual void record(int stream, int event, std::int64_t step) = 0;
  //! The stream's later work waits until the event is recorded for `step` or a later one. Negative
  //! steps count as recorded.
  virtual void wait(int stream, int event, std::int64_t step) = 0;
  //! Around all that an instruction enqueues between its waits and its record, where marked() says
  //! so: for devices that see of a stage's and a transport's work only what is on their streams
  //! afterwards.
  virtual bool marked() const { return false; }
  virtual void begin(int /*stream*/, const mark&) {}
  virtual void end(int /*stream*/, const mark&) {}
  //! Calls monitor::rank_ended() once the stream's work so far is done.
  virtual void end_step(int stream, std::int64_t step, monitor& watch) {
    const auto tell = [](const command& given) {
      static_cast<monitor*>(given.self)->rank_ended();
    };
    enqueue(stream, {tell, &watch, nullptr, 0, step});
  }
  //! Whether a step can be recorded into a step_graph; whether this is under way: progress_of() and
  //! poll() then see nothing of it, and marks are not measured.
  virtual bool capturable() const { return false; }
  virtual void capture(bool /*under_way*/) {}
  //! Before the first step: progress_of() is to tell of replayed steps, too, for which more is
  //! recorded. It tells of them in the tickets of the step that was recorded.
  virtual void follow_replays() {}
  //! Before each launch of what was recorded: nothing of it is done.
  virtual void replay() {}
  //! Behind each that has ended well: all of it is done.
  virtual void replayed() {}
  //! Whether somebody must call poll(), again and again while a step is under way, for it to be
  //! seen to end or fail. That is the thread that waits for the step.
  virtual bool polled() const { return false; }
  virtual void poll() noexcept {}

  //! Copy, on the stream, from the arena to the host's memory, and back. On a GPU an asynchronous
  //! one, from and to pinned memory. These are for arenas that the host's threads can write.
  virtual void copy_to_host(int stream, const copy& work) { copy_by_thread(stream, work); }
  virtual void copy_from_host(int stream, const copy& work) { copy_by_thread(stream, work); }
  //! Sets bytes of the arena, or of the host's memory, to poison_byte, on the stream. This one is
  //! for arenas that the host's threads can write.
  virtual void poison(int stream, std::span<std::byte> bytes, std::int64_t step) {
    const auto set = [](const command& given) {
      std::memset(given.self, poison_byte, static_cast<std::size_t>(given.argument));
    };
    enqueue(stream, {set, bytes.data(), nullptr, static_cast<std::int64_t>(bytes.size()), step});
  }

  //! Lets the streams begin what was enqueued so far.
  virtual void submit() = 0;

  virtual std::span<std::byte> arena() = 0;
  //! plan_view::host_bytes that no kernel touches.
  virtual std::span<std::byte> host_memory() = 0;
  virtual stream_handle stream(int index) const = 0;
  //! Before the first step, by a transport all of whose operations on this stream and on that of
  //! another device do nothing by themselves, but meet one another in their order: from now on
  //! what is enqueued here goes there.
  //! @return false: the streams stay two
  virtual bool merge(int /*stream*/, const device& /*with*/, int /*its*/) { return false; }
  //! A cudaEvent_t on a GPU; null on the host.
  virtual void* native_event(int /*event*/) const { return nullptr; }
  //! Whether marks are given times, which options::trace_steps needs.
  virtual bool timed() const { return true; }
  //! CUDA's number of the GPU; -1: the host.
  virtual int ordinal() const { return -1; }
  //! Of a GPU; 0: not known.
  virtual int multiprocessors() const { return 0; }
  virtual int streams() const = 0;
  virtual progress progress_of(int stream) const = 0;

  //! Wakes whatever sleeps, so that it sees the monitor's stop flag. Never blocks.
  virtual void wake() noexcept = 0;
  //! After wake(): waits for the streams to stop, at most until the time given, and frees their
  //! threads.
  //! @return the number of streams that have not: held by a call that has not returned, or, on a
  //!         GPU, by work that has not ended.
  virtual int join(time_point limit) noexcept = 0;
  //! Of devices that work together one has not stopped, and what it still runs may use this one's
  //! memory: it gives nothing back.
  virtual void abandon() noexcept {}

 private:
  void copy_by_thread(int stream, const copy& work) {
    const auto move = [](const command& given) {
      if (given.argument > 0)
        std::memcpy(given.self, given.payload, static_cast<std::size_t>(given.argument));
    };
    enqueue(stream, {move, work.to.data(), work.from.data(),
                     static_cast<std::int64_t>(work.to.size()), work.step, work.ticket,
                     work.stamp});
  }
};

}  // namespace stretto::executor
