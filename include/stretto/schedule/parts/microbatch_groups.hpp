#pragma once

#include <cstdint>

#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! Where the micro-batches go that do not fill a group.
enum class remainder_kind : std::uint8_t {
  first,  //!< into the first group, which is then longer (Paddle's dynamic graph)
  last,   //!< into a short group of their own at the end (Megatron-LM, Paddle's static graph)
};

//! The order in which an interleaved rank visits (chunk, micro-batch): the micro-batches in groups,
//! every chunk of a group before the next group. `steps()` visits in all; the backwards take the
//! same order with the chunks counted from the other end.
struct microbatch_groups {
  struct visit {
    int chunk = 0;
    int microbatch = 0;
  };
  int first = 1;  //!< micro-batches of the first group
  int size = 1;   //!< of every later one, save a short last
  int chunks = 1;
  int microbatches = 1;

  constexpr int steps() const { return microbatches * chunks; }
  //! Micro-batches of the last group if it is shorter than the others, else 0.
  constexpr int short_last() const { return (microbatches - first) % size; }
  //! The visit of step k, 0 <= k < steps().
  constexpr visit at(int step) const {
    if (step < first * chunks) return {step / first, step % first};
    const int later = step - first * chunks;
    const int begin = first + later / (size * chunks) * size;
    const int within = later % (size * chunks);
    const int length = microbatches - begin < size ? microbatches - begin : size;
    return {within / length, begin + within % length};
  }
};

//! The groups of a shape. `group` 0 stands for min(p, m): Paddle's and PyTorch's choice when p
//! divides m, and depth-first in Megatron's words; group = m is breadth-first.
constexpr microbatch_groups group_microbatches(const shape& sizes, int group,
                                               remainder_kind remainder) {
  const int ranks = sizes.ranks;
  const int count = sizes.microbatches;
  const int size = group > 0 ? group : (ranks < count ? ranks : count);
  const int first = remainder == remainder_kind::first ? size + count % size : size;
  return {first, size, sizes.chunks, count};
}

//! Refuses a group that starves the pipeline or that the micro-batches cannot fill.
constexpr verdict group_or_refuse(const shape& sizes, int group) {
  if (group == 0) return {};
  if (group < 1) return refuse(fault::unsupported, reason::group_below_one);
  if (group > sizes.microbatches)
    return refuse(fault::unsupported, reason::group_above_microbatches);
  if (group < sizes.ranks && group < sizes.microbatches)
    return refuse(fault::unsupported, reason::group_below_ranks);
  return {};
}

}  // namespace stretto::schedule
