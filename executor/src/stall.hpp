#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/executor/meetings.hpp"
#include "stretto/executor/runner.hpp"

namespace stretto::executor {

//! Why a step does not end.
struct stall {
  place at{};          //!< the instruction that holds up the rest
  std::string text{};  //!< what it does, and who waits for it
  std::string others{};  //!< a line of where the other ranks are; empty: none is under way
};

//! Looks at what the ranks have started and finished and follows, from the first missing
//! instruction, what each one waits for: to a callback that runs, a message that nobody takes, or
//! around a circle. The picture is one of running threads; it is exact once nothing moves.
//! @param issuing  where the thread that issues for all ranks stopped, if it did not come to the
//! end
stall find_stall(std::span<const std::unique_ptr<runner>> ranks, const meetings& met,
                 std::int64_t step, std::optional<place> issuing = {});

//! What of the step each rank here has exchanged with ranks of other processes, beside what its
//! plan has: with the same of the other processes it tells which message was lost. Empty without
//! such ranks. A line for each rank: "rank 0 has sent 3 of 8 messages to rank 1, received 2 of 8
//! from rank 1".
std::string exchanged_with_others(std::span<const std::unique_ptr<runner>> ranks,
                                  std::int64_t step);

}  // namespace stretto::executor
