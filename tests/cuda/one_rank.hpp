#pragma once

#include <vector>

#include "executor/pipeline.hpp"
#include "support.hpp"

namespace stretto::test {

//! One rank of pipeline_plans and its stage.
struct one_rank {
  one_rank() : plans(pipeline_plans(1, 3, 5, layout::separate)), inner(1), stage(inner) {
    for (plan_builder& each : plans) each.release_all();
    view = plans[0].view();
  }
  std::vector<plan_builder> plans;
  plan_view view;
  sample_stage inner;
  enqueueing_stage stage;
  executor::stage* stages[1] = {&stage};
};

}  // namespace stretto::test
