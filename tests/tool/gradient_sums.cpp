// What sums over data-parallel replicas add to a step.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "run_tool.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

//! When a step ends that sums each stage's gradients in `time`, by the times of its jobs: in the
//! order in which they are there; what several ranks have of a stage as one.
std::int64_t end_with_sums(const json& step, std::int64_t time) {
  std::map<int, std::vector<std::pair<int, std::int64_t>>> parts;  // of a stage: rank, when there
  std::int64_t end = 0;
  for (const json& list : step["lists"])
    for (const json& work : list["jobs"]) {
      const auto when = work["end"].get<std::int64_t>();
      end = std::max(end, when);
      const auto kind = work["kind"].get<std::string>();
      if (kind != "B" && kind != "W") continue;
      auto& of = parts[work["stage"].get<int>()];
      const int rank = list["rank"].get<int>();
      if (of.empty() || of.back().first != rank) of.emplace_back(rank, 0);
      of.back().second = std::max(of.back().second, when);
    }
  std::map<int, std::int64_t> clock;
  while (!parts.empty()) {
    const auto due = [](const auto& of) {
      std::int64_t latest = 0;
      for (const auto& [rank, when] : of.second) latest = std::max(latest, when);
      return latest;
    };
    const auto next = std::min_element(
        parts.begin(), parts.end(), [&](const auto& a, const auto& b) { return due(a) < due(b); });
    std::int64_t start = due(*next);
    for (const auto& part : next->second) start = std::max(start, clock[part.first]);
    for (const auto& part : next->second) clock[part.first] = start + time;
    end = std::max(end, start + time);
    parts.erase(next);
  }
  return end;
}

}  // namespace

TEST_CASE("every schedule's step ends with the last sum, as its jobs' times say") {
  stretto::schedule::all::for_each([](const auto& made) {
    stretto::shape sizes{.ranks = 4, .microbatches = 8};
    if (!made.supports(sizes).ok()) sizes.chunks = 2;
    const std::string arguments = std::string(made.name) +
                                  " --ranks 4 --microbatches 8 --cost 3,2,2,1 --format json"
                                  " --chunks " +
                                  std::to_string(sizes.chunks);
    const json plain = run_json("schedule " + arguments);
    for (const int time : {1, 5, 40}) {
      INFO(made.name, ", ", time);
      const json summed =
          run_json("simulate " + arguments + " --reduce-grad " + std::to_string(time));
      if (made.name == "inference") {
        CHECK(summed.value("failed", "") == "stretto: --reduce-grad " + std::to_string(time) +
                                                ": inference has no gradients to sum\n");
        continue;
      }
      CHECK(summed["jobs_end"] == plain["makespan"]);
      CHECK(summed["makespan"] == end_with_sums(plain, time));
      CHECK(summed["makespan"] > plain["makespan"]);
    }
  });
}

TEST_CASE("compare orders steps by when their sums end, and no bound passes one") {
  for (const char* costs : {"", "--chunks 2 ", "--cost 2,3,1,1 ", "--objective span "}) {
    CAPTURE(costs);
    const std::string arguments =
        std::string("compare --ranks 4 --microbatches 8 --format json ") + costs;
    const json all = run_json(arguments + "--reduce-grad 12");
    const json plain = run_json(arguments);
    const bool spans = std::string(costs).find("span") != std::string::npos;
    const char* const length = spans ? "span" : "makespan";
    double before = 0;
    for (const json& one : all) {
      if (!one.contains("makespan") || one["schedule"] == "inference") continue;
      CAPTURE(one["schedule"].get<std::string>());
      CHECK(one[length] >= one[spans ? "span_bound" : "bound"]);
      CHECK(one[length].get<double>() >= before);
      before = one[length].get<double>();
      CHECK(one["makespan"].get<double>() > one["jobs_end"].get<double>());
      for (const json& other : plain)
        if (other["schedule"] == one["schedule"]) CHECK(other["makespan"] == one["jobs_end"]);
    }
    CHECK(before > 0);
  }
  const auto titles = [](const std::string& options) {
    return run("compare --ranks 2 --microbatches 4" + options).out.find("sums behind") !=
           std::string::npos;
  };
  CHECK(titles(" --reduce-grad 1"));
  CHECK_FALSE(titles(""));
}

TEST_CASE("what sums take is told by option, by rank and chunk, or by layer; of all slices once") {
  const std::string two = "simulate 1f1b --ranks 2 --microbatches 4 --format json ";
  const temporary costs("costs.json");
  costs.write(R"({"jobs": [{"kind": "REDUCE_GRAD", "cost": 9},
      {"kind": "REDUCE_GRAD", "rank": 0, "cost": 4}]})");
  CHECK(run_json(two + "--reduce-grad 4")["makespan"] == 15 + 4);
  // Rank 1 is done two units before rank 0.
  CHECK(run_json(two + "--costs " + costs.path())["makespan"] == 15 - 2 + 9);
  CHECK(run_json(two + "--reduce-grad 4")["jobs_end"] == 15);
  const temporary layers("layers.json");
  layers.write(R"([{"reduce_grad": 1}, {"layer": 0, "reduce_grad": 3}])");
  CHECK(run_json(two + "--layers 2,2 --layer-costs " + layers.path())["makespan"] == 30 + 4);
  CHECK(run_json(two + "--layers 2,2 --reduce-grad 7")["makespan"] == 30 + 14);
  const std::string sliced = "compare --ranks 2 --microbatches 4 --slices 2 --format json ";
  const temporary of_slices("slices.json");
  of_slices.write(R"([{"reduce_grad": 5}, {"slice": 1, "forward": 2}])");
  for (const std::string& options :
       {std::string("--reduce-grad 10"), "--layers 2,2 --layer-costs " + of_slices.path(),
        std::string("--layers 2,2 --reduce-grad 5")})
    for (const json& one : run_json(sliced + options)) {
      if (!one.contains("jobs_end") || one["chunks"] != 1) continue;
      CAPTURE(options);
      CAPTURE(one["schedule"].get<std::string>());
      const auto behind = one["makespan"].get<std::int64_t>() - one["jobs_end"].get<std::int64_t>();
      const bool replicas = one["schedule"] == "chimera" || one["schedule"] == "bitpipe" ||
                            one["schedule"] == "dualpipe";
      CHECK(behind <= (replicas ? 20 : 10));
      CHECK(behind > 0);
    }
  // Other commands have no use for them, and say nothing of them.
  for (const char* command : {"schedule", "plan"}) {
    const std::string step =
        std::string(command) + " 1f1b --ranks 2 --microbatches 4 --layers 2,2 ";
    CHECK(run(step).out == run(step + "--layer-costs " + layers.path()).out);
    CHECK(run(step + "--reduce-grad 3").exit == 2);
  }

  const auto refused = [&](const std::string& file, const std::string& option) {
    const temporary wrong("wrong.json");
    wrong.write(file);
    const outcome ran = run(two + option + wrong.path());
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(refused(R"({"jobs": [{"kind": "REDUCE_GRAD", "microbatch": 1, "cost": 2}]})", "--costs ")
            .find("jobs[0].microbatch: a REDUCE_GRAD is of all micro-batches, and has a cost "
                  "alone") != std::string::npos);
  CHECK(refused(R"({"jobs": [{"kind": "REDUCE_GRAD", "change": 1}]})", "--costs ")
            .find("jobs[0].change: a REDUCE_GRAD") != std::string::npos);
  CHECK(refused(R"([{"slice": 0, "reduce_grad": 1}])", "--layers 2,2 --layer-costs ")
            .find("reduce_grad is of all slices") != std::string::npos);
  CHECK(refused(R"([{"reduce_grad": -1}])", "--layers 2,2 --layer-costs ").find("reduce_grad") !=
        std::string::npos);
  CHECK(run(two + "--reduce-grad -1").exit == 2);
}

TEST_CASE("sums of a file that has REDUCE_GRAD stand where it has them") {
  const temporary with("with.csv");
  with.write("0UNSHARD,0F0,0B0,0F1,0B1,0REDUCE_GRAD,0RESHARD\n");
  const temporary without("without.csv");
  without.write("0F0,0B0,0F1,0B1\n");
  for (const temporary* one : {&with, &without}) {
    const json told = run_json("simulate --csv " + one->path() + " --reduce-grad 7 --format json");
    CHECK(told["makespan"] == 6 + 7);
    CHECK(told["jobs_end"] == 6);
  }
}

TEST_CASE("a sum of two directions waits for both ranks, though one of them takes no time") {
  const temporary costs("costs.json"), trace("trace.json");
  const std::string step = "simulate chimera --ranks 2 --microbatches 2 --format json --costs ";
  const auto makespan = [&](const std::string& time) {
    costs.write(R"({"jobs": [{"kind": "W", "rank": 1, "cost": 5},
                             {"kind": "REDUCE_GRAD", "rank": 0, "cost": 10},
                             {"kind": "REDUCE_GRAD", "rank": 1, "cost": )" +
                time + "}]}");
    return run_json(step + costs.path())["makespan"];
  };
  CHECK(makespan("0") == 28);
  CHECK(makespan("1") == 28);
  CHECK(makespan("10") == 28);
  // Tracks have each sum's chunk.
  const json all =
      run_json("trace interleaved --ranks 2 --microbatches 2 --chunks 2 --reduce-grad 4 -o -");
  int sums = 0;
  for (const json& one : all["traceEvents"])
    if (one["name"].get<std::string>().find("REDUCE_GRAD") != std::string::npos) {
      CHECK(one["args"]["chunk"] == one["args"]["stage"].get<int>() / 2);
      ++sums;
    }
  CHECK(sums == 4);
}

TEST_CASE("costs tells what a layer's sum takes around a ring of replicas") {
  const std::string model = "costs --layers 4 --device h100 --hidden 4096 --heads 32 -o - ";
  const json plain = run_json(model)["costs"];
  for (const json& one : plain) CHECK_FALSE(one.contains("reduce_grad"));
  for (const std::int64_t replicas : {2, 8}) {
    const json all = run_json(model + "--data-parallel " + std::to_string(replicas))["costs"];
    REQUIRE(all.size() == plain.size());
    const std::int64_t weights = 12 * 4096 * 4096 + 13 * 4096;
    const std::int64_t bytes = 2 * (replicas - 1) * (4 * weights / replicas);
    CHECK(all[0]["reduce_grad"] == (bytes + 369) / 370 + 6000);
    CHECK(all[1]["reduce_grad"] > all[0]["reduce_grad"]);  // the embedding
  }
  // What is dealt among replicas says that there are so many: gradients of 4 bytes go round once,
  // and what an eighth of the optimizer makes of its weights, of 2.
  const std::int64_t weights = 12 * 4096 * 4096 + 13 * 4096;
  CHECK(run_json(model + "--optimizer-shards 8")["costs"][0]["reduce_grad"] ==
        (7 * (4 * weights / 8) + 7 * (2 * weights / 8) + 369) / 370 + 6000);
  CHECK(run_json(model + "--optimizer-shards 8") ==
        run_json(model + "--optimizer-shards 8 --data-parallel 8"));
  CHECK(run_json(model + "--experts 8 --expert-parallel 8") ==
        run_json(model + "--experts 8 --expert-parallel 8 --data-parallel 8"));
  // Of experts that are dealt among the replicas, none but the router and attention is summed by
  // all.
  const std::string mixed = model + "--experts 8 --data-parallel 8 --expert-parallel ";
  CHECK(run_json(mixed + "8")["costs"][0]["reduce_grad"] <
        run_json(mixed + "1")["costs"][0]["reduce_grad"]);
  const outcome ran = run(model + "--experts 8 --expert-parallel 4 --data-parallel 6");
  CHECK(ran.exit == 2);
  CHECK(ran.err == "stretto: --expert-parallel 4: --data-parallel 6 is no multiple of it\n");
  // Beside the table, and in what compare makes of the file.
  const temporary file("layers.json");
  const outcome table =
      run("costs --layers 4 --hidden 1024 --heads 16 --data-parallel 4 -o " + file.path());
  REQUIRE(table.exit == 0);
  CHECK(table.out.find("Sum: of gradients, over 4 replicas.") != std::string::npos);
  for (const json& one : run_json("compare --ranks 2 --microbatches 4 --layers balanced:4 "
                                  "--format json --layer-costs " +
                                  file.path()))
    if (one.contains("makespan") && one["schedule"] != "inference")
      CHECK(one["makespan"] > one["jobs_end"]);
  const outcome sliced =
      run("costs --layers 4 --slices 2 --hidden 1024 --heads 16 "
          "--data-parallel 4 -o " +
          file.path());
  REQUIRE(sliced.exit == 0);
  CHECK(run("simulate seq_1f1b --slices 2 --ranks 2 --microbatches 4 --layers 2,2 --layer-costs " +
            file.path())
            .out.find("behind the last job") != std::string::npos);
}

TEST_CASE("sums are drawn below the jobs of their rank, and are a track of a trace") {
  const std::string step = " 1f1b --ranks 2 --microbatches 4 ";
  CHECK(run("plot" + step).out.find(">sums<") == std::string::npos);
  const std::string drawn = run("plot" + step + "--reduce-grad 3").out;
  CHECK(drawn.find(">sums<") != std::string::npos);
  CHECK(drawn.find("sums 3 behind the jobs") != std::string::npos);
  CHECK(drawn.find("gradient reduction") != std::string::npos);
  const std::string both =
      run("plot zb_h1 --ranks 2 --microbatches 4 --offload all --reduce-grad 3").out;
  CHECK(both.find(">sums<") != std::string::npos);
  CHECK(both.find(">copies<") != std::string::npos);
  const json trace = run_json("trace" + step + "--reduce-grad 3");
  int sums = 0;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "gradient reduction") {
      ++sums;
      CHECK(event["tid"] == 3);
      CHECK(event["dur"] == 3);
    }
  CHECK(sums == 2);
}
