// costs --trace: what the stages of a measured step took.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

//! A measured step: events of a name, a process, and from when to when, in microseconds.
struct measured {
  const char* name;
  int process;
  double from, to;
};
json trace_of(const std::vector<measured>& all, int step = 0) {
  json events = json::array();
  for (const measured& one : all)  // as the executor begins, with the names of streams
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", one.process},
                      {"tid", 0},
                      {"args", {{"name", "compute"}}}});
  for (const measured& one : all) {
    const std::string name = one.name;
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    const bool message = has("SEND") || has("RECV") || has("OFFLOAD") || has("RELOAD");
    events.push_back({{"ph", "X"},
                      {"name", name},
                      {"cat", message ? "message" : "compute"},
                      {"pid", one.process},
                      {"tid", message ? 1 : 0},
                      {"ts", one.from},
                      {"dur", one.to - one.from},
                      {"args", {{"step", step}}}});
  }
  return {{"traceEvents", events}};
}

const std::vector<measured> of_two_ranks{
    {"0F0", 0, 0, 10},       {"0F1", 0, 10, 22},       {"0F2", 0, 22, 52},   // 12 in the middle
    {"0SEND_F0", 0, 10, 13}, {"1RECV_F0", 1, 0, 14},                         // 4
    {"0SEND_F1", 0, 22, 24}, {"1RECV_F1", 1, 23, 26},                        // 3
    {"0SEND_F2", 0, 52, 90}, {"1RECV_F2", 1, 60, 90},                        // 30
    {"1F0", 1, 14, 24},      {"1F1", 1, 26, 36},       {"1F2", 1, 90, 100},  // 10
    {"1I0", 1, 36, 44},      {"1I1", 1, 44, 52},       {"1I2", 1, 52, 60},   // 8
    {"1W0", 1, 60, 65},      {"1W1", 1, 65, 70},       {"1W2", 1, 70, 75},   // 5
    {"0B0", 0, 60, 75},      {"0OPTIMIZER", 0, 95, 99}};

TEST_CASE("costs: what stages took in a trace, by medians, as --layer-costs reads it") {
  const temporary trace("trace.json"), file("stages.json");
  trace.write(trace_of(of_two_ranks).dump());
  const outcome told = run("costs --trace " + trace.path() + " -o " + file.path());
  REQUIRE_MESSAGE(told.exit == 0, told.err);
  CHECK(told.out.starts_with(
      "2 stages of 2 ranks, ns, medians of all jobs in the trace.\n"
      "Whole saves: what a whole backward takes less than its halves.\n"
      "Halves that the trace does not have are taken as equal: a schedule that splits backwards\n"
      "(zb_h1) tells both.\n\nstage "));
  CHECK(told.out.find("taken as equal") != std::string::npos);  // of stage 0
  CHECK(told.out.find("a message takes 4000") != std::string::npos);
  std::string command = told.out.substr(told.out.find("stretto compare ") + 8);
  command.pop_back();  // the end of its line
  const json all = json::parse(contents(file.path()));
  CHECK(all == json::parse(R"({"layers": 2, "costs": [
    {"layer": 0, "forward": 12000, "backward_input": 7500, "backward_weight": 7500,
     "whole_saves": 0},
    {"layer": 1, "forward": 10000, "backward_input": 8000, "backward_weight": 5000,
     "whole_saves": 0}]})"));
  CHECK(told.out.find("Not told") == std::string::npos);
  CHECK(run_json("costs --trace " + trace.path() + " -o -") == all);
  // The command that it ends with compares by them.
  CHECK(run(command).exit == 0);
  CHECK(run_json("simulate 1f1b --ranks 2 --microbatches 1 --layers balanced:2 --layer-costs " +
                 file.path() + " --cost 0,0,0,4000 --format json")["makespan"] ==
        12000 + 4000 + 10000 + 13000 + 4000 + 15000);

  // Messages between nodes stand by themselves.
  const std::string nodes = "costs --trace " + trace.path() + " --node-ranks ";
  const outcome apart = run(nodes + "1");
  CHECK(apart.out.find("Between nodes a message takes 4000. ") != std::string::npos);
  CHECK(apart.out.find(" --cost 0,0,0,0 --nodes 1,4000\n") != std::string::npos);
  const outcome one_node = run(nodes + "2");
  CHECK(one_node.out.find("Between ranks a message takes 4000 (none left its node). ") !=
        std::string::npos);
  CHECK(one_node.out.find(" --nodes") == std::string::npos);

  // Both kinds of backward: what the whole one takes less.
  auto both = of_two_ranks;
  both.insert(both.end(), {{"0I1", 0, 75, 85}, {"0W1", 0, 85, 92}});
  trace.write(trace_of(both, 3).dump());
  const outcome split = run("costs --trace " + trace.path());
  CHECK(split.out.find("taken as equal") == std::string::npos);
  CHECK(split.out.find("\n0      12000  10000  7000         2000\n") != std::string::npos);
  CHECK(split.out.find("--layer-costs FILE ") != std::string::npos);

  // Two workers of one rank, of which the first is read; slices are told on.
  auto workers = std::vector<measured>{{"0F0", 0, 0, 10},
                                       {"0F0.1", 0, 10, 30},
                                       {"0B0.1", 0, 40, 50},
                                       {"0B0", 0, 50, 60},
                                       {"0F0", 1, 0, 99}};
  trace.write(trace_of(workers).dump());
  const outcome sliced = run("costs --trace " + trace.path());
  CHECK_MESSAGE(sliced.out.find("1 stage of 1 rank,") == 0, sliced.out);
  CHECK(sliced.out.find("\n0      20000  5000  5000") != std::string::npos);
  CHECK(sliced.out.find("a message takes 0.") != std::string::npos);
  CHECK(sliced.out.find(" --slices 2 ") != std::string::npos);
}

TEST_CASE("costs: all steps of a trace count, and of ops that compute alone") {
  const temporary trace("trace.json");
  // Of three steps the middle one, which is not the last; of a job in ops no sum between them.
  json events = json::array();
  const auto add = [&](const std::vector<measured>& some, int step, const char* category) {
    json more = trace_of(some, step);
    for (json& one : more["traceEvents"]) {
      if (one["ph"] == "X") one["cat"] = category;
      events.push_back(one);
    }
  };
  add({{"0F0", 0, 0, 10}, {"0B0", 0, 10, 25.001}}, 0, "compute");
  add({{"0F0", 0, 0, 11}, {"0B0", 0, 20, 35.001}}, 1, "compute");
  add({{"0F0", 0, 0, 13}, {"0B0", 0, 20, 35.001}}, 2, "compute");
  for (const int step : {0, 1, 2}) add({{"0F0 op 1", 0, 2, 3}}, step, "collective");
  trace.write(json{{"traceEvents", events}}.dump());
  // No part of a backward is lost where it is taken for two.
  CHECK(run_json("costs -o - --trace " + trace.path()) == json::parse(R"({"layers": 1, "costs": [
    {"layer": 0, "forward": 11000, "backward_input": 7501, "backward_weight": 7500,
     "whole_saves": 0}]})"));

  // A whole backward that took longer than its halves saves nothing.
  trace.write(
      trace_of({{"0F0", 0, 0, 10}, {"0B0", 0, 10, 40}, {"0I1", 0, 40, 50}, {"0W1", 0, 50, 60}})
          .dump());
  CHECK(run_json("costs -o - --trace " + trace.path())["costs"][0]["whole_saves"] == 0);
  // Nor does a message take less than no time, though clocks of two processes may say so.
  trace.write(trace_of({{"0F0", 0, 0, 10},
                        {"0SEND_F0", 0, 10, 12},
                        {"1RECV_F0", 1, 0, 9},
                        {"1F0", 1, 9, 19}})
                  .dump());
  const outcome told = run("costs --trace " + trace.path());
  CHECK_MESSAGE(told.out.find("a message takes 0.") != std::string::npos, told.out);

  // What layers do not take is named.
  trace.write(trace_of({{"0F0", 0, 0, 10},
                        {"0R0", 0, 10, 20},
                        {"0B0", 0, 20, 40},
                        {"0REDUCE_GRAD0", 0, 40, 41},
                        {"0ALL_REDUCE0", 0, 41, 45}})
                  .dump());
  CHECK(run("costs --trace " + trace.path())
            .out.find("\n\nNot told, as layers take no such thing: R, ALL_REDUCE.\n\n") !=
        std::string::npos);

  // Copies are, by the longer way, of the stages that have some.
  trace.write(trace_of({{"0F0", 0, 0, 10},
                        {"0OFFLOAD0", 0, 10, 12},
                        {"0RELOAD0", 0, 15, 18},
                        {"0B0", 0, 20, 40},
                        {"1F0", 1, 10, 20},
                        {"1B0", 1, 20, 30}})
                  .dump());
  const outcome copied = run("costs --trace " + trace.path());
  CHECK(copied.out.find("Not told") == std::string::npos);
  CHECK_MESSAGE(copied.out.find("whole saves  copy\n"
                                "0      10000  10000  10000            0  3000\n"
                                "1      10000   5000   5000            0     -\n") !=
                    std::string::npos,
                copied.out);
  const json stages = run_json("costs -o - --trace " + trace.path())["costs"];
  CHECK(stages[0]["offload"] == 3000);
  CHECK_FALSE(stages[1].contains("offload"));
}

TEST_CASE("costs: traces that do not tell are refused") {
  const temporary trace("trace.json");
  const auto refused = [&](std::vector<measured> all, const std::string& words) {
    CAPTURE(words);
    trace.write(trace_of(all).dump());
    const outcome ran = run("costs -o - --trace " + trace.path());
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(ran.err.find("--trace " + trace.path() + ": " + words) != std::string::npos,
                  ran.err);
  };
  refused({{"0F0", 0, 0, 1}, {"2F0", 0, 1, 2}}, "it has no forward of stage 1");
  refused({{"0B0", 0, 0, 1}}, "it has no forward of stage 0");
  refused({{"0F0", 0, 0, 1}, {"0I0", 0, 1, 2}}, "of the backwards of stage 0 it has but one half");
  refused({{"0F0", 0, 0, 1e8}}, "a F of stage 0 took 100000000000 ns");
  refused({{"0F0", 0, 0, 1}, {"0SEND_F0", 0, 1, 1e8}, {"1RECV_F0", 1, 0, 1e8}, {"1F0", 1, 1, 2}},
          "a message took 99999999000 ns, which is more than 10000000000");
  refused({{"0OPTIMIZER", 0, 0, 1}}, "it has no jobs of stages");
  refused({}, "it has no events of jobs");
  REQUIRE(run("trace 1f1b --ranks 2 --microbatches 2 -o " + trace.path()).exit == 0);
  CHECK(run("costs --trace " + trace.path())
            .err.find("args has no \"step\", which what the executor "
                      "measured has") != std::string::npos);
  trace.write(trace_of(of_two_ranks).dump());
  for (const char* more : {"--layers 2", "--ends-apart", "--hidden 64", "--device h100",
                           "--network 50", "--host-link 50", "--sequence-parallel"}) {
    CAPTURE(more);
    const outcome ran = run("costs --trace " + trace.path() + " " + std::string(more));
    CHECK(ran.exit == 2);
    CHECK_MESSAGE(ran.err.find("excludes") != std::string::npos, ran.err);
  }
  CHECK(run("costs --ranks 2").exit == 2);
  CHECK(run("costs --ranks 3 --trace " + trace.path())
            .err.find("it has the jobs of 2 ranks, not of 3") != std::string::npos);
}

}  // namespace
