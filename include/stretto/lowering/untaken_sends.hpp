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
      : known_(known), sends_(instructions), sent_(sends_.data()) {}
  constexpr ~untaken_sends() = default;  // nvcc does not find it constexpr by itself

  constexpr void push(int stream, const entry& sent) {
    int at = 0;
    while (at < streams_ && stream_[at] < stream) ++at;
    if (at == streams_ || stream_[at] != stream) add(at, stream);
    sent_[sent.send] = sent;
    if (oldest_[at] > 0) sent_[newest_[at]].next = sent.send + 1;
    else oldest_[at] = sent.send + 1;
    newest_[at] = sent.send;
  }
  //! Calls `visit(message)` for every message that whoever knows `now` knows to be taken, and drops
  //! it.
  template <class Visitor>
  constexpr void drop_taken(const clock& now, const Visitor& visit) {
    for (int at = 0; at < streams_; ++at)
      for (std::int32_t oldest = oldest_[at]; oldest > 0; oldest_[at] = oldest) {
        const entry& sent = sent_[oldest - 1];
        if (now.own[stream_[at]] < oldest) {
          const int side = sent.side;
          if (side < 0) break;
          // What the peer has done as far as is known, plus one.
          const clock* const peer = known_.clocks + std::int64_t{sent.peer} * known_.stride;
          const int on = sent.there_stream;
          const std::int32_t there = sent.there;
          const std::int32_t received = now.side[side + 1];
          if (received == 0 || peer[received - 1].own[on] <= there) {
            const std::int32_t done = now.side[side];
            if (done == 0 || peer[done - 1].own[on] <= there) break;
          }
        }
        oldest = sent.next;
        visit(sent.message);
      }
  }

 private:
  constexpr void add(int at, int stream) {
    for (int later = streams_++; later > at; --later)
      stream_[later] = stream_[later - 1], oldest_[later] = oldest_[later - 1],
      newest_[later] = newest_[later - 1];
    stream_[at] = stream, oldest_[at] = 0;
  }

  clock_rows known_;
  scratch<entry> sends_;
  entry* sent_;
  int streams_ = 0;                     // with sends
  int stream_[max_streams]{};           // which they are, ascending
  std::int32_t oldest_[max_streams]{};  // index plus one
  std::int32_t newest_[max_streams]{};  // index
};

}  // namespace stretto::lowering
