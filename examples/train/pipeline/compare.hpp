// A pipeline against the unpipelined model, after a step of both.
#pragma once

#include <string>

#include "model/reference.hpp"
#include "pipeline/pipeline.hpp"

namespace train {

//! The first thing in which the pipeline and the reference differ after a step, to the bit: the
//! loss, the norm, the clipping factor, a layer's gradients or parameters. Empty: nothing.
//! @param whole  null: another process of the pipeline's compares, and this one only gives what it
//!               holds. All of them call it.
std::string first_difference(const pipeline& pipelined, const step_result& result,
                             const reference* whole, const step_result& expected);

//! The same where sums over shards round otherwise: numbers differ by more than `bound` of
//! themselves, or a tensor's gradients by more than that of its largest. Parameters are not
//! compared: AdamW divides each gradient by its own size, so the smallest errors can decide them.
std::string first_difference_above(double bound, const pipeline& pipelined,
                                   const step_result& result, const reference* whole,
                                   const step_result& expected);

}  // namespace train
