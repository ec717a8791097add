#pragma once

#include "stretto/model/replay.hpp"

namespace stretto::check {

//! Rule `live`. The replay ends with every job of every list run: no rank waits for a job that
//! waits, over whatever other ranks, for it. Lists that lack jobs may well be live; `complete` is
//! what finds those.
//! @return ok; fault::deadlocked with the first rank that is stuck, its job and the job that it
//!         waits for; with messages also fault::rendezvous; fault::incomplete for a job that is
//!         out of range.
constexpr verdict live(const replay_input& input) {
  return replay(input);
}

}  // namespace stretto::check
