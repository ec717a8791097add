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
//! v_closing puts it: into the gaps that v_cool_down leaves. A rank whose next job lies before its
//! input waits for that.
//! @return false when the order never ends; it means nothing then
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
  // Which ranks have their next job in a slot, and which are late: lists, by their first plus one.
  scratch<std::int32_t> first(std::int64_t{last} + 1);
  scratch<std::int32_t> next(p);
  scratch<std::int32_t> taken(p);
  scratch<std::int32_t> done(std::int64_t{v_streams} * p);
  std::int32_t late = 0;
  bool moves = false;
  const auto run = [&](int rank, std::int32_t slot) {
    for (; taken[rank] < slots.count(rank); ++taken[rank]) {
      const v_placed& job = before[slots.stride() * rank + taken[rank]];
      const int stream = job.stream();
      std::int32_t& microbatch = done[v_streams * rank + stream];
      const bool waits = (stream != v_down || rank > 0) &&
                         job.start() <= slot && made.input_at(rank, stream, microbatch) == 0;
      if (waits || job.start() > slot) {
        std::int32_t& list = waits ? late : first[job.start()];
        next[rank] = list;
        list = rank + 1;
        return;
      }
      made.put(rank, stream, microbatch++, 0);
      moves = true;
    }
  };
  for (int rank = 0; rank < p; ++rank) run(rank, -1);
  for (std::int32_t slot = 0; slot <= last || (late > 0 && moves); ++slot) {
    moves = false;
    std::int32_t due = late;
    late = 0;
    for (int turn = 0; turn < 2; ++turn) {
      while (due > 0) {
        const int rank = due - 1;
        due = next[rank];
        run(rank, slot);
      }
      if (slot <= last) due = first[slot];
    }
  }
  made.finish();
  return late == 0;
}

}  // namespace stretto::schedule
