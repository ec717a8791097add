#pragma once

#include <cstdint>

#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! Where the micro-batches go that do not fill a group.
enum class remainder_kind : std::uint8_t {
  even,   //!< one into each group from the first on, and on (PyTorch, where none is then longer)
  first,  //!< into the first group, which is then longer (Paddle's dynamic graph)
  last,   //!< into a short group of their own at the end (Megatron-LM, Paddle's static graph)
};

//! The order in which an interleaved rank visits (chunk, micro-batch, slice): the micro-batches in
//! groups, every chunk of a group before the next group, in a chunk each micro-batch slice by
//! slice. `steps()` visits in all.
struct microbatch_groups {
  struct visit {
    int chunk = 0;
    int microbatch = 0;
    std::int16_t slice = 0;
  };
  int first = 1;   //!< micro-batches of the first group,
  int firsts = 1;  //!< and of so many in all
  int size = 1;    //!< of every later one, save a short last
  int chunks = 1;
  int microbatches = 1;
  int slices = 1;

  constexpr int steps() const { return microbatches * chunks * slices; }
  //! Micro-batches of the last group if it is shorter than the others, else 0.
  constexpr int short_last() const { return (microbatches - firsts * first) % size; }
  //! How many groups there are.
  constexpr int count() const {
    const int rest = microbatches - firsts * first;
    return rest > 0 ? firsts + (rest + size - 1) / size : (microbatches + first - 1) / first;
  }
  //! The first micro-batch of a group, 0 <= group <= count(): of the last one more, all.
  constexpr int begin(int group) const {
    const int later = group - firsts;
    const int found = later < 0 ? group * first : firsts * first + later * size;
    return found < microbatches ? found : microbatches;
  }
  //! The visit of step k, 0 <= k < steps().
  constexpr visit at(int step) const {
    const int slice = slices > 1 ? step % slices : 0;
    if (slices > 1) step /= slices;
    const bool later = step >= firsts * first * chunks;
    int length = later ? size : first;
    int begin = later ? firsts * first : 0;
    step -= begin * chunks;
    begin += step / (length * chunks) * length;
    step %= length * chunks;
    if (microbatches - begin < length) length = microbatches - begin;
    return {step / length, begin + step % length, static_cast<std::int16_t>(slice)};
  }
  //! The same of the backwards: chunks and slices are counted from the other end.
  constexpr visit back_at(int step) const {
    const visit ahead = at(step);
    return {chunks - 1 - ahead.chunk, ahead.microbatch,
            static_cast<std::int16_t>(slices - 1 - ahead.slice)};
  }
};

//! The fewest micro-batches whose slices keep all ranks busy in one chunk, or all that there are:
//! min(p / k, m), rounded up.
constexpr int least_group(const shape& sizes) {
  const int enough = (sizes.ranks + sizes.slices - 1) / sizes.slices;
  return enough < sizes.microbatches ? enough : sizes.microbatches;
}

//! The groups of a shape. `group` 0 stands for the least: PyTorch's choice, Paddle's when p divides
//! m, and depth-first in Megatron's words; group = m is breadth-first.
constexpr microbatch_groups group_microbatches(const shape& sizes, int group,
                                               remainder_kind remainder) {
  const int count = sizes.microbatches;
  const int size = group > 0 ? group : least_group(sizes);
  const int groups = count / size;
  const int rest = count % size;
  microbatch_groups made{size, 1, size, sizes.chunks, count, sizes.slices};
  if (remainder == remainder_kind::first) made.first += rest;
  if (remainder == remainder_kind::even) {
    made.size = count / groups;
    made.firsts = rest % groups > 0 ? rest % groups : 1;
    made.first = made.size + (rest % groups > 0 ? 1 : 0);
  }
  return made;
}

//! Refuses a group that starves the pipeline or that the micro-batches cannot fill.
constexpr verdict group_or_refuse(const shape& sizes, int group) {
  if (group == 0) return {};
  if (group < 1) return refuse(fault::unsupported, reason::group_below_one);
  if (group > sizes.microbatches)
    return refuse(fault::unsupported, reason::group_above_microbatches);
  if (group < least_group(sizes)) return refuse(fault::unsupported, reason::group_below_ranks);
  return {};
}

}  // namespace stretto::schedule
