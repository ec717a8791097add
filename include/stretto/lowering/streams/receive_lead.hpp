#pragma once

#include "stretto/lowering/streams/concept.hpp"
#include "stretto/lowering/streams/separate.hpp"

namespace stretto::overlap {

//! `Base`, but no receive is posted while more than `lead` nodes (jobs, or pairs of them) of its
//! rank are still to run before the one that it is for. A receive that waits for its message keeps
//! multiprocessors from the kernels beside it (a waiting NCCL kernel spins on them), so that "as
//! early as possible" has its price; too late has one, too: a message leaves no sooner than its
//! receive is posted. With a lead of 1 a message has the time of one node to come, with 0 it comes
//! while the rank stands still. Its send is kept back with it, so that the one global order of all
//! calls stays one of causes before effects; the sender keeps what it sends for so long, and the
//! receiver needs its buffer later.
template <Policy Base = separate, int Lead = 1>
struct with_receive_lead : Base {
  static_assert(Lead >= 0, "stretto: a receive lead is a number of nodes");
  int lead = Lead;  //!< below zero: as early as possible

  constexpr int receive_lead() const { return lead; }
};

}  // namespace stretto::overlap
