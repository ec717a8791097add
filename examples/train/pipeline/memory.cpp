// What a pipeline holds, from what is known before its first step.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "model/scratch.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/plans.hpp"

namespace train {

namespace executor = stretto::executor;

namespace {

//! Of every channel that leaves the rank the largest message, summed.
std::int64_t largest_messages(const stretto::plan_view& plan) {
  std::vector<std::int64_t> largest(config::size(plan.ranks));
  for (const stretto::instruction& at : plan.instructions) {
    if (at.act != stretto::action::send) continue;
    const auto& message = plan.buffers[config::size(plan.uses_of(at).front().buffer)];
    std::int64_t& most = largest[config::size(at.peer)];
    most = std::max(most, message.bytes);
  }
  return std::accumulate(largest.begin(), largest.end(), std::int64_t{0});
}

}  // namespace

rank_memory pipeline::memory(int rank) const {
  rank_memory made;
  for (int one = 0; one < workers(); ++one)
    made += worker_memory(config::size(rank * workers() + one));
  return made;
}

rank_memory pipeline::worker_memory(std::size_t worker) const {
  rank_memory made;
  const auto prepared = [&](const stretto::plan_view& plan, int traced) {
    return capacity_ * largest_messages(plan) + executor::host_queue_bytes(plan) +
           executor::host_event_bytes(plan) +
           executor::runner::prepared_bytes(plan, traced, poison_);
  };
  const rank_model& here = *ranks_[worker];
  for (int chunk = 0; chunk < here.chunks(); ++chunk) {
    made.weights += static_cast<std::int64_t>(here.chunk(chunk).state_bytes() / 4);
    made.workspaces += static_cast<std::int64_t>(here.chunk(chunk).copies_bytes());
  }
  made.gradients = made.weights;
  made.optimizer = 2 * made.weights;
  made.workspaces += static_cast<std::int64_t>(here.by().rounding_bytes() + here.batch_bytes());
  const stretto::plan_view& plan = training_plan_->plans()[worker];
  made.arena = plan.arena_bytes;
  made.host = plan.host_bytes;
  made.workspaces += prepared(plan, trace_steps_);
  if (copy_of(worker) != 0) return made;
  const stretto::plan_view& evaluation = evaluation_plan_->plans()[evaluator(worker)];
  made.workspaces += evaluation.arena_bytes + prepared(evaluation, 0);
  return made;
}

// Measured on Linux, x86-64, glibc: what a thread touches of its stack before it is given work, and
// what calls from there to a product take, in pages of 4 KiB. What products pack is known.
constexpr std::int64_t idle_stack = 2 * 4096, frames = 5 * 4096;

shared_memory pipeline::memory() const {
  shared_memory made;
  for (const auto* plan : {training_plan_.get(), evaluation_plan_.get()})
    made.plans += plan->storage_bytes();
  for (std::size_t at = here_.first; at < here_.last; ++at) {
    const auto packed =
        static_cast<std::int64_t>(packed_bytes(model_, ranks_[at]->has_piece()));
    const int evaluates = copy_of(at) == 0 ? 1 : 0;
    made.computing += 1 + evaluates;
    made.stacks += (1 + evaluates) * (frames + packed);
    made.threads += static_cast<int>(training_plan_->plans()[at].streams.size());
    if (evaluates == 1)
      made.threads += static_cast<int>(evaluation_plan_->plans()[evaluator(at)].streams.size());
  }
  made.stacks += made.threads * idle_stack;
  return made;
}

}  // namespace train
