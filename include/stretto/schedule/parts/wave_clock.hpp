#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"

namespace stretto::schedule {

//! When each rank decides next, and which one is first: of equals the lowest. Logarithmic in the
//! number of ranks.
class wave_clock {
 public:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  constexpr explicit wave_clock(int ranks)
      : leaves_(leaves_for(ranks)), time_room_(leaves_), first_room_(2 * std::int64_t{leaves_}) {
    for (int rank = 0; rank < leaves_; ++rank) {
      time_room_[rank] = never;
      first_room_[leaves_ + rank] = rank;
    }
    time_ = time_room_.data();
    first_ = first_room_.data();
    for (int node = leaves_ - 1; node > 0; --node) first_[node] = first_[2 * node];
  }
  constexpr ~wave_clock() = default;

  constexpr int first() const { return first_[1]; }
  constexpr std::int64_t of(int rank) const { return time_[rank]; }
  constexpr void set(int rank, std::int64_t time) {
    time_[rank] = time;
    for (int node = (leaves_ + rank) / 2; node > 0; node /= 2)
      first_[node] = time_[first_[2 * node + 1]] < time_[first_[2 * node]] ? first_[2 * node + 1]
                                                                           : first_[2 * node];
  }

 private:
  static constexpr int leaves_for(int ranks) {
    int leaves = 2;
    while (leaves < ranks) leaves *= 2;
    return leaves;
  }

  int leaves_;
  scratch<std::int64_t> time_room_;
  scratch<std::int32_t> first_room_;  // of each half of the ranks, and its halves
  std::int64_t* time_ = nullptr;
  std::int32_t* first_ = nullptr;
};

}  // namespace stretto::schedule
