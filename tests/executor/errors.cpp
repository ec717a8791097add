// Whatever ends a step ends it with one exception that names rank, instruction and cause, and
// leaves no thread.
#include <atomic>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "failures.hpp"
#include "forwarding_device.hpp"
#include "pipeline.hpp"
#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/checked_device.hpp"
#include "stretto/executor/loopback_transport.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/zbv.hpp"
#include "support/captured_errors.hpp"
#include "threads.hpp"

using namespace stretto;
using namespace stretto::test;
using std::chrono::milliseconds;

namespace {

//! What lets go of plans: not what is gone at once.
template <class Made>
concept lends_plans = requires(Made&& made) {
  std::forward<Made>(made).plans();
};

//! A pipeline whose callbacks do nothing but what the test adds to one job of one step.
struct spoiled {
  template <class Call>
  spoiled(int ranks, const job& where, std::int64_t step, Call what, executor::options with = {})
      : plans(pipeline_plans(ranks, 3, 8, layout::separate)), stage([=] {
          executor::job_callbacks callbacks;
          callbacks.forward = [=](const executor::context& at) {
            if (at.what == where && at.step == step) what(at);
          };
          callbacks.backward = callbacks.forward;
          return callbacks;
        }()) {
    const std::vector<executor::stage*> stages(plans.size(), &stage);
    engine = std::make_unique<executor::engine>(views(plans), stages, std::move(with));
  }
  std::vector<plan_builder> plans;
  executor::callback_stage stage;
  std::unique_ptr<executor::engine> engine;
};

//! The line of the flight record that has the instruction of the error.
std::string named_line(const executor::execution_error& error) {
  const std::string& all = error.flight_record();
  const std::size_t at = all.find("named by the error\n");
  if (at == std::string::npos) return {};
  return all.substr(all.rfind('\n', at) + 1, at - all.rfind('\n', at) - 1);
}

}  // namespace

TEST_CASE("what a callback throws ends the step and names the job") {
  const int before = thread_count();
  for (const executor::issuing mode :
       {executor::issuing::caller, executor::issuing::thread_per_rank})
    for (const int rank : {0, 1, 3})
      for (const job_kind kind : {job_kind::forward, job_kind::backward}) {
        executor::options with;
        with.issue = mode;
        const job where{rank, 2, 0, kind};
        spoiled run(
            4, where, 2, [](const executor::context&) { throw std::runtime_error("not a number"); },
            std::move(with));
        run.engine->step();
        run.engine->step();
        const executor::execution_error error = error_of(*run.engine);
        CHECK(error.kind() == executor::failure::stage);
        CHECK(error.rank() == rank);
        CHECK(error.what_job() == where);
        CHECK(error.step() == 2);
        CHECK(error.threads_left() == 0);
        const instruction& named =
            run.plans[static_cast<std::size_t>(rank)].at(error.instruction());
        CHECK(named.what == where);
        expect_part(error.what(), "step 2, rank " + std::to_string(rank) + ", instruction ");
        expect_part(error.what(), kind == job_kind::forward ? "F2 (stage " : "B2 (stage ");
        expect_part(error.what(), "not a number");
        expect_part(error.flight_record(), "step 2, what each stream has done of its plan");
        expect_part(named_line(error), std::to_string(error.instruction()) + ' ');
        expect_part(named_line(error), "started");
        REQUIRE(error.cause() != nullptr);
        CHECK_THROWS_WITH_AS(std::rethrow_exception(error.cause()), "not a number",
                             std::runtime_error);
        // The threads are gone already, not only with the engine.
        CHECK(settle_to(before));
        CHECK(run.engine->failed());
        CHECK(run.engine->steps() == 2);
      }
}

TEST_CASE("what is thrown need not be an exception of the standard library") {
  spoiled run(2, {1, 0, 0, job_kind::forward}, 0, [](const executor::context&) { throw 7; });
  const executor::execution_error error = error_of(*run.engine);
  expect_part(error.what(), "an exception that is no std::exception");
  CHECK_THROWS_AS(std::rethrow_exception(error.cause()), int);
}

TEST_CASE("nor need it say anything") {
  struct silent : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  spoiled run(2, {1, 0, 0, job_kind::forward}, 0, [](const executor::context&) { throw silent(); });
  const executor::execution_error error = error_of(*run.engine);
  expect_part(error.what(), "1F0");
  expect_part(error.what(), "an exception that says nothing");
  CHECK(run.engine->failed());
}

TEST_CASE("a stage that throws what transports throw has failed itself") {
  spoiled run(2, {1, 0, 0, job_kind::forward}, 0,
              [](const executor::context&) { throw executor::transport_error("of my own"); });
  const executor::execution_error error = error_of(*run.engine);
  CHECK(error.kind() == executor::failure::stage);
  expect_part(error.what(), "of my own");
}

TEST_CASE("a stage that throws what the executor throws of itself has failed itself") {
  for (const bool late : {false, true}) {
    spoiled run(2, {1, 0, 0, job_kind::forward}, 0, [late](const executor::context&) {
      if (late) throw executor::late_error("of my own");
      throw executor::race_error("of my own");
    });
    const executor::execution_error error = error_of(*run.engine);
    CHECK(error.kind() == executor::failure::stage);
    expect_part(error.what(), "1F0");
    expect_part(error.what(), "of my own");
  }
}

TEST_CASE("a device that cannot submit ends the step, whoever issues") {
  struct broken final : forwarding_device {
    using forwarding_device::forwarding_device;
    void submit() override { throw std::runtime_error("the queue is broken"); }
  };
  const int before = thread_count();
  for (const executor::issuing mode :
       {executor::issuing::caller, executor::issuing::thread_per_rank}) {
    executor::options with;
    with.issue = mode;
    with.make_device = [](const plan_view& plan, executor::monitor& watch) {
      return std::make_unique<broken>(plan, watch);
    };
    spoiled run(
        1, {0, 0, 0, job_kind::forward}, 5, [](const executor::context&) {}, std::move(with));
    const executor::execution_error error = error_of(*run.engine);
    CHECK(error.kind() == executor::failure::stage);
    CHECK(std::string(error.what()).starts_with("step 0, rank 0: the queue is broken"));
    CHECK(error.instruction() == -1);
  }
  CHECK(settle_to(before));
}

TEST_CASE("no memory is given back while a thread of any rank may be in it") {
  // Rank 1's stream is held in a receive when rank 0 fails; it looks at rank 0's memory a while
  // after all has been called off, as one does that copies from there.
  struct shared_state {
    std::atomic<bool> entered{false}, aborted{false}, gone{false}, looked{false}, was_gone{false};
  } state;
  struct watched final : forwarding_device {
    watched(const plan_view& plan, executor::monitor& watch, std::atomic<bool>* gone)
        : forwarding_device(plan, watch), gone_(gone) {}
    ~watched() override {
      if (gone_ != nullptr) *gone_ = true;
    }
    std::atomic<bool>* gone_;
  };
  struct slow_wire final : executor::transport {
    explicit slow_wire(shared_state& of) : state(of) {}
    void open(std::span<const plan_view>, executor::monitor&) override {}
    void send(const executor::launch&, const executor::operation&) override {}
    void receive(const executor::launch& at, const executor::operation& what) override {
      enqueue(
          at, what,
          [](const executor::command& work) {
            shared_state& my = *static_cast<shared_state*>(work.self);
            my.entered = true;
            while (!my.aborted) std::this_thread::sleep_for(milliseconds(1));
            std::this_thread::sleep_for(milliseconds(50));
            my.was_gone = my.gone.load();
            my.looked = true;
          },
          &state, 0);
    }
    void all_reduce(const executor::launch&, const executor::operation&) override {}
    void all_gather(const executor::launch&, const executor::operation&) override {}
    void abort() noexcept override { state.aborted = true; }
    shared_state& state;
  };
  {
    executor::options with;
    with.grace = milliseconds(0);
    with.wire = std::make_unique<slow_wire>(state);
    with.make_device = [&](const plan_view& plan, executor::monitor& watch) {
      return std::make_unique<watched>(plan, watch, plan.rank == 0 ? &state.gone : nullptr);
    };
    const auto fails = [&state](const executor::context&) {
      while (!state.entered) std::this_thread::sleep_for(milliseconds(1));
      throw std::runtime_error("once");
    };
    spoiled run(2, {0, 1, 0, job_kind::forward}, 0, fails, std::move(with));
    CHECK(error_of(*run.engine).kind() == executor::failure::stage);
  }
  CHECK(state.looked);
  CHECK(state.gone);
  CHECK_FALSE(state.was_gone);
}

TEST_CASE("others are told of an engine that could not begin, however early") {
  struct telling_wire final : executor::transport {
    explicit telling_wire(std::string& to) : told(to) {}
    bool needs_one_issuer() const override { return true; }
    void open(std::span<const plan_view>, executor::monitor&) override {}
    void send(const executor::launch&, const executor::operation&) override {}
    void receive(const executor::launch&, const executor::operation&) override {}
    void all_reduce(const executor::launch&, const executor::operation&) override {}
    void all_gather(const executor::launch&, const executor::operation&) override {}
    void tell(std::string_view why) noexcept override { told = why; }
    void abort() noexcept override {}
    std::string& told;
  };
  for (const bool graph : {false, true}) {
    std::string told;
    executor::options with;
    with.wire = std::make_unique<telling_wire>(told);
    if (graph) {
      with.graph = [] { return std::unique_ptr<executor::step_graph>(); };
      with.make_device = [](const plan_view& plan, executor::monitor& watch) {
        return std::make_unique<forwarding_device>(plan, watch);
      };
    } else {
      with.issue = executor::issuing::thread_per_rank;
    }
    CHECK_THROWS_AS(
        spoiled(
            2, {0, 0, 0, job_kind::forward}, 0, [](const executor::context&) {}, std::move(with)),
        executor::plan_error);
    expect_part(told, graph ? "it could not begin: a graph needs a transport"
                            : "it could not begin: the transport needs a single issuing thread");
  }
}

TEST_CASE("after a failure every step is refused") {
  spoiled run(2, {0, 0, 0, job_kind::forward}, 0,
              [](const executor::context&) { throw std::runtime_error("once"); });
  CHECK(error_of(*run.engine).kind() == executor::failure::stage);
  for (int turn = 0; turn < 3; ++turn) {
    const executor::execution_error error = error_of(*run.engine);
    CHECK(error.kind() == executor::failure::refused);
    CHECK(error.instruction() == -1);
    expect_part(error.what(),
                "step 0 is refused: the engine has failed in an earlier call: step 0, rank 0");
    expect_part(error.what(), "once");
    CHECK(error.flight_record().empty());
  }
}

TEST_CASE("when all ranks fail at once, one error comes and it is one of theirs") {
  for (int turn = 0; turn < 20; ++turn) {
    const std::vector<plan_builder> plans = pipeline_plans(4, 2, 8, layout::separate);
    executor::job_callbacks callbacks;
    callbacks.forward = [](const executor::context&) {};
    callbacks.backward = [](const executor::context& at) {
      throw std::runtime_error("rank " + std::to_string(at.rank));
    };
    executor::callback_stage stage(callbacks);
    executor::stage* const stages[] = {&stage, &stage, &stage, &stage};
    executor::engine engine(views(plans), stages);
    const executor::execution_error error = error_of(engine);
    CHECK(error.kind() == executor::failure::stage);
    CHECK_THROWS_WITH(std::rethrow_exception(error.cause()),
                      ("rank " + std::to_string(error.rank())).c_str());
  }
}

TEST_CASE("a callback that polls the stop flag is ended by another rank's failure") {
  const int before = thread_count();
  std::atomic<bool> polling{false};
  const std::vector<plan_builder> plans = pipeline_plans(2, 1, 8, layout::serial);
  executor::job_callbacks callbacks;
  callbacks.backward = [](const executor::context&) {};
  // Rank 0 goes on to wait in its receive; rank 1 fails once a stream of rank 0 is busy.
  callbacks.forward = [&](const executor::context& at) {
    if (at.rank == 1) {
      while (!polling) std::this_thread::yield();
      throw std::runtime_error("gone");
    }
  };
  std::vector<plan_builder> with_poller = plans;
  executor::callback_stage stage(callbacks);
  struct poller final : executor::stage {
    std::atomic<bool>& polling_now;
    executor::stage& inner;
    poller(std::atomic<bool>& flag, executor::stage& work) : polling_now(flag), inner(work) {}
    void run(const executor::context& at) override {
      inner.run(at);
      if (at.what.kind != job_kind::recompute) return;
      polling_now = true;
      while (!at.stopped()) std::this_thread::yield();
    }
  };
  callbacks.recompute = [](const executor::context&) {};
  executor::callback_stage with_recompute(callbacks);
  poller busy(polling, with_recompute);
  // Rank 0 gets a second stream whose job runs until it is stopped.
  plan_builder& first = with_poller[0];
  first.instructions.pop_back();
  first.waits.clear();
  first.head.events = 0;
  first.streams.push_back({});
  first.run({0, 0, 0, job_kind::recompute}, 1);
  first.end();
  executor::stage* const stages[] = {&busy, &busy};
  executor::engine engine(views(with_poller), stages);
  const executor::execution_error error = error_of(engine);
  CHECK(error.rank() == 1);
  CHECK(error.kind() == executor::failure::stage);
  CHECK(error.threads_left() == 0);
  CHECK(settle_to(before));
}

namespace {

//! Its second forward on rank 1 returns when it is released, which no deadline waits for.
spoiled held_until(const std::atomic<bool>& release) {
  executor::options with;
  with.deadline = milliseconds(300);
  with.grace = milliseconds(10);
  return spoiled(
      3, {1, 1, 0, job_kind::forward}, 0,
      [&release](const executor::context&) {
        while (!release) std::this_thread::sleep_for(milliseconds(1));
      },
      std::move(with));
}

}  // namespace

TEST_CASE("an engine that must wait for a callback says why its step has failed before it does") {
  const captured_errors errors;
  std::atomic<bool> release{false};
  std::string seen;
  std::thread reader(
      [&] {  // until it is there: the engine goes no sooner than the callback returns
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while ((seen = errors.text()).empty() && std::chrono::steady_clock::now() < end)
          std::this_thread::sleep_for(milliseconds(1));
        release = true;
      });
  {
    const spoiled run = held_until(release);
    error_of(*run.engine);
  }
  reader.join();
  expect_part(
      seen, "stretto: waiting for a callback that does not return; step 0 has not ended in time: ");
  expect_part(seen, "1F1");
}

TEST_CASE("a callback that does not return keeps its thread, and the error says so") {
  const int before = thread_count();
  std::atomic<bool> release{false};
  {
    const spoiled run = held_until(release);
    const executor::execution_error error = error_of(*run.engine);
    CHECK(error.kind() == executor::failure::deadline);
    CHECK(error.rank() == 1);
    CHECK(error.what_job() == job{1, 1, 0, job_kind::forward});
    CHECK(error.threads_left() >= 1);
    expect_part(error.what(), "has not returned");
    expect_part(error.what(), "threads held by a callback that has not returned: ");
    expect_part(error.flight_record(),
                "  compute: 1 of 7 done\n"
                "    1     1F0             done\n"
                "    4     1F1             started     named by the error\n"
                "    7     1F2             issued\n");
    // Also what cannot have happened, with its other side.
    expect_part(
        error.flight_record(),
        "    5     1SEND_F1        issued      message 1 to rank 2, 32 bytes; meets rank 2's 2, ");
    expect_part(error.flight_record(), "; waits for 4 1F1\n");
    expect_part(error.flight_record(), "\n    and 1 more\n");
    CHECK(run.engine->trace().empty());
    CHECK(error_of(*run.engine).kind() == executor::failure::refused);
    release = true;
  }
  CHECK(settle_to(before));
}

TEST_CASE("options that make no sense are refused") {
  const std::vector<plan_builder> plans = pipeline_plans(2, 1, 4, layout::serial);
  sample_stages stages(2);
  const auto refused = [&](auto change) {
    executor::options with;
    change(with);
    return refusal_of([&] { executor::engine(views(plans), stages.pointers, std::move(with)); });
  };
  expect_part(refused([](auto& with) { with.deadline = milliseconds(0); }), "deadline");
  expect_part(refused([](auto& with) { with.grace = milliseconds(-1); }), "grace");
  expect_part(refused([](auto& with) { with.trace_steps = -1; }), "traced steps");
  expect_part(refused([](auto& with) { with.trace_steps = 2000000000; }),
              "trace_steps 2000000000 would keep ");
  expect_part(refused([](auto& with) { with.capacity = -1; }), "capacity is -1");
  expect_part(refused([](auto& with) {
                with.wire = executor::make_loopback_transport(1);
                with.capacity = 2;
              }),
              "a capacity of 2 is for the loopback transport, and options::wire holds another");
  expect_part(refused([](auto& with) { with.host.queue_depth = -1; }), "depth of a queue");
  expect_part(refused([](auto& with) { with.host.threads = -1; }), "number of a device's threads");
  expect_part(refused([](auto& with) { with.issue = static_cast<executor::issuing>(77); }),
              "issuing is neither caller nor thread_per_rank");
  expect_part(refused([](auto& with) { with.host.queue_depth = 1'048'577; }),
              "a queue cannot hold 1048577 commands, but 1048576 at most");
  expect_part(refused([](auto& with) {
                with.make_device = [](const plan_view&, executor::monitor&) {
                  return std::unique_ptr<executor::device>{};
                };
              }),
              "make_device gave none for rank 0");
  expect_part(refused([](auto& with) { with.delay.longest = milliseconds(-1); }), "delay");
}

TEST_CASE("a deadline that means never does not overflow") {
  const std::vector<plan_builder> plans = pipeline_plans(2, 1, 4, layout::separate);
  sample_stages stages(2);
  executor::options with;
  with.deadline = std::chrono::nanoseconds::max();
  executor::engine engine(views(plans), stages.pointers, std::move(with));
  engine.step();
  CHECK(engine.steps() == 1);
}

TEST_CASE("a full queue before the thread that watches the time ends with the deadline") {
  const std::vector<plan_builder> plans = pipeline_plans(2, 3, 4, layout::separate);
  executor::job_callbacks callbacks;
  callbacks.backward = [](const executor::context&) {};
  callbacks.forward = [](const executor::context& at) {
    while (at.rank == 1 && at.what.microbatch == 1 && !at.stopped())
      std::this_thread::sleep_for(milliseconds(1));
  };
  executor::callback_stage stage(callbacks);
  executor::stage* const stages[] = {&stage, &stage};
  executor::options with;
  with.deadline = milliseconds(300);
  with.host.queue_depth = 1;
  executor::engine engine(views(plans), stages, std::move(with));
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::deadline);
  CHECK(error.rank() == 1);
  CHECK(error.what_job() == job{1, 1, 0, job_kind::forward});
  expect_part(named_line(error), "1F1             started");
  expect_part(error.flight_record(), "    6     1B0             not issued\n");
}

TEST_CASE("behind a full queue of its rank's own thread nothing is named that is not issued") {
  const job_table costs(4, 2);
  const planned made(schedule::zbv{}, {.ranks = 4, .microbatches = 8, .chunks = 2}, costs.view(),
                     overlap::separate{});
  REQUIRE(made.answer().ok());
  const auto hold = [](const executor::context& at) {
    while (at.rank == 2 && at.what == job{5, 3, 0, job_kind::backward_input} && !at.stopped())
      std::this_thread::sleep_for(milliseconds(1));
  };
  executor::callback_stage stage(
      {.forward = hold, .backward_input = hold, .backward_weight = hold, .optimizer = hold});
  const std::vector<executor::stage*> stages(4, &stage);
  for (const int depth : {0, 1, 2}) {
    CAPTURE(depth);
    executor::options with;
    with.deadline = milliseconds(300);
    with.issue = executor::issuing::thread_per_rank;
    with.host.queue_depth = depth;
    executor::engine engine(made.plans(), stages, std::move(with));
    const executor::execution_error error = error_of(engine);
    CHECK(error.kind() == executor::failure::deadline);
    CHECK(error.rank() == 2);
    CHECK(error.what_job() == job{5, 3, 0, job_kind::backward_input});
    expect_part(error.what(), "has not returned");
  }
}

TEST_CASE("a failure behind a full queue is seen by the thread that waits before it") {
  const std::vector<plan_builder> plans = pipeline_plans(2, 3, 4, layout::separate);
  executor::job_callbacks callbacks;
  callbacks.backward = [](const executor::context&) {};
  callbacks.forward = [](const executor::context& at) {
    if (at.rank == 1) throw std::runtime_error("enough");
  };
  executor::callback_stage stage(callbacks);
  executor::stage* const stages[] = {&stage, &stage};
  executor::options with;
  with.host.queue_depth = 1;
  executor::engine engine(views(plans), stages, std::move(with));
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::stage);
  CHECK(error.rank() == 1);
}

TEST_CASE("a step is refused while another is under way, which goes on") {
  const std::vector<plan_builder> plans = pipeline_plans(1, 1, 2, layout::serial);
  executor::engine* asked = nullptr;
  std::atomic<bool> inside{false};
  std::atomic<bool> refused{false};
  executor::job_callbacks callbacks;
  callbacks.backward = [](const executor::context&) {};
  callbacks.forward = [&](const executor::context& at) {
    if (at.step == 0 && at.what.microbatch == 0) {
      inside = true;
      while (!refused && !at.stopped()) std::this_thread::yield();
    }
    if (at.step == 1) asked->step();
  };
  executor::callback_stage stage(callbacks);
  executor::stage* const stages[] = {&stage};
  executor::engine engine(views(plans), stages);
  asked = &engine;
  std::thread other([&] {
    while (!inside) std::this_thread::yield();
    const executor::execution_error error = error_of(engine);
    CHECK(error.kind() == executor::failure::refused);
    expect_part(error.what(), "the step is refused: another is under way");
    refused = true;
  });
  engine.step();
  other.join();
  CHECK(engine.steps() == 1);
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::stage);
  CHECK(error.what_job() == job{0, 0, 0, job_kind::forward});
  expect_part(error.what(), "the step is refused: another is under way");
  // What plans point to must outlive the engine, and a temporary does not.
  static_assert(std::is_constructible_v<executor::engine, const planned&,
                                        std::span<executor::stage* const>>);
  static_assert(!std::is_constructible_v<executor::engine, planned,
                                         std::span<executor::stage* const>>);
  static_assert(lends_plans<const planned&> && lends_plans<const shared&>);
  static_assert(!lends_plans<planned> && !lends_plans<shared> && !lends_plans<const expanded>);
  for (const auto& question : {+[](const executor::engine& of) { (void)of.most_in_use(1); },
                               +[](const executor::engine& of) { (void)of.arena(1); },
                               +[](const executor::engine& of) { (void)of.host_memory(1); }})
    CHECK_THROWS_WITH_AS(question(engine), "there is no plan at index 1: this engine has 1",
                         executor::plan_error);
}
