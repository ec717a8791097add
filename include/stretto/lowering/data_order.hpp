#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/laps.hpp"
#include "stretto/lowering/receive_gates.hpp"
#include "stretto/lowering/replica_groups.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::lowering {

//! Happens-before by data alone: streams, messages, and the events without which no value would be
//! there (a send after its maker, a job after the receive of its input, a collective after what
//! prepares it and before what reads it). Is told of lists with messages as they are written, and
//! fills a clock for each entry. What more is ordered, because bytes are used again, is decided
//! rank by rank afterwards.
template <class Overlap>
class data_order : public replay_observer {
 public:
  //! @param compute  the jobs, and the groups of their collectives
  //! @param lists    with messages; an entry may be written just before it is told of
  //! @param clocks   fresh, ranks * lists.stride
  constexpr data_order(const replay_input& compute, const job_rows& lists, const Overlap& overlap,
                       clock* clocks)
      : in_(compute),
        items_(lists.items),
        ranks_(lists.ranks),
        stride_(lists.stride),
        microbatches_(compute.microbatches),
        slices_(compute.slices),
        overlap_(overlap),
        copy_stream_(ranks_),
        collective_stream_(ranks_),
        known_(clocks, ranks_, stride_),
        channels_(4 * std::int64_t{ranks_}),
        cells_(static_cast<std::int64_t>(compute.where.stages()) * microbatches_ * slices_),
        cell_(cells_.data()),
        collective_(ranks_),
        reduced_(ranks_),
        gathers_(ranks_, compute.where.stages(), compute.groups),
        gathered_(gathers_.any ? std::int64_t{ranks_} * compute.where.stages() : 0),
        laps_(ranks_, compute.where.stages(), microbatches_, slices_,
              compute.where.kind == placement_kind::wave),
        gates_(compute),
        nodes_(compute.receive_lead < 0 ? 0 : ranks_),
        node_end_(compute.receive_lead < 0 ? 0 : std::int64_t{ranks_} * stride_) {
    for (int rank = 0; rank < ranks_; ++rank) {
      copy_stream_[rank] = overlap.stream_of(job_kind::offload, rank, -1, ranks_);
      collective_stream_[rank] = overlap.stream_of(job_kind::all_reduce, rank, -1, ranks_);
    }
  }
  constexpr ~data_order() = default;  // nvcc does not find it constexpr by itself

  constexpr void ran(int rank, int index, const job& work) {
    const bool copies = work.kind == job_kind::offload || work.kind == job_kind::reload;
    clock& here = known_.arrive(rank, index,
                                work.kind <= job_kind::recompute ? 0
                                : copies                         ? copy_stream_[rank]
                                                                 : stream_of(rank, work.kind));
    here.begun = true;  // a copy comes after its forward
    std::int32_t from = 0;
    if (copies) {
      cell& at = cell_[cell_of(work)];
      here.gate = clock::open;  // nor is the step's end to be waited for
      from = work.kind == job_kind::offload ? at.forward : 0;
      at.copy = index + 1;
    } else if (work.kind <= job_kind::recompute) {
      cell& at = cell_[cell_of(work)];
      if (gathers_.any) join_gather(rank, index, work, here);
      if (work.kind == job_kind::forward) {
        at.forward = index + 1, from = at.input;
      } else if (work.kind == job_kind::recompute) {  // which reads what its forward has read
        (&here)[at.forward - 1 - index].again = true;
      } else {
        if (work.kind == job_kind::backward || work.kind == job_kind::backward_input)
          at.backward = index + 1;
        from = at.gradient;
        if (at.copy > 0 && here.own[copy_stream_[rank]] < at.copy)
          here.join((&here)[at.copy - 1 - index]);
      }
    } else if (work.kind == job_kind::all_gather) {
      from = index;  // it stands behind what has prepared it
      gathered_[gather_of(rank, work)] = index + 1;
    } else if (!is_gather(work.kind)) {
      if (!in_.sums_replicas(work)) from = collective_[rank];
      else if (!in_.is_data_parallel(rank, work)) from = reduced_[rank];
    }
    here.after = 0;
    if (from > 0) {
      const clock& brought = (&here)[from - 1 - index];
      if (here.own[brought.stream] < from) here.join(brought), here.after = from;
    }
    if (in_.receive_lead >= 0 && work.kind <= job_kind::recompute)
      node_end_[std::int64_t{rank} * stride_ + nodes_.come(rank, work)] = index;
  }

  constexpr void met(int sender, int send, int receiver, int receive) {
    job sent = items_[std::int64_t{sender} * stride_ + send];
    const bool ahead = sent.kind == job_kind::send_forward;
    channel& of = channels_[2 * (2 * sender + ahead) + (receiver > sender)];
    if (of.receiver != receiver + 1) {
      const job_kind takes = ahead ? job_kind::receive_forward : job_kind::receive_backward;
      of = {receiver + 1, overlap_.stream_of(sent.kind, sender, receiver, ranks_),
            overlap_.stream_of(takes, receiver, sender, ranks_), side_of(sender, receiver, ranks_)};
    }
    channel through = of;
    const std::int64_t from = cell_of(sent);
    clock& sends = known_.follow(sender, send, through.sends,
                                 (ahead ? cell_[from].forward : cell_[from].backward) - 1);
    sends.peer = receiver;
    clock& receives = known_.arrive(receiver, receive, through.receives);
    receives.peer = sender;
    if (through.receives == 0) receives.begun = true;  // the step ended on that stream
    std::int32_t gate = clock::open;
    if (in_.receive_lead >= 0) gate = gate_of(sent, ahead, receiver, receives);
    known_.meet(through.side, send, sends, receive, receives);
    if (laps_.any) laps_.met(sent, sender, send, sends, receiver, receive, receives);
    if (!receives.begun) receives.begun = true, gate = clock::step_start;
    sends.gate = clock::open, receives.gate = gate;
    const std::int64_t per_stage = std::int64_t{microbatches_} * slices_;
    if (ahead) cell_[from + per_stage].input = receive + 1;
    else cell_[from - per_stage].gradient = receive + 1;
  }

  constexpr void joined(const rank_group& group, const std::int32_t* steps) {
    for (std::int32_t rank : group.members) {
      known_.arrive(rank, steps[rank], collective_stream_[rank])
          .join(known_.row_of(rank)[steps[rank] - 1]);
      collective_[rank] = steps[rank] + 1;
      if (group.data_parallel) reduced_[rank] = steps[rank] + 1;
    }
    known_.join(group.members, steps);
  }

 private:
  //! Of what is neither of a micro-batch nor a sum: weights are gathered where gradients are
  //! summed.
  constexpr int stream_of(int rank, job_kind kind) const {
    return kind == job_kind::all_gather ? collective_stream_[rank]
           : is_gather(kind)            ? 0
                                        : overlap_.stream_of(kind, rank, -1, ranks_);
  }
  constexpr std::int64_t gather_of(int rank, const job& work) const {
    return std::int64_t{rank} * in_.where.stages() + work.stage;
  }
  //! A job comes after the gather of its stage's weights.
  constexpr void join_gather(int rank, int index, const job& work, clock& here) {
    const std::int32_t by = gathered_[gather_of(rank, work)];
    if (by > 0 && here.own[collective_stream_[rank]] < by) here.join((&here)[by - 1 - index]);
  }
  //! The job that must have ended before `receives` is posted, which is known there from now on.
  constexpr std::int32_t gate_of(const job& sent, bool ahead, int receiver, clock& receives) {
    const std::int32_t node = gates_.of(sent.stage + (ahead ? 1 : -1), sent, ahead);
    if (node < 0) return clock::open;
    const std::int32_t gate = node_end_[std::int64_t{receiver} * stride_ + node];
    if (receives.own[0] > gate) return clock::open;
    receives.join(known_.row_of(receiver)[gate]);
    return gate;
  }
  //! Which index of its rank's list makes and which brings what a (stage, micro-batch, slice)
  //! needs, plus one. No initialisers: see scratch.
  struct cell {
    std::int32_t forward;   // F
    std::int32_t backward;  // B or I
    std::int32_t input;     // RECV_F
    std::int32_t gradient;  // RECV_B
    std::int32_t copy;      // OFFLOAD, then RELOAD
  };
  //! Between two ranks, for messages one way: the latest that was looked up.
  struct channel {
    std::int32_t receiver = 0;  // plus one
    int sends = 0;              // streams
    int receives = 0;
    int side = -1;  // see side_of
  };
  constexpr std::int64_t cell_of(const job& work) const {
    return (std::int64_t{work.stage} * microbatches_ + work.microbatch) * slices_ + work.slice;
  }

  const replay_input& in_;
  const job* items_;
  int ranks_;
  int stride_;
  int microbatches_;
  int slices_;
  Overlap overlap_;
  scratch<int> copy_stream_;  // of each rank
  scratch<int> collective_stream_;
  happens_before known_;
  scratch<channel> channels_;  // of each sender and way, to lower and higher ranks
  scratch<cell> cells_;
  cell* cell_;
  scratch<std::int32_t> collective_;  // the latest on each rank, plus one,
  scratch<std::int32_t> reduced_;     // and the latest over data-parallel replicas
  replica_groups gathers_;
  scratch<std::int32_t> gathered_;  // latest of each stage on a rank, plus one
  laps laps_;
  receive_gates gates_;
  node_counter nodes_;
  scratch<std::int32_t> node_end_;  // index of the last job of each node of a rank
};

}  // namespace stretto::lowering
