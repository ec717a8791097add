#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"

namespace stretto::lowering {

//! How many messages of a stream may be in flight, not known to be taken, before the rank's next
//! job waits for the oldest. Where messages come back, those of the schedules here tell of all but
//! the latest 2p; where none does, as in a forward-only step of one chunk, two let a rank compute
//! one while it sends another.
//! @param comes_back  whether the rank hears of what it sends
constexpr int most_untaken(int ranks, bool comes_back) { return comes_back ? 2 * ranks : 2; }

//! One rank's sends whose messages are not yet known to be taken: a queue for every stream, because
//! what a stream sends is taken in order.
class untaken_sends {
 public:
  //! A send, its message's buffer, and the receive that takes it. No initialisers: see scratch.
  struct entry {
    std::int32_t send;
    std::int32_t message;
    std::int32_t there;  //!< index of the receive
    std::int32_t peer;
    std::int32_t side;  //!< which neighbour the peer is; negative: none
    std::int32_t next;  //!< send of the next entry, plus one
  };

  //! @param instructions room for sends: indices stay below it
  constexpr untaken_sends(clock_rows known, int instructions)
      : known_(known), sends_(instructions), sent_(sends_.data()) {}
  constexpr ~untaken_sends() = default;  // nvcc does not find it constexpr by itself

  constexpr void push(int stream, const entry& sent) {
    std::int32_t& oldest = oldest_[stream];
    if (newest_[stream] == 0) {
      int place = streams_++;
      for (; place > 0 && sending_[place - 1] > stream; --place)
        sending_[place] = sending_[place - 1];
      sending_[place] = stream;
    }
    sent_[sent.send] = sent;
    if (oldest > 0) sent_[newest_[stream] - 1].next = sent.send + 1;
    else oldest = sent.send + 1;
    newest_[stream] = sent.send + 1;
    if (++held_[stream] >= most) crowded_ = true;
  }
  //! Whether a stream may hold `most`; if not, none does.
  constexpr bool crowded() const { return crowded_; }
  //! Calls `visit(message)` for every message that whoever knows `now` knows to be taken, and drops
  //! it.
  template <class Visitor>
  constexpr void drop_taken(const clock& now, const Visitor& visit) {
    // Here, because compilers are slow to make what a loop holds.
    entry sent{};
    std::int32_t oldest = 0;
    std::int32_t done = 0;
    for (int one = 0; one < streams_; ++one) {
      const int stream = sending_[one];
      oldest = oldest_[stream];
      while (oldest > 0) {
        sent = sent_[oldest - 1];
        if (now.own[stream] < oldest) {
          if (sent.side < 0) break;
          // What the peer has done as far as is known, plus one: it knows of nothing behind that.
          done = now.side[sent.side];
          if (done <= sent.there || !known_.knows(sent.peer, done - 1, sent.there)) break;
        }
        oldest_[stream] = oldest = sent.next;
        --held_[stream];
        visit(sent.message);
      }
    }
  }
  //! Calls `visit(send, message)` for the oldest ones of streams that hold `most` or more, and
  //! drops them until there is room for one.
  template <class Visitor>
  constexpr void drop_oldest(const Visitor& visit) {
    for (int one = 0; one < streams_; ++one) {
      const int stream = sending_[one];
      for (; held_[stream] >= most; --held_[stream]) {
        const entry& sent = sent_[oldest_[stream] - 1];
        oldest_[stream] = sent.next;
        visit(sent.send, sent.message);
      }
    }
    crowded_ = false;
  }

  int most = 0;  //!< see most_untaken

 private:
  clock_rows known_;
  scratch<entry> sends_;
  entry* sent_;
  std::int32_t oldest_[max_streams]{};  // index plus one
  std::int32_t newest_[max_streams]{};  // the same
  std::int32_t held_[max_streams]{};
  bool crowded_ = false;
  int sending_[max_streams]{};  // streams that have held some, ascending
  int streams_ = 0;             // so many
};

}  // namespace stretto::lowering
