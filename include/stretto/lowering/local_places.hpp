#pragma once

#include <cstddef>
#include <cstdint>

#include "stretto/lowering/op_sequence.hpp"

namespace stretto::lowering {

//! Puts the local buffers of a sequence into its workspace: each in the lowest place that nobody
//! has at the same time. A place is left as the buffer's last step ends, and may be taken by a step
//! behind it on the stream that computes: that stream alone then orders who was there.
constexpr void place_locals(op_sequence& made) {
  const auto computes = [&](std::int32_t step) {
    return made.steps[static_cast<std::size_t>(step)].stream == 0;
  };
  const auto after = [&](const op_sequence::local_buffer& one,
                         const op_sequence::local_buffer& other) {
    return one.last < other.first && computes(one.last) && computes(other.first);
  };
  for (std::size_t one = 0; one < made.buffers.size(); ++one) {
    op_sequence::local_buffer& mine = made.buffers[one];
    mine.offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t other = 0; other < one; ++other) {
        const op_sequence::local_buffer& theirs = made.buffers[other];
        if (after(theirs, mine) || after(mine, theirs)) continue;
        if (theirs.offset < mine.offset + mine.bytes &&
            mine.offset < theirs.offset + theirs.bytes) {
          mine.offset = (theirs.offset + theirs.bytes + 63) / 64 * 64;
          moved = true;
        }
      }
    }
    if (mine.offset + mine.bytes > made.workspace_bytes)
      made.workspace_bytes = (mine.offset + mine.bytes + 63) / 64 * 64;
  }
}

}  // namespace stretto::lowering
