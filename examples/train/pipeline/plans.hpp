// From settings to plans: the schedule and the streams by name, the layers of every stage.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.hpp"
#include "pipeline/settings.hpp"
#include "stretto/assignment/concept.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/plan/planned.hpp"

namespace train {

//! Names of the schedules that train: "gpipe, 1f1b, ...".
//! @param option  of those alone that have an option of this name; empty: of all
std::string training_schedules(std::string_view option = {});

//! The shape of a training step.
//! @throws bad_setting when the schedule does not exist or does not serve it
stretto::shape training_shape(const pipeline_settings& settings);

//! Where the schedule lays the stages.
//! @throws bad_setting as above
stretto::placement stage_placement(const pipeline_settings& settings);

//! Deals the model's layers to the stages: as the settings' text says (balanced by the products
//! that layers multiply), or round robin over the chunks where they say how many layers each rank
//! holds, or evenly. One range per stage, in pipeline order.
//! @throws bad_setting when they do not fit
std::vector<stretto::assignment::layer_range> deal_layers(const config& model,
                                                          const stretto::placement& where,
                                                          const pipeline_settings& settings);

//! The plans of a training step, checked against every rule.
//! @param costs what a schedule may look at
//! @throws bad_setting as above, or when the schedule cannot be made under these costs
std::unique_ptr<stretto::planned> plan_training(const pipeline_settings& settings,
                                                const stretto::job_table_view& costs,
                                                stretto::plan_request request);

//! The plans of a forward-only step over stages that lie where training lays them.
//! @throws bad_setting when no such schedule serves that placement
std::unique_ptr<stretto::planned> plan_evaluation(const pipeline_settings& settings,
                                                  const stretto::job_table_view& costs,
                                                  stretto::plan_request request);

}  // namespace train
