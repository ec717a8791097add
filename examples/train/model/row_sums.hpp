// What goes along the pieces of a head for each row of logits.
#pragma once

#include <cstddef>

namespace train {

//! Numbers for each row: the largest logit, the sum of exponentials of what logits are above it,
//! and the target's logit; on the way back the largest logit, and what exponentials and the
//! target's 1 are multiplied by. See math::row_sums, summed_loss and logits_back.
inline constexpr std::size_t sums_of_row = 3;

}  // namespace train
