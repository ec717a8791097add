#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/executor/device.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/monitor.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! One message or collective of a plan; stays in place from its enqueuing to the end of the step.
struct operation {
  int rank = 0;         //!< whose
  int peer = 0;         //!< the other side; for a collective the group
  int instruction = 0;  //!< index into the rank's plan
  job what{};
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
};

//! Where and when an operation is enqueued.
struct launch {
  device* on = nullptr;
  int stream = 0;
  std::int64_t step = 0;
  std::int64_t ticket = -1;  //!< of the command, see device.hpp
  timing* stamp = nullptr;
  int started = -1;  //!< event of the device to be recorded as it starts; -1: none. It has been
                     //!< recorded before the call already, which is early enough but not exact.
};

//! Has a transport's own call run for the operation, as the command of its instruction.
//! @param number  that the call finds in command::argument
inline void enqueue(const launch& at, const operation& what, void (*call)(const command&),
                    void* self, std::int64_t number) {
  at.on->enqueue(at.stream, {call, self, &what, number, at.step, at.ticket, at.stamp});
}
//! What such a call is for.
inline const operation& operation_of(const command& work) {
  return *static_cast<const operation*>(work.payload);
}

//! Moves messages between ranks. Every call only enqueues on the launch's stream; whatever fails
//! later is reported there as transport_error. A channel is a directed pair of ranks: its k-th send
//! meets its k-th receive, in the order of the calls, whatever streams they are on. Calls of one
//! rank come from one thread at a time.
class transport {
 public:
  virtual ~transport() = default;

  //! Called before open() where steps are to be recorded into a step_graph.
  //! @throws plan_error that says why operations cannot be
  virtual void record_steps() {
    throw plan_error("a graph needs a transport whose operations can be recorded");
  }
  //! Called once, before the first step, with the plans of the ranks in this process: makes
  //! channels and groups ready and compares the digests with those of remote ranks.
  //! @throws plan_error when the plans do not fit the transport or one another.
  virtual void open(std::span<const plan_view> plans, monitor& watch) = 0;

  //! Called after open(), once for each rank of this process, with its device, which lives as long
  //! as operations are enqueued.
  //! @throws plan_error when the transport cannot work with it.
  virtual void attach(int /*rank*/, device& /*on*/) {}
  //! Whether a single thread must issue for all ranks of the process (issuing::caller).
  virtual bool needs_one_issuer() const { return false; }

  //! Whether a send is never done before its receive has begun: nothing is taken meanwhile. Asked
  //! where what is issued is held against races (options::checked).
  virtual bool rendezvous() const { return false; }

  virtual void send(const launch& at, const operation& what) = 0;
  virtual void receive(const launch& at, const operation& what) = 0;
  //! Sums the buffers of the group's members in the order of their ranks; every member gets the
  //! same bits.
  virtual void all_reduce(const launch& at, const operation& what) = 0;
  //! Each member's buffer is filled with the parts of all: the k-th of so many equal parts is there
  //! in that of the k-th in the order of their ranks. Counts among the group's all_reduce calls.
  virtual void all_gather(const launch& at, const operation& what) = 0;
  //! Sums as all_reduce does, among whose calls it counts. The k-th member in the order of their
  //! ranks gets the k-th of so many equal parts; what its buffer holds beside that part is left
  //! open, so that a transport may sum all.
  virtual void reduce_scatter(const launch& at, const operation& what) { all_reduce(at, what); }

  //! As device::polled() and device::poll().
  virtual bool polled() const { return false; }
  virtual void poll() noexcept {}
  //! A step has ended well: nobody polls until the next has begun.
  virtual void rest() noexcept {}

  //! A step has failed here, or could not begin, or no engine could be made, perhaps before open():
  //! who waits elsewhere is to hear why. Called once at most, before abort().
  virtual void tell(std::string_view /*why*/) noexcept {}
  //! Called before abort() when every step has ended well: what other processes still have to get
  //! may be brought to its end, within a time that the transport sets itself.
  virtual void close() noexcept {}
  //! Ends all operations under way. Never blocks. Nothing may be enqueued afterwards.
  virtual void abort() noexcept = 0;
};

}  // namespace stretto::executor
