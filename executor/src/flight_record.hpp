#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "stretto/executor/meetings.hpp"
#include "stretto/executor/runner.hpp"

namespace stretto::executor {

//! How far each stream of each rank came in the step, beside what the plan has for it: the last
//! instructions that are done and the next ones, whether they were issued and have started, what
//! they wait for, and of messages and sums number, bytes and how far the other side is. Nothing is
//! kept for it during steps: instructions of a stream end in the plan's order, so that the last one
//! tells of all. Of running threads it is a picture in motion.
//! @param culprit  the instruction that failed or holds up the rest; -1: none
std::string flight_record(std::span<const std::unique_ptr<runner>> ranks, const meetings& met,
                          std::int64_t step, place culprit);

}  // namespace stretto::executor
