#include <doctest/doctest.h>

#include <string>

#include "measured_step.hpp"
#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::event;
using tool_tests::measured_step;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

const std::string of_1f1b = "measured 1f1b --ranks 2 --microbatches 1 ";

//! Step 7, in which rank 1 is late by itself, and step 8, which is not.
json two_steps() {
  json trace = measured_step();
  json next = trace;
  event(trace, "1B0")["ts"] = 38;
  event(trace, "1B0")["dur"] = 15;
  for (json& one : next["traceEvents"]) {
    if (one["ph"] != "X") continue;
    one["args"]["step"] = 8;
    one["ts"] = one["ts"].get<double>() + 100;
    trace["traceEvents"].push_back(one);
  }
  return trace;
}

//! An event of step 0 on the first rank, a copy on a stream of its own.
void add_of_rank_0(json& trace, const std::string& name, double from, double to) {
  const bool copy = name.find("LOAD") != std::string::npos;
  trace["traceEvents"].push_back({{"ph", "X"},
                                  {"name", name},
                                  {"cat", copy ? "copy" : "compute"},
                                  {"pid", 0},
                                  {"tid", copy ? 1 : 0},
                                  {"ts", from},
                                  {"dur", to - from},
                                  {"args", {{"step", 0}}}});
}

TEST_CASE("what measured steps took is told beside what the same one would take") {
  const temporary file("trace.json");
  file.write(two_steps().dump());
  const std::string with = of_1f1b + "--critical-path --trace " + file.path();
  const json made = run_json(with + " --format json");
  CHECK(made["predicted"] == json({{"makespan", 61},  // 10 + 10 + 20 + 21, the medians
                                   {"bubble", 31.0 / 61},
                                   {"jobs", 61},
                                   {"messages", 0},
                                   {"busy", {31, 30}},
                                   {"idle", {30, 31}}}));
  REQUIRE(made["steps"].size() == 2);
  CHECK(made["steps"][0] == json({{"step", 7},
                                  {"makespan", 71},
                                  {"bubble", 46.0 / 71},
                                  {"jobs", 56},
                                  {"messages", 10},
                                  {"lost", 5},
                                  {"busy", {31, 25}},
                                  {"idle", {40, 46}}}));
  CHECK(made["steps"][1] == json({{"step", 8},
                                  {"makespan", 71},
                                  {"bubble", 41.0 / 71},
                                  {"jobs", 61},
                                  {"messages", 10},
                                  {"lost", 0},
                                  {"busy", {31, 30}},
                                  {"idle", {40, 41}}}));
  CHECK(made["step"] == 8);
  CHECK(made["critical"] == json({31, 30}));
  CHECK(made["critical_path"]["count"] == json({{"F", 2}, {"B", 2}, {"messages", 2}}));
  CHECK_FALSE(made["steps"][0].contains("broken"));
  CHECK_FALSE(run_json(of_1f1b + "--format json --trace " + file.path()).contains("critical_path"));

  CHECK(run(with).out ==
        "1f1b: 2 ranks, 1 micro-batch, in microseconds\n"
        "predicted by what each kind of job took in the trace\n\n"
        "step       makespan  bubble  critical path: jobs  messages   lost\n"
        "predicted        61  50.8 %              100.0 %     0.0 %  0.0 %\n"
        "7                71  64.8 %               78.9 %    14.1 %  7.0 %\n"
        "8                71  57.7 %               85.9 %    14.1 %  0.0 %\n\n"
        "step 8\n"
        "rank  busy  predicted  idle  predicted  idle/makespan  critical\n"
        "0       31         31    40         30         56.3 %        31\n"
        "1       30         30    41         31         57.7 %        30\n\n"
        "critical path: forward 20 (2), backward 41 (2), messages 10 (2)\n\n"
        "rank  from  to  jobs  first  last  messages\n"
        "0        0  10     1    0F0   0F0\n"
        "1       13  43     2    1F0   1B0         3\n"
        "0       50  71     1    0B0   0B0         7\n");
}

TEST_CASE("another step's ranks and path are told where it is asked for, and what it lost") {
  const temporary file("trace.json");
  file.write(two_steps().dump());
  const std::string with = of_1f1b + "--critical-path --trace " + file.path();
  const json made = run_json(with + " --step 7 --format json");
  CHECK(made["step"] == 7);
  CHECK(made["critical"] == json({31, 25}));
  CHECK(made["critical_path"]["time"] ==
        json({{"F", 20}, {"B", 36}, {"messages", 10}, {"lost", 5}}));
  const std::string text = run(with + " --step 7").out;
  CHECK(
      text.find("critical path: forward 20 (2), backward 36 (2), messages 10 (2), lost 5 (1)\n") !=
      std::string::npos);
  // What is lost stands where it is: it ends a line.
  CHECK(text.find("rank    from  to  jobs  first  last  messages  lost\n"
                  "0 to 1     0  23     2    0F0   1F0         3\n"
                  "1 to 0    28  71     2    1B0   0B0         7     5\n") != std::string::npos);
  tool_tests::check_refused(
      of_1f1b + "--trace " + file.path(),
      {{"--step 9", "it has no step 9, but 2 from 7 to 8"},
       {"--step -1", "--step -1: expected a whole number from 0 to"},
       {"--step 99999999999999999999", "expected a whole number from 0 to"},
       {"--nodes 1,5", "--trace tells what jobs take, and of no hops; they go with --cost"},
       {"--reduce-grad 5", "--reduce-grad"}});
}

TEST_CASE("by costs that are given it is held against these, and against the schedule's order") {
  const temporary file("trace.json");
  file.write(measured_step().dump());
  const json made = run_json(of_1f1b + "--cost 8,9,10,2 --format json --trace " + file.path());
  CHECK(made["by"] == "the costs given");
  CHECK(made["predicted"]["makespan"] == 8 + 2 + 8 + 19 + 2 + 19);
  CHECK(made["predicted"]["messages"] == 4);
  CHECK(made["steps"][0]["makespan"] == 71);
  json trace = measured_step();
  event(trace, "1B0")["ts"] = 32.5;
  file.write(trace.dump());
  const auto broken = run(of_1f1b + "--format json --trace " + file.path());
  CHECK(broken.exit == 1);
  const std::string says =
      "step 7: 1B0 on rank 1 comes after 1F0 on rank 1 (list), which ends 0.5 us after it starts";
  CHECK(broken.err == "stretto: " + file.path() + ": " + says + "\n");
  CHECK(json::parse(broken.out)["steps"][0]["broken"] == says);
  CHECK(json::parse(broken.out)["steps"][0]["busy"] ==
        json({31, 29.5}));  // not twice what overlaps
}

TEST_CASE("a step that broke an order hides no other's path") {
  const temporary file("trace.json");
  json trace = two_steps();
  for (json& one : trace["traceEvents"])
    if (one["ph"] == "X" && one["args"]["step"] == 7 && one["name"] == "1B0") one["ts"] = 32;
  file.write(trace.dump());
  const auto told = run(of_1f1b + "--critical-path --format json --trace " + file.path());
  CHECK(told.exit == 1);
  CHECK(told.err.find("step 7: 1B0 on rank 1") != std::string::npos);
  const json made = json::parse(told.out);
  CHECK(made["steps"][0].contains("broken"));
  CHECK(made["steps"][1]["jobs"] == 61);
  CHECK(made["critical_path"]["jobs"].size() == 4);
}

TEST_CASE("times below a microsecond are told and foreseen, and of what takes none nothing is") {
  const temporary file("trace.json");
  json trace = measured_step();
  for (json& one : trace["traceEvents"])
    if (one["ph"] == "X") {
      one["ts"] = one["ts"].get<double>() / 100;
      one["dur"] = one["dur"].get<double>() / 100;
    }
  file.write(trace.dump());
  const json made = run_json(of_1f1b + "--format json --trace " + file.path());
  CHECK(made["predicted"]["makespan"] == 0.61);
  CHECK(made["steps"][0]["makespan"] == 0.71);
  for (json& one : trace["traceEvents"])
    if (one["ph"] == "X") one["ts"] = 1, one["dur"] = 0;
  file.write(trace.dump());
  CHECK(run(of_1f1b + "--trace " + file.path())
            .out.find("predicted         0   0.0 %                0.0 %     0.0 %  0.0 %\n") !=
        std::string::npos);
}

TEST_CASE("of several workers of a rank one is told, and recomputes want to be known") {
  const temporary file("trace.json");
  json trace = measured_step();
  json shared = json::array();
  for (const json& one : trace["traceEvents"])
    for (const int worker : {0, 1}) {
      shared.push_back(one);
      shared.back()["pid"] = 2 * one["pid"].get<int>() + worker;
      if (worker == 1 && one["ph"] == "X" && one["cat"] == "compute") shared.back()["dur"] = 1;
    }
  file.write(json{{"traceEvents", shared}}.dump());
  CHECK(run_json(of_1f1b + "--format json --trace " + file.path())["workers"] == 2);
  const std::string text = run(of_1f1b + "--trace " + file.path()).out;
  CHECK(text.find("\nof the 2 workers of each rank number 0\n") != std::string::npos);
  CHECK(text.find("\n7                71  57.7 %") != std::string::npos);
  // The other's jobs take 1, those in ops 9 from the first to the last.
  const std::string other = " --worker 1 --trace " + file.path();
  const json its = run_json(of_1f1b + "--format json" + other);
  CHECK(its["worker"] == 1);
  CHECK(its["steps"][0]["makespan"] == 51);
  CHECK(its["steps"][0]["busy"] == json({2, 10}));
  CHECK(run(of_1f1b + other).out.find("\nof the 2 workers of each rank number 1\n") !=
        std::string::npos);
  CHECK(run("plot 1f1b --ranks 2 --microbatches 1" + other).out.find("makespan 51; ") !=
        std::string::npos);
  CHECK(run("costs" + other).out.find("of each rank's worker 1.\n") != std::string::npos);
  for (const char* const command : {"measured 1f1b --ranks 2 --microbatches 1", "costs",
                                    "plot 1f1b --ranks 2 --microbatches 1"})
    tool_tests::check_refused(
        std::string(command) + " --trace " + file.path(),
        {{" --worker 2", "trace.json has 2 of each rank, counted from 0"},
         {" --worker -1", "--worker -1: expected a whole number from 0"}});

  json again = event(trace, "1B0");
  again["name"] = "1R0";
  again["dur"] = 5;
  event(trace, "1B0")["ts"] = 38;
  event(trace, "1B0")["dur"] = 15;
  trace["traceEvents"].push_back(again);
  file.write(trace.dump());
  tool_tests::check_refused(
      of_1f1b + "--trace " + file.path(),
      {{"", "has forwards that run again: --recompute says of which micro-batches"}});
  CHECK(run_json(of_1f1b + "--recompute all --format json --trace " + file.path())
            .contains("failed"));
}

TEST_CASE(
    "what pairs hide is counted in what is foreseen of them, in whatever times were measured") {
  const temporary file("trace.json");
  json trace{{"traceEvents", json::array()}};
  const auto add = [&](const char* name, double from, double to) {
    add_of_rank_0(trace, name, from, to);
  };
  // One rank: forwards of 3 and backwards of 5, two of which are paired.
  add("0F0", 0, 3), add("0F1", 3, 6), add("0B0", 6, 11), add("0B1", 11, 16);
  file.write(trace.dump());
  const auto foreseen = [&](const char* hides) {
    return run_json(std::string("measured paired_1f1b --ranks 1 --microbatches 2 --format json ") +
                    hides + " --trace " + file.path())["predicted"]["makespan"];
  };
  CHECK(foreseen("") == 16);
  CHECK(foreseen("--hides 50") == 14.5);
  const json made = run_json(
      "measured paired_1f1b --ranks 1 --microbatches 2 --critical-path "
      "--format json --trace " +
      file.path());
  CHECK(made["critical_path"]["count"] == json({{"F", 2}, {"B", 2}}));  // it ran as its halves
}

TEST_CASE("copies to the host and back are foreseen to take what they took") {
  const temporary file("trace.json");
  json trace{{"traceEvents", json::array()}};
  const auto add = [&](const char* name, double from, double to) {
    add_of_rank_0(trace, name, from, to);
  };
  add("0F0", 0, 3), add("0OFFLOAD0", 3, 13), add("0F1", 13, 16), add("0RELOAD0", 16, 26);
  add("0B0", 26, 31), add("0B1", 31, 36);
  file.write(trace.dump());
  const json made = run_json(
      "measured gpipe --ranks 1 --microbatches 2 --offload 1/2,lag=0,prefetch=0 "
      "--critical-path --format json --trace " +
      file.path());
  CHECK(made["predicted"]["makespan"] == 36);
  CHECK(made["steps"][0]["makespan"] == 36);
}

}  // namespace
