#pragma once

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <span>
#include <vector>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor::cuda {

//! Shows a profiler, by NVTX, what the issuing thread enqueues: in the domain "stretto" a range for
//! each instruction, called as in traces, with its stream as the category and its number in the
//! plan as the payload. All texts are made and registered here; where no tool listens, nothing is.
class issue_ranges {
 public:
  explicit issue_ranges(const plan_view& plan);

  //! Ranges of several ranks cross where one thread begins both sides of a message before it ends
  //! either, so they are no stack.
  void begin(int instruction) {
    if (ranges_.empty()) return;
    range& mine = ranges_[static_cast<std::size_t>(instruction)];
    mine.id = nvtxDomainRangeStartEx(domain_, &mine.says);
  }
  void end(int instruction) {
    if (ranges_.empty()) return;
    nvtxDomainRangeEnd(domain_, ranges_[static_cast<std::size_t>(instruction)].id);
  }

 private:
  struct range {
    nvtxEventAttributes_t says{};
    nvtxRangeId_t id = 0;
  };

  nvtxDomainHandle_t domain_;
  std::vector<range> ranges_;  // by instruction
};

//! Calls the stream in a profiler what the plan calls it.
void name_stream(cudaStream_t stream, const plan_view& plan, std::size_t index);

}  // namespace stretto::executor::cuda
