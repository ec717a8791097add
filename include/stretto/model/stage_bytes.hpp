#pragma once

#include <cstdint>

namespace stretto {

//! Bytes at one stage; messages and stash for one micro-batch (slice). A plan's buffers are as
//! large as these numbers say, and nothing else says it: a memory policy's bytes(), or
//! plan_request::stages. The 64 bytes that stand here, a line of memory, are for plans that nobody
//! runs, or runs with a few numbers.
struct stage_bytes {
  std::int64_t output = 64;  //!< activations for the next stage; their gradient is as large
  std::int64_t stash = 64;   //!< what the forward saves for the backward
  //! The gradients of the stage's weights, once: what replicas of the stage sum. In single
  //! precision; where weights are dealt to replicas, a multiple of how many there are.
  std::int64_t gradients = 64;
  //! What it saves beside the stash, for the backward for the weights, which then reads no stash:
  //! that is free after the backward for the input, which leaves here what the other needs. 0: the
  //! stash is kept for both. Steps of forwards alone have none.
  std::int64_t kept = 0;
  //! The stage's weights as its jobs read them, where data-parallel replicas hold a part each and
  //! gather them (plan_request::gathered): a multiple of how many replicas there are.
  std::int64_t weights = 64;
  //! The stash of a forward that runs a second time, which then has nothing kept: what it saves is
  //! gone with it, and it may do with less, as its peak (job_cost) may say that it does. -1: all
  //! that others have.
  std::int64_t passing = -1;
  //! What the backward for the input leaves for that for the weights beside what is kept:
  //! gradients, or what it has made again. A whole backward has no such room.
  std::int64_t left = 0;

  constexpr bool operator==(const stage_bytes&) const = default;
};

//! What one layer adds to its stage's.
struct layer_bytes {
  std::int64_t stash = 0;
  std::int64_t gradients = 0;
  std::int64_t kept = 0;
  std::int64_t weights = 0;
  std::int64_t left = 0;

  constexpr bool operator==(const layer_bytes&) const = default;
};

}  // namespace stretto
