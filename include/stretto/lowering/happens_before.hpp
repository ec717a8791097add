#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/stream_type.hpp"

namespace stretto::lowering {

using stretto::max_streams;

//! Which neighbour `peer` is of `rank` on the ring of ranks: 0 previous, 1 next, -1 neither. With
//! two ranks the other one is next of the first and previous of the second.
constexpr int side_of(int rank, int peer, int ranks) {
  return peer == rank       ? -1
         : peer == rank + 1 ? 1
         : peer == rank - 1 ? 0
         : rank == ranks - 1 && peer == 0 ? 1
         : rank == 0 && peer == ranks - 1 ? 0
                                          : -1;
}

//! What is certainly done when one instruction is done (itself included): on every stream of its
//! own rank, and of each neighbour for the latest of its sends to this rank (or of its collectives
//! with it), the latest instruction known, as index plus one. Streams run in order, so everything
//! before is done too. `begun`: the rank's previous step has ended.
struct clock {
  static constexpr std::int32_t open = -1, step_start = -2;  //!< see `gate`
  // No initialisers: tables of these are large, and a compiler is quicker to fill them with zeros.
  std::int32_t own[max_streams];
  std::int32_t side[2];  //!< of the previous rank, of the next
  bool begun;
  bool again;            //!< of a forward: it runs a second time
  bool far;              //!< something is known of a stream from 5 on, which few plans have
  std::uint8_t stream;   //!< the instruction's own
  std::int32_t partner;  //!< of a message: index of the other half on its rank, plus one,
  std::int32_t peer;     //!< and that rank, as data_order found it
  std::int32_t after;  //!< by data alone: what it had to wait for, because its stream did not know
                       //!< that this is done: index plus one
  std::int32_t lap;      //!< of a message: index of the rank's send that it is the end of, plus one
  std::int32_t gate;     //!< of a receive: what it must not be posted before, unless its stream
                         //!< says so: the end of a job (its index), or the step's start

  constexpr bool operator==(const clock&) const = default;
  //! Keeps the later of each entry. One expression on purpose: constant evaluation counts
  //! statements; and from a copy, which compilers read faster.
  constexpr void join(const clock& other) {
    clock its = other;
    static_assert(max_streams == 8);
    (own[0] < its.own[0] ? own[0] = its.own[0] : 0, own[1] < its.own[1] ? own[1] = its.own[1] : 0,
     own[2] < its.own[2] ? own[2] = its.own[2] : 0, own[3] < its.own[3] ? own[3] = its.own[3] : 0,
     own[4] < its.own[4] ? own[4] = its.own[4] : 0, begun ? false : begun = its.begun,
     side[0] < its.side[0] ? side[0] = its.side[0] : 0,
     side[1] < its.side[1] ? side[1] = its.side[1] : 0);
    if (its.far)
      (own[5] < its.own[5] ? own[5] = its.own[5] : 0, own[6] < its.own[6] ? own[6] = its.own[6] : 0,
       own[7] < its.own[7] ? own[7] = its.own[7] : 0, far = true);
  }
};

//! Happens-before over the instructions of all ranks, fed in an order in which causes precede
//! effects. Edges: stream order, events, and messages: a receive comes after what its send comes
//! after. Not the other way: transports may take a message before anybody asks for it, so that a
//! send which is done says nothing of the receiver. Knowledge of another rank travels with the
//! messages that come back from it; only neighbours are remembered,
//! so that a clock has constant size: for one or two hops this is all there is, along longer ways
//! it is a sound under-estimate (Paddle's rule "a receive implies the sends before it", derived
//! instead of assumed).
class happens_before {
 public:
  //! `clocks` has room for ranks * stride, fresh, and is kept by the caller.
  constexpr happens_before(clock* clocks, int ranks, int stride)
      : ranks_(ranks), rows_(ranks), row_(rows_.data()) {
    for (int rank = 0; rank < ranks; ++rank)
      row_[rank].clocks = clocks + static_cast<std::int64_t>(rank) * stride;
  }
  constexpr ~happens_before() = default;  // nvcc does not find it constexpr by itself

  //! The instruction comes to its stream: after everything that stream holds. Nothing that it knows
  //! later comes behind it, so it may say at once that it is done.
  constexpr clock& arrive(int rank, int index, int stream) {
    row& of = row_[rank];
    clock& here = of.clocks[index];
    if (of.last[stream] > 0) here = of.clocks[of.last[stream] - 1];
    else here.stream = static_cast<std::uint8_t>(stream), here.far = stream >= 5;
    here.own[stream] = of.last[stream] = index + 1;
    return here;
  }
  //! The same of an instruction that also comes after `job` of the compute stream, and after
  //! nothing else. Its clock's `after` is that job's if its stream must wait for it, and else 0.
  constexpr clock& follow(int rank, int index, int stream, std::int32_t job) {
    row& of = row_[rank];
    clock& here = of.clocks[index];
    if (of.followed[stream] == of.last[stream]) {
      of.followed[stream] = index + 1;
      if (of.last[stream] == 0 || of.clocks[of.last[stream] - 1].own[0] <= job) {
        // The stream holds what waited for earlier jobs, and nothing that this one does not know.
        here = of.clocks[job];
        here.stream = static_cast<std::uint8_t>(stream);
        if (stream >= 5) here.far = true;
        here.after = job + 1;
        here.own[stream] = of.last[stream] = index + 1;
        return here;
      }
    }
    arrive(rank, index, stream).after = 0;
    if (here.own[0] <= job) here.join(of.clocks[job]), here.after = job + 1;
    return here;
  }
  constexpr clock* row_of(int rank) { return row_[rank].clocks; }
  //! A send and its receive, which have come to their streams, are done.
  //! @param side  of the sender that the receiver is on; see side_of
  static constexpr void meet(int side, int send, clock& sends, int receive, clock& receives) {
    if (side >= 0) {
      const clock* const there = &receives - receive;
      const std::int32_t heard = sends.side[side];
      receives.side[1 - side] = send + 1;  // of one stream, so later than what was known
      // What comes back is mostly known there already.
      if (heard > 0 && receives.own[there[heard - 1].stream] < heard)
        receives.join(there[heard - 1]);
    }
    sends.partner = receive + 1, receives.partner = send + 1, receives.lap = 0;
  }
  //! All members come to a collective, are done as one, and learn what their neighbours knew.
  template <class Members>
  constexpr void join(const Members& members, const std::int32_t* steps) {
    scratch<clock> before(ranks_);
    scratch<bool> member(ranks_);
    for (std::int32_t rank : members) {
      before[rank] = row_of(rank)[steps[rank]];
      member[rank] = true;
    }
    for (std::int32_t rank : members) {
      const int previous = rank == 0 ? ranks_ - 1 : rank - 1;
      const int next = rank == ranks_ - 1 ? 0 : rank + 1;
      if (member[previous]) learn(rank, steps[rank], previous, steps[previous], before[previous]);
      if (member[next]) learn(rank, steps[rank], next, steps[next], before[next]);
    }
  }

 private:
  //! `index` of `rank` learns what `there` of `peer` knew before it was done.
  constexpr void learn(int rank, int index, int peer, int there, const clock& known) {
    const int mine = side_of(rank, peer, ranks_);
    const int theirs = side_of(peer, rank, ranks_);
    if (mine < 0 || theirs < 0) return;
    clock* const clocks = row_of(rank);
    clocks[index].side[mine] = there + 1;
    if (known.side[theirs] > 0) clocks[index].join(clocks[known.side[theirs] - 1]);
  }

  //! Of a rank. No initialisers: see scratch.
  struct row {
    clock* clocks;
    std::int32_t last[max_streams];      // on each stream, plus one
    std::int32_t followed[max_streams];  // the same, if all of the stream follow jobs
  };

  int ranks_;
  scratch<row> rows_;
  row* row_;
};

//! The clocks of all instructions of all ranks, read only: a send is known to be taken through any
//! instruction of the peer that is known and knows the receive.
struct clock_rows {
  const clock* clocks = nullptr;
  int ranks = 0;
  int stride = 0;

  constexpr const clock* row(int rank) const {
    return clocks + static_cast<std::int64_t>(rank) * stride;
  }
  constexpr const clock& at(int rank, int index) const {
    return clocks[static_cast<std::int64_t>(rank) * stride + index];
  }
  //! Whether instruction `index` of a rank knows that its instruction `earlier` is done.
  constexpr bool knows(int rank, int index, int earlier) const {
    const clock* const row = clocks + static_cast<std::int64_t>(rank) * stride;
    return row[index].own[row[earlier].stream] > earlier;
  }
};

}  // namespace stretto::lowering
