#pragma once

#include "stretto/base/language.hpp"  // first

#include <cstdint>

namespace stretto {

//! What a job does. The letters are those of torch.distributed.pipelining's schedule grammar.
enum class job_kind : std::uint8_t {
  forward,           //!< F
  backward,          //!< B: for the input and the weights at once
  backward_input,    //!< I: for the input only
  backward_weight,   //!< W: for the weights only
  recompute,         //!< R: the forward again, before the backward that needs it
  offload,           //!< what a forward saved, to the host
  reload,            //!< and back, before the backward that needs it
  reduce_grad,       //!< REDUCE_GRAD: between replicas, tied parameters, data-parallel peers
  unshard,           //!< UNSHARD: gather a stage's sharded weights
  reshard,           //!< RESHARD: drop them again
  send_forward,      //!< SEND_F, carries the sender's stage
  receive_forward,   //!< RECV_F, carries the receiver's stage
  send_backward,     //!< SEND_B, carries the sender's stage
  receive_backward,  //!< RECV_B, carries the receiver's stage
  all_reduce,        //!< the sum that `reduce_grad` prepared; `microbatch` is the group
  all_gather,        //!< and the one that `unshard` did
  optimizer,         //!< the weight update of the rank's stages
  end_step,          //!< after everything else of the rank's step; runs nothing
};
//! How many kinds there are.
inline constexpr int job_kind_count = static_cast<int>(job_kind::end_step) + 1;

//! One stage's work on one slice of one micro-batch.
struct job {
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  std::int16_t slice = 0;
  job_kind kind = job_kind::forward;
  //! Runs as one node with the job that follows it in the list: a forward and a backward of
  //! different micro-batches, overlapped.
  bool paired = false;

  constexpr bool operator==(const job&) const = default;
};

//! F, B, I, W or R: what occupies a rank's compute stream.
constexpr bool is_compute(job_kind kind) { return kind <= job_kind::recompute; }
//! OFFLOAD or RELOAD: what copies between the device and the host, beside the compute stream.
constexpr bool is_copy(job_kind kind) {
  return kind == job_kind::offload || kind == job_kind::reload;
}
//! UNSHARD or RESHARD: what gathers a stage's sharded weights, beside the compute stream, and drops
//! them.
constexpr bool is_gather(job_kind kind) {
  return kind == job_kind::unshard || kind == job_kind::reshard;
}
//! REDUCE_GRAD or UNSHARD: what takes what it does of a stage as a whole, not of a micro-batch.
constexpr bool is_of_stage(job_kind kind) {
  return kind == job_kind::reduce_grad || kind == job_kind::unshard;
}
//! ALL_REDUCE or ALL_GATHER: what the members of a group do together; `microbatch` is the group.
constexpr bool is_collective(job_kind kind) {
  return kind == job_kind::all_reduce || kind == job_kind::all_gather;
}
//! What takes time and memory by the job table for a micro-batch: what computes, and copies. (Of
//! `reduce_grad` it has the time, which only stretto::measure counts; of `unshard` both.)
constexpr bool has_cost(job_kind kind) { return kind <= job_kind::reload; }
//! B or I: what produces the gradient that the stage before waits for.
constexpr bool is_input_gradient(job_kind kind) {
  return kind == job_kind::backward || kind == job_kind::backward_input;
}
//! SEND_F or SEND_B.
constexpr bool is_send(job_kind kind) {
  return kind == job_kind::send_forward || kind == job_kind::send_backward;
}
//! RECV_F or RECV_B.
constexpr bool is_receive(job_kind kind) {
  return kind == job_kind::receive_forward || kind == job_kind::receive_backward;
}
//! What one rank does of a message to or from a neighbour.
constexpr bool is_message(job_kind kind) {
  return kind >= job_kind::send_forward && kind <= job_kind::receive_backward;
}
//! What is of one (stage, micro-batch, slice), not of a stage, a rank or the step.
constexpr bool is_of_cell(job_kind kind) { return has_cost(kind) || is_message(kind); }

//! The receive that takes what `send` sends: `0SEND_F3` meets `1RECV_F3`, `1SEND_B3` `0RECV_B3`.
constexpr job matching_receive(job send) {
  const bool ahead = send.kind == job_kind::send_forward;
  send.kind = ahead ? job_kind::receive_forward : job_kind::receive_backward;
  send.stage += ahead ? 1 : -1;
  return send;
}
//! The send that `receive` takes.
constexpr job matching_send(job receive) {
  const bool ahead = receive.kind == job_kind::receive_forward;
  receive.kind = ahead ? job_kind::send_forward : job_kind::send_backward;
  receive.stage += ahead ? -1 : 1;
  return receive;
}

}  // namespace stretto
