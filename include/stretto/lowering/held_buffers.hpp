#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! Which buffers one rank holds of each (stage, micro-batch, slice) while its plan is written.
class held_buffers {
 public:
  //! By role, plus one. No initialisers: see scratch.
  struct cell {
    std::int32_t input;
    std::int32_t output;
    std::int32_t stash;
    std::int32_t kept;
    std::int32_t left;
    std::int32_t output_gradient;
    std::int32_t input_gradient;
    std::int32_t host;
  };

  constexpr held_buffers(const replay_input& input, int rank)
      : where_(input.where),
        slices_(input.slices),
        rank_(rank),
        bases_(where_.stages()),
        base_(bases_.data()),
        cells_(where_.chunks * static_cast<std::int64_t>(input.microbatches) * slices_),
        cell_(cells_.data()) {
    for (int chunk = where_.chunks; chunk-- > 0;)
      if (const int stage = where_.stage_of(rank, chunk); stage >= 0)
        base_[stage] = chunk * input.microbatches + 1;
  }
  constexpr ~held_buffers() = default;  // nvcc does not find it constexpr by itself

  //! @param work of a stage of this rank
  constexpr cell& of(const job& work) {
    return cell_[std::int64_t{base_[work.stage] - 1 + work.microbatch} * slices_ + work.slice];
  }
  //! The same slice of another stage; null when another rank has it.
  constexpr cell* on_this_rank(const job& work, int stage) {
    if (base_[stage] == 0 || where_.rank_of(stage, work.microbatch) != rank_) return nullptr;
    job there = work;
    there.stage = stage;
    return &of(there);
  }

 private:
  placement where_;
  int slices_;
  int rank_;
  scratch<std::int32_t> bases_;
  std::int32_t* base_;  // first (micro-batch) of each stage of the rank, plus one
  scratch<cell> cells_;
  cell* cell_;
};

}  // namespace stretto::lowering
