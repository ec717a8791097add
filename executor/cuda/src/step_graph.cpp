#include "stretto/executor/cuda/step_graph.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "current_device.hpp"
#include "stretto/executor/cuda/handles.hpp"

namespace stretto::executor {
namespace {

using cuda::check;

class cuda_graph final : public step_graph {
 public:
  ~cuda_graph() override {
    if (!branches_.empty()) cuda::make_current(at_end_, device_);
    cancel();
  }

  void begin(std::span<const std::unique_ptr<device>> on) override {
    branches_.clear();
    for (const auto& each : on) {
      const cuda::current_device guard(each->ordinal());
      for (int stream = 0; stream < each->streams(); ++stream)
        branches_.push_back(
            {static_cast<cudaStream_t>(each->stream(stream).native), cuda::make_event()});
    }
    device_ = on.front()->ordinal();
    const cuda::current_device guard(device_);
    over_ = cuda::make_event();
    // Other threads may do with CUDA what they like meanwhile.
    check(cudaStreamBeginCapture(origin(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    capturing_ = true;
    record(branches_.front().event, origin());
    for (std::size_t at = 1; at < branches_.size(); ++at)
      wait(branches_[at].stream, branches_.front().event);
  }

  void end() override {
    const cuda::current_device guard(device_);
    for (std::size_t at = 1; at < branches_.size(); ++at) {
      record(branches_[at].event, branches_[at].stream);
      wait(origin(), branches_[at].event);
    }
    const graph made = end_capture();
    cudaGraphExec_t ready = nullptr;
    check(cudaGraphInstantiate(&ready, made.get(), cudaGraphInstantiateFlagUseNodePriority),
          "cudaGraphInstantiate");
    ready_ = executable(ready);
    check(cudaGraphUpload(ready_.get(), origin()), "cudaGraphUpload");
  }

  void cancel() noexcept override {
    if (!std::exchange(capturing_, false)) return;
    cudaGraph_t made = nullptr;
    static_cast<void>(cudaStreamEndCapture(origin(), &made));
    const graph dropped(made);
    static_cast<void>(cudaGetLastError());
  }

  void launch() override {
    // As what is issued does; the thread may have made another GPU current.
    check(cudaSetDevice(device_), "cudaSetDevice");
    check(cudaGraphLaunch(ready_.get(), origin()), "cudaGraphLaunch");
    record(over_, origin());
  }

  bool is_over() override {
    return cuda::is_over(cudaEventQuery(over_.get()), "cudaEventQuery");
  }

 private:
  using graph = cuda::owned<cudaGraph_t, cudaGraphDestroy>;
  using executable = cuda::owned<cudaGraphExec_t, cudaGraphExecDestroy>;
  struct branch {
    cudaStream_t stream = nullptr;
    cuda::owned_event event;  // where it joins the first one; of that, where the others leave it
  };

  cudaStream_t origin() const { return branches_.front().stream; }
  graph end_capture() {
    capturing_ = false;
    cudaGraph_t made = nullptr;
    const cudaError_t status = cudaStreamEndCapture(origin(), &made);
    graph kept(made);
    check(status, "cudaStreamEndCapture");
    return kept;
  }
  static void record(const cuda::owned_event& event, cudaStream_t on) {
    check(cudaEventRecord(event.get(), on), "cudaEventRecord");
  }
  static void wait(cudaStream_t waits, const cuda::owned_event& event) {
    check(cudaStreamWaitEvent(waits, event.get(), cudaEventWaitDefault), "cudaStreamWaitEvent");
  }

  std::optional<cuda::current_device> at_end_;  // first: until all others are gone
  std::vector<branch> branches_;
  cuda::owned_event over_;
  executable ready_;
  int device_ = 0;  // of the first stream, from which the graph is launched
  bool capturing_ = false;
};

}  // namespace

std::unique_ptr<step_graph> make_cuda_graph() {
  return std::make_unique<cuda_graph>();
}

}  // namespace stretto::executor
