#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::detail {

//! When the latest nodes of every rank have ended, as far back as replay_input::receive_lead looks.
class node_ends {
 public:
  constexpr explicit node_ends(const replay_input& input)
      : depth_(input.receive_lead < 0                   ? 0
               : input.receive_lead < input.rows.stride ? input.receive_lead + 1
                                                        : input.rows.stride + 1),
        ends_(std::int64_t{input.rows.ranks} * depth_),
        nodes_(depth_ > 0 ? input.rows.ranks : 0) {}
  constexpr ~node_ends() = default;  // nvcc does not find it constexpr by itself

  //! The rank's next node has ended.
  constexpr void ended(int rank, std::int64_t time) {
    ends_[std::int64_t{rank} * depth_ + nodes_[rank]++ % depth_] = time;
  }
  //! When receives for the rank's next node may be posted; 0: at any time.
  constexpr std::int64_t posted(int rank) const {
    return nodes_[rank] < depth_ ? 0 : ends_[std::int64_t{rank} * depth_ + nodes_[rank] % depth_];
  }

 private:
  int depth_;
  scratch<std::int64_t> ends_;
  scratch<std::int32_t> nodes_;  // how many have ended
};

}  // namespace stretto::detail
