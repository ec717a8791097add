// --recompute of the commands that make a step: forwards that run again, and what they take.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

const std::string two_ranks = "simulate 1f1b --ranks 2 --microbatches 4 --memory 10,0,-10 ";

TEST_CASE("a forward that runs again keeps less until then, and its rank is busy for longer") {
  const json plain = run_json(two_ranks + "--format json");
  CHECK(plain["makespan"] == 15);
  CHECK(plain["peak"] == json({20, 10}));
  // Of rank 1 every backward stands right behind its forward, which does not run again.
  const json again = run_json(two_ranks + "--format json --recompute all --again 1,8");
  CHECK(again["makespan"] == 17);
  CHECK(again["busy"] == json({16, 12}));
  CHECK(again["peak"] == json({12, 10}));
  // Unless told, it takes what it took, and all that it keeps is brought back.
  const json all = run_json(two_ranks + "--format json --recompute all");
  CHECK(all["peak"] == json({10, 10}));
  CHECK(run_json(two_ranks + "--format json --recompute all --again 1") == all);
  CHECK(run_json(two_ranks + "--format json --recompute all --again 1,10") == all);
  CHECK(run_json(two_ranks + "--format json --recompute all --again 3")["makespan"] == 24);
  const json half = run_json(two_ranks + "--format json --recompute 1/2 --again 1,8");
  CHECK(half["busy"] == json({14, 12}));
  CHECK(half["peak"] == json({20, 10}));
  CHECK(run("schedule 1f1b --ranks 2 --microbatches 3 --recompute 1/2")
            .out.find("rank 0 0F0 0F1 0R0 .   0B0---- 0F2 0B1---- 0R2 0B2----\n") !=
        std::string::npos);
}

TEST_CASE("a search plans with it, and lets limits be kept that could not be") {
  const std::string tight =
      "simulate zbv_greedy --ranks 4 --microbatches 8 --chunks 2 --format json ";
  const json plain = run_json(tight + "--limit 4");
  const json again = run_json(tight + "--limit 4 --recompute all");
  CHECK(again["makespan"] < plain["makespan"]);
  for (const json& peak : again["peak"]) CHECK(peak <= 4);
  const std::string none = "simulate 1f1b --ranks 4 --microbatches 8 --memory 4,0,-4 --limit 8 ";
  CHECK(run(none).exit == 1);
  CHECK(run(none + "--recompute all").exit == 0);
  const outcome refused = run(none + "--recompute all --again 1,2");
  CHECK(refused.exit == 1);
  CHECK(refused.err.find("rule bounded broken on rank 0") != std::string::npos);
}

TEST_CASE("compare puts it into each schedule that trains, beside the bound of such steps") {
  const std::string costs =
      " --ranks 4 --microbatches 8 --chunks 2 --cost 10,12,8,1 --memory 34,0,-34 --limit 170 "
      "--format json ";
  for (const std::string put : {"--recompute all --again 9,32", "--recompute 1/2",
                                "--offload all --copy 15,32", "--offload 2/3,lag=2,prefetch=2"}) {
    CAPTURE(put);
    int made = 0;
    const json all = run_json("compare" + costs + put);
    const json without = run_json("compare" + costs);
    for (const json& one : all) {
      if (one.contains("refused")) continue;
      const std::string name = one["schedule"];
      CAPTURE(name);
      if (name == "inference") {
        for (const json& plain : without)
          if (plain["schedule"] == name) CHECK(plain == one);
        continue;
      }
      CHECK(one["bound"] <= one["makespan"]);
      CHECK(one["span_bound"] <= one["span"]);
      // Jobs of schedules with another number of chunks are cut.
      if (one["chunks"] != 2) continue;
      const json alone = run_json("simulate " + name + costs + put);
      CHECK(alone["makespan"] == one["makespan"]);
      CHECK(alone["peak"] == one["peak"]);
      for (const json& peak : one["peak"]) CHECK(peak <= 170);
      ++made;
    }
    CHECK(made >= 4);
  }
  // 8 micro-batches of 30, and the forwards of seven run again where the rank need not wait.
  const json bound = run_json(
      "compare gpipe --ranks 2 --microbatches 8 --cost 10,12,8,0 --recompute all --format json");
  CHECK(bound[0]["bound"] == 8 * 30 + 7 * 10);
}

TEST_CASE("files of costs, and layers, say what runs again") {
  const temporary file("costs.json");
  const std::string by_file =
      "simulate 1f1b --ranks 2 --microbatches 4 --recompute all --format json --costs " +
      file.path();
  file.write(R"({"jobs": [{"kind": "F", "change": 10}, {"kind": "B", "change": -10},
                          {"kind": "R", "cost": 3, "change": 6}]})");
  const json told = run_json(by_file);
  CHECK(told["makespan"] == 24);
  CHECK(told["peak"] == json({14, 10}));
  // What an entry does not say of it is as the forward has it.
  file.write(R"({"jobs": [{"kind": "F", "cost": 3, "change": 10}, {"kind": "B", "change": -10},
                          {"kind": "R", "change": 6}]})");
  CHECK(run_json(by_file)["busy"] == json({4 * (3 + 3 + 2), 4 * (3 + 2)}));
  file.write(R"({"loss": 2, "jobs": [{"kind": "F", "change": 1}]})");
  CHECK(
      run_json("simulate gpipe --ranks 2 --microbatches 2 --recompute all --format json --costs " +
               file.path())["busy"] == json({2 * 4, 2 * (3 + 3 + 6)}));
  file.write(R"({"jobs": [{"kind": "R", "change": 2}]})");
  const outcome wrong =
      run("simulate gpipe --ranks 2 --microbatches 2 --recompute all --costs " + file.path());
  CHECK(wrong.exit == 2);
  CHECK(wrong.err == "stretto: --costs " + file.path() +
                         ": a forward of rank 0, chunk 0 brings back 2 when it runs again, and it "
                         "keeps 1\n");
  // --again speaks of a layer where there are layers.
  const std::string layers = two_ranks + "--format json --layers 2,1 --recompute all ";
  CHECK(run_json(layers)["busy"] == json({4 * 8, 4 * 3}));
  CHECK(run_json(layers)["peak"] == json({20, 10}));
  CHECK(run_json(layers + "--again 2,5")["busy"] == json({4 * 10, 4 * 3}));
  CHECK(run_json(layers + "--again 2,5")["peak"] == json({30, 10}));
}

TEST_CASE("an order with forwards that run again is frozen, and no other says what these take") {
  const std::string step =
      "schedule 1f1b --ranks 2 --microbatches 3 --memory 4,0,-4 --emit header ";
  CHECK(run(step).out.find("memory_recompute") == std::string::npos);
  CHECK(run(step).out.find("memory_offload") == std::string::npos);
  CHECK(run(step + "--recompute all").out.find(".memory_recompute = 4\n") != std::string::npos);
  CHECK(run(step + "--recompute all --again 2")
            .out.find("a forward takes another time when it\n// runs again") != std::string::npos);
}

TEST_CASE("what --recompute and --again cannot be of is refused") {
  const struct {
    const char* arguments;
    const char* says;
  } wrong[] = {
      {"simulate gpipe --recompute some", "--recompute some: is not none, all or a part as 2/3"},
      {"simulate gpipe --recompute 3/2", "--recompute 3/2: is not none, all"},
      {"simulate gpipe --recompute all,lag=1", "--recompute all,lag=1: is not none, all"},
      {"simulate gpipe --again 1", "--again 1: says of what only with --recompute"},
      {"simulate gpipe --recompute all --again 1,2,3", "--again 1,2,3: expected 2 integers"},
      {"simulate gpipe --recompute all --again x", "--again x: expected 1 integers, T or T,M"},
      {"simulate gpipe --recompute all --again 1,2",
       "--again 1,2: a forward of rank 0, chunk 0 brings back 2 when it runs again, and it keeps "
       "1"},
      {"compare inference --recompute all",
       "--recompute all: inference has no backward before which a forward could run again"},
      {"compare --again 1", "--again 1: says of what only with --recompute"},
      {"compare --copy 1", "--copy 1: says of what only with --offload"},
      {"compare --recompute all --slices 2", "--slices 2: what forwards keep runs again"},
      {"compare --recompute all --csv a.csv", "--csv excludes --recompute"},
      {"compare --offload all --csv a.csv", "--csv excludes --offload"},
      // Of schedules with two chunks jobs are cut, and told in the unit of the options.
      {"compare --recompute all --again 1,5",
       "--again 1,5: a forward of rank 0, chunk 0 brings back 5 when it runs again, and it keeps "
       "1"},
      {"simulate gpipe --recompute all --offload all", "what a recompute saves anew"},
      {"plot inference --recompute all",
       "--recompute all: inference has no backward before which a forward could run again"},
      {"simulate seq_1f1b --slices 2 --recompute all", "a slice cannot be recomputed"},
      {"schedule gpipe --recompute all --format csv", "0R0 of rank 0: this job has no"}};
  for (const auto& one : wrong) {
    const outcome ran = run(std::string(one.arguments) + " --ranks 2 --microbatches 4");
    INFO(ran.err);
    CHECK(ran.exit == 2);
    CHECK(ran.err.find(one.says) != std::string::npos);
  }
}

}  // namespace
