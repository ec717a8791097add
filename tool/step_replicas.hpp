#pragma once

#include <cstdint>

#include "step.hpp"
#include "step_options.hpp"
#include "stretto/plan/report.hpp"

namespace stretto::tool {

// What data-parallel replicas do together in a step: sums of gradients and gathers of weights.

//! Where costs say what data-parallel replicas do together, gathers of weights and sums of
//! gradients, the step has it.
//! @param gathered  of how many stages at once a rank has the weights
//! @return what rule sharded says of so few
verdict add_replicas(step& made, int gathered);
//! Takes what data-parallel replicas do together out of it. The order stays as it was made for it.
void leave_out_replicas(step& made);
//! @throws bad_input where rule sharded does not let so few be there at once
void refuse_too_few(const step& made, const verdict& found);
//! How much shorter the step were, were all weights there at once.
std::int64_t by_gathers(const step& from, const report& all);
//! @throws bad_input for --gathered where nothing is
void refuse_nothing_gathered(const step_options& options, const step& made);

}  // namespace stretto::tool
