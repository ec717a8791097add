// The host device by itself: streams, events, queues, arena, and how they stop.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "plan_builder.hpp"
#include "stretto/executor/arena.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/host_device.hpp"
#include "stretto/executor/loopback_transport.hpp"
#include "stretto/executor/runner.hpp"
#include "support/sanitized.hpp"
#include "threads.hpp"

using namespace stretto;
using namespace stretto::test;
using executor::command;

namespace {

//! The plans here have no instructions to size the queues by.
constexpr executor::host_settings roomy{.queue_depth = 256};
//! So many threads that each soon sleeps when there is nothing to do.
constexpr int crowd = 1 << 20;
constexpr auto soon = std::chrono::seconds(60);

plan_view plan_of(plan_builder& plan, int events, std::int64_t bytes) {
  plan.head.events = events;
  plan.head.arena_bytes = bytes;
  return plan.view();
}

//! A command that runs a function of the test.
template <class Call>
command call_of(Call& call, std::int64_t ticket = -1, executor::timing* stamp = nullptr) {
  command work;
  work.call = [](const command& given) { (*static_cast<Call*>(given.self))(); };
  work.self = &call;
  work.ticket = ticket;
  work.stamp = stamp;
  return work;
}

//! Ends the monitor's step of one rank: how a test waits for a stream.
command end_of(executor::monitor& watch) {
  command work;
  work.call = [](const command& given) {
    static_cast<executor::monitor*>(given.self)->rank_ended();
  };
  work.self = &watch;
  return work;
}

executor::monitor::outcome wait_for(executor::monitor& watch) {
  return watch.wait_until(std::chrono::steady_clock::now() + soon);
}
executor::monitor::outcome wait_for(executor::device& device, executor::monitor& watch) {
  device.submit();
  return wait_for(watch);
}

}  // namespace

TEST_CASE("a stream runs its work in order; its progress counts tickets") {
  plan_builder plan(0, 1, {"only"});
  executor::monitor watch(1);
  const auto device = executor::make_host_device(plan_of(plan, 0, 0), roomy, watch);
  CHECK(device->streams() == 1);
  CHECK(device->progress_of(0).started == -1);
  CHECK(device->progress_of(0).finished == -1);
  std::vector<int> seen;
  int next = 0;
  auto push = [&] { seen.push_back(next++); };
  executor::timing stamp;
  for (int at = 0; at < 100; ++at)
    device->enqueue(0, call_of(push, at, at == 99 ? &stamp : nullptr));
  device->enqueue(0, end_of(watch));
  CHECK(wait_for(*device, watch) == executor::monitor::outcome::ended);
  CHECK(seen.size() == 100);
  for (int at = 0; at < 100; ++at) CHECK(seen[static_cast<std::size_t>(at)] == at);
  CHECK(device->progress_of(0).started == 99);
  CHECK(device->progress_of(0).finished == 99);
  CHECK(stamp.step == 0);
  CHECK(stamp.start > 0);
  CHECK(stamp.end >= stamp.start);
}

TEST_CASE("an event orders two streams, in the step and across steps") {
  plan_builder plan(0, 1, {"first", "second"});
  executor::monitor watch(1);
  const auto device = executor::make_host_device(plan_of(plan, 2, 0), roomy, watch);
  // Not atomic on purpose: only the events keep the streams apart (and ThreadSanitizer looks on).
  std::int64_t value = 0;
  bool right = true;
  for (std::int64_t step = 0; step < 200; ++step) {
    auto write = [&value, step] { value = 2 * step + 1; };
    auto read = [&value, &right, step] {
      right = right && value == 2 * step + 1;
      value = 2 * step + 2;
    };
    watch.begin_step();
    // The previous step's read, which step 0 need not wait for.
    device->wait(0, 1, step - 1);
    device->enqueue(0, call_of(write));
    device->record(0, 0, step);
    device->wait(1, 0, step);
    device->enqueue(1, call_of(read));
    device->record(1, 1, step);
    device->enqueue(1, end_of(watch));
    REQUIRE(wait_for(*device, watch) == executor::monitor::outcome::ended);
  }
  CHECK(right);
  CHECK(value == 400);
}

TEST_CASE("a wait may be issued before the record, and is satisfied by a later step too") {
  plan_builder plan(0, 1, {"first", "second"});
  executor::monitor watch(1);
  const auto device = executor::make_host_device(plan_of(plan, 1, 0), roomy, watch);
  int order = 0;
  int waiter = 0;
  auto after = [&] { waiter = ++order; };
  auto before = [&] { ++order; };
  device->wait(1, 0, 3);
  device->enqueue(1, call_of(after));
  device->enqueue(1, end_of(watch));
  device->enqueue(0, call_of(before));
  device->record(0, 0, 7);
  CHECK(wait_for(*device, watch) == executor::monitor::outcome::ended);
  CHECK(waiter == 2);
}

TEST_CASE("a queue of any depth takes any number of commands") {
  for (const int depth : {1, 2, 3, 64}) {
    plan_builder plan(0, 1, {"only"});
    executor::monitor watch(1);
    const auto device = executor::make_host_device(plan_of(plan, 0, 0), {depth, crowd}, watch);
    int count = 0;
    auto add = [&] { ++count; };
    for (int at = 0; at < 1000; ++at) device->enqueue(0, call_of(add));
    device->enqueue(0, end_of(watch));
    CHECK(wait_for(*device, watch) == executor::monitor::outcome::ended);
    CHECK(count == 1000);
  }
}

TEST_CASE("a command that throws is reported with its ticket, and its stream stops") {
  plan_builder plan(3, 4, {"only", "other"});
  executor::monitor watch(1);
  const auto device = executor::make_host_device(plan_of(plan, 1, 0), roomy, watch);
  bool later = false;
  auto fail = [] { throw std::runtime_error("broken"); };
  auto never = [&] { later = true; };
  device->wait(1, 0, 0);
  device->enqueue(0, call_of(fail, 17));
  device->enqueue(0, call_of(never, 18));
  CHECK(wait_for(*device, watch) == executor::monitor::outcome::failed);
  CHECK(watch.stopped());
  CHECK(watch.first_failure().rank == 3);
  CHECK(watch.first_failure().ticket == 17);
  CHECK_THROWS_WITH(std::rethrow_exception(watch.first_failure().cause), "broken");
  device->wake();
  CHECK(device->join(std::chrono::steady_clock::now() + soon) == 0);
  CHECK_FALSE(later);
  CHECK(device->progress_of(0).started == 17);
  CHECK(device->progress_of(0).finished == -1);
}

TEST_CASE("destruction ends streams that sleep in every kind of wait") {
  const int before = thread_count();
  for (int turn = 0; turn < 50; ++turn) {
    plan_builder plan(0, 1, {"idle", "event", "full"});
    executor::monitor watch(1);
    const auto device = executor::make_host_device(plan_of(plan, 1, 0), {1, crowd}, watch);
    device->wait(1, 0, 0);
    device->wait(2, 0, 0);
    // This thread waits for space that never comes, until the device is told to stop.
    std::thread pusher([&] { device->record(2, 0, 0); });
    watch.stop();
    device->wake();
    pusher.join();
  }
  CHECK(settle_to(before));
}

TEST_CASE("a monitor keeps the first failure only") {
  executor::monitor watch(2);
  watch.fail(1, 5, std::make_exception_ptr(std::runtime_error("first")));
  watch.fail(0, 6, std::make_exception_ptr(std::runtime_error("second")));
  CHECK(wait_for(watch) == executor::monitor::outcome::failed);
  CHECK(watch.first_failure().rank == 1);
  CHECK(watch.first_failure().ticket == 5);
}

TEST_CASE("a monitor ends when all ranks have, and is late otherwise") {
  executor::monitor watch(2);
  watch.rank_ended();
  CHECK(watch.wait_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(1)) ==
        executor::monitor::outcome::late);
  watch.rank_ended();
  CHECK(wait_for(watch) == executor::monitor::outcome::ended);
}

TEST_CASE("the bytes of queues follow their depth") {
  plan_builder plan(0, 1, {"one", "other"});
  const auto one = executor::host_queue_bytes(plan.view(), {.queue_depth = 1});
  CHECK(one >= 2 * static_cast<std::int64_t>(sizeof(command)));
  CHECK(executor::host_queue_bytes(plan.view(), {.queue_depth = 64}) == 64 * one);
  const auto empty = executor::host_queue_bytes(plan.view());
  for (int at = 0; at < 100; ++at) plan.run({0, at, 0, job_kind::forward}, 0);
  CHECK(executor::host_queue_bytes(plan.view()) > 100 * one / 2 + empty);
}

TEST_CASE("an arena that there is no memory for is refused with its rank and bytes") {
  plan_builder plan(1, 2, {"one"});
  plan_view wanted = plan.view();
  wanted.arena_bytes = std::int64_t{1} << 60;  // beyond any address
  executor::monitor watch(2);
  if (test_support::sanitized) return;  // whose allocator ends the program
  try {
    executor::make_host_device(wanted, {}, watch);
    FAIL("it was made");
  } catch (const executor::plan_error& told) {
    CHECK(std::string(told.what()) ==
          "plan of rank 1: its arena of 1152921504606846976 bytes cannot be allocated");
  }
}

TEST_CASE("messages that there is no memory to hold are refused with their channel") {
  plan_builder from(0, 2, {"compute"}), to(1, 2, {"compute"});
  const std::int64_t much = std::int64_t{1} << 60;  // beyond any address
  from.send({0, 0, 0, job_kind::send_forward}, 0, 1,
            from.add_buffer(buffer_role::output, 0, 0, much));
  to.receive({1, 0, 0, job_kind::receive_forward}, 0, 0,
             to.add_buffer(buffer_role::input, 1, 0, much));
  from.end();
  to.end();
  if (test_support::sanitized) return;  // whose allocator ends the program
  const plan_view plans[] = {from.view(), to.view()};
  executor::monitor watch(2);
  CHECK_THROWS_WITH_AS(executor::make_loopback_transport(4)->open(plans, watch),
                       "channel 0 -> 1: there is no memory for the 1 messages of up to "
                       "1152921504606846976 bytes that the transport's capacity lets it hold",
                       executor::plan_error);
}

TEST_CASE("the bytes of events and of prepared instructions follow the plan") {
  plan_builder plan(0, 1, {"one"});
  for (int at = 0; at < 10; ++at) plan.run({0, at, 0, job_kind::forward}, 0);
  const plan_view view = plan.view();
  CHECK(executor::host_event_bytes(view) % 64 == 0);
  CHECK(executor::host_event_bytes(view) >= 64 * view.events);
  const auto prepared = executor::runner::prepared_bytes(view, 0);
  CHECK(prepared > 0);
  const auto traced = executor::runner::prepared_bytes(view, 3);
  CHECK(traced - prepared == 3 * static_cast<std::int64_t>(view.instructions.size() *
                                                           sizeof(executor::timing)));
}

TEST_CASE("an arena is zeroed, aligned and of the plan's size") {
  for (const std::int64_t bytes : {0, 1, 64, 1000000}) {
    const executor::arena memory(bytes);
    CHECK(memory.bytes().size() == static_cast<std::size_t>(bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(memory.bytes().data()) % 64 == 0);
    for (const std::byte each : memory.bytes())
      if (each != std::byte{0}) FAIL("not zero");
  }
}

TEST_CASE("bytes in use follow the lives of the buffers") {
  plan_builder plan(0, 1, {"only"});
  for (int at = 0; at < 5; ++at) plan.run({0, at, 0, job_kind::forward}, 0);
  const auto live = [&](std::int64_t bytes, int first, int release) {
    buffer each;
    each.bytes = bytes;
    each.first = first;
    each.release = release;
    plan.buffers.push_back(each);
  };
  CHECK(executor::most_in_use(plan.view()).bytes == 0);
  live(100, 0, 2);
  live(10, 1, 4);
  live(95, 2, 3);
  const plan_view view = plan.view();
  const std::vector<std::int64_t> expected = {100, 110, 105, 10, 0};
  for (int at = 0; at < 5; ++at)
    CHECK(executor::bytes_in_use(view, at) == expected[static_cast<std::size_t>(at)]);
  CHECK(executor::most_in_use(view).bytes == 110);
  CHECK(executor::most_in_use(view).instruction == 1);
}
