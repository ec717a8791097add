#pragma once

#include <span>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! Checks that one plan can be run: every index in range, buffers inside the arena and used only
//! while they live, events recorded once and before they are waited for, one end_step, last, with
//! everything before it.
//! @throws plan_error naming rank, instruction and rule.
void validate(const plan_view& plan);

//! Checks each plan and all of them together: different ranks of one job with equal digests; on
//! each channel as many receives as sends, the k-th of both being the same message of equal size;
//! members of a group that agree on it. What concerns ranks that are not given is left out.
//! @throws plan_error naming the first rank, channel or group that differs.
void validate(std::span<const plan_view> plans);

}  // namespace stretto::executor
