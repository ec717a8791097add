#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/receive_gates.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! Messages whose receives are not to be posted yet.
class held_messages {
 public:
  constexpr explicit held_messages(const replay_input& compute)
      : gates_(compute),
        stride_(compute.rows.stride),
        ended_(compute.receive_lead < 0 ? 0 : compute.rows.ranks),
        made_(compute.receive_lead < 0 ? 0 : 2 * std::int64_t{compute.rows.ranks} * stride_) {}
  constexpr ~held_messages() = default;  // nvcc does not find it constexpr by itself

  //! Keeps what `made` of `rank` has for stage `to` of `peer` until that has run the node behind
  //! which it may post the receive. @return false when it has
  constexpr bool keep(const job& made, int rank, int to, int peer) {
    if (ended_.size() == 0) return false;
    const std::int32_t gate = gates_.of(to, made, made.kind == job_kind::forward);
    if (gate < ended_[peer]) return false;
    message* const here = &made_[2 * (std::int64_t{peer} * stride_ + gate)];
    (here->from == 0 ? here[0] : here[1]) = {made, rank + 1};  // a node has two jobs at most
    return true;
  }
  //! The rank has run its next node: tells `send(made, rank)` of what it may receive now.
  template <class Send>
  constexpr void ended(int rank, const Send& send) {
    if (ended_.size() == 0) return;
    const message* const here = &made_[2 * (std::int64_t{rank} * stride_ + ended_[rank]++)];
    for (int one = 0; one < 2 && here[one].from > 0; ++one)
      send(here[one].made, here[one].from - 1);
  }

 private:
  struct message {
    job made{};
    std::int32_t from = 0;  // its rank, plus one
  };
  receive_gates gates_;
  int stride_;
  scratch<std::int32_t> ended_;  // nodes of each rank
  scratch<message> made_;        // two for each node of a rank
};

}  // namespace stretto::lowering
