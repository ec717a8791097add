#pragma once

#include <limits>

namespace stretto::memory {

//! Some micro-batches on some chunks of each rank: of every `period` micro-batches the first
//! `count`.
struct microbatch_window {
  int period = 1;
  int count = 0;  //!< 0: none; at least `period`: all
  int first_chunk = 0;
  int last_chunk = std::numeric_limits<int>::max();

  constexpr bool operator==(const microbatch_window&) const = default;
  constexpr bool any() const { return count > 0; }
  constexpr bool all() const { return count >= period; }
  constexpr bool sound() const {
    return period >= 1 && count >= 0 && first_chunk >= 0 && first_chunk <= last_chunk;
  }
  constexpr bool holds(int chunk) const {
    return any() && chunk >= first_chunk && chunk <= last_chunk;
  }
  constexpr bool holds(int chunk, int microbatch) const {
    return holds(chunk) && in_turn(microbatch);
  }
  //! Whether it holds the micro-batch on some chunk.
  constexpr bool in_turn(int microbatch) const { return microbatch % period < count; }
  //! Whether some micro-batch may be in both: both begin with the first.
  constexpr bool meets(const microbatch_window& other) const {
    return any() && other.any() && first_chunk <= other.last_chunk &&
           other.first_chunk <= last_chunk;
  }
};

}  // namespace stretto::memory
