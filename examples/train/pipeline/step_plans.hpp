// What the executor runs in a step: plans of whole jobs, or of their ops, one for each worker.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/config.hpp"
#include "pipeline/settings.hpp"
#include "stretto/assignment/concept.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"

namespace train {

class step_plans {
 public:
  //! Expands the jobs where the settings say so, and deals the plans to the workers that share each
  //! rank.
  //! @param layers    of every stage of the pipeline, in its order
  //! @param replicas  data-parallel ones
  //! @throws bad_setting when the ops can not be run in the order that the settings say
  step_plans(std::unique_ptr<stretto::planned> whole, const config& model,
             std::span<const stretto::assignment::layer_range> layers,
             const pipeline_settings& settings, int replicas);

  //! Of whole jobs, one for each rank.
  const stretto::planned& whole() const { return *whole_; }
  //! What runs: those of rank 0's workers, then rank 1's, and so on.
  std::span<const stretto::plan_view> plans() const {
    return shared_ ? shared_->plans() : expanded_ ? expanded_->plans() : whole_->plans();
  }
  //! Bytes of all of them.
  std::int64_t storage_bytes() const {
    return whole_->storage_bytes() + (expanded_ ? expanded_->storage_bytes() : 0) +
           (shared_ ? shared_->storage_bytes() : 0);
  }

 private:
  void expand(const config& model, std::span<const stretto::assignment::layer_range> layers,
              const pipeline_settings& settings);

  std::unique_ptr<stretto::planned> whole_;
  std::unique_ptr<stretto::expanded> expanded_;  // null: whole jobs run
  std::unique_ptr<stretto::shared> shared_;      // null: one worker a rank
};

}  // namespace train
