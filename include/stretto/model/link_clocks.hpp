#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::detail {

//! When messages are there, in a replay.
class link_clocks {
 public:
  constexpr explicit link_clocks(const replay_input& input)
      : hop(input.costs.hops()),
        plain(!input.costs.serial_links && hop.node_ranks == 0),
        // A rank's stages each have two neighbours.
        most_(input.costs.serial_links ? 2 * std::int64_t{input.where.chunks} : 0),
        links_(most_ * input.rows.ranks) {}
  constexpr ~link_clocks() = default;  // nvcc does not find it constexpr by itself

  const hop_times hop;
  const bool plain;  //!< every message takes hop.within, and none waits for another

  //! Of the next that `from` sends to `to`, which it has made at `made`.
  constexpr std::int64_t there(int from, int to, std::int64_t made) {
    if (most_ == 0) return made + hop(from, to);
    std::int64_t at = most_ * from;
    while (links_[at].to != to + 1 && links_[at].to != 0) ++at;
    links_[at].to = to + 1;
    std::int64_t& free = links_[at].free;
    return free = (free > made ? free : made) + hop(from, to);
  }

 private:
  //! From a rank to one that it sends to: when what it has sent is there.
  struct link {
    std::int32_t to;  // plus one; 0: none
    std::int64_t free;
  };

  std::int64_t most_;  // of a rank
  scratch<link> links_;
};

}  // namespace stretto::detail
