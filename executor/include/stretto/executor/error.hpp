#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "stretto/model/job.hpp"

namespace stretto::executor {

//! A plan that cannot be run, or options that make no sense; found before the first step.
class plan_error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

//! A stage takes a buffer for larger than it is: it asks for more bytes than there are, or has
//! written behind them. How many there are is what the memory policy's bytes() says of the stage.
class buffer_error : public std::length_error {
 public:
  using std::length_error::length_error;
};

//! What a transport throws when a message or a collective fails.
class transport_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

//! The same of an operation that was under way when the step's time was over: failure::deadline,
//! with what the transport knows of it.
class late_error : public transport_error {
 public:
  using transport_error::transport_error;
};

//! What ended a step.
enum class failure : std::uint8_t {
  stage,      //!< a stage threw, or the device that was to run it; `cause` holds what
  transport,  //!< a message or a collective failed; `cause` holds what
  race,       //!< what was issued lets two accesses to the same bytes meet (options::checked)
  deadline,   //!< the step did not end in time; the instruction is the one that holds it up
  refused,    //!< an earlier step had failed, or one is under way, so this one was not begun
};

//! The instruction that failed, or that is missing.
struct culprit {
  int rank = -1;
  int instruction = -1;  //!< index into the plan of the rank; -1 when there is none to name
  job what{};
  std::int64_t step = 0;
};

//! The one exception that ends a step. what() names rank, instruction and cause, in its first line;
//! below it stand, where they are known, where other ranks are and how far each has come with ranks
//! in other processes. When it is thrown
//! every thread of the engine has been joined, except for those counted by threads_left().
class execution_error : public std::runtime_error {
 public:
  execution_error(failure kind, const culprit& where, const std::string& text,
                  std::exception_ptr cause, int threads_left, std::string flight_record = {});

  failure kind() const { return kind_; }
  int rank() const { return where_.rank; }
  int instruction() const { return where_.instruction; }
  const job& what_job() const { return where_.what; }
  std::int64_t step() const { return where_.step; }
  //! What the stage or the transport threw; null for a deadline, unless a transport was late.
  const std::exception_ptr& cause() const { return cause_; }
  //! Threads that had not come to rest when the engine stopped waiting (options::grace): those
  //! whose callback had not returned, and where that time was short others, too; and streams of a
  //! GPU whose work had not ended. They still belong to the engine, whose destructor waits for the
  //! threads.
  int threads_left() const { return threads_left_; }
  //! A table of lines: for each stream of the ranks here the last instructions done and the next
  //! ones of its plan, which of them were issued and have started, what they wait for; of messages
  //! and sums also their number in the step, their bytes and how far the other side is. As it was
  //! before the ranks were aborted. On a GPU an instruction counts as started when all that it
  //! waits for is done. Empty for a refused step, where the launch of a graph failed, and for
  //! one replayed without options::graph_progress.
  const std::string& flight_record() const { return *flight_record_; }

 private:
  failure kind_;
  culprit where_;
  std::exception_ptr cause_;
  int threads_left_;
  std::shared_ptr<const std::string> flight_record_;  // copies must not throw
};

}  // namespace stretto::executor
