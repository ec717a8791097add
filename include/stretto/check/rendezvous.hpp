#pragma once

#include "stretto/model/replay.hpp"

namespace stretto::check {

//! Rule rendezvous: on every channel the k-th send and the k-th receive are the same message,
//! and the step ends even when every rank issues its list one entry at a time and every message
//! blocks both ranks until they stand at its two halves. That is acyclicity of the graph of all
//! entries under host issue order with each send fused to its receive: stronger than what a run
//! with streams needs, hence independent of launch queues, hardware queues and buffering.
//! @param input lists with messages; `messages` is taken as set
//! @return ok, or fault::rendezvous (or what the replay finds first) with rank, step and job
constexpr verdict rendezvous(replay_input input) {
  input.messages = true;
  return replay(input);
}

}  // namespace stretto::check
