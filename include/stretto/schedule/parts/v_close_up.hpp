#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_closing.hpp"
#include "stretto/schedule/parts/v_orders.hpp"
#include "stretto/schedule/parts/v_timeline.hpp"

namespace stretto::schedule {

//! Moves every job of a V's order with split backwards, from left to right, as far ahead as
//! v_closing puts it: what v_cool_down leaves gaps in.
//! @return false when a job stands before its input; the order then means nothing
constexpr bool v_close_up(const shape& sizes, v_orders& slots) {
  const int p = sizes.ranks;
  int microbatches = 1;  // a power of two
  while (microbatches < sizes.microbatches) microbatches *= 2;
  v_closing made(sizes, {.releases = v_weight_upper, .most = slots.most()}, microbatches, slots);
  scratch<v_placed> before(slots.stride() * p);
  std::int32_t last = 0;
  for (int rank = 0; rank < p; ++rank)
    for (int at = 0; at < slots.count(rank); ++at) {
      before[slots.stride() * rank + at] = slots.order(rank)[at];
      if (slots.order(rank)[at].start() > last) last = slots.order(rank)[at].start();
    }
  // Which ranks have their next job in a slot: lists, by their first plus one.
  scratch<std::int32_t> first(std::int64_t{last} + 1);
  scratch<std::int32_t> next(p);
  scratch<std::int32_t> taken(p);
  scratch<std::int32_t> done(std::int64_t{v_streams} * p);
  const auto queue = [&](int rank) {
    const std::int32_t slot = before[slots.stride() * rank + taken[rank]].start();
    next[rank] = first[slot];
    first[slot] = rank + 1;
  };
  for (int rank = 0; rank < p; ++rank) queue(rank);
  for (std::int32_t slot = 0; slot <= last; ++slot)
    while (first[slot] > 0) {
      const int rank = first[slot] - 1;
      first[slot] = next[rank];
      const int stream = before[slots.stride() * rank + taken[rank]++].stream();
      const int microbatch = done[v_streams * rank + stream]++;
      const bool needs = stream != v_down || rank > 0;
      if (needs && made.input_at(rank, stream, microbatch) == 0) return false;
      made.put(rank, stream, microbatch, 0);
      if (taken[rank] < slots.count(rank)) queue(rank);
    }
  made.finish();
  return true;
}

}  // namespace stretto::schedule
