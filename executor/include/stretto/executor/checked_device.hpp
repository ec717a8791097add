#pragma once

#include <memory>
#include <span>
#include <stdexcept>

#include "stretto/executor/device.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! Two accesses to the same bytes, one of them a write, that nothing orders; or a wait for an event
//! that nobody has recorded. what() names both instructions, the bytes, and the order that is
//! missing.
class race_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

//! What the devices of all ranks share that are checked: a clock for each stream of each rank, of
//! how far each other one is known to be, and of every piece of memory who wrote and read it last.
//! An instruction comes after what its stream came after, what the events know that it waited for,
//! and what the messages and collectives know that it took part in, the k-th send of a channel with
//! its k-th receive. (As CSAN, PyTorch's sanitizer for streams, does for one process.)
//!
//! A release is held to the same: it comes after all accesses to the buffer, and before the next
//! ones to its bytes. Steps follow one another in the same clocks.
class race_check;

//! @param plans       of all ranks of the job; they outlive what is made here
//! @param rendezvous  whether both sides of a message end together; else who sends knows nothing of
//!                    who receives
//! @throws plan_error when ranks are missing
std::shared_ptr<race_check> make_race_check(std::span<const plan_view> plans,
                                            bool rendezvous = true);

//! The device, with every wait, record and instruction held against the accesses before it, as it
//! is enqueued and before it can run: begin() throws race_error. What an instruction touches is
//! what its plan declares; how it is ordered, what is really called. The calls for all ranks come
//! from one thread, those of instructions that meet begun before one of them ends. Allocates
//! nothing in a step.
//! @param plan  an index into the check's plans
std::unique_ptr<device> make_checked_device(std::unique_ptr<device> on,
                                            std::shared_ptr<race_check> with, std::size_t plan);

}  // namespace stretto::executor
