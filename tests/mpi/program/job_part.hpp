// The ranks of a pipeline that one process holds, and what they compute.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "stretto/executor/engine.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"

namespace mpi_test {

using namespace stretto;

//! Writes numbers that depend on all it has read, and remembers every bit of that.
class mixer final : public executor::stage {
 public:
  explicit mixer(int rank) : rank_(rank) {}

  void run(const executor::context& at) override {
    if (before) before(at);
    float state = 0.3F + 0.01F * static_cast<float>(at.what.stage + 7 * at.what.microbatch) +
                  0.001F * static_cast<float>(at.step);
    for (const executor::bound_buffer& each : at.buffers) {
      if (each.mode == access::write) continue;
      // Of a sum that is dealt, no more than its own.
      const bool dealt = each.role == buffer_role::collective && !each.own.empty();
      for (const float value : floats(dealt ? each.own : each.data)) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        trail = (trail ^ bits) * 1099511628211U;
        state = state * 0.75F + value * 0.125F;
      }
    }
    // Of very different size by rank, so that another order of summing gives other bits.
    const float scale = at.what.kind == job_kind::reduce_grad ? (rank_ % 3 == 0   ? 1e6F
                                                                 : rank_ % 3 == 1 ? -1e6F
                                                                                  : 1e-3F)
                                                              : 1.0F;
    // Nor is a part of the weights another's.
    if (at.what.kind == job_kind::unshard) state += static_cast<float>(rank_);
    for (const executor::bound_buffer& each : at.buffers) {
      if (each.mode == access::read) continue;
      float next = state * scale;
      for (float& value : floats(each.data)) value = next = next * 0.99F + 0.01F;
    }
  }

  std::function<void(const executor::context&)> before{};
  std::uint64_t trail = 14695981039346656037U;

 private:
  static std::span<float> floats(std::span<std::byte> of) {
    return {reinterpret_cast<float*>(of.data()), of.size() / sizeof(float)};
  }
  int rank_;
};

//! Plans, stages and an engine for the ranks from `first` on.
struct job_part {
  job_part(const planned& made, int first, int count, std::unique_ptr<executor::transport> wire,
           std::chrono::nanoseconds deadline = std::chrono::minutes(1))
      : job_part(made.plans(), first, count, std::move(wire), deadline) {}
  job_part(std::span<const plan_view> made, int first, int count,
           std::unique_ptr<executor::transport> wire,
           std::chrono::nanoseconds deadline = std::chrono::minutes(1)) {
    std::vector<plan_view> plans;
    std::vector<executor::stage*> pointers;
    for (int rank = first; rank < first + count; ++rank) {
      plans.push_back(made[static_cast<std::size_t>(rank)]);
      stages.push_back(std::make_unique<mixer>(rank));
      pointers.push_back(stages.back().get());
    }
    executor::options with;
    with.wire = std::move(wire);
    with.deadline = deadline;
    engine = std::make_unique<executor::engine>(plans, pointers, std::move(with));
  }
  std::vector<std::unique_ptr<mixer>> stages{};
  std::unique_ptr<executor::engine> engine{};
};

template <class Schedule>
std::unique_ptr<const planned> plans_of(const Schedule& schedule, int ranks, std::int64_t bytes,
                                        int chunks = 1, int microbatches = 8) {
  const shape sizes{.ranks = ranks, .microbatches = microbatches, .chunks = chunks};
  const job_table costs(ranks, place(schedule.placed(), sizes).chunks);
  plan_request request;
  request.stages = {{.output = bytes, .stash = 256, .gradients = 1000}};
  // Every rank sums with all others.
  std::vector<std::int32_t> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  request.groups = {{.first = 0, .count = ranks, .elements = 77, .wide = false}};
  request.members = all;
  auto made =
      std::make_unique<const planned>(schedule, sizes, costs.view(), overlap::separate{}, request);
  if (!(made->answer() == verdict{})) throw std::logic_error("the plan was refused");
  return made;
}

}  // namespace mpi_test
