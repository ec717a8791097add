// What a plan releases is overwritten with NaN where it is released: a plan that is right gives the
// same bits, one that releases too early gives NaN.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>
#include <thread>
#include <vector>

#include "pipeline.hpp"
#include "stretto/executor/engine.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

executor::options poisoning(bool on) {
  executor::options with;
  with.poison = on;
  return with;
}

bool all_poison(std::span<const std::byte> bytes) {
  return std::ranges::all_of(
      bytes, [](std::byte each) { return each == std::byte{executor::poison_byte}; });
}

// The first makes the value, the second reads it on another stream; the others are on the first
// stream, and `joined` waits for the reader.
constexpr int made = 0, read = 1, idle = 2, beside = 3, joined = 4, last = 5;

plan_builder read_on_another_stream() {
  plan_builder plan(0, 1, {"compute", "aside"});
  const int value = plan.add_buffer(buffer_role::stash, 0, 0, 64);
  const int kept = plan.add_buffer(buffer_role::output, 0, 0, 64);
  const auto use = [](int id, buffer_role role, stretto::access mode) {
    return std::vector<buffer_use>{{id, role, mode}};
  };
  plan.run({0, made, 0, job_kind::forward}, 0,
           use(value, buffer_role::stash, stretto::access::write));
  plan.run({0, read, 0, job_kind::forward}, 1,
           use(value, buffer_role::stash, stretto::access::read), {made});
  plan.run({0, idle, 0, job_kind::forward}, 0);
  plan.run({0, beside, 0, job_kind::forward}, 0,
           use(kept, buffer_role::output, stretto::access::write));
  plan.run({0, joined, 0, job_kind::forward}, 0, {}, {read});
  plan.run({0, last, 0, job_kind::forward}, 0);
  plan.end();
  return plan;
}

//! Reads only once `beside` runs.
struct late_reader final : executor::stage {
  void run(const executor::context& at) override {
    switch (at.what.microbatch) {
      case made:
        std::ranges::fill(at.view<float>(buffer_role::stash), 5.0F);
        break;
      case read:
        while (!begun && !at.stopped()) std::this_thread::yield();
        begun = false;
        got = at.view<float>(buffer_role::stash)[7];
        break;
      case beside:
        begun = true;
        std::ranges::fill(at.view<float>(buffer_role::output), 6.0F);
        break;
      default:
        break;
    }
  }
  std::atomic<bool> begun{false};
  float got = 0;
};

//! What is read in two steps of the plan that releases the value before the instruction.
float read_when_released(int before, bool poison) {
  plan_builder plan = read_on_another_stream();
  plan.release(0, before);
  late_reader stage;
  executor::stage* const stages[] = {&stage};
  const std::vector<plan_view> plans{plan.view()};
  executor::engine engine(plans, stages, poisoning(poison));
  engine.step();
  engine.step();
  // Poison covers the buffer that was released, and nothing else.
  const auto arena = engine.arena(0);
  CHECK(all_poison(arena.first(64)) == poison);
  CHECK(arena[64] != std::byte{executor::poison_byte});
  return stage.got;
}

}  // namespace

TEST_CASE("released before who waits for the last reader: the reader has its value") {
  for (const bool poison : {false, true}) {
    CHECK(read_when_released(joined, poison) == 5);
    CHECK(read_when_released(last, poison) == 5);
  }
}

TEST_CASE("released just behind its reader in the list: the reader gives it back as it ends") {
  CHECK(read_on_another_stream().view().released_as_ends(0, idle));
  CHECK_FALSE(read_on_another_stream().view().released_as_ends(0, beside));
  CHECK(read_when_released(idle, true) == 5);
}

TEST_CASE("released one instruction too early: poison bites, and nobody notices without it") {
  CHECK(read_when_released(joined - 1, false) == 5);
  CHECK(std::isnan(read_when_released(joined - 1, true)));
}

TEST_CASE("pipelines that release all they can give the bits of the plain computation") {
  for (const int ranks : {1, 2, 4})
    for (const layout how : {layout::serial, layout::separate})
      for (const int capacity : {0, 2}) {
        CAPTURE(ranks);
        CAPTURE(capacity);
        std::vector<plan_builder> plans = pipeline_plans(ranks, 5, 33, how);
        std::size_t released = 0;
        for (plan_builder& each : plans) released += each.release_all().released.size();
        CHECK(released == static_cast<std::size_t>(ranks) * 5 * 5);
        sample_stages stages(ranks);
        executor::options with = poisoning(true);
        with.capacity = capacity;
        executor::engine engine(views(plans), stages.pointers, std::move(with));
        for (int step = 0; step < 3; ++step) engine.step();
        CHECK(stages.sums() == expected_sums(ranks, 5, 33, 3));
        for (std::size_t rank = 0; rank < plans.size(); ++rank)
          for (const buffer& each : plans[rank].buffers)
            CHECK(all_poison(engine.arena(rank).subspan(static_cast<std::size_t>(each.offset),
                                                        static_cast<std::size_t>(each.bytes))));
      }
}

TEST_CASE("without a word it is on in builds for debugging alone") {
  CHECK(executor::options{}.poison == executor::built_for_debugging());
}
