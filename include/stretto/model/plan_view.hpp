#pragma once

#include <cstdint>
#include <span>

#include "stretto/model/job.hpp"
#include "stretto/model/rows.hpp"

namespace stretto {

//! What an instruction asks of the executor.
//
// A new one, last, is added to: is_collective, is_sum and meets_others below; name
// (plan_names.hpp); what writes it (lowering/instructions.hpp, of an op lowering/expand.hpp) and
// what a list is held to have (check/as_listed.hpp, action_table); in the executor check_action
// (validate_plan.cpp), the runner's enqueue_work, category (trace.cpp), how a stall is told
// (stall.cpp) and, where others have their part in it, kind_of_meeting (plan_lookup.hpp) and every
// transport.
enum class action : std::uint8_t {
  run,         //!< call the stage
  send,        //!< hand the message in its one buffer to `peer`
  receive,     //!< fill its one buffer from `peer`
  offload,     //!< copy its first buffer, a stash, into its second, on the host
  reload,      //!< and its first, on the host, into its second
  all_reduce,  //!< sum its one buffer over the members of group `peer`, in rank order
  end_step,    //!< nothing; everything of the rank's step comes before it
  share_sum,   //!< sum its one buffer over the workers that share the rank's stages
  all_gather,  //!< fill its one buffer with the parts that the members of group `peer` have there:
               //!< they are equally long, and stand in rank order
  reduce_scatter,  //!< sum its one buffer as all_reduce does, of which each member gets its own
                   //!< part: they are equally long, and stand in rank order
};
//! How many actions there are.
inline constexpr int action_count = static_cast<int>(action::reduce_scatter) + 1;
//! What the members of a group do together.
constexpr bool is_collective(action act) {
  return act == action::all_reduce || act == action::all_gather || act == action::reduce_scatter;
}
//! Whether they sum: a group's elements.
constexpr bool is_sum(action act) {
  return act == action::all_reduce || act == action::reduce_scatter;
}
//! What others have their part in: a message, or a collective.
constexpr bool meets_others(action act) {
  return act == action::send || act == action::receive || is_collective(act);
}

//! Why an instruction waits for an event.
enum class wait_reason : std::uint8_t {
  data,           //!< a buffer is written before it is read, or read before it is overwritten
  gate,           //!< not before the previous step of this rank has ended
  starts_before,  //!< not before another instruction has started
  bound,          //!< the step's end comes after everything in it
  lead,           //!< a receive is not posted earlier than plan_view::receive_lead says
};

//! Wait for the record of `event`: of this step, or of the step before (`previous_step`; satisfied
//! in the first step).
struct event_wait {
  std::int32_t event = -1;
  wait_reason why = wait_reason::data;
  bool previous_step = false;

  constexpr bool operator==(const event_wait&) const = default;
};

//! What a buffer holds, seen from the stage that uses it.
enum class buffer_role : std::uint8_t {
  input,            //!< activations from the stage before
  output,           //!< activations for the stage after
  stash,            //!< what the forward saves for the backward (or that for the input)
  kept,             //!< what it saves that the backward for the weights reads, too
  left,             //!< what the backward for the input leaves for that for the weights beside
  output_gradient,  //!< gradient from the stage after
  input_gradient,   //!< gradient for the stage before
  collective,       //!< what is summed over a group
  weights,          //!< a stage's, of which each data-parallel replica holds a part, gathered
  host,             //!< a stash while it is on the host
  workspace,        //!< of one job, between its ops
};
//! Whether it is one micro-batch's, from one job of the stage to another; all else are messages.
constexpr bool is_saved(buffer_role role) {
  return role == buffer_role::stash || role == buffer_role::kept || role == buffer_role::left;
}
//! How many roles there are.
inline constexpr int buffer_role_count = static_cast<int>(buffer_role::workspace) + 1;

//! A piece of the arena, or of the host's memory behind it (buffer_role::host), in use from the
//! start of instruction `first` until just before instruction `release` starts (the instruction
//! count when it lives to the end of the step). Who gives it back: see plan_view::released_as_ends.
//! Offsets are multiples of 64 bytes.
struct buffer {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int32_t stage = 0;  //!< for buffer_role::collective: the group
  std::int32_t microbatch = 0;
  std::int16_t slice = 0;
  buffer_role role = buffer_role::input;
  std::int32_t first = 0;
  std::int32_t release = 0;

  constexpr bool operator==(const buffer&) const = default;
};

//! What an instruction does with a buffer.
enum class access : std::uint8_t { read, write, read_write };

//! One buffer that an instruction touches, under the role that it has for that instruction: a
//! stage's output that stays on its rank is the next stage's input, the same buffer.
struct buffer_use {
  std::int32_t buffer = -1;
  buffer_role role = buffer_role::input;
  access mode = access::read;

  constexpr bool operator==(const buffer_use&) const = default;
};

//! Some of a buffer's bytes.
struct byte_range {
  std::int64_t first = 0;  //!< from the buffer's beginning
  std::int64_t bytes = 0;

  constexpr bool operator==(const byte_range&) const = default;
};

//! One entry of a rank's plan. The ranges index the plan's arrays.
struct instruction {
  job what{};
  action act = action::run;
  std::uint8_t stream = 0;         //!< index into plan_view::streams
  std::int16_t wait_count = 0;
  std::int32_t use_count = 0;
  std::int32_t release_count = 0;  //!< buffers free before this instruction starts
  std::int32_t peer = -1;          //!< rank of the other side; for collectives the group
  std::int32_t first_wait = 0;     //!< into plan_view::waits
  std::int32_t first_use = 0;      //!< into plan_view::uses
  std::int32_t first_release = 0;  //!< into plan_view::released
  std::int32_t record = -1;        //!< event recorded when it is done; -1: none

  constexpr bool operator==(const instruction&) const = default;
};

//! What an instruction is of its job, in a plan whose jobs were expanded into ops.
struct op_part {
  std::int16_t op = -1;  //!< number in the program of its job; -1: the whole job
  std::int16_t piece = 0;
  std::int16_t pieces = 1;
  std::int16_t holds = 0;      //!< multiprocessors that it keeps from what computes beside it
  std::uint8_t ends = 1;       //!< how many of the rank's jobs end with it
  std::int32_t own_uses = -1;  //!< how many of its uses, from the first on, are its own; the others
                               //!< are held for all ops of its node; -1: all are its own
  std::int32_t started = -1;   //!< event recorded as it starts; -1: none

  constexpr bool operator==(const op_part&) const = default;
};

//! A stream that the executor creates. Lower numbers are more urgent, as in CUDA.
struct stream_info {
  char name[24]{};
  std::int32_t priority = 0;

  constexpr bool operator==(const stream_info&) const = default;
};

//! A collective's members are plan_view::members[first ... + count).
struct group_info {
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int64_t elements = 0;  //!< of double precision (`wide`) or single precision
  bool wide = false;
  std::int32_t stage = -1;  //!< whose replicas' gradients it sums; -1: something else
  bool shared = false;      //!< over all workers that share the ranks' stages; else each sums with
                            //!< its like of the other ranks
  //! Over the data-parallel replicas among its one rank's workers. Those groups are made, not
  //! given: plan_request::data_parallel and with_data_parallel ask for them.
  bool data_parallel = false;
  //! Of such a group: bytes of the stage's weights, of which each member holds an equal part and
  //! which they gather for their jobs; of the gradients, too, each gets the sum of its own part
  //! (action::reduce_scatter). -1: each member has them all. Made by plan_request::gathered.
  std::int64_t weights = -1;

  constexpr bool operator==(const group_info&) const = default;
};

//! One rank's frozen instruction list: what, on which stream, after which events, with which
//! buffers, and what is free after it. No template: this is what a compiled executor sees. The
//! spans point into storage that the plan's owner keeps alive. Instructions are issued in the order
//! of the list; events and buffers count from 0; a channel is a directed pair of ranks.
struct plan_view {
  int rank = 0;
  int ranks = 1;
  //! How many share each rank's stages, each with a plan (see shared): `rank` is then that of
  //! worker rank % workers of rank / workers.
  int workers = 1;
  int stages = 1;
  int microbatches = 1;
  int slices = 1;
  std::int32_t events = 0;
  std::int64_t arena_bytes = 0;
  //! What the host keeps: offsets from arena_bytes to arena_bytes + host_bytes are its own.
  std::int64_t host_bytes = 0;
  std::uint64_t digest = 0;  //!< of the whole schedule: equal on every rank of one job
  //! Every rank's jobs, messages and ends, which the digest is of: with them two processes tell
  //! what their schedules differ in. None where the plans' owner keeps none. Workers that share a
  //! rank's stages (see shared) have one list.
  job_rows lists{};
  int receive_lead = -1;     //!< see replay_input::receive_lead
  std::span<const instruction> instructions{};
  std::span<const op_part> parts{};  //!< one for each instruction, or none
  std::span<const event_wait> waits{};
  std::span<const buffer_use> uses{};
  std::span<const byte_range> ranges{};  //!< one for each use, or none: all are of whole buffers
  std::span<const std::int32_t> released{};
  std::span<const buffer> buffers{};
  std::span<const stream_info> streams{};
  std::span<const group_info> groups{};
  std::span<const std::int32_t> members{};

  constexpr op_part part_of(std::int32_t index) const {
    return parts.empty() ? op_part{} : parts[static_cast<std::size_t>(index)];
  }
  constexpr std::span<const event_wait> waits_of(const instruction& at) const {
    return waits.subspan(static_cast<std::size_t>(at.first_wait),
                         static_cast<std::size_t>(at.wait_count));
  }
  constexpr std::span<const buffer_use> uses_of(const instruction& at) const {
    return uses.subspan(static_cast<std::size_t>(at.first_use),
                        static_cast<std::size_t>(at.use_count));
  }
  //! What a use, by its index, is of its buffer: all of it, but for pieces of ops.
  constexpr byte_range range_of(std::int32_t use) const {
    const auto at = static_cast<std::size_t>(use);
    if (!ranges.empty()) return ranges[at];
    return {0, buffers[static_cast<std::size_t>(uses[at].buffer)].bytes};
  }
  constexpr std::span<const std::int32_t> released_before(const instruction& at) const {
    return released.subspan(static_cast<std::size_t>(at.first_release),
                            static_cast<std::size_t>(at.release_count));
  }
  //! A release lies between two instructions of the list, and one of them gives the bytes back on
  //! its stream: the one before, as it ends and before it records, when it uses the buffer and is
  //! no send; otherwise the one after, `index`, once its waits are over and before it starts. (Of a
  //! send it is often only known that the peer has taken the message, which may be before it ends.)
  //! @return whether it is the one before
  constexpr bool released_as_ends(std::int32_t id, std::int32_t index) const {
    if (index < 1) return false;
    const instruction& before = instructions.data()[index - 1];
    if (before.act == action::send) return false;
    const buffer_use* const its = uses.data() + before.first_use;  // compilers are slow at spans
    for (std::int32_t use = 0; use < before.use_count; ++use)
      if (its[use].buffer == id) return true;
    return false;
  }
  constexpr std::span<const std::int32_t> members_of(const group_info& group) const {
    return members.subspan(static_cast<std::size_t>(group.first),
                           static_cast<std::size_t>(group.count));
  }
};

}  // namespace stretto
