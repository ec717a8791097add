// What the executor asks of a device whose streams report nothing by themselves: marks around the
// work, an end that is polled, multiprocessors to share.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <vector>

#include "failures.hpp"
#include "forwarding_device.hpp"
#include "pipeline.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

//! A host device that behaves so.
class gpu_like final : public forwarding_device {
 public:
  gpu_like(const plan_view& plan, executor::monitor& watch)
      : forwarding_device(plan, watch), watch_(watch) {}

  bool marked() const override { return true; }
  void begin(int, const executor::mark& what) override {
    CHECK(open == -1);
    open = what.instruction;
    ++marks;
  }
  void end(int, const executor::mark& what) override { open = open == what.instruction ? -1 : -2; }
  void end_step(int stream, std::int64_t step, executor::monitor&) override {
    const auto tell = [](const executor::command& given) {
      static_cast<std::atomic<bool>*>(given.self)->store(true);
    };
    enqueue(stream, {tell, &ended_, nullptr, 0, step});
  }
  bool polled() const override { return true; }
  void poll() noexcept override {
    if (ended_.exchange(false)) watch_.rank_ended();
  }
  void* native_event(int event) const override { return handles_ + event; }
  int multiprocessors() const override { return 132; }

  int open = -1;
  int marks = 0;

 private:
  executor::monitor& watch_;
  std::atomic<bool> ended_{false};
  mutable char handles_[16]{};
};

}  // namespace

TEST_CASE("a polled device ends its steps, with marks around each instruction") {
  std::vector<plan_builder> plans = pipeline_plans(1, 3, 4, layout::separate);
  sample_stages stages(1);
  gpu_like* made = nullptr;
  executor::options with;
  with.make_device = [&](const plan_view& plan, executor::monitor& watch) {
    auto fresh = std::make_unique<gpu_like>(plan, watch);
    made = fresh.get();
    return fresh;
  };
  executor::engine engine(views(plans), stages.pointers, std::move(with));
  for (int step = 0; step < 10; ++step) engine.step();
  CHECK(stages.sums() == expected_sums(1, 3, 4, 10));
  CHECK(made->marks == 10 * static_cast<int>(plans[0].instructions.size()));
  CHECK(made->open == -1);
}

TEST_CASE("computation is told what communication beside it leaves, and which event its start is") {
  plan_builder plan(0, 1, {"compute", "sums", "copies"});
  const auto op = [](int i) { return job{0, i, 0, job_kind::forward}; };
  const int first = plan.run(op(0), 0);
  const int sum = plan.run(op(1), 1, {}, {first});
  plan.run(op(2), 0);  // beside the sum alone
  const int copied = plan.run(op(3), 2);
  plan.run(op(4), 0);  // beside both, behind the sum's start
  plan.run(op(5), 1);  // beside the copy
  plan.run(op(6), 0, {}, {sum});
  plan.run(op(7), 0, {}, {copied});
  plan.end();
  std::vector<op_part> parts(plan.instructions.size());
  for (op_part& each : parts) each.op = 0;
  parts[1].holds = 8;
  parts[3].holds = 4;
  parts[1].started = plan.head.events++;
  // In the place of a wait that the builder would write: for the start, which is no end.
  plan.at(4).first_wait = static_cast<std::int32_t>(plan.waits.size());
  plan.at(4).wait_count = 1;
  plan.waits.push_back({parts[1].started, wait_reason::starts_before, false});
  plan_view view = plan.view();
  view.parts = parts;
  struct probe final : executor::stage {
    void run(const executor::context& at) override {
      budgets[at.what.microbatch] = at.sm_budget;
      starts[at.what.microbatch] = at.start_event != nullptr;
    }
    int budgets[8]{};
    bool starts[8]{};
  } stage;
  executor::stage* const stages[] = {&stage};
  executor::options with;
  with.make_device = [](const plan_view& given, executor::monitor& watch) {
    return std::make_unique<gpu_like>(given, watch);
  };
  executor::engine engine({&view, 1}, stages, std::move(with));
  engine.step();
  const int expected[] = {128, 128, 120, 124, 120, 128, 128, 0};
  for (int at = 0; at < 8; ++at) {
    CAPTURE(at);
    CHECK(stage.budgets[at] == expected[at]);
    CHECK(stage.starts[at] == (at == 1));
  }
}
