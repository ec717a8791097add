#include "issue_ranges.hpp"

#include <nvtx3/nvToolsExtCudaRt.h>

#include <cstdint>
#include <string>

#include "stretto/executor/describe.hpp"
#include "stretto/model/plan_names.hpp"

namespace stretto::executor::cuda {
namespace {

//! Of the process; null where no tool listens.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("stretto");
  return made;
}

std::string name_of(const plan_view& plan, std::size_t stream) {
  return name_of_rank(plan, plan.rank) + ", " + std::string(name(plan.streams[stream]));
}

//! Different for all streams of the process's ranks; 0 is none. A plan has at most 256 streams.
std::uint32_t category_of(const plan_view& plan, std::size_t stream) {
  return static_cast<std::uint32_t>(plan.rank) * 256 + static_cast<std::uint32_t>(stream) + 1;
}

}  // namespace

issue_ranges::issue_ranges(const plan_view& plan) : domain_(domain()) {
  if (domain_ == nullptr) return;
  for (std::size_t stream = 0; stream < plan.streams.size(); ++stream)
    nvtxDomainNameCategoryA(domain_, category_of(plan, stream), name_of(plan, stream).c_str());
  ranges_.resize(plan.instructions.size());
  for (std::size_t index = 0; index < ranges_.size(); ++index) {
    nvtxEventAttributes_t& says = ranges_[index].says;
    const int number = static_cast<int>(index);
    says.version = NVTX_VERSION;
    says.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    says.category = category_of(plan, plan.instructions[index].stream);
    says.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    says.payload.iValue = number;
    says.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    const std::string text(to_text(plan, number).view());
    says.message.registered = nvtxDomainRegisterStringA(domain_, text.c_str());
  }
}

void name_stream(cudaStream_t stream, const plan_view& plan, std::size_t index) {
  if (domain() != nullptr) nvtxNameCudaStreamA(stream, name_of(plan, index).c_str());
}

}  // namespace stretto::executor::cuda
