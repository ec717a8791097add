#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! Which buffers one rank holds of each (stage, micro-batch, slice) while its plan is written.
class held_buffers {
 public:
  //! By role, plus one.
  struct cell {
    std::int32_t input = 0;
    std::int32_t output = 0;
    std::int32_t stash = 0;
    std::int32_t kept = 0;
    std::int32_t output_gradient = 0;
    std::int32_t input_gradient = 0;
    std::int32_t host = 0;
    bool again = false;  //!< its forward runs a second time
  };

  constexpr held_buffers(const replay_input& input, int rank)
      : where_(input.where),
        microbatches_(input.microbatches),
        slices_(input.slices),
        rank_(rank),
        cells_(where_.chunks * static_cast<std::int64_t>(microbatches_) * slices_),
        cell_(cells_.data()) {}
  constexpr ~held_buffers() = default;  // nvcc does not find it constexpr by itself

  //! @param work of a stage of this rank
  constexpr cell& of(const job& work) { return cell_[place(work, work.stage)]; }
  //! The same slice of another stage; null when another rank has it.
  constexpr cell* on_this_rank(const job& work, int stage) {
    if (where_.rank_of(stage, work.microbatch) != rank_) return nullptr;
    return cell_ + place(work, stage);
  }

 private:
  constexpr std::int64_t place(const job& work, int stage) const {
    const std::int64_t chunk = where_.chunk_of(stage, work.microbatch);
    return (chunk * microbatches_ + work.microbatch) * slices_ + work.slice;
  }

  placement where_;
  int microbatches_;
  int slices_;
  int rank_;
  scratch<cell> cells_;
  cell* cell_;
};

}  // namespace stretto::lowering
