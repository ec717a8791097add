// What --check compares each step with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/corpus.hpp"
#include "model/math.hpp"
#include "model/reference.hpp"
#include "options.hpp"
#include "pipeline/compare.hpp"
#include "pipeline/pipeline.hpp"

namespace train {

//! The unpipelined model beside the pipelined one.
class shadow {
 public:
  //! Goes on from what the pipeline holds. Of several processes one has that model, and the others
  //! bring what they hold.
  shadow(const options& with, const pipeline& from, const corpus& text);

  //! What the pipeline held before the step, from which errors of rounding would otherwise grow.
  void prepare(const pipeline& from);

  //! @throws std::runtime_error naming what differs after the step
  void compare(const pipeline& pipelined, long number, const step_result& result);

  //! What the last words of a run say.
  static std::string praise(const pipeline& pipelined, const options& with);

 private:
  void take(const pipeline& from);

  const options& with_;
  const corpus& text_;
  std::unique_ptr<math<float>> math_;
  std::optional<reference> whole_;
  std::vector<layer_values> before_;  // the step, of every layer: where parameters round otherwise
};

}  // namespace train
