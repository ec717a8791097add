// How long the model's kernels and its ops take on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/config.hpp"
#include "model/op.hpp"

namespace train {

//! A kernel's times on its grid, as stretto::measured_kernel has them.
struct kernel_times {
  std::string name;
  std::vector<std::vector<std::int64_t>> axes;
  std::vector<std::int64_t> times;  //!< nanoseconds of processor time, at least 1
};

struct calibration_settings {
  int rounds = 3;    //!< how often all points are measured, apart in time
  bool few = false;  //!< a few small sizes, once: to try it
  //! Told of each point measured, as the kernel's name, how many are done and how many there are.
  std::function<void(const std::string&, int, int)> progress{};
};

//! The median time of every kernel at every point of its grid, each run in a row on operands of its
//! own. Where a larger size was measured as faster, that is noise, and it counts as no slower.
std::vector<kernel_times> calibrate(const calibration_settings& with);

//! The median processor time of an op.
struct op_time {
  op_code code = op_code::embed;
  std::int64_t time = 1;  //!< nanoseconds, at least 1
};

//! Of every op of the whole model, as its jobs run them: micro-batches one after the other,
//! forward, then both halves of the backward.
//! @param model       in one piece, its sequences whole
//! @param microbatches  at least one; one more goes before them
//! @throws std::invalid_argument for another model
std::vector<op_time> measure_ops(const config& model, int microbatches);

}  // namespace train
