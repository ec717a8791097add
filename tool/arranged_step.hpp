#pragma once

#include "step.hpp"
#include "step_options.hpp"
#include "stretto/plan/arrange.hpp"

namespace stretto::tool {

//! Puts the micro-batches of a step, which --costs tells apart, in the order that makes it
//! shortest, as far as is found in a few seconds.
//! @param made  the step as it is, which becomes that
//! @throws bad_input where all are alike
arrangement arrange_step(const step_options& options, step& made);

}  // namespace stretto::tool
