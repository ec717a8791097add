#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "stretto/executor/error.hpp"
#include "stretto/executor/monitor.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! One buffer of an instruction, as the stage sees it.
struct bound_buffer {
  std::span<std::byte> data{};  //!< 64-byte-aligned memory of the device
  buffer_role role = buffer_role::input;
  access mode = access::read;
  std::int32_t stage = 0;  //!< for buffer_role::collective: the group
  std::int32_t microbatch = 0;
  std::int16_t slice = 0;
  //! For buffer_role::collective: the stage whose gradients it sums over replicas; -1: it sums
  //! something else.
  std::int32_t gradients_of = -1;
  //! What of `data` is the worker's own part: of buffer_role::weights, which no other replica has;
  //! of buffer_role::collective, where each member gets a part of the sum. Else empty.
  std::span<std::byte> own{};
};

//! The stream on which a stage's work is to run.
struct stream_handle {
  int index = 0;           //!< into plan_view::streams
  int priority = 0;        //!< lower is more urgent
  void* native = nullptr;  //!< a cudaStream_t on a GPU; null on the host, where run() is the work
};

//! What a stage is asked to do. Valid during the call only; the buffers' memory is that of the
//! whole step.
struct context {
  job what{};
  int rank = 0;
  std::int64_t step = 0;
  int op = -1;    //!< number in the program of its job; -1: the whole job
  int piece = 0;  //!< which piece of a split op, of `pieces`
  int pieces = 1;
  stream_handle stream{};
  int sm_budget = 0;  //!< multiprocessors of a GPU that the op may use; 0: all
  //! When others wait for the op to start, and on a GPU: a cudaEvent_t, recorded behind what comes
  //! before the op on its stream. A kernel launched with it as its launch completion event
  //! (cudaLaunchAttributeLaunchCompletionEvent) makes them wait until its blocks run, too.
  void* start_event = nullptr;
  std::span<const bound_buffer> buffers{};
  const std::atomic<bool>* stop = nullptr;
  //! Of the step, where nobody else looks at the time while the stage is called: on GPUs, whose
  //! stages the thread calls that waits for the step.
  const monitor* watch = nullptr;

  //! True once the step has failed or its deadline has passed: return soon, the result is not used.
  //! A callback that may run long should poll this; no other means can end it.
  bool stopped() const {
    return (stop != nullptr && stop->load(std::memory_order_relaxed)) ||
           (watch != nullptr && std::chrono::steady_clock::now() >= watch->deadline());
  }

  //! The buffer with the role; of several the first that the job writes, or else the first (a
  //! reduce_grad is also given the sums of earlier groups, to read). Empty when there is none.
  std::span<std::byte> find(buffer_role role) const {
    std::span<std::byte> found;
    for (const bound_buffer& each : buffers) {
      if (each.role != role) continue;
      if (each.mode != access::read) return each.data;
      if (found.data() == nullptr) found = each.data;
    }
    return found;
  }
  //! The first buffer with the role that belongs to the stage (the group, for collectives).
  std::span<std::byte> find(buffer_role role, int stage) const {
    for (const bound_buffer& each : buffers)
      if (each.role == role && each.stage == stage) return each.data;
    return {};
  }
  //! The same as elements; bytes that fill no whole element at the end are left out.
  template <class Element>
  std::span<Element> view(buffer_role role) const {
    return elements_of<Element>(find(role));
  }
  template <class Element>
  std::span<Element> view(buffer_role role, int stage) const {
    return elements_of<Element>(find(role, stage));
  }
  //! The first so many elements of what find() gives. What a stage takes for its buffers' sizes and
  //! what the memory policy says of them are two statements: here they meet.
  //! @throws buffer_error when there are fewer, as where there is no such buffer
  template <class Element>
  std::span<Element> need(buffer_role role, std::int64_t count) const {
    const std::span<Element> found = view<Element>(role);
    if (count < 0 || std::cmp_greater(count, found.size()))
      lack(role, find(role), count, sizeof(Element));
    return found.first(static_cast<std::size_t>(count));
  }

  //! The gradients of the stage's weights, summed over its replicas: over the data-parallel ones
  //! and, once that is done, too, of these sums over both directions. For the optimizer, and for a
  //! reduce_grad that goes on from a sum of its stage: it puts its own into collective(). Where the
  //! data-parallel ones hold a part of the weights each, those of the worker's own part. Empty
  //! where the job is given none: the stage is another rank's, or has no replicas.
  std::span<const float> summed(int stage) const {
    std::span<std::byte> found;
    for (const bound_buffer& each : buffers)
      if (each.role == buffer_role::collective && each.mode == access::read &&
          each.gradients_of == stage)
        found = each.own.empty() ? each.data : each.own;  // the last one is of the ones before
    return elements_of<float>(found);
  }

  std::span<std::byte> input() const { return find(buffer_role::input); }
  std::span<std::byte> output() const { return find(buffer_role::output); }
  std::span<std::byte> stash() const { return find(buffer_role::stash); }
  std::span<std::byte> kept() const { return find(buffer_role::kept); }
  std::span<std::byte> left() const { return find(buffer_role::left); }
  std::span<std::byte> output_gradient() const { return find(buffer_role::output_gradient); }
  std::span<std::byte> input_gradient() const { return find(buffer_role::input_gradient); }
  std::span<std::byte> collective() const { return find(buffer_role::collective); }
  //! The stage's weights where its data-parallel replicas gather them.
  std::span<std::byte> weights() const { return find(buffer_role::weights); }
  //! Of these the worker's own part, which its unshard puts there. Empty where none are gathered.
  std::span<std::byte> own_weights() const {
    for (const bound_buffer& each : buffers)
      if (each.role == buffer_role::weights) return each.own;
    return {};
  }

 private:
  [[noreturn]] static void lack(buffer_role role, std::span<const std::byte> given,
                                std::int64_t count, std::size_t element);
  template <class Element>
  static std::span<Element> elements_of(std::span<std::byte> bytes) {
    static_assert(alignof(Element) <= 64, "buffers are aligned to 64 bytes");
    return {reinterpret_cast<Element*>(bytes.data()), bytes.size() / sizeof(Element)};
  }
};

//! The model's side of a rank: all the stages that the rank holds.
//!
//! Which buffers a job is given, and what it does to each (rule complete proves it of every plan):
//!
//!     job                     reads                          writes               reads and writes
//!     forward                 input                          output, stash, kept
//!     recompute               input                          stash, kept
//!     backward, or for input  input, output_gradient         input_gradient       stash, kept
//!     backward for weights    input, output_gradient, and
//!                             kept or, where none is, stash
//!     unshard                                                weights, its own part
//!     reduce_grad             sums of groups before its own  collective
//!     optimizer               collective of every group
//!
//! The first stage has no input and no input_gradient, the last no output and no output_gradient;
//! what memory::Policy::bytes says is of no bytes is left out, or has none. `input` stays readable
//! until the last job of its micro-batch on the stage: only what a forward computes need be saved.
//! Where stage_bytes::passing says so, a forward that runs a second time has a stash of so many
//! bytes, which nobody reads behind it, and nothing kept. A slice's jobs are also given the stashes
//! of its micro-batch's earlier slices, in order. Of a job in ops each one that computes is given
//! all of its job's buffers; and every op, as `workspace`, what it touches of what its program's
//! ops on several streams share, in the order of its uses: buffers as a whole, of which a piece
//! (context::piece) touches its own rows. Nothing is zeroed: a buffer holds whatever was there.
//! Gradients of the weights, and the weights, are the stage's own memory; but where data-parallel
//! replicas hold a part each (plan_request::gathered) every job that computes is also given
//! `weights`, to read: all of its stage's, which are there from an unshard to a reshard; and of the
//! gradients a worker gets the sum of its part (context::summed).
//!
//! How large they are, the plan says, which has it from memory::Policy::bytes (64 bytes each where
//! that says nothing). context::need() holds what a stage wants against it. view() does not, and
//! what is written behind a buffer lies in others that are in use: options::checked looks for that.
class stage {
 public:
  virtual ~stage() = default;

  //! Does the work of one instruction. On the host it runs on the stream's own thread and is done
  //! when it returns, so that instructions on different streams run at the same time; on a GPU it
  //! launches its work on `at.stream` and returns. An exception ends the step.
  virtual void run(const context& at) = 0;

  //! Whether run() knows the kind. Asked once for each instruction before the first step.
  virtual bool serves(job_kind) const { return true; }
};

}  // namespace stretto::executor
