#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"

namespace stretto::lowering {

//! One rank's sends whose messages are not yet known to be taken: a queue for every stream, because
//! what a stream sends is taken in order.
class untaken_sends {
 public:
  //! A send, its message's buffer, and the receive that takes it.
  struct entry {
    std::int32_t send = 0;
    std::int32_t message = -1;
    std::int32_t there = 0;  //!< index of the receive
    std::int32_t peer = 0;
    std::int8_t side = -1;         //!< which neighbour the peer is, twice; negative: none
    std::uint8_t there_stream = 0;
    std::int32_t next = 0;         //!< send of the next entry, plus one
  };

  //! @param instructions room for sends: indices stay below it
  constexpr untaken_sends(clock_rows known, int instructions)
      : known_(known), sends_(instructions) {}

  constexpr void push(int stream, const entry& sent) {
    std::int32_t& oldest = oldest_[stream];
    sends_.data()[sent.send] = sent;
    if (oldest > 0) sends_.data()[newest_[stream]].next = sent.send + 1;
    else oldest = sent.send + 1;
    newest_[stream] = sent.send;
    if (stream >= streams_) streams_ = stream + 1;
  }
  //! Calls `visit(message)` for every message that whoever knows `now` knows to be taken, and drops
  //! it.
  template <class Visitor>
  constexpr void drop_taken(const clock& now, const Visitor& visit) {
    for (int stream = 0; stream < streams_; ++stream)
      while (oldest_[stream] > 0) {
        const entry& sent = sends_.data()[oldest_[stream] - 1];
        if (now.own[stream] <= sent.send &&
            !(sent.side >= 0 && (knows(now.side[sent.side], sent) ||
                                 knows(now.side[sent.side + 1], sent))))
          break;
        oldest_[stream] = sent.next;
        visit(sent.message);
      }
  }

 private:
  //! Whether the peer's instruction `its`, plus one, comes after its receive.
  constexpr bool knows(std::int32_t its, const entry& sent) const {
    return its > 0 && known_.at(sent.peer, its - 1).own[sent.there_stream] > sent.there;
  }

  clock_rows known_;
  scratch<entry> sends_;
  std::int32_t oldest_[max_streams]{};  // index plus one
  std::int32_t newest_[max_streams]{};  // index
  int streams_ = 0;                     // with sends
};

}  // namespace stretto::lowering
