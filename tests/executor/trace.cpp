// Measured times: they respect the plan's orders, and people can open them.
#include "stretto/executor/trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <locale>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "failures.hpp"
#include "pipeline.hpp"

using namespace stretto;
using namespace stretto::test;
using executor::trace_record;

namespace {

struct measured {
  measured(int ranks, int steps, executor::options with)
      : plans(pipeline_plans(ranks, 3, 8, layout::separate)) {
    sample_stages stages(ranks);
    executor::engine engine(views(plans), stages.pointers, std::move(with));
    for (int step = 0; step < steps; ++step) engine.step();
    records = engine.trace();
  }
  std::size_t instructions() const {
    std::size_t count = 0;
    for (const plan_builder& each : plans) count += each.instructions.size();
    return count;
  }
  trace_record& record(int rank, int instruction, std::int64_t step) {
    for (trace_record& each : records)
      if (each.rank == rank && each.instruction == instruction && each.step == step) return each;
    throw std::out_of_range("no such record");
  }
  std::vector<plan_builder> plans;
  std::vector<trace_record> records;
};

executor::options traced(int steps, int capacity = 0) {
  executor::options with;
  with.trace_steps = steps;
  with.capacity = capacity;
  return with;
}

//! Index of the first instruction with the job.
int find(const plan_builder& plan, const job& what) {
  for (std::size_t at = 0; at < plan.instructions.size(); ++at)
    if (plan.instructions[at].what == what) return static_cast<int>(at);
  throw std::out_of_range("no such instruction");
}

}  // namespace

TEST_CASE("real times respect every order, with delays and without") {
  for (const int capacity : {0, 2})
    for (const int delay : {0, 200}) {
      executor::options with = traced(4, capacity);
      with.delay = {5, std::chrono::microseconds(delay)};
      const measured run(4, 6, std::move(with));
      CHECK(run.records.size() == 4 * run.instructions());
      const auto broken = executor::check_against(views(run.plans), run.records, capacity == 0);
      CHECK_MESSAGE(!broken, (broken ? broken->text : std::string()));
    }
}

TEST_CASE("the last steps are kept, oldest first; none when none are asked for") {
  const measured run(2, 5, traced(3));
  CHECK(run.records.size() == 3 * run.instructions());
  CHECK(run.records.front().step == 2);
  CHECK(run.records.back().step == 4);
  for (const trace_record& each : run.records) {
    CHECK(each.start > 0);
    CHECK(each.end >= each.start);
  }
  CHECK(measured(2, 1, traced(3)).records.front().step == 0);
  CHECK(measured(2, 5, traced(0)).records.empty());
}

TEST_CASE("every kind of broken order is found and named") {
  const measured good(3, 3, traced(3));
  const std::vector<plan_view> plans = views(good.plans);
  const auto broken_by = [&](auto change) {
    measured bad = good;
    change(bad);
    const auto broken = executor::check_against(plans, bad.records);
    CHECK(broken.has_value());
    return broken ? broken->text : std::string();
  };
  const int first = find(good.plans[1], {1, 0, 0, job_kind::forward});
  const int second = find(good.plans[1], {1, 1, 0, job_kind::forward});
  const int receive = find(good.plans[1], {1, 1, 0, job_kind::receive_forward});
  const int send = find(good.plans[1], {1, 0, 0, job_kind::send_forward});
  const int taken = find(good.plans[2], {2, 0, 0, job_kind::receive_forward});
  SUBCASE("stream order") {
    const std::string text = broken_by(
        [&](measured& bad) { bad.record(1, second, 1).start = bad.record(1, first, 1).end - 1; });
    expect_part(text, "step 1: rank 1, instruction " + std::to_string(second));
    expect_part(text, "(stream order), which ends after it starts");
  }
  SUBCASE("event") {
    const std::string text = broken_by(
        [&](measured& bad) { bad.record(1, receive, 2).end = bad.record(1, second, 2).start + 1; });
    expect_part(text, "(event ");
    expect_part(text, "1RECV_F1");
  }
  SUBCASE("message: a receive that ends before its send starts") {
    const std::string text = broken_by([&](measured& bad) {
      trace_record& late = bad.record(1, send, 0);
      late.start = bad.record(2, taken, 0).end + 1;
      late.end = std::max(late.end, late.start);
    });
    CHECK_FALSE(text.empty());
  }
  SUBCASE("message: under rendezvous a send that ends before its receive starts") {
    measured bad = good;
    bad.record(2, taken, 0).start = bad.record(1, send, 0).end + 1;
    bad.record(2, taken, 0).end = bad.record(2, taken, 0).start;
    const auto strict = executor::check_against(plans, bad.records, true);
    REQUIRE(strict.has_value());
    expect_part(strict->text, "(message), which starts after it ends");
    // Either clock may be wrong by a part of that; what is behind the receive may start too early
    // now.
    for (const bool sender : {false, true}) {
      measured unsure = bad;
      (sender ? unsure.record(1, send, 0) : unsure.record(2, taken, 0)).off = 1;
      const auto other = executor::check_against(plans, unsure.records, true);
      CHECK((!other || other->text.find("(message)") == std::string::npos));
    }
  }
  SUBCASE("a record that is missing") {
    const std::string text = broken_by([&](measured& bad) {
      std::erase_if(bad.records, [&](const trace_record& each) {
        return each.rank == 1 && each.instruction == first && each.step == 1;
      });
    });
    expect_part(text, "which has no record");
  }
}

TEST_CASE("the start of another is no time in a trace, whatever it is waited for") {
  plan_builder plan(0, 1, {"compute", "other"});
  plan.run({0, 0, 0, job_kind::forward}, 0);
  const int behind = plan.run({0, 1, 0, job_kind::forward}, 1);
  plan.end();
  std::vector<op_part> parts(plan.instructions.size());
  parts[0].started = plan.head.events++;
  plan.at(behind).first_wait = static_cast<std::int32_t>(plan.waits.size());
  plan.at(behind).wait_count = 1;
  plan.waits.push_back({parts[0].started, wait_reason::data, false});
  std::vector<plan_view> plans = {plan.view()};
  plans[0].parts = parts;
  const std::vector<trace_record> records = {{0, 0, 0, 0, 5}, {0, 1, 0, 1, 10}, {0, 2, 0, 10, 11}};
  CHECK_FALSE(executor::check_against(plans, records).has_value());
}

TEST_CASE("the event of the step before is checked across steps") {
  plan_builder plan(0, 1, {"compute", "other"});
  plan.run({0, 0, 0, job_kind::forward}, 0);
  const int late = plan.run({0, 1, 0, job_kind::forward}, 1);
  plan.end();
  plan.at(0).first_wait = static_cast<std::int32_t>(plan.waits.size());
  plan.at(0).wait_count = 1;
  plan.waits.push_back({plan.event_of(late), wait_reason::gate, true});
  const std::vector<plan_view> plans = {plan.view()};
  std::vector<trace_record> records = {{0, 0, 0, 0, 5},   {0, 1, 0, 0, 10},  {0, 2, 0, 10, 11},
                                       {0, 0, 1, 12, 15}, {0, 1, 1, 12, 20}, {0, 2, 1, 20, 21}};
  CHECK_FALSE(executor::check_against(plans, records).has_value());
  records[3].start = 9;
  const auto broken = executor::check_against(plans, records);
  REQUIRE(broken.has_value());
  expect_part(broken->text, "step 1: rank 0, instruction 0");
}

TEST_CASE("the trace is valid JSON with a named track for each stream") {
  measured run(2, 2, traced(2));
  // A name that needs escaping, and one that fills its 24 bytes.
  std::memcpy(run.plans[1].streams[1].name, "a\"b\\c\n\x01\xff", 9);
  std::memset(run.plans[1].streams[2].name, 'x', sizeof(stream_info::name));
  std::ostringstream out;
  // A locale of the stream must not reach the numbers.
  struct grouped : std::numpunct<char> {
    char do_thousands_sep() const override { return '\''; }
    std::string do_grouping() const override { return "\1"; }
  };
  out.imbue(std::locale(std::locale::classic(), new grouped));
  executor::write_chrome_trace(out, views(run.plans), run.records);
  const nlohmann::json trace = nlohmann::json::parse(out.str());
  std::set<std::pair<int, std::string>> names;
  std::size_t slices = 0;
  double earliest = 1e300;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M" && event.at("name") == "thread_name")
      names.emplace(event.at("pid").get<int>(), event.at("args").at("name").get<std::string>());
    if (event.at("ph") != "X") continue;
    const trace_record& source = run.record(event.at("pid"), event.at("args").at("instruction"),
                                            event.at("args").at("step"));
    const instruction& what =
        run.plans[static_cast<std::size_t>(source.rank)].at(source.instruction);
    CHECK(event.at("tid") == what.stream);
    CHECK(event.at("dur").get<double>() ==
          doctest::Approx(static_cast<double>(source.end - source.start) / 1000).epsilon(1e-9));
    CHECK(event.at("args").at("microbatch") == what.what.microbatch);
    earliest = std::min(earliest, event.at("ts").get<double>());
    ++slices;
  }
  CHECK(slices == run.records.size());
  CHECK(earliest == 0);
  CHECK(names.size() == 10);
  CHECK(names.count({0, "compute"}) == 1);
  CHECK(names.count({1, "a\"b\\c\n\x01?"}) == 1);
  CHECK(names.count({1, std::string(24, 'x')}) == 1);
}

TEST_CASE("an empty trace is valid too") {
  const measured run(2, 1, traced(0));
  std::ostringstream out;
  executor::write_chrome_trace(out, views(run.plans), run.records);
  CHECK(nlohmann::json::parse(out.str()).at("traceEvents").size() == 2 * (2 + 2 * 5));
}

TEST_CASE("records of other plans are refused") {
  const measured run(2, 1, traced(1));
  const std::vector<plan_view> plans = views(run.plans);
  std::ostringstream out;
  const std::vector<trace_record> rank = {{2, 0, 0, 0, 0}};
  const std::vector<trace_record> place = {{1, 1000, 0, 0, 0}};
  expect_part(refusal_of([&] { executor::write_chrome_trace(out, plans, rank); }), "names rank 2");
  expect_part(refusal_of([&] { executor::check_against(plans, place); }), "instruction 1000");
}

TEST_CASE("a failed step leaves the times of what ended") {
  const std::vector<plan_builder> plans = pipeline_plans(2, 2, 8, layout::separate);
  struct failing final : executor::stage {
    void run(const executor::context& at) override {
      if (at.step == 1 && at.what == job{1, 1, 0, job_kind::forward}) throw std::runtime_error("x");
    }
  } stage;
  executor::stage* const stages[] = {&stage, &stage};
  executor::engine engine(views(plans), stages, traced(1));
  engine.step();
  error_of(engine);
  const std::vector<trace_record> records = engine.trace();
  const auto has = [&](int rank, const job& what) {
    const int index = find(plans[static_cast<std::size_t>(rank)], what);
    for (const trace_record& each : records)
      if (each.rank == rank && each.instruction == index && each.step == 1) return true;
    return false;
  };
  CHECK(has(0, {0, 0, 0, job_kind::forward}));
  CHECK(has(1, {1, 0, 0, job_kind::forward}));
  CHECK_FALSE(has(1, {1, 1, 0, job_kind::forward}));
  CHECK_FALSE(has(1, {1, 0, 0, job_kind::backward}));
}
