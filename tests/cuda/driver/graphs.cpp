// Steps recorded as graphs, and their launches.
#include "calls.hpp"

using namespace stretto::test::gpu;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  ENTER(text_of(stream));
  if (!is_alive(stream) || my.is_captured(*stream)) return failed(cudaErrorIllegalState);
  stream->capture = ++my.captures;
  stream->tail.clear();
  stream->behind_start = false;
  my.recorded[my.captures] = {stream, mode, std::this_thread::get_id()};
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* made) {
  state& my = here();
  const guard lock(my.mutex);
  const auto found = my.recorded.find(stream->capture);
  if (found == my.recorded.end() || found->second.origin != stream)
    return failed(cudaErrorIllegalState);
  if (found->second.by != std::this_thread::get_id())
    return failed(cudaErrorStreamCaptureWrongThread);
  // Ended even if the call fails.
  capture of = std::move(found->second);
  my.recorded.erase(found);
  if (const cudaError_t code = my.enter(__func__, text_of(stream))) return code;
  if (of.invalid) return failed(cudaErrorStreamCaptureInvalidated);
  std::set<int> joined = stream->tail;
  for (int at = static_cast<int>(of.nodes.size()); at-- > 0;) {
    if (joined.count(at) == 0) return failed(cudaErrorStreamCaptureUnjoined);
    const std::set<int>& after = of.nodes[static_cast<std::size_t>(at)].after;
    joined.insert(after.begin(), after.end());
  }
  my.graphs.push_back(std::make_unique<CUgraph_st>());
  *made = my.graphs.back().get();
  **made = {std::move(of.nodes), std::move(of.held)};
  ++my.alive.graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph,
                                 unsigned long long flags) {
  ENTER(std::to_string(graph->nodes.size()) + " nodes" +
        (flags == cudaGraphInstantiateFlagUseNodePriority ? ", their priorities" : ""));
  my.executables.push_back(std::make_unique<CUgraphExec_st>());
  *made = my.executables.back().get();
  **made = {graph->nodes, graph->held};
  ++my.alive.graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  ENTER("");
  if (nodes != nullptr) return failed(cudaErrorNotSupported);
  *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  ENTER(text_of(stream));
  if (!is_alive(stream) || stream->device != current) return failed(cudaErrorInvalidResourceHandle);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  ENTER(text_of(stream));
  // Nothing is promised of another GPU's stream.
  if (!is_alive(stream) || stream->device != current) return failed(cudaErrorInvalidResourceHandle);
  const auto run = std::make_shared<graph_run>();
  run->nodes = graph->nodes;
  run->done.resize(run->nodes.size());
  my.push(stream, {operation::kind::graph, {}, nullptr, 0, run});
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const guard lock(here().mutex);
  *graph = {};
  --here().alive.graphs;
  return here().enter(__func__, "");
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  const guard lock(here().mutex);
  *graph = {};  // a launch under way has its own
  --here().alive.graphs;
  return here().enter(__func__, "");
}

}  // extern "C"
