#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/bound_chain.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"

namespace stretto::detail {

//! What no order of a training step can be faster than where a rank's messages to another one
//! follow one another: the earliest of them, all that there are, and the least that follows any.
class link_bound {
 public:
  //! Nothing is kept where links carry any number of messages at once.
  constexpr link_bound(const placement& where, const job_table_view& costs)
      : hop_(costs.hops()),
        most_(costs.serial_links ? 2 * std::int64_t{where.chunks} : 0),
        links_(most_ * where.ranks) {}
  constexpr ~link_bound() = default;  // nvcc does not find it constexpr by itself

  //! @param count  micro-batches, or slices of them, that go this way
  constexpr void add(const bound_chain& chain, int count) {
    const int stages = chain.where.stages();
    std::int64_t rest = 0;  // to the end of stage 0's gradient
    for (int stage = 0; stage < stages; ++stage)
      rest += chain.forward(stage) + chain.gradient(stage) +
              (stage + 1 < stages ? 2 * chain.hop(stage) : 0);
    std::int64_t made = 0;      // a stage's output
    std::int64_t gradients = 0;  // from the stage on down
    for (int stage = 0; stage + 1 < stages; ++stage) {
      const int here = chain.rank(stage);
      const int next = chain.rank(stage + 1);
      const std::int64_t hop = chain.hop(stage);
      made += chain.forward(stage);
      gradients += chain.gradient(stage);
      if (here != next) {
        carries(here, next, count, made, rest - made - hop);
        carries(next, here, count, rest - gradients - hop, gradients);
      }
      made += hop;
      gradients += hop;
    }
  }
  //! For the makespan; 0: nothing is known.
  constexpr std::int64_t flush() const {
    std::int64_t most = 0;
    for (std::int64_t at = 0; at < links_.size(); ++at) {
      const link& one = links_[at];
      if (one.messages == 0) continue;
      const std::int64_t all =
          one.before + one.messages * hop_(static_cast<int>(at / most_), one.to) + one.behind;
      if (all > most) most = all;
    }
    return most;
  }

 private:
  struct link {
    int to;
    std::int64_t messages;
    std::int64_t before;  // what comes before any of them, and behind it
    std::int64_t behind;
  };

  constexpr void carries(int from, int to, int count, std::int64_t before, std::int64_t behind) {
    std::int64_t at = most_ * from;
    while (links_[at].messages > 0 && links_[at].to != to) ++at;
    link& one = links_[at];
    one.to = to;
    if (one.messages == 0 || before < one.before) one.before = before;
    if (one.messages == 0 || behind < one.behind) one.behind = behind;
    one.messages += count;
  }

  hop_times hop_;
  std::int64_t most_;  // of a rank
  scratch<link> links_;
};

}  // namespace stretto::detail
