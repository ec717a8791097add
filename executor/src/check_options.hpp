#pragma once

#include <span>

#include "stretto/executor/engine.hpp"
#include "stretto/executor/stage.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

// What an engine refuses, by a plan_error.

//! Options that make no sense, alone or together.
void check(const options& with);
//! Other than one stage for each plan.
void check(std::span<const plan_view> plans, std::span<stage* const> stages);
//! A graph of devices that can record none.
[[noreturn]] void refuse_devices();
//! Times of more steps than memory is likely to hold.
void check_trace(std::span<const plan_view> plans, int steps);
//! Where times are to be taken, a device that takes none.
void check_timed(const device& on, int rank);
//! Of a GPU's rank, what goes through the loopback transport.
void refuse_loopback(const plan_view& plan);

}  // namespace stretto::executor
