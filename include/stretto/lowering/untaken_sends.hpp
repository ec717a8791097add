#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"

namespace stretto::lowering {

//! One rank's sends whose messages are not yet known to be taken: a queue for every stream, because
//! what a stream sends is taken in order.
class untaken_sends {
 public:
  //! @param instructions room for sends: indices stay below it
  constexpr explicit untaken_sends(int instructions) : sends_(instructions) {}

  constexpr void push(int stream, std::int32_t send, std::int32_t message) {
    sends_[send].message = message;
    (oldest_[stream] > 0 ? sends_[newest_[stream]].next : oldest_[stream]) = send + 1;
    newest_[stream] = send;
  }
  constexpr bool holds(int stream) const { return oldest_[stream] > 0; }
  //! Index of the send that has waited the longest.
  constexpr std::int32_t oldest(int stream) const { return oldest_[stream] - 1; }
  //! Drops that one. @return its message's buffer
  constexpr std::int32_t pop(int stream) {
    const queued& sent = sends_[oldest_[stream] - 1];
    oldest_[stream] = sent.next;
    return sent.message;
  }

 private:
  struct queued {
    std::int32_t message = -1;
    std::int32_t next = 0;  // index plus one
  };

  scratch<queued> sends_;
  std::int32_t oldest_[max_streams]{};  // index plus one
  std::int32_t newest_[max_streams]{};  // index
};

}  // namespace stretto::lowering
