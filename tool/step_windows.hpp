#pragma once

#include "cost_options.hpp"
#include "refusals.hpp"
#include "step.hpp"
#include "step_options.hpp"

namespace stretto::tool {

//! Nothing is brought back, or copied, that a forward does not keep; --again and --copy speak of
//! something.
//! @param text  of memory, in the unit of the step's costs
//! @throws bad_input
void refuse_windows(const cost_options& costs, const window_options& windows, const step& made,
                    const amount_text& text);

}  // namespace stretto::tool
