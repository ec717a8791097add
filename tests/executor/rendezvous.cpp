// How strict the loopback transport is, and what the error says when a plan cannot end.
#include "failures.hpp"
#include "pipeline.hpp"
#include "stretto/executor/callbacks.hpp"
#include "threads.hpp"

using namespace stretto;
using namespace stretto::test;
using std::chrono::milliseconds;

namespace {

//! Two ranks that both send all their messages before they receive any, on one stream each.
std::vector<plan_builder> both_send_first(int messages) {
  std::vector<plan_builder> plans;
  for (int r = 0; r < 2; ++r) {
    plan_builder plan(r, 2, {"compute"});
    const int out = plan.add_buffer(buffer_role::output, r, 0, 64);
    const int in = plan.add_buffer(buffer_role::input, r, 0, 64);
    plan.run({r, 0, 0, job_kind::forward}, 0, {{out, buffer_role::output, access::write}});
    const auto message = [](int from, int i) {
      return from == 0 ? job{0, i, 0, job_kind::send_forward}
                       : job{1, i, 0, job_kind::send_backward};
    };
    for (int i = 0; i < messages; ++i) plan.send(message(r, i), 0, 1 - r, out);
    for (int i = 0; i < messages; ++i)
      plan.receive(matching_receive(message(1 - r, i)), 0, 1 - r, in);
    plans.push_back(plan.end());
  }
  return plans;
}

struct nothing final : executor::stage {
  void run(const executor::context&) override {}
};

struct idle_stages {
  explicit idle_stages(std::size_t ranks) : pointers(ranks, &shared) {}
  nothing shared{};
  std::vector<executor::stage*> pointers;
};

}  // namespace

TEST_CASE("two ranks that both send first never end under rendezvous, and the circle is named") {
  const int before = thread_count();
  const std::vector<plan_builder> plans = both_send_first(1);
  idle_stages stages(2);
  executor::options with;
  with.deadline = milliseconds(300);
  with.issue = executor::issuing::thread_per_rank;
  executor::engine engine(views(plans), stages.pointers, std::move(with));
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::deadline);
  CHECK(error.rank() == 0);
  CHECK(error.instruction() == 1);
  CHECK(error.what_job() == job{0, 0, 0, job_kind::send_forward});
  CHECK(error.step() == 0);
  CHECK(error.cause() == nullptr);
  CHECK(error.threads_left() == 0);
  expect_part(error.what(), "deadlock: rank 0, instruction 1, 0SEND_F0 (stage 0, send of ");
  expect_part(error.what(), "rank 1, instruction 1, 1SEND_B0");
  CHECK(settle_to(before));
  CHECK(error_of(engine).kind() == executor::failure::refused);
}

TEST_CASE("a single thread that issues refuses them, naming what is stuck") {
  const std::vector<plan_builder> plans = both_send_first(2);
  idle_stages stages(2);
  const std::string text = refusal_of([&] { executor::engine(views(plans), stages.pointers); });
  expect_part(text, "plan of rank 0, instruction 1, 0SEND_F0 (stage 0, send of ");
  expect_part(text, "a single thread cannot issue it: rank 1, instruction 3, 1RECV_F0");
  expect_part(text, "comes after rank 1, instruction 1, 1SEND_B0");
}

TEST_CASE("the same plan ends when channels hold as many messages, and not with one place less") {
  for (const int messages : {1, 2, 3})
    for (const int capacity : {0, 1, 2, 3, 4}) {
      CAPTURE(messages);
      CAPTURE(capacity);
      const std::vector<plan_builder> plans = both_send_first(messages);
      idle_stages stages(2);
      executor::options with;
      with.capacity = capacity;
      with.issue = executor::issuing::thread_per_rank;
      if (capacity < messages) with.deadline = milliseconds(300);
      executor::engine engine(views(plans), stages.pointers, std::move(with));
      if (capacity < messages) {
        // Each side's last send that had a place is its `capacity`-th.
        const executor::execution_error error = error_of(engine);
        CHECK(error.kind() == executor::failure::deadline);
        CHECK(error.instruction() == 1 + capacity);
      } else {
        for (int step = 0; step < 20; ++step) engine.step();
        CHECK(engine.steps() == 20);
      }
    }
}

TEST_CASE("messages of one channel keep their order on different streams of the sender") {
  // The second send could start first: only the channel's order holds it back.
  std::vector<plan_builder> plans;
  plan_builder sender(0, 2, {"slow", "quick"});
  plan_builder receiver(1, 2, {"compute"});
  const int slow = sender.add_buffer(buffer_role::output, 0, 0, 4);
  const int quick = sender.add_buffer(buffer_role::output, 0, 1, 4);
  const int one = receiver.add_buffer(buffer_role::input, 1, 0, 4);
  const int two = receiver.add_buffer(buffer_role::input, 1, 1, 4);
  sender.run({0, 0, 0, job_kind::forward}, 0, {{slow, buffer_role::output, access::write}});
  sender.run({0, 1, 0, job_kind::forward}, 1, {{quick, buffer_role::output, access::write}});
  for (int i = 0; i < 2; ++i) {
    sender.send({0, i, 0, job_kind::send_forward}, i, 1, i == 0 ? slow : quick);
    receiver.receive({1, i, 0, job_kind::receive_forward}, 0, 0, i == 0 ? one : two);
    receiver.run({1, i, 0, job_kind::forward}, 0,
                 {{i == 0 ? one : two, buffer_role::input, access::read}});
  }
  plans.push_back(sender.end());
  plans.push_back(receiver.end());
  std::vector<float> seen;
  executor::job_callbacks callbacks;
  callbacks.forward = [&](const executor::context& at) {
    if (at.rank == 1) return seen.push_back(at.view<float>(buffer_role::input)[0]);
    if (at.what.microbatch == 0) std::this_thread::sleep_for(milliseconds(2));
    at.view<float>(buffer_role::output)[0] = 1.0F + static_cast<float>(at.what.microbatch);
  };
  executor::callback_stage stage(callbacks);
  executor::stage* const stages[] = {&stage, &stage};
  for (const int capacity : {0, 1, 2}) {
    executor::options with;
    with.capacity = capacity;
    executor::engine engine(views(plans), stages, std::move(with));
    seen.clear();
    for (int step = 0; step < 3; ++step) engine.step();
    CHECK(seen == std::vector<float>{1, 2, 1, 2, 1, 2});
  }
}

TEST_CASE("a step that is held up by a callback names the callback, not those who wait for it") {
  const std::vector<plan_builder> plans = pipeline_plans(3, 2, 4, layout::separate);
  executor::job_callbacks callbacks;
  callbacks.backward = [](const executor::context&) {};
  callbacks.forward = [](const executor::context& at) {
    while (at.rank == 1 && at.what.microbatch == 1 && !at.stopped())
      std::this_thread::sleep_for(milliseconds(1));
  };
  executor::callback_stage stage(callbacks);
  executor::stage* const stages[] = {&stage, &stage, &stage};
  executor::options with;
  with.deadline = milliseconds(300);
  executor::engine engine(views(plans), stages, std::move(with));
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::deadline);
  CHECK(error.rank() == 1);
  CHECK(error.what_job() == job{1, 1, 0, job_kind::forward});
  CHECK(error.threads_left() == 0);
  expect_part(error.what(), "1F1 (stage 1, forward, micro-batch 1) has not returned");
  expect_part(error.what(), " has not returned\nfirst missing of the others: rank 0");
  expect_part(error.what(), "; rank 2, instruction ");
}
