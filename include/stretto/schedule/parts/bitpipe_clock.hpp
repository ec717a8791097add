#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"

namespace stretto::schedule {

//! What a rank does of one stage in one direction of two.
struct two_way_stream {
  int stage = 0;
  int way = 0;
  int count = 0;  //!< of micro-batches that go this way, from `first` on
  int first = 0;
  int forwards = 0;  //!< begun, or written
  int backwards = 0;

  constexpr job next(bool back) {
    const int done = back ? backwards++ : forwards++;
    return {stage, first + done, 0, back ? job_kind::backward : job_kind::forward};
  }
};

//! Those of a rank, by chunk.
constexpr void open_streams(const placement& where, int rank, two_way_stream* streams) {
  const int ahead = (where.microbatches + 1) / 2;  // direction 0 takes the odd one
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const int way = chunk / where.chunks_one_way();
    streams[chunk] = {.stage = where.stage_of(rank, chunk),
                      .way = way,
                      .count = way == 0 ? ahead : where.microbatches - ahead,
                      .first = way == 0 ? 0 : ahead};
  }
}

//! Puts the jobs of two waves in the order in which they can start, where a forward takes one unit
//! of time and a whole backward two. A rank keeps no more than a forward of each of its stages for
//! a unit of p micro-batches.
class bitpipe_clock {
 public:
  constexpr explicit bitpipe_clock(const placement& where)
      : where_(where),
        stages_(where.stages()),
        room_(where.ranks * where.chunks_one_way()),
        ranks_(where.ranks),
        streams_(std::int64_t{where.ranks} * where.chunks),
        ended_(4 * std::int64_t{where.stages()}) {
    // As few units as there can be, as even as they can be.
    const int units = (where.microbatches + where.ranks - 1) / where.ranks;
    unit_ = ((where.microbatches + 1) / 2 + units - 1) / units;
    for (int rank = 0; rank < where.ranks; ++rank)
      open_streams(where, rank, &streams_[std::int64_t{rank} * where.chunks]);
  }
  constexpr ~bitpipe_clock() = default;  // nvcc does not find it constexpr by itself

  constexpr void run(job_sink& out) {
    for (std::int64_t left = std::int64_t{2} * stages_ * where_.microbatches; left > 0;) {
      for (int rank = 0; rank < where_.ranks; ++rank)
        if (at& now = ranks_[rank]; now.left > 0 && --now.left == 0) ++ended_[now.running];
      for (int rank = 0; rank < where_.ranks; ++rank)
        if (ranks_[rank].left == 0 && begin(rank, out)) --left;
    }
  }

 private:
  //! What a rank is at.
  struct at {
    int left = 0;              //!< time until its job ends
    std::int64_t running = 0;  //!< in ended_
    int kept = 0;              //!< forwards whose backwards have not begun
  };

  //! Where it is counted how many have ended.
  constexpr std::int64_t cell(bool back, int way, int stage) const {
    return (std::int64_t{back} * 2 + way) * stages_ + stage;
  }

  //! @return whether there is something to begin: forwards before backwards, while there is room
  constexpr bool begin(int rank, job_sink& out) {
    at& now = ranks_[rank];
    two_way_stream* next = now.kept < room_ ? first_forward(rank) : nullptr;
    const bool back = next == nullptr;
    if (back) next = first_backward(rank);
    if (next == nullptr) return false;
    now.left = back ? 2 : 1;
    now.kept += back ? -1 : 1;
    now.running = cell(back, next->way, next->stage);
    out.push(rank, next->next(back));
    return true;
  }

  //! By unit, chunk and slot.
  constexpr two_way_stream* first_forward(int rank) {
    two_way_stream* first = nullptr;
    std::int64_t least = 0;
    for (int chunk = 0; chunk < where_.chunks; ++chunk) {
      two_way_stream& of = streams_[std::int64_t{rank} * where_.chunks + chunk];
      if (of.forwards == of.count ||
          (of.stage > 0 && ended_[cell(false, of.way, of.stage - 1)] <= of.forwards))
        continue;
      const std::int64_t turn =
          std::int64_t{of.forwards / unit_} * where_.chunks + of.stage / where_.ranks;
      const std::int64_t slot =
          turn * 4 * stages_ + 2 * (of.forwards % unit_) + of.stage;  // a unit has fewer slots
      if (first == nullptr || slot < least) first = &of, least = slot;
    }
    return first;
  }

  //! By slot, the last stage first.
  constexpr two_way_stream* first_backward(int rank) {
    two_way_stream* first = nullptr;
    int least = 0;
    for (int chunk = 0; chunk < where_.chunks; ++chunk) {
      two_way_stream& of = streams_[std::int64_t{rank} * where_.chunks + chunk];
      if (ended_[cell(false, of.way, of.stage)] <= of.backwards ||
          (of.stage + 1 < stages_ && ended_[cell(true, of.way, of.stage + 1)] <= of.backwards))
        continue;
      const int slot = 2 * of.backwards - of.stage;
      if (first == nullptr || slot < least || (slot == least && of.stage > first->stage))
        first = &of, least = slot;
    }
    return first;
  }

  placement where_;
  int stages_;
  int room_;
  int unit_ = 1;  // micro-batches of each direction
  scratch<at> ranks_;
  scratch<two_way_stream> streams_;  // by rank and chunk
  // How many forwards, then backwards, of each direction and stage have ended.
  scratch<std::int32_t> ended_;
};

}  // namespace stretto::schedule
