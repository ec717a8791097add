// What jobs cost: before a run by the model's multiply-adds or what its ops take on a known
// machine, after it by the clock.
#pragma once

#include <span>

#include "model/config.hpp"
#include "pipeline/training_stage.hpp"
#include "stretto/assignment/concept.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/shape.hpp"

namespace train {

//! Times are multiply-adds of the matrix products, per job: so stages of unequal layers differ, and
//! an embedding, which multiplies nothing, costs nothing. Messages cost nothing. Here and below
//! each slice is a class of its own, in its order.
stretto::job_table product_costs(const config& model, const stretto::shape& sizes,
                                 const stretto::placement& where,
                                 std::span<const stretto::assignment::layer_range> layers);

//! Times are nanoseconds on such a machine: of a job's ops, one after the other, and of a message,
//! which waits for the one before it on its link.
stretto::job_table machine_costs(const config& model, const stretto::shape& sizes,
                                 const stretto::placement& where,
                                 std::span<const stretto::assignment::layer_range> layers,
                                 const stretto::machine& on);

//! Times are nanoseconds of processor time, the mean of what each rank has measured; 0 where it is
//! null.
stretto::job_table measured_costs(std::span<const training_stage* const> ranks,
                                  const stretto::shape& sizes, const stretto::placement& where);

}  // namespace train
