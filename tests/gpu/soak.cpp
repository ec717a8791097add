// A thousand steps of a pipeline on one GPU, issued and replayed: the last one has the bits of the
// first, and no step takes memory, or waits but for its end. Messages are small, so that on a
// simulated GPU, too, it is all of them: in a second each way.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/counted_calls.hpp"

using namespace stretto;
using namespace stretto::test;
using executor::cuda::device_memory;
using executor::cuda::make_device_memory;

namespace {

// stretto::check is the rules.
constexpr auto must = executor::cuda::check;

constexpr int steps = 1000;
constexpr int steps_to_settle = 20;  // by then the driver has what it takes for launches and keeps
constexpr int ranks = 4;
constexpr int microbatches = 8;
constexpr std::size_t elements = 4096;  // of a message
constexpr std::size_t bytes = elements * sizeof(float);
constexpr std::size_t all_elements = microbatches * elements;
constexpr std::size_t all_bytes = microbatches * bytes;

//! 1F1B, and behind it a sum over all ranks.
planned pipeline() {
  plan_request wanted;
  wanted.stages = {{.output = bytes, .stash = bytes}};
  wanted.groups = {{.first = 0, .count = ranks, .elements = all_elements}};
  wanted.members = {0, 1, 2, 3};
  return planned(schedule::one_f_one_b{}, {.ranks = ranks, .microbatches = microbatches},
                 job_table(ranks, 1).view(), overlap::separate{}, wanted);
}

//! Of very different size, so that another order of summing gives other bits.
float input(std::size_t at) {
  const float sizes[] = {1e6F, 1, -1e6F, 1e-3F, 3.7F};
  return sizes[at / elements % 5] * (1 + static_cast<float>(at % elements) / 7);
}
//! A rank keeps what comes by at a place of its own, so that a sum is one of different numbers.
std::size_t place(int microbatch, int rank) {
  return static_cast<std::size_t>((microbatch + rank) % microbatches);
}

//! Hands on what the first stage is given, forwards and back; keeps half of what each forward saves
//! and half of the gradient that comes back, and has it summed. Copies alone, from the same memory
//! in each step.
class copying_stage final : public executor::stage {
 public:
  copying_stage() {
    std::vector<float> filled(all_elements);
    for (std::size_t at = 0; at < filled.size(); ++at) filled[at] = input(at);
    bring(input_, filled.data());
  }
  void run(const executor::context& at) override {
    const cudaStream_t on = executor::native_stream(at);
    const auto rank = static_cast<std::size_t>(at.rank);
    std::byte* const kept = part(kept_[rank], place(at.what.microbatch, at.rank));
    switch (at.what.kind) {
      case job_kind::forward: {
        const std::byte* const from =
            at.what.stage == 0 ? part(input_, static_cast<std::size_t>(at.what.microbatch))
                               : at.input().data();
        copy(at.stash().data(), from, bytes, on);
        if (!at.output().empty()) copy(at.output().data(), from, bytes, on);
        break;
      }
      case job_kind::backward: {
        const bool is_last = at.output_gradient().empty();
        const std::byte* const from = is_last ? at.stash().data() : at.output_gradient().data();
        copy(kept, at.stash().data(), bytes / 2, on);
        copy(kept + bytes / 2, from + bytes / 2, bytes / 2, on);
        if (!at.input_gradient().empty()) copy(at.input_gradient().data(), from, bytes, on);
        break;
      }
      case job_kind::reduce_grad:
        copy(at.collective().data(), kept_[rank].get(), all_bytes, on);
        break;
      default:
        copy(results_[rank].get(), at.collective().data(), all_bytes, on);
    }
  }
  //! So that a step which does nothing is not taken for one that does what the step before did.
  void spoil() {
    const std::vector<unsigned char> nothing(all_bytes, 0xff);
    for (const auto* const list : {&kept_, &results_})
      for (const device_memory& each : *list) bring(each, nothing.data());
  }
  std::vector<float> result(std::size_t rank) const {
    std::vector<float> seen(all_elements);
    must(cudaMemcpy(seen.data(), results_[rank].get(), all_bytes, cudaMemcpyDeviceToHost),
         "cudaMemcpy");
    return seen;
  }

 private:
  // cudaMemcpy returns once it has read the host's memory, and no stream of the engine's waits for
  // it.
  void bring(const device_memory& to, const void* from) const {
    must(cudaMemcpyAsync(to.get(), from, all_bytes, cudaMemcpyHostToDevice, own_.get()),
         "cudaMemcpyAsync");
    must(cudaStreamSynchronize(own_.get()), "cudaStreamSynchronize");
  }
  static std::byte* part(const device_memory& of, std::size_t number) {
    return static_cast<std::byte*>(of.get()) + number * bytes;
  }
  static void copy(void* to, const void* from, std::size_t many, cudaStream_t on) {
    must(cudaMemcpyAsync(to, from, many, cudaMemcpyDeviceToDevice, on), "cudaMemcpyAsync");
  }
  static std::vector<device_memory> of_ranks() {
    std::vector<device_memory> made;
    for (int rank = 0; rank < ranks; ++rank) made.push_back(make_device_memory(all_bytes));
    return made;
  }
  executor::cuda::owned_stream own_ = executor::cuda::make_stream(0);
  device_memory input_ = make_device_memory(all_bytes);
  std::vector<device_memory> kept_ = of_ranks();
  std::vector<device_memory> results_ = of_ranks();
};

std::vector<float> expected_sum() {
  std::vector<float> made(all_elements);
  for (int rank = 0; rank < ranks; ++rank)
    for (int microbatch = 0; microbatch < microbatches; ++microbatch)
      for (std::size_t at = 0; at < elements; ++at) {
        float& sum = made[place(microbatch, rank) * elements + at];
        const float term = input(static_cast<std::size_t>(microbatch) * elements + at);
        sum = rank == 0 ? term : sum + term;
      }
  return made;
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t all = 0;
  must(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  return free;
}

void expect_no_more_than(const cuda_calls& before) {
  CHECK(counted.allocations == before.allocations);
  CHECK(counted.synchronisations == before.synchronisations);
}

void soak(bool graph) {
  const planned made = pipeline();
  REQUIRE(made.answer() == verdict{});
  const std::vector<float> expected = expected_sum();
  copying_stage stage;
  const std::vector<executor::stage*> stages(ranks, &stage);
  executor::options with;
  with.make_device = [](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {}, watch);
  };
  with.wire = executor::make_cuda_loopback_transport();
  with.poison = false;
  if (graph) with.graph = executor::make_cuda_graph;
  const std::size_t before = counted.device_bytes;
  executor::engine engine(made.plans(), stages, std::move(with));
  std::size_t planned_bytes = 0;
  for (const plan_view& each : made.plans())
    planned_bytes += static_cast<std::size_t>(each.arena_bytes);
  CHECK(counted.device_bytes - before == planned_bytes);

  const auto expect = [&] {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(rank);
      CHECK(stage.result(rank) == expected);
    }
  };
  // With a graph the first step is issued and the second recorded: the first replay is what the
  // others are like.
  engine.step();
  if (graph) engine.step();
  expect();
  cuda_calls seen = counted;
  for (int step = 2; step < steps_to_settle; ++step) engine.step();
  const std::size_t before_all = free_memory();
  for (int step = steps_to_settle; step < steps; ++step) engine.step();
  expect_no_more_than(seen);
  stage.spoil();
  seen = counted;
  engine.step();
  expect_no_more_than(seen);
  expect();
  CHECK(engine.steps() == (graph ? steps + 1 : steps));
  // What is free is so of the whole GPU, which others may use, too: what they have taken they
  // hardly take once more, but what steps take, each takes.
  if (const std::size_t after = free_memory(); after != before_all) {
    MESSAGE("free memory was " << before_all << " bytes and is " << after << ": once more");
    for (int step = 0; step < steps; ++step) engine.step();
    CHECK(free_memory() >= after);
  }
}

}  // namespace

TEST_CASE("a thousand issued steps end as the first did, and neither take memory nor wait") {
  soak(false);
}

TEST_CASE("so do a thousand replays of a graph of the step") {
  soak(true);
}
