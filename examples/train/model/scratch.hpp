// What matrix products take beside their operands.
#pragma once

#include <cstddef>

#include "model/config.hpp"

namespace train {

//! Bytes on the stack of the thread that computes it that the largest product of a block, or of the
//! head, packs its operands into: as Eigen blocks it for this machine's caches (see algebra.hpp).
//! @param with_head  whether the thread also computes the head
std::size_t packed_bytes(const config& model, bool with_head);

//! Scalars of the largest matrix that one side of a product may be: but for weights ...
std::size_t largest_factor(const config& model);
//! ... and of these alone.
std::size_t largest_weight(const config& model);
//! Of the longest row of a matrix that is held between ops.
std::size_t largest_row(const config& model);
//! Of the largest side that is rounded for a product: where activations are in bf16, all are
//! already.
//! @param batches  whether attention does all heads of a sequence at once, see math::batches()
std::size_t largest_rounded(const config& model, bool batches = false);
//! Of a math's room, see math::room().
std::size_t room_scalars(const config& model, int which, bool batches);

//! @throws std::invalid_argument for a matrix that is larger than what a math has room to round
void check_scratch(std::size_t scalars, std::size_t room);

}  // namespace train
