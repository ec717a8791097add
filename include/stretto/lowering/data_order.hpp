#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/laps.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::lowering {

//! Which index of its rank's list makes and which brings what a cell (stage, micro-batch, slice)
//! needs; watches nothing, only remembers.
struct cell_index {
  int microbatches;
  int slices;

  constexpr std::int64_t operator()(const job& work) const {
    return (static_cast<std::int64_t>(work.stage) * microbatches + work.microbatch) * slices +
           work.slice;
  }
};

//! Happens-before by data alone: streams, messages, and the events without which no value would be
//! there (a send after its maker, a job after the receive of its input, a collective after what
//! prepares it and before what reads it). Watches a walk or a replay of lists with messages and
//! fills a clock for each entry. What more is ordered, because bytes are used again, is decided
//! rank by rank afterwards.
template <class Overlap>
class data_order : public replay_observer {
 public:
  //! `clocks`: fresh, ranks * rows.stride.
  constexpr data_order(const replay_input& input, const Overlap& overlap, clock* clocks)
      : in_(input),
        overlap_(overlap),
        cell_{input.microbatches, input.slices},
        known_(clocks, input.rows.ranks, input.rows.stride),
        clocks_{clocks, input.rows.ranks, input.rows.stride},
        forward_(cells()),
        backward_(cells()),
        input_(cells()),
        gradient_(cells()),
        collective_(input.rows.ranks),
        laps_(input.rows.ranks, input.where.stages(), input.microbatches, input.slices) {}

  constexpr void ran(int rank, int index, const job& work, std::int64_t, std::int64_t) {
    known_.arrive(rank, index, 0);
    known_.begin(rank, index);
    if (is_compute(work.kind)) {
      const std::int64_t here = cell_(work);
      if (work.kind == job_kind::forward) {
        forward_[here] = index + 1;
        if (input_[here] > 0) known_.after(rank, index, input_[here] - 1);
      } else {
        if (is_input_gradient(work.kind)) backward_[here] = index + 1;
        if (gradient_[here] > 0) known_.after(rank, index, gradient_[here] - 1);
      }
    } else if (collective_[rank] > 0 && !in_.sums_replicas(work)) {
      known_.after(rank, index, collective_[rank] - 1);
    }
    known_.done(rank, index, 0);
  }

  constexpr void met(int sender, int send, int receiver, int receive) {
    const job& sent = in_.rows.at(sender, send);
    const job& taken = in_.rows.at(receiver, receive);
    const bool ahead = sent.kind == job_kind::send_forward;
    const int ranks = in_.rows.ranks;
    const int from = overlap_.stream_of(sent.kind, sender, receiver, ranks);
    const int to = overlap_.stream_of(taken.kind, receiver, sender, ranks);
    known_.arrive(sender, send, from);
    known_.after(sender, send, (ahead ? forward_ : backward_)[cell_(sent)] - 1);
    known_.arrive(receiver, receive, to);
    if (to == 0) known_.begin(receiver, receive);  // the step ended on that stream
    known_.meet(sender, send, from, receiver, receive, to);
    laps_.met(known_, clocks_, sent, sender, send, receiver, receive, to);
    if (!clocks_.at(receiver, receive).begun) known_.gate(receiver, receive);
    (ahead ? input_ : gradient_)[cell_(taken)] = receive + 1;
  }

  constexpr void joined(const rank_group& group, const std::int32_t* steps) {
    const int ranks = in_.rows.ranks;
    scratch<clock> before(ranks);
    scratch<bool> member(ranks);
    const int stream = overlap_.stream_of(job_kind::all_reduce, 0, -1, ranks);
    for (std::int32_t rank : group.members) {
      known_.arrive(rank, steps[rank], stream);
      known_.after(rank, steps[rank], steps[rank] - 1);
      before[rank] = clocks_.at(rank, steps[rank]);
      member[rank] = true;
    }
    for (std::int32_t rank : group.members) {
      const int previous = rank == 0 ? ranks - 1 : rank - 1;
      const int next = rank == ranks - 1 ? 0 : rank + 1;
      if (member[previous])
        known_.learn(rank, steps[rank], previous, steps[previous], before[previous],
                     false);
      if (member[next]) known_.learn(rank, steps[rank], next, steps[next], before[next], false);
    }
    for (std::int32_t rank : group.members) {
      known_.done(rank, steps[rank], stream);
      collective_[rank] = steps[rank] + 1;
    }
  }

 private:
  constexpr std::int64_t cells() const {
    return static_cast<std::int64_t>(in_.where.stages()) * in_.microbatches * in_.slices;
  }

  const replay_input& in_;
  Overlap overlap_;
  cell_index cell_;
  happens_before known_;
  clock_rows clocks_;
  scratch<std::int32_t> forward_;   // index of F, plus one
  scratch<std::int32_t> backward_;  // of B or I
  scratch<std::int32_t> input_;     // of RECV_F
  scratch<std::int32_t> gradient_;  // of RECV_B
  scratch<std::int32_t> collective_;
  laps laps_;
};

}  // namespace stretto::lowering
