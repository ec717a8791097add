#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "stretto/executor/arena.hpp"
#include "stretto/executor/device.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/host_device.hpp"
#include "stretto/executor/runner.hpp"
#include "stretto/executor/stage.hpp"
#include "stretto/executor/step_graph.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/executor/transport.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::executor {

//! Who walks the plans.
enum class issuing : std::uint8_t {
  //! The thread that calls step(): in one order of all ranks, in which the two sides of a message,
  //! and the members of a collective, stand together. Plans that were proven have one; the engine
  //! refuses others.
  caller,
  thread_per_rank,  //!< one thread for each rank, kept between steps
};

//! Makes the device of one rank, when it is not to be the host.
using device_factory = std::function<std::unique_ptr<device>(const plan_view&, monitor&)>;

//! Whether the executor was built for debugging (without NDEBUG).
bool built_for_debugging();

//! How an engine runs plans: who issues, where ranks compute, by what they exchange messages, and
//! what is watched meanwhile.
struct options {
  //! For each step; positive. A step that takes longer ends with an error.
  std::chrono::nanoseconds deadline = std::chrono::minutes(5);
  //! How long a failed step waits for callbacks to return, before it is reported without them; on a
  //! GPU, since the last instruction ended: what was launched is worked off.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
  int capacity = 0;     //!< of the loopback transport's channels; 0: rendezvous; 0 with a `wire`
  int trace_steps = 0;  //!< how many of the last steps to keep times of; 0: none
  //! Overwrites every buffer with NaN where the plan releases it, on the stream that gives it back:
  //! who reads it still, or counts on what an earlier buffer left there, gets NaN. A graph leaves
  //! out what is kept on the host, which its nodes cannot set.
  bool poison = built_for_debugging();
  //! Holds every instruction, as it is issued, against all accesses before it of the same bytes, in
  //! this step and those before: a race ends the step before it can happen. By the caller's thread;
  //! where all ranks of the job are in this process.
  //! On the host buffers also lie 64 bytes apart or more, where poison is held against what a stage
  //! left there: one that wrote behind a buffer ends the step.
  bool checked = false;
  issuing issue = issuing::caller;
  host_settings host{};
  random_delay delay{};
  //! Not empty: the first step is issued, the second recorded, and it and all later ones replayed.
  //! Stages are called for these two alone; what changes from step to step must be read from the
  //! device's memory, or from the host's where a copy that is recorded takes it from. Times of
  //! instructions are not known. Refused where nothing can be recorded (hosts; several GPUs of a
  //! process with NCCL, or of which one cannot reach another's memory), and with trace_steps and
  //! checked.
  graph_factory graph{};
  //! With a graph: a replayed step that fails or is late names the instruction, with a flight
  //! record, as one that is issued does. It takes a kernel of one thread behind every instruction,
  //! which is a microsecond or so of the GPU's for each, beside what instructions take; the host's
  //! launch stays one call. Without, such a step says only that it is late, or what the GPU has
  //! failed with.
  bool graph_progress = true;
  device_factory make_device{};       //!< empty: host devices
  std::unique_ptr<transport> wire{};  //!< empty: the loopback transport
};

//! What has plans, and says why where it has none.
template <class Made>
concept makes_plans = requires(const Made& made) {
  { made.answer() } -> std::same_as<const verdict&>;
  { made.plans() } -> std::same_as<std::span<const plan_view>>;
};

//! All ranks of one process: their devices, runners and the transport between them. Everything is
//! made and checked at construction; a step allocates nothing and takes no lock. But for NCCL: its
//! calls are kept apart from what ends them, and its library starts a thread for each.
//!
//! Not to be called from more than one thread at a time, nor from a callback (step() refuses both).
class engine {
 public:
  //! @param plans one for each rank of this process; what they point to outlives the engine.
  //! @param stages the stage of each of these ranks; they outlive the engine.
  //! @throws plan_error when a plan is invalid, ranks differ, a stage lacks a callback, or the
  //!         options make no sense; what options::make_device, or a stage asked what it serves,
  //!         throws.
  engine(std::span<const plan_view> plans, std::span<stage* const> stages, options with = {});
  //! The same with what made the plans, such as stretto::planned or stretto::shared.
  //! @throws plan_error that says its answer, too, where that is not ok.
  template <makes_plans Made>
  engine(const Made& made, std::span<stage* const> stages, options with = {})
      : engine(answered(made.plans(), made.answer()), stages, std::move(with)) {}
  //! What made the plans outlives the engine, which no temporary does.
  template <makes_plans Made>
  engine(const Made&& made, std::span<stage* const> stages, options with = {}) = delete;
  //! Ends the threads. Waits for a callback that has not returned after a failed step, and says so
  //! on the standard error stream.
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  //! Runs one step on all ranks; returns when the end_step of every rank is done.
  //! @throws execution_error when a stage throws, the transport fails or the deadline passes. The
  //!         other ranks are then aborted and all threads joined first. A callback cannot be ended
  //!         from outside: one that does not return within the grace time keeps its thread
  //!         (execution_error::threads_left), and the destructor waits for it; callbacks that may
  //!         run long poll context::stopped(). Every later call is refused with the same type. So
  //!         is one while a step is under way, from another thread or from a callback.
  void step();

  //! Steps completed.
  std::int64_t steps() const;
  bool failed() const;
  //! The most that the plan at the index has in use at once.
  //! @throws plan_error, as the next two, where there is no such plan
  high_water_mark most_in_use(std::size_t index) const;
  //! The memory of the plan at the index; with options::checked, on the host, more than it says.
  std::span<std::byte> arena(std::size_t index) const;
  //! What the host keeps of it.
  std::span<std::byte> host_memory(std::size_t index) const;
  //! Times of the steps kept, oldest first, by rank and instruction; of a failed step those of the
  //! instructions that ended. Empty without trace_steps, and while threads are left.
  std::vector<trace_record> trace() const;

 private:
  static std::span<const plan_view> answered(std::span<const plan_view> plans,
                                             const verdict& answer);
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace stretto::executor
