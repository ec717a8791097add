// Values that travel through a pipeline of ranks, checked to the bit.
#include <doctest/doctest.h>

#include <limits>
#include <tuple>

#include "pipeline.hpp"
#include "stretto/executor/engine.hpp"
#include "threads.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

std::vector<float> run(int ranks, int microbatches, std::int64_t elements, layout how, int steps,
                       executor::options with) {
  const std::vector<plan_builder> plans = pipeline_plans(ranks, microbatches, elements, how);
  sample_stages stages(ranks);
  executor::engine engine(views(plans), stages.pointers, std::move(with));
  for (int step = 0; step < steps; ++step) engine.step();
  CHECK(engine.steps() == steps);
  CHECK_FALSE(engine.failed());
  return stages.sums();
}

}  // namespace

TEST_CASE("every shape, layout and capacity gives the bits of the plain computation") {
  for (const int ranks : {1, 2, 3, 4})
    for (const int microbatches : {1, 3, 8})
      for (const layout how : {layout::serial, layout::separate})
        for (const int capacity : {0, 1, 3}) {
          CAPTURE(ranks);
          CAPTURE(microbatches);
          CAPTURE(capacity);
          executor::options with;
          with.capacity = capacity;
          CHECK(run(ranks, microbatches, 33, how, 3, std::move(with)) ==
                expected_sums(ranks, microbatches, 33, 3));
        }
}

TEST_CASE("messages may be empty or large") {
  for (const std::int64_t elements : {0, 1, 100000})
    for (const int capacity : {0, 2, std::numeric_limits<int>::max()}) {
      executor::options with;
      with.capacity = capacity;
      CHECK(run(2, 3, elements, layout::separate, 2, std::move(with)) ==
            expected_sums(2, 3, elements, 2));
    }
}

TEST_CASE("issuing threads and queues of any depth change nothing") {
  for (const executor::issuing issue :
       {executor::issuing::caller, executor::issuing::thread_per_rank})
    for (const int depth : {0, 1, 2, 7})
      for (const layout how : {layout::serial, layout::separate}) {
        CAPTURE(depth);
        executor::options with;
        with.issue = issue;
        with.host.queue_depth = depth;
        CHECK(run(4, 6, 17, how, 20, std::move(with)) == expected_sums(4, 6, 17, 20));
      }
}

TEST_CASE("random delays change nothing") {
  for (const std::uint64_t seed : {1U, 2U, 3U})
    for (const int capacity : {0, 1}) {
      executor::options with;
      with.delay = {seed, std::chrono::microseconds(300)};
      with.capacity = capacity;
      CHECK(run(4, 4, 9, layout::separate, 5, std::move(with)) == expected_sums(4, 4, 9, 5));
    }
}

TEST_CASE("a thousand steps, and no thread is left") {
  const int before = thread_count();
  CHECK(run(4, 4, 5, layout::separate, 1000, {}) == expected_sums(4, 4, 5, 1000));
  CHECK(settle_to(before));
}

TEST_CASE("an engine may run no step at all, and engines may take turns") {
  const std::vector<plan_builder> plans = pipeline_plans(2, 2, 3, layout::separate);
  sample_stages first(2);
  sample_stages second(2);
  { const executor::engine unused(views(plans), first.pointers); }
  executor::engine one(views(plans), first.pointers);
  executor::engine two(views(plans), second.pointers);
  one.step();
  two.step();
  one.step();
  CHECK(one.steps() == 2);
  CHECK(two.steps() == 1);
  CHECK(first.sums() == expected_sums(2, 2, 3, 2));
  CHECK(second.sums() == expected_sums(2, 2, 3, 1));
}

TEST_CASE("the context names job, rank, step, stream and every buffer in its role") {
  const std::vector<plan_builder> plans = pipeline_plans(1, 1, 6, layout::serial);
  struct probe final : executor::stage {
    void run(const executor::context& at) override {
      CHECK(at.rank == 0);
      CHECK(at.step == seen / 2);
      CHECK(at.piece == 0);
      CHECK(at.pieces == 1);
      CHECK(at.sm_budget == 0);
      CHECK(at.stream.index == 0);
      CHECK(at.stream.native == nullptr);
      CHECK_FALSE(at.stopped());
      CHECK(at.buffers.size() == 3);
      const bool forward = at.what.kind == job_kind::forward;
      CHECK(at.input().size() == (forward ? 24 : 0));
      CHECK(at.output().size() == (forward ? 24 : 0));
      CHECK(at.output_gradient().size() == (forward ? 0 : 24));
      CHECK(at.input_gradient().size() == (forward ? 0 : 24));
      CHECK(at.stash().size() == 24);
      CHECK(at.find(buffer_role::stash, 0).data() == at.stash().data());
      CHECK(at.find(buffer_role::stash, 1).empty());
      CHECK(at.collective().empty());
      CHECK(at.view<double>(buffer_role::stash).size() == 3);
      for (const executor::bound_buffer& each : at.buffers)
        CHECK(reinterpret_cast<std::uintptr_t>(each.data.data()) % 64 == 0);
      ++seen;
    }
    int seen = 0;
  } stage;
  executor::stage* const stages[] = {&stage};
  executor::engine engine(views(plans), stages);
  engine.step();
  engine.step();
  CHECK(stage.seen == 4);
}
