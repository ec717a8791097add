#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "catalogue.hpp"
#include "cost_table.hpp"
#include "step.hpp"
#include "step_options.hpp"

namespace stretto::tool {

//! Makes or reads the step and holds it against every rule.
//! @param finer  times are in a unit of which pairs hide whole ones; else what is rounded is
//! refused
//! @throws bad_input, broken_schedule
step make_step(const step_options& options, bool finer = false);
//! The same for a generated step alone, by its parts.
//! @param why  is told why there is none; null: that is thrown
std::optional<step> make_step(const std::string& name, const shape& sizes,
                              const schedule_options& options,
                              const std::function<job_table(const placement&)>& costs,
                              no_step* why = nullptr);
//! The same by the options' costs. Where they leave a choice of how layers are dealt, what makes
//! the step shorter is taken.
std::optional<step> make_step(const std::string& name, const shape& sizes,
                              const schedule_options& options, const cost_options& costs,
                              const cost_cut& cut, no_step* why = nullptr);
//! The same with each of the windows between its jobs, of which that is taken which makes the step
//! shortest within its limits; of several the first.
std::optional<step> make_shortest(const std::string& name, const shape& sizes,
                                  schedule_options options,
                                  std::span<const memory::windows> choices,
                                  const cost_options& costs, const cost_cut& cut,
                                  no_step* why = nullptr);

}  // namespace stretto::tool
