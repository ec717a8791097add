#include "cuda/warm_up.hpp"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/handles.hpp"

namespace train::cuda {

namespace {

using stretto::job_kind;

//! Memory of a math's, zeros, as long as it lives.
class room {
 public:
  explicit room(const math<float>& by) : by_(by) {}
  template <class Value>
  std::span<Value> of(std::size_t count) {
    held_.push_back(by_.allocate(count * sizeof(Value)));
    return {static_cast<Value*>(held_.back().get()), count};
  }

 private:
  const math<float>& by_;
  std::vector<std::shared_ptr<void>> held_;
};

void wait_for(cudaStream_t stream) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!stretto::executor::cuda::is_over(cudaStreamQuery(stream), "cudaStreamQuery")) {
    if (std::chrono::steady_clock::now() > limit)
      throw std::runtime_error("a stage's first run on the GPU has not ended within 2 minutes");
    std::this_thread::yield();
  }
}

}  // namespace

void warm_up(stage& one, int pieces) {
  const config& model = one.model();
  const math<float>& by = one.by();
  const std::size_t scalars = one.message_bytes() / sizeof(float);
  room memory(by);
  std::vector<std::span<float>> stashes;
  for (int slice = 0; slice < model.slices; ++slice)
    stashes.push_back(memory.of<float>(one.stash_scalars()));
  const std::span<const std::uint8_t> tokens = memory.of<std::uint8_t>(model.rows());
  const std::span<const std::uint8_t> targets = memory.of<std::uint8_t>(model.rows());
  job_arguments<float> with{.input = memory.of<float>(scalars),
                            .output = memory.of<float>(scalars),
                            .output_gradient = memory.of<float>(scalars),
                            .input_gradient = memory.of<float>(scalars),
                            .sums = memory.of<float>(model.activation_scalars()),
                            .loss = memory.of<double>(1).data()};
  const auto run = [&](job_kind kind, std::size_t slice) {
    with.stash = stashes[slice];
    with.earlier = std::span(stashes).first(slice);
    with.slice = slice;
    with.tokens = tokens.first(model.rows(slice));
    with.targets = targets.first(model.rows(slice));
    const auto ops = one.ops(kind);
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (is_sum(ops[op].code)) continue;
      one.run_op(kind, op, with);
      const op_cut cut = cut_of(model, ops[op].code);
      if (cut.what == stretto::pieces_of::whole) continue;
      for (int count = 2; count <= pieces && config::size(count) <= cut.parts; ++count)
        for (int index = 0; index < count; ++index) one.run_op(kind, op, with, {index, count});
    }
  };
  const auto stream = stretto::executor::cuda::make_stream(0);
  by.on_stream(stream.get(), 0);
  one.round_weights();
  for (std::size_t slice = 0; slice < stashes.size(); ++slice) run(job_kind::forward, slice);
  for (std::size_t slice = stashes.size(); slice-- > 0;) {
    run(job_kind::backward_input, slice);
    run(job_kind::backward_weight, slice);
  }
  one.zero_gradients();
  // Behind its jobs a step joins gradients, here zeros, and updates, by a factor of zero nothing.
  for (int piece = 0; piece < model.head_pieces; ++piece)
    for (const layer_kind side : {layer_kind::embedding, layer_kind::head})
      if (const auto table = one.tied_gradient(side, piece); !table.empty())
        one.join_tied(table, table, piece);
  const auto norms = memory.of<double>(config::size(model.layer_count()));
  one.squared_norms(norms);
  by.finish(norms, {with.loss, 1}, 1, memory.of<step_result>(1).data());
  one.clip_and_update(memory.of<adamw_factors<float>>(1).data(), memory.of<double>(1).data());
  wait_for(stream.get());
  by.on_stream(nullptr, 0);
}

}  // namespace train::cuda
