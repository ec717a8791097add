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
    std::int8_t side = -1;         //!< which neighbour the peer is; negative: none
    std::uint8_t there_stream = 0;
    std::int32_t next = 0;         //!< send of the next entry, plus one
  };

  //! @param instructions room for sends: indices stay below it
  constexpr untaken_sends(clock_rows known, int instructions)
      : known_(known), sends_(instructions), sent_(sends_.data()) {}
  constexpr ~untaken_sends() = default;  // nvcc does not find it constexpr by itself

  constexpr void push(int stream, const entry& sent) {
    std::int32_t& oldest = oldest_[stream];
    sent_[sent.send] = sent;
    if (oldest > 0) sent_[newest_[stream]].next = sent.send + 1;
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
        const entry& sent = sent_[oldest_[stream] - 1];
        if (now.own[stream] <= sent.send) {
          if (sent.side < 0) break;
          // What the peer has done as far as is known, plus one.
          const clock* const peer = known_.clocks + std::int64_t{sent.peer} * known_.stride;
          const std::int32_t done = now.side[sent.side];
          if (done == 0 || peer[done - 1].own[sent.there_stream] <= sent.there) break;
        }
        oldest_[stream] = sent.next;
        visit(sent.message);
      }
  }

 private:
  clock_rows known_;
  scratch<entry> sends_;
  entry* sent_;
  std::int32_t oldest_[max_streams]{};  // index plus one
  std::int32_t newest_[max_streams]{};  // index
  int streams_ = 0;                     // with sends
};

}  // namespace stretto::lowering
