#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/model/job.hpp"

namespace stretto::lowering {

//! Messages that come around. Where the stages of a rank's chunks lie a full lap apart, as with
//! interleaving, what a rank sends for a micro-batch comes back as the input of its next chunk:
//! that receive proves that the send which began the lap is done, long before the gradient says so,
//! and clocks that remember neighbours alone cannot tell. Follows every message hop by hop, each
//! of which must be ordered after the one before, so nothing is taken for granted.
class laps {
 public:
  //! @param turns  stages go back and forth through the ranks, so that nothing comes around
  constexpr laps(int ranks, int stages, int microbatches, int slices, bool turns)
      // One rank has no messages, two are neighbours both ways, and one stage a rank no laps.
      : any(!turns && ranks >= 3 && stages > ranks),
        ranks_(ranks),
        stages_(stages),
        microbatches_(microbatches),
        slices_(slices),
        hops_(any ? 2 * std::int64_t{stages} * microbatches * slices : 0),
        hop_(hops_.data()) {}
  constexpr ~laps() = default;  // nvcc does not find it constexpr by itself

  const bool any;  //!< whether there can be some

  //! Notes that a send and its receive are done, where there can be laps.
  //! @param receives the receive's clock, which is element `receive` of the receiver's row of
  //!        clocks
  constexpr void met(const job& sent, int sender, int send, const clock& sends, int receiver,
                     int receive, clock& receives) {
    const int onward = sent.kind == job_kind::send_forward ? 1 : -1;
    const std::int64_t per_stage = static_cast<std::int64_t>(microbatches_) * slices_;
    const std::int64_t from = (static_cast<std::int64_t>(onward > 0 ? 0 : stages_) + sent.stage) *
                                  per_stage + sent.microbatch * slices_ + sent.slice;
    hop& before = hop_[from];
    hop& here = hop_[from + onward * per_stage];
    before.sender = sender + 1, before.send = send;
    here.length = before.length > 0 && sends.own[before.receive_stream] > before.receive
                      ? before.length + 1
                      : 1;
    here.receive = receive, here.receive_stream = receives.stream;
    if (here.length < ranks_) return;
    const hop& first = hop_[from - (ranks_ - 1) * onward * per_stage];
    if (first.sender != receiver + 1) return;
    receives.join((&receives)[first.send - receive]);
    receives.lap = first.send + 1;
  }

 private:
  //! What is known of a stage's message for one slice: of the one that brings its input, and of
  //! the one that takes on its output. No initialisers: see scratch.
  struct hop {
    std::int32_t length;  // hops in a row that end with the input
    std::int32_t receive;
    std::int32_t receive_stream;
    std::int32_t sender;  // plus one
    std::int32_t send;
  };

  int ranks_;
  int stages_;
  int microbatches_;
  int slices_;
  scratch<hop> hops_;  // forwards, then backwards
  hop* hop_;
};

}  // namespace stretto::lowering
