#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/executor/device.hpp"
#include "stretto/executor/monitor.hpp"
#include "stretto/executor/stage.hpp"
#include "stretto/executor/transport.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! Waits of random length before instructions, to shake the order of things in tests. The same
//! seed gives the same lengths.
struct random_delay {
  std::uint64_t seed = 0;
  std::chrono::microseconds longest{0};  //!< 0: none
};

//! One rank: walks the plan, and for each instruction enqueues its waits, the work and the record.
//! Knows neither how a schedule is made nor what device and transport are.
class runner {
 public:
  struct parts {
    device* on = nullptr;
    transport* via = nullptr;
    stage* work = nullptr;
    monitor* watch = nullptr;
    //! The thread that issues calls the stages, and nobody else looks at the time meanwhile.
    bool alone = false;
  };

  //! Prepares every instruction, so that a step only walks them. `plan` is valid and outlives the
  //! runner, like all parts.
  //! @param trace_steps how many of the last steps are measured; 0: none.
  //! @param poison whether buffers are overwritten where the plan releases them
  //! @param guarded whether the rest of a buffer's last 64 bytes, and 64 more behind it, are nobody
  //!        else's while it is in use: after each call of the stage they are looked at, in arenas
  //!        that the host's threads can read
  //! @throws plan_error when the stage does not serve an instruction.
  runner(const plan_view& plan, const parts& with, int trace_steps, random_delay delay,
         bool poison = false, bool guarded = false);
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;

  //! Enqueues the whole step. A failure goes to the monitor.
  void issue(std::int64_t step) noexcept;
  //! Enqueues one instruction: its waits and its work, then its record. Of instructions that meet,
  //! one thread must begin all before it ends any. A failure goes to the monitor.
  void begin(int instruction, std::int64_t step) noexcept;
  void end(int instruction, std::int64_t step) noexcept;
  //! All later steps are replays of this one, which was recorded: issued as a whole, and the device
  //! tells of them in its tickets.
  void replays(std::int64_t recorded) { recorded_ = recorded; }

  const plan_view& plan() const { return plan_; }
  //! Bytes of what a runner prepares for the plan.
  static std::int64_t prepared_bytes(const plan_view& plan, int trace_steps, bool poison = false);
  //! Whether the instruction was issued, has begun and has ended in the step or a later one.
  bool issued(int instruction, std::int64_t step) const {
    return issued_.load(std::memory_order_relaxed) >= told_as(instruction, step);
  }
  bool started(int instruction, std::int64_t step) const;
  bool finished(int instruction, std::int64_t step) const;
  //! The instruction that a command's ticket names.
  int instruction_of(std::int64_t ticket) const;
  //! Timings of the instruction; step -1 where nothing was measured. Only between steps.
  const timing& measured(int instruction, std::int64_t step) const;

 private:
  struct prepared {
    action act = action::run;
    int stream = 0;
    int record = -1;
    int record_start = -1;
    std::span<const event_wait> waits{};
    context at{};
    operation message{};
    copy moved{};
    std::span<const std::span<std::byte>> poison_before{};  // what, before it starts
    std::span<const std::span<std::byte>> poison_after{};   // and as it ends
  };

  std::span<std::byte> bytes_of(const buffer& from) const;
  //! Of a buffer that the group deals to its members, the part of this rank.
  std::span<std::byte> own_part(std::span<std::byte> all, std::int32_t group) const;
  void prepare_poison(bool of_released, bool of_guards);
  void enqueue_work(int index, std::int64_t step);
  void enqueue_record(int index, std::int64_t step);
  void fail(int index, std::int64_t step) noexcept;
  timing* stamp_of(int index, std::int64_t step);
  std::int64_t ticket_of(int index, std::int64_t step) const {
    return step * static_cast<std::int64_t>(instructions_.size()) + index;
  }
  std::int64_t told_as(int index, std::int64_t step) const {
    return ticket_of(index, recorded_ < 0 ? step : recorded_);
  }
  void delay_before(int index, std::int64_t step);
  static void run_stage(const command& work);
  static void run_guarded_stage(const command& work);
  static void nothing(const command& work);
  static void sleep(const command& work);

  plan_view plan_;
  parts with_;
  int trace_steps_;
  bool marked_;
  bool guarded_;
  random_delay delay_;
  std::atomic<std::int64_t> issued_{-1};  // the ticket of the last
  std::int64_t recorded_ = -1;            // the step that later ones replay
  std::vector<bound_buffer> buffers_;
  std::vector<std::span<std::byte>> poisoned_;
  std::vector<prepared> instructions_;
  std::vector<timing> timings_;
};

}  // namespace stretto::executor
