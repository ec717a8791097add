// A pipeline against the unpipelined model, after a step of both.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/reference.hpp"
#include "pipeline/pipeline.hpp"

namespace train {

//! The first thing in which the pipeline and the reference differ after a step, to the bit: the
//! loss, the norm, the clipping factor, a layer's gradients or parameters. Empty: nothing.
//! @param whole  null: another process compares, the one that leads(), and this one only gives what
//!               it holds. All of them call it.
std::string first_difference(const pipeline& pipelined, const step_result& result,
                             const reference* whole, const step_result& expected);

//! How far apart what rounds otherwise may be.
struct rounding_bound {
  double numbers;    //!< loss, norm and clipping factor, of themselves
  double gradients;  //!< of the largest of a tensor

  rounding_bound(double both) : numbers(both), gradients(both) {}
  rounding_bound(double of_numbers, double of_gradients)
      : numbers(of_numbers), gradients(of_gradients) {}
};

//! The same where sums over shards round otherwise; what all shards of a layer have is the same in
//! all of them, to the bit. Parameters are not compared with the
//! reference's: AdamW divides each gradient by its own size, so the smallest errors can decide
//! them.
std::string first_difference_above(rounding_bound bound, const pipeline& pipelined,
                                   const step_result& result, const reference* whole,
                                   const step_result& expected);

//! What a step changes of a layer, in one piece.
struct layer_values {
  std::vector<float> parameters, mean, square;
};

//! There instead: the first layer whose parameters or moments are not what AdamW makes, on the
//! host, of those before the step and of the pipeline's own gradients, or differ between replicas.
//! Empty: none.
//! @param before  of every layer; none: another process compares, as above
std::string first_wrong_update(const pipeline& pipelined, const step_result& result,
                               std::span<const layer_values> before);

}  // namespace train
