// What the ops of a stage's jobs touch, for those who order them.
#pragma once

#include <cstddef>

#include "model/config.hpp"
#include "model/op.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/program.hpp"

namespace train {

struct chain_options {
  bool recompute = false;  //!< the forward runs again before the backward
  bool split = false;      //!< the backward in its halves
  //! Gives the ops their times in nanoseconds: those of the kernels that they call (kernels_of),
  //! where kernels were measured, otherwise by its roofline. Null: an op's multiply-adds or, where
  //! it has none or is a sum, the scalars that it touches.
  const stretto::machine* on = nullptr;
  //! Whose jobs' times these are; below 0: those of one between the first, which sees least, and
  //! the last.
  int slice = -1;
  std::size_t scalar_bytes = sizeof(float);  //!< of parameters, and activations that are no bf16
  int chunk = 0;                             //!< of the programs
};

//! The chain of the stage with layers [first, last), or of one of its shards: the programs of its
//! forward, its recomputation where there is one, then its backward or both halves of it. The n-th
//! op of a program is the n-th of job_ops for its kind; sums over the shards are on
//! stretto::stream_type::tensor_parallel, all else where stages compute. `stretto::graph_of` makes
//! of it which op needs which.
//!
//! Buffers are the messages, the parts of the stash, what lies between layers, and `sums`, which is
//! what collectives work on in place, row by row where ops are cut; without shards there are none,
//! and what would be summed lies in the stash. Parameters and gradients are persistent, one buffer
//! for each op that adds to them. A slice's attention touches earlier slices' stashes too: these
//! belong to other jobs.
//! @throws std::invalid_argument for a bad config or an empty or unknown range of layers
stretto::program_chain stage_chain(const config& model, int first, int last,
                                   const chain_options& with = {});

}  // namespace train
