#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"

namespace stretto::detail {

//! When messages are there, of which each rank's to another one are told of in their order.
class link_clocks {
 public:
  //! @param chunks  stages that a rank holds, each of which has two neighbours
  constexpr link_clocks(const job_table_view& costs, int ranks, int chunks)
      : hop(costs.hops()),
        plain(!costs.serial_links && hop.node_ranks == 0),
        most_(costs.serial_links ? 2 * std::int64_t{chunks} : 0),
        links_(most_ * ranks) {}
  constexpr ~link_clocks() = default;  // nvcc does not find it constexpr by itself

  const hop_times hop;
  //! Every message takes hop.within, and none waits for another: who has many asks this first, and
  //! spares compilers the call.
  const bool plain;

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
