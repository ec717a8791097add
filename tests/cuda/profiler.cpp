// What a profiler is shown by NVTX, by a tool that is linked in: NVTX calls it as it would one that
// it loads.
#include <doctest/doctest.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "cuda/executor_kernels.hpp"
#include "driver/simulated_gpu.hpp"
#include "executor/failures.hpp"
#include "executor/pipeline.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "support.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

struct shown_range {
  std::string text;
  std::uint32_t category = 0;
  int payload = -1;
  bool ended = false;
  bool operator==(const shown_range&) const = default;
};

struct {
  std::vector<std::string> domains;
  std::deque<std::string> texts;  // registered; what was handed out points to them
  std::map<std::uint32_t, std::string> categories;
  std::vector<std::string> streams;
  std::vector<shown_range> ranges;
} tool;

nvtxDomainHandle_t make_domain(const char* name) {
  tool.domains.push_back(name);
  return reinterpret_cast<nvtxDomainHandle_t>(&tool);
}
nvtxStringHandle_t keep_text(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(&tool.texts.emplace_back(text));
}
void name_category(nvtxDomainHandle_t, std::uint32_t category, const char* name) {
  tool.categories[category] = name;
}
void name_stream(cudaStream_t, const char* name) {
  tool.streams.push_back(name);
}
nvtxRangeId_t start_range(nvtxDomainHandle_t, const nvtxEventAttributes_t* what) {
  REQUIRE(what->messageType == NVTX_MESSAGE_TYPE_REGISTERED);
  REQUIRE(what->payloadType == NVTX_PAYLOAD_TYPE_INT32);
  tool.ranges.push_back({*reinterpret_cast<const std::string*>(what->message.registered),
                         what->category, what->payload.iValue});
  return tool.ranges.size();
}
void end_range(nvtxDomainHandle_t, nvtxRangeId_t id) {
  REQUIRE(id >= 1);
  REQUIRE(id <= tool.ranges.size());
  CHECK(!tool.ranges[id - 1].ended);
  tool.ranges[id - 1].ended = true;
}

template <class Function>
void put(NvtxFunctionTable table, int id, Function* function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

int attach(NvtxGetExportTableFunc_t tables) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size);
  put(table, NVTX_CBID_CORE2_DomainCreateA, make_domain);
  put(table, NVTX_CBID_CORE2_DomainRegisterStringA, keep_text);
  put(table, NVTX_CBID_CORE2_DomainNameCategoryA, name_category);
  put(table, NVTX_CBID_CORE2_DomainRangeStartEx, start_range);
  put(table, NVTX_CBID_CORE2_DomainRangeEnd, end_range);
  callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CUDART, &table, &size);
  put(table, NVTX_CBID_CUDART_NameCudaStreamA, name_stream);
  return 1;
}

void forget() {
  tool.texts.clear();
  tool.categories.clear();
  tool.streams.clear();
  tool.ranges.clear();
}

// Before the first call of NVTX.
const bool attached = [] {
  InitializeInjectionNvtx2_fnptr = attach;
  return true;
}();

}  // namespace

TEST_CASE("each instruction is a range with its text, stream and number, in every step") {
  REQUIRE(attached);
  define_executor_kernels();
  for (const bool graph : {false, true}) {
    gpu::reset();
    forget();
    std::vector<plan_builder> plans = pipeline_plans(2, 3, 8, layout::separate);
    sample_stages inner(2);
    enqueueing_stage first(*inner.pointers[0]);
    enqueueing_stage second(*inner.pointers[1]);
    executor::stage* const stages[] = {&first, &second};
    executor::options with = on_gpu();
    with.wire = executor::make_cuda_loopback_transport();
    if (graph) with.graph = executor::make_cuda_graph;
    executor::engine engine(views(plans), stages, std::move(with));
    CHECK(tool.domains == std::vector<std::string>{"stretto"});
    CHECK(tool.streams == std::vector<std::string>{
                              "rank 0, compute", "rank 0, send_next", "rank 0, receive_previous",
                              "rank 0, send_previous", "rank 0, receive_next", "rank 1, compute",
                              "rank 1, send_next", "rank 1, receive_previous",
                              "rank 1, send_previous", "rank 1, receive_next"});
    const std::size_t texts = tool.texts.size();
    for (int step = 0; step < 3; ++step) engine.step();
    // Steps make no text.
    CHECK(tool.texts.size() == texts);

    std::map<std::string, std::map<int, std::vector<shown_range>>> by_rank_and_number;
    for (const shown_range& each : tool.ranges)
      by_rank_and_number[tool.categories.at(each.category).substr(0, 6)][each.payload].push_back(
          each);
    for (const plan_builder& each : plans) {
      const plan_view plan = each.view();
      const std::string rank = "rank " + std::to_string(plan.rank);
      auto& of_rank = by_rank_and_number[rank];
      REQUIRE(of_rank.size() == plan.instructions.size());
      for (int number = 0; number < static_cast<int>(plan.instructions.size()); ++number) {
        const instruction& what = plan.instructions[static_cast<std::size_t>(number)];
        const std::vector<shown_range>& ranges = of_rank[number];
        // Of a graph, the step that is issued and the one that is recorded.
        CHECK(ranges.size() == (graph ? 2 : 3));
        for (const shown_range& range : ranges) {
          CHECK(range.ended);
          CHECK(range.text == to_text(what.what).view());
          CHECK(tool.categories.at(range.category) ==
                rank + ", " + std::string(plan.streams[what.stream].name));
        }
      }
    }
  }
}

TEST_CASE("a lent stream keeps its name") {
  gpu::reset();
  forget();
  cudaStream_t mine = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&mine, cudaStreamNonBlocking, 0) == cudaSuccess);
  {
    const std::vector<plan_builder> plans = pipeline_plans(1, 1, 8, layout::separate);
    sample_stages stages(1);
    const executor::engine engine(views(plans), stages.pointers, on_gpu({.lent = {{0, mine}}}));
    CHECK(tool.streams == std::vector<std::string>{"rank 0, send_next", "rank 0, receive_previous",
                                                   "rank 0, send_previous",
                                                   "rank 0, receive_next"});
  }
  cudaStreamDestroy(mine);
}
