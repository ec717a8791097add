// What matrix products take on the stack of the thread that computes them.
#pragma once

#include <cstddef>

#include "model/config.hpp"

namespace train {

//! Bytes that the largest product of a block, or of the head, packs its operands into: as Eigen
//! blocks it for this machine's caches (see algebra.hpp).
//! @param with_head  whether the thread also computes the head
std::size_t packed_bytes(const config& model, bool with_head);

}  // namespace train
