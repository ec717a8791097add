#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"

namespace stretto::lowering {

inline constexpr int max_streams = 8;

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
//! own rank, and of each neighbour for the latest of its sends to this rank and of its receives from
//! it, the latest instruction known, as index plus one. Streams run in order, so everything before
//! is done too. `begun`: the rank's previous step has ended; `gated`:
//! this very instruction waits for that.
struct clock {
  std::int32_t own[max_streams]{};
  std::int32_t side[4]{};  //!< previous rank: sent, received; next rank: sent, received
  bool begun = false;
  bool gated = false;
  std::int32_t partner = -1;  //!< of a message: index of the other half on its rank
  std::int32_t lap = -1;      //!< of a receive: index of the rank's send that it is the end of

  constexpr bool operator==(const clock&) const = default;
  //! Keeps the later of each entry. One expression on purpose: constant evaluation counts
  //! statements.
  constexpr void join(const clock& other) {
    const std::int32_t* theirs = other.own;
    static_assert(max_streams == 8);
    (own[0] < theirs[0] ? own[0] = theirs[0] : 0, own[1] < theirs[1] ? own[1] = theirs[1] : 0,
     own[2] < theirs[2] ? own[2] = theirs[2] : 0, own[3] < theirs[3] ? own[3] = theirs[3] : 0,
     own[4] < theirs[4] ? own[4] = theirs[4] : 0, own[5] < theirs[5] ? own[5] = theirs[5] : 0,
     own[6] < theirs[6] ? own[6] = theirs[6] : 0, own[7] < theirs[7] ? own[7] = theirs[7] : 0,
     side[0] < other.side[0] ? side[0] = other.side[0] : 0,
     side[1] < other.side[1] ? side[1] = other.side[1] : 0,
     side[2] < other.side[2] ? side[2] = other.side[2] : 0,
     side[3] < other.side[3] ? side[3] = other.side[3] : 0, begun = begun || other.begun);
  }
};

//! Happens-before over the instructions of all ranks, fed in an order in which causes precede
//! effects. Edges: stream order, events, and messages, whose two halves are one node. Knowledge of
//! another rank travels with the messages that come back from it; only neighbours are remembered,
//! so that a clock has constant size: for one or two hops this is all there is, along longer ways
//! it is a sound under-estimate (Paddle's rule "a receive implies the sends before it", derived
//! instead of assumed).
class happens_before {
 public:
  //! `clocks` has room for ranks * stride, fresh, and is kept by the caller.
  constexpr happens_before(clock* clocks, int ranks, int stride)
      : clocks_(clocks), ranks_(ranks), stride_(stride), last_(ranks * max_streams) {}

  //! The instruction comes to its stream: after everything that stream holds.
  constexpr void arrive(int rank, int index, int stream) {
    std::int32_t& last = last_[rank * max_streams + stream];
    clock* const row = row_of(rank);
    if (last > 0) row[index] = row[last - 1], row[index].gated = false, row[index].partner = row[index].lap = -1;
    last = index + 1;
  }
  //! It waits for `earlier`, an instruction of the same rank.
  constexpr void after(int rank, int index, int earlier) {
    clock* const row = row_of(rank);
    row[index].join(row[earlier]);
  }
  //! It waits for the end of the rank's previous step.
  constexpr void gate(int rank, int index) {
    row_of(rank)[index].begun = row_of(rank)[index].gated = true;
  }
  //! It is on the stream on which the previous step ended.
  constexpr void begin(int rank, int index) { row_of(rank)[index].begun = true; }
  //! It is done; all its waits have been given.
  constexpr void done(int rank, int index, int stream) {
    row_of(rank)[index].own[stream] = index + 1;
  }
  //! A send and its receive are done, as one.
  constexpr void meet(int sender, int send, int send_stream, int receiver, int receive,
                      int receive_stream) {
    clock& sends = row_of(sender)[send];
    clock& receives = row_of(receiver)[receive];
    const clock sent = sends;
    learn(sender, send, receiver, receive, receives, true);
    learn(receiver, receive, sender, send, sent, false);
    sends.partner = receive, sends.own[send_stream] = send + 1;
    receives.partner = send, receives.own[receive_stream] = receive + 1;
  }
  //! What the receive `index` brings began with `send`, of the same rank.
  constexpr void lap(int rank, int index, int send) {
    after(rank, index, send);
    row_of(rank)[index].lap = send;
  }
  //! `index` of `rank` learns what `there` of `peer`, a receive or not, knew before it was done.
  constexpr void learn(int rank, int index, int peer, int there, const clock& known,
                       bool receives) {
    const int mine = 2 * side_of(rank, peer, ranks_);
    const int theirs = 2 * side_of(peer, rank, ranks_);
    if (mine < 0 || theirs < 0) return;
    clock* const row = row_of(rank);
    row[index].side[mine + receives] = there + 1;  // of one stream, so later than what was known
    if (known.side[theirs] > 0) row[index].join(row[known.side[theirs] - 1]);
    if (known.side[theirs + 1] > 0) row[index].join(row[known.side[theirs + 1] - 1]);
  }

 private:
  constexpr clock* row_of(int rank) {
    return clocks_ + static_cast<std::int64_t>(rank) * stride_;
  }

  clock* clocks_;
  int ranks_;
  int stride_;
  scratch<std::int32_t> last_;
};

//! The clocks of all instructions of all ranks, read only: a send is known to be taken through any
//! instruction of the peer that is known and knows the receive.
struct clock_rows {
  const clock* clocks = nullptr;
  int ranks = 0;
  int stride = 0;

  constexpr const clock& at(int rank, int index) const {
    return clocks[static_cast<std::int64_t>(rank) * stride + index];
  }
  //! Whether whoever knows `here`, a clock of `rank`, knows that `peer` has done its receive
  //! `there`, which runs on `stream` of the peer.
  constexpr bool knows_taken(const clock& here, int rank, int peer, int there, int stream) const {
    const int side = 2 * side_of(rank, peer, ranks);
    if (side < 0) return false;
    const std::int32_t sent = here.side[side];
    const std::int32_t received = here.side[side + 1];
    return (sent > 0 && at(peer, sent - 1).own[stream] > there) ||
           (received > 0 && at(peer, received - 1).own[stream] > there);
  }
};

}  // namespace stretto::lowering
