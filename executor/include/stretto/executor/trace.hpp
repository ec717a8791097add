#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! When one instruction of one step ran, in nanoseconds of std::chrono::steady_clock. A message
//! starts when its stream turns to it, so that it includes the wait for its partner.
struct trace_record {
  int rank = 0;
  int instruction = 0;  //!< index into the plan of the rank; its stream is in there
  std::int64_t step = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  //! So far may the times be off that clock, to either side; all of a rank's, in a step, by the
  //! same. On a GPU it is what setting its clock by the host's leaves open.
  std::int64_t off = 0;
};

//! Writes Chrome's trace format, which Perfetto reads too: one process per rank, one thread per
//! stream with the stream's name, one slice per record. Times are microseconds from the earliest
//! start.
//! @throws plan_error when a record names a rank or an instruction that is not in `plans`.
void write_chrome_trace(std::ostream& out, std::span<const plan_view> plans,
                        std::span<const trace_record> records);

//! An order that the plan demands and the times contradict.
struct broken_order {
  std::string text;  //!< names both instructions, the step and the reason
};

//! Whether measured times respect every order that the plans demand within and between the given
//! steps: stream order, event waits, and messages (a receive does not end before its send starts;
//! under `rendezvous` nor a send before its receive starts; no member of a collective ends before
//! all have started). Times of different ranks are held against each other as far as they are sure.
//! An instruction of a recorded step that has no record breaks the orders of those that come after
//! it.
//! @return the first one broken, if any.
//! @throws plan_error as above.
std::optional<broken_order> check_against(std::span<const plan_view> plans,
                                          std::span<const trace_record> records,
                                          bool rendezvous = true);

}  // namespace stretto::executor
