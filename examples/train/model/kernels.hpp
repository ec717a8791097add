// The kernels that the model's ops are made of, for those who measure them and foresee ops' times.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "model/config.hpp"
#include "model/op.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/measured.hpp"

namespace train {

//! A kernel and the sizes to measure it at, with single precision.
struct kernel {
  std::string_view name;
  std::vector<std::vector<std::int64_t>> grid;  //!< of each axis that it has, ascending
  //! Makes operands of the sizes; what it returns runs the kernel on them, `times` times over.
  std::function<void()> (*prepare)(const stretto::kernel_sizes& sizes) = nullptr;
  int times = 1;
  //! Bytes that others touch, in a job, between the last use of its operands and its own: what it
  //! reads comes from a cache, but not always from the nearest.
  std::int64_t between = 0;
};

//! All of them, and those that stretto::kernel_call names.
//! @param few  of the sizes only: enough to try the measuring
std::vector<kernel> kernels(bool few = false);

//! The first of them that was not measured on a machine; empty: all were.
std::string_view missing_kernel(const stretto::machine& on);

//! What an op calls, one after the other, in a slice's job.
//! @param slice  below 0: in one between the first, which sees least, and the last
//! @param afar   in a stage that is so large that what an op reads was last used long ago, and
//!               is in no near cache
std::vector<stretto::kernel_call> kernels_of(const config& model, op_code code, int slice = -1,
                                             bool afar = false);

}  // namespace train
