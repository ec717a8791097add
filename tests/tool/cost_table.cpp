// What jobs take: by options, by a file, of pairs and replicas.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "run_tool.hpp"
#include "support/sanitized.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

}  // namespace

TEST_CASE(
    "what a whole backward holds between its halves counts, with a file of costs and without") {
  const temporary costs("no_costs.json");
  costs.write("{}");
  const std::string step =
      "simulate gpipe --ranks 1 --microbatches 2 --memory 5,2,-7 --format json";
  CHECK(run_json(step)["peak"] == json({12}));
  CHECK(run_json(step + " --costs " + costs.path())["peak"] == json({12}));
  CHECK(run_json(step + " --layers 1")["peak"] == json({12}));
}

TEST_CASE("times whose sum leaves 64 bits in a finer unit are refused, and no others") {
  const auto step = [](const char* command, const char* microbatches) {
    return std::string(command) + " --ranks 1 --chunks 4 --hides 1 --microbatches " + microbatches +
           " --cost 10000000000,10000000000,10000000000,0";
  };
  // Others have two chunks, in which what one hides is cut.
  for (const auto& [command, parts] : {std::pair{"simulate gpipe", "100"}, {"compare", "200"}}) {
    const outcome ran = run(step(command, "1000000"));
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK(
        ran.err.starts_with("stretto: --cost 10000000000,10000000000,10000000000,0: with so many "
                            "jobs, times of 1/" +
                            std::string(parts) + " "));
  }
  CHECK(run_json(step("simulate gpipe", "10000") + " --format json")["makespan"] ==
        std::int64_t{1'200'000'000'000'000});
}

// From sail-sg's zero-bubble evaluator, which replays the same orders.

TEST_CASE("costs from a file: per rank, chunk and kind, with base, limit and loss") {
  const temporary file("costs.json");
  const auto simulate = [&](const std::string& text, const std::string& more = "") {
    file.write(text);
    return run_json("simulate gpipe --ranks 2 --microbatches 1 --chunks 2 --format json --costs " +
                    file.path() + " " + more);
  };
  CHECK(simulate("{}")["makespan"] == 12);
  CHECK(simulate("{}", "--cost 2,1,1,0")["makespan"] == 16);
  CHECK(simulate(R"({"communication": 4})")["makespan"] == 12 + 6 * 4);
  // The loss falls on F, I and W of stage 3: one forward and, as I + W, one backward.
  CHECK(simulate(R"({"loss": 5})")["makespan"] == 12 + 15);
  CHECK(simulate(R"({"base": [10, 20]})")["peak"] == json({12, 22}));
  CHECK(simulate(R"({"base": 7})")["peak"] == json({9, 9}));
  CHECK(simulate(R"({"jobs": [{"kind": "F", "cost": 10}]})")["makespan"] == 48);
  CHECK(simulate(R"({"jobs": [{"rank": 1, "kind": "I", "cost": 10}]})")["makespan"] == 12 + 18);
  CHECK(simulate(R"({"jobs": [{"rank": 1, "chunk": 0, "kind": "I", "cost": 10},
                              {"rank": 1, "chunk": 0, "kind": "B", "cost": 1}]})")["makespan"] ==
        11);
  CHECK(simulate(R"({"jobs": [{"kind": "F", "change": 3, "peak": 8}]})")["peak"] == json({11, 11}));
  // Of a whole backward what no entry gives is that of its halves, each by itself.
  const std::string halves = R"({"jobs": [{"kind": "F", "change": 6}, {"kind": "I", "change": -2},
                                          {"kind": "W", "change": -4},)";
  CHECK(simulate(halves + R"({"kind": "B", "peak": 0}]})")["peak"] == json({12, 12}));
  CHECK(simulate(halves + R"({"kind": "B", "peak": 9}]})")["peak"] == json({21, 21}));
  CHECK(simulate(R"({"jobs": [{"kind": "F", "change": 6}, {"kind": "I", "change": 5},
                              {"kind": "W", "change": -11},
                              {"kind": "B", "change": -6}]})")["peak"] == json({17, 17}));
  file.write(halves + R"({"kind": "B", "peak": 2}]})");
  CHECK(run_json("simulate 1f1b --ranks 2 --microbatches 8 --format json --costs " +
                 file.path())["peak"] == json({12 + 2, 6 + 2}));
  // A whole backward's peak is that of I, then W.
  CHECK(simulate(R"({"jobs": [{"kind": "I", "change": 1, "peak": 1},
                              {"kind": "W", "change": -2, "peak": 6}]})")["peak"] == json({9, 9}));

  const auto refused = [&](const std::string& text, const std::string& words, int exit = 2) {
    INFO(text);
    const json answer = simulate(text);
    REQUIRE(answer.contains("failed"));
    INFO(answer["failed"].get<std::string>());
    CHECK(answer["failed"].get<std::string>().find(words) != std::string::npos);
    CHECK(run("simulate gpipe --ranks 2 --microbatches 1 --chunks 2 --costs " + file.path()).exit ==
          exit);
  };
  refused(R"({"limit": [2, 1]})", "rule bounded broken on rank 1", 1);
  refused("", "the file is empty");
  refused("{", "not JSON: parse error at line 1");
  refused("[]", "one object");
  refused(R"({"cost": 1})", "unknown key, \"cost\"");
  refused(R"({"base": 1, "base": 2})", "the key \"base\" stands twice");
  refused(R"({"jobs": [{"kind": "F"}, {"kind": "F", "cost": 1, "cost": 1}]})",
          "the key \"cost\" stands twice in one object");
  refused(R"({"base": [1]})", "base has 1 entries for 2 ranks");
  refused(R"({"base": "1"})", "base is \"1\"");
  refused(R"({"limit": 1.5})", "limit is 1.5");
  refused(R"({"loss": -1})", "loss is -1");
  refused(R"({"communication": 18446744073709551615})", "communication is 18446744073709551615");
  refused(R"({"jobs": {}})", "jobs must be a list");
  refused(R"({"jobs": [1]})", "jobs[0] must be an object");
  refused(R"({"jobs": [{"cost": 1}]})", "jobs[0] needs a kind");
  refused(R"({"jobs": [{"kind": "F", "cost": 1}, {"kind": "Q"}]})", "jobs[1] needs a kind");
  refused(R"({"jobs": [{"kind": "F", "cost": 1}, {"rank": 0, "kind": "F"}]})",
          "jobs[1] sets nothing: it has no cost, no change and no peak");
  refused(R"({"jobs": [{"kind": "REDUCE_GRAD"}]})", "jobs[0] sets nothing: it has no cost\n");
  refused(R"({"jobs": [{"kind": "O"}]})", "jobs[0] needs a kind: F, B, I, W, R, OFFLOAD,");
  refused(R"({"jobs": [{"kind": "f"}]})", ", REDUCE_GRAD or UNSHARD, and has \"f\"");
  refused(R"({"jobs": [{"kind": "F", "rank": 2}]})", "jobs[0].rank is 2");
  refused(R"({"jobs": [{"kind": "F", "chunk": 2}]})", "jobs[0].chunk is 2");
  refused(R"({"jobs": [{"kind": "F", "cost": -1}]})", "jobs[0].cost is -1");
  refused(R"({"jobs": [{"kind": "F", "time": 1}]})", "unknown key, \"time\"");
}

TEST_CASE("whole backwards may take less than their halves, and be chosen by that") {
  const auto length = [](const std::string& more) {
    const json answer = run_json("simulate " + more + " --format json");
    INFO(more, answer.dump());
    return answer.at("makespan").get<std::int64_t>();
  };
  const std::string one = " --ranks 1 --microbatches 4 --cost 10,12,8,1";
  CHECK(length("1f1b" + one) == 4 * 30);
  CHECK(length("1f1b" + one + " --whole-saves 3") == 4 * 27);
  CHECK(length("zb_h1" + one + " --whole-saves 3") == 4 * 30);
  CHECK(length("zb_h1" + one + " --whole-saves 3 --merge adjacent") == 4 * 27);
  CHECK(length("zb_auto" + one + " --whole-saves 3 --merge shortest") == 4 * 27);
  // Of a file of costs, where no entry gives a whole one; the loss falls on both halves.
  const temporary file("costs.json");
  file.write(R"({"loss": 2, "jobs": [{"kind": "F", "cost": 11}]})");
  CHECK(length("1f1b" + one + " --whole-saves 3 --costs " + file.path()) == 4 * (11 + 17 + 6));
  file.write(R"({"jobs": [{"kind": "B", "cost": 13}]})");
  CHECK(length("1f1b" + one + " --whole-saves 3 --costs " + file.path()) == 4 * 23);
  // Of layers each; the embedding's times are its own, and a file may say what another saves.
  CHECK(length("1f1b" + one + " --whole-saves 3 --layers 3 --embedding 1,1,1") ==
        4 * (27 + 3 + 27));
  file.write(R"([{"layer": 2, "whole_saves": 5}])");
  CHECK(length("1f1b" + one + " --whole-saves 3 --layers 3 --layer-costs " + file.path()) ==
        4 * (27 + 27 + 25));
  file.write(R"([{"layer": 1, "whole_saves": 21}])");
  const auto refused =
      run("simulate 1f1b" + one + " --layers 3 --layer-costs " + file.path());
  CHECK(refused.exit == 2);
  CHECK(refused.err.find(
            "layer 1 of --layers 3 saves 21 of a whole backward, whose halves take 20") !=
        std::string::npos);
  // Dealt by whole backwards; a file's entry says of one what it says and no more.
  const std::string dealt = " --ranks 2 --cost 10,12,8,0 --whole-saves 8 --head 30,30,30 --layers ";
  CHECK(length("1f1b --microbatches 16" + dealt + "balanced:5") ==
        length("1f1b --microbatches 16" + dealt + "4,1"));
  CHECK(run("assign" + dealt + "balanced:5").out.find("slowest rank 90; ") != std::string::npos);
  file.write(R"({"jobs": [{"kind": "B", "change": -1}, {"kind": "I", "cost": 5}]})");
  CHECK(length("1f1b" + one + " --whole-saves 3 --costs " + file.path()) == 4 * (10 + 5 + 8 - 3));
  // Compared, and cut anew: jobs of half of it.
  for (const json& entry : run_json(
           "compare --ranks 4 --microbatches 8 --cost 10,12,8,1 --whole-saves 3 --merge shortest "
           "--format json"))
    if (entry["schedule"] == "zb_h1" || entry["schedule"] == "zbv")
      CHECK(
          2 * entry["makespan"].get<double>() ==
          static_cast<double>(
              entry["schedule"] == "zbv"
                  ? length("zbv --ranks 4 --microbatches 8 --cost 10,12,8,2 --whole-saves 3 "
                           "--merge shortest")
                  : 2 * length("zb_h1 --ranks 4 --microbatches 8 --cost 10,12,8,1 --whole-saves 3 "
                               "--merge shortest")));
}

TEST_CASE("two replicas hold weights twice, and pairs hide what they are told to") {
  const auto peaks = [](const std::string& arguments) {
    return run_json("simulate --format json --ranks 4 --microbatches 8 " + arguments)["peak"];
  };
  CHECK(peaks("1f1b --weights 4") == json({8, 7, 6, 5}));
  CHECK(peaks("zbv --chunks 2 --weights 4") == json({16, 16, 16, 16}));
  CHECK(peaks("dualpipe --weights 4") == json({13, 13, 13, 13}));
  const auto makespan = [](const std::string& arguments) {
    return run_json("simulate --format json --ranks 4 --microbatches 8 --cost 10,10,10,0 " +
                    arguments)["makespan"]
        .get<int>();
  };
  CHECK(makespan("1f1b --hides 100") == makespan("1f1b"));
  CHECK(makespan("dualpipe") == 260);
  CHECK(makespan("dualpipe --hides 50") < 260);
  CHECK(makespan("dualpipe --hides 100") < makespan("dualpipe --hides 50"));
  CHECK(run("simulate dualpipe --ranks 4 --microbatches 8 --hides 101").err.find(
            "--hides") != std::string::npos);
  // A part of a unit is not rounded away: it is told, or refused where there is no place for it.
  const std::string small = " paired_1f1b --ranks 4 --microbatches 8 --receive-lead 2 --hides 75";
  const json parts = run_json("simulate --format json --cost 1,1,1,0 --memory 3,0,-3" + small);
  const json whole = run_json("simulate --format json --cost 4,4,4,0 --memory 3,0,-3" + small);
  for (const char* time : {"makespan", "span"})
    CHECK(4 * parts[time].get<double>() == whole[time].get<double>());
  for (const char* times : {"busy", "idle", "receives_wait"})
    for (std::size_t rank = 0; rank < 4; ++rank)
      CHECK(4 * parts[times][rank].get<double>() == whole[times][rank].get<double>());
  CHECK(parts["makespan"] == 27.75);
  CHECK(parts["bubble"] == whole["bubble"]);
  CHECK(parts["peak"] == whole["peak"]);
  CHECK(run("simulate" + small).out.find("makespan 27.75\n") != std::string::npos);
  // A header has no place for it.
  const std::string pairs = small.substr(0, small.find(" --receive")) + " --hides 75";
  const auto header = run("schedule --emit header" + pairs);
  CHECK(header.exit == 2);
  CHECK(header.err ==
        "stretto: --hides 75: hides 75 % of 1, which is no integer; give times in a finer unit (4 "
        "times the numbers will do)\n");
  CHECK(run("schedule dualpipe --ranks 4 --microbatches 8 --cost 4,4,4,0 --hides 75").exit == 0);
  CHECK(run("schedule 1f1b --ranks 4 --microbatches 8 --hides 75").exit == 0);  // it has no pairs
  // Nor has a search any, which therefore finds the same order in whatever unit it is asked.
  const std::string search =
      "simulate v_auto --ranks 1 --microbatches 2 --cost 434,5,8,2 --format json";
  CHECK(run_json(search + " --hides 1") == run_json(search));
}

TEST_CASE("a rank holds the weights of as many stages as it has") {
  const temporary file("uneven.csv");
  file.write("1F0,2F0,2B0,1B0\n0F0,,,,0B0\n");
  const auto peaks = [&](const std::string& arguments) {
    return run_json("simulate --csv " + file.path() + " --format json " + arguments)["peak"];
  };
  CHECK(peaks("") == json({2, 1}));
  CHECK(peaks("--weights 5") == json({12, 6}));
  CHECK(peaks("--weights 5 --layers table:1,1,1") == json({12, 6}));
  CHECK(run("check " + file.path() + " --weights 5 --limit 12").exit == 0);
  CHECK(run("check " + file.path() + " --weights 5 --limit 11").exit == 1);
}

TEST_CASE("micro-batches and slices may take different times and memory") {
  const temporary costs("lengths.json");
  const auto step = [&](const std::string& words) {
    return run_json(words + " --format json --costs " + costs.path());
  };
  costs.write(R"({"jobs": [{"kind": "F", "cost": 2}, {"kind": "B", "cost": 3},
    {"kind": "F", "microbatch": [1, 3], "cost": 7, "change": 4},
    {"kind": "B", "microbatch": [1, 3], "cost": 10, "change": -4},
    {"kind": "F", "microbatch": 3, "rank": 0, "cost": 9}]})");
  const json alone = step("simulate gpipe --ranks 1 --microbatches 4");
  CHECK(alone["makespan"] == 2 + 7 + 2 + 9 + 2 * (3 + 10));
  CHECK(alone["peak"] == json({1 + 4 + 1 + 4}));
  const json lists = step("schedule 1f1b --ranks 2 --microbatches 4")["lists"];
  for (const json& list : lists)
    for (const json& one : list["jobs"]) {
      const std::int64_t time = one["end"].get<std::int64_t>() - one["start"].get<std::int64_t>();
      const bool longer = one["microbatch"] == 1 || one["microbatch"] == 3;
      CAPTURE(one.dump());
      if (one["kind"] == "F")
        CHECK(time == (!longer ? 2 : one["microbatch"] == 3 && list["rank"] == 0 ? 9 : 7));
      else
        CHECK(time == (longer ? 10 : 3));
    }
  // By hand: F at 0-2 and 2-9, and 2-4 and 9-16; B at 4-7 and 16-26, and 9-12 and 26-36.
  costs.write(R"({"jobs": [{"kind": "F", "cost": 2}, {"kind": "B", "cost": 3},
    {"kind": "F", "microbatch": 1, "cost": 7, "change": 4},
    {"kind": "B", "microbatch": 1, "cost": 10, "change": -4}]})");
  const json two = step("simulate 1f1b --ranks 2 --microbatches 2");
  CHECK(two["makespan"] == 36);
  CHECK(two["peak"] == json({5, 4}));

  // What names all says no more than what names none.
  costs.write(R"({"jobs": [{"kind": "F", "cost": 3}, {"kind": "I", "cost": 4}]})");
  const json plain = step("simulate zb_auto --ranks 3 --microbatches 5");
  costs.write(R"({"jobs": [{"kind": "F", "microbatch": [0, 1, 2, 3, 4], "cost": 3},
    {"kind": "F", "microbatch": 2, "slice": 0, "cost": 3}, {"kind": "I", "cost": 4}]})");
  CHECK(step("simulate zb_auto --ranks 3 --microbatches 5") == plain);
}

TEST_CASE("slices that take different times are joined where a schedule knows none") {
  const temporary costs("slices.json");
  costs.write(R"({"jobs": [{"kind": "F", "slice": 1, "cost": 3, "change": 2, "peak": 5},
    {"kind": "W", "slice": 1, "change": -2}, {"kind": "F", "slice": 2, "cost": 6},
    {"kind": "F", "slice": [0, 2], "microbatch": 4, "cost": 10}]})");
  const std::string shape = " --ranks 3 --microbatches 6 --format json --costs " + costs.path();
  const json sliced = run_json("simulate seq_1f1b --slices 3" + shape);
  const json all = run_json("compare --slices 3" + shape);
  const auto row = [&](const std::string& name, int slices = 1) {
    for (const json& one : all)
      if (one["schedule"] == name && one["slices"] == slices) return one;
    return json();
  };
  CHECK(row("seq_1f1b", 3)["makespan"] == sliced["makespan"]);
  CHECK(row("seq_1f1b", 3)["bound"] <= sliced["makespan"]);
  CHECK(row("seq_1f1b")["makespan"] == row("1f1b")["makespan"]);
  // One job a micro-batch: what its slices take one after another.
  const temporary joined("joined.json");
  joined.write(R"({"jobs": [{"kind": "F", "cost": 10, "change": 4, "peak": 6},
    {"kind": "I", "cost": 3}, {"kind": "W", "cost": 3, "change": -4},
    {"kind": "F", "microbatch": 4, "cost": 23}]})");
  const json whole =
      run_json("simulate 1f1b --ranks 3 --microbatches 6 --format json --costs " + joined.path());
  CHECK(row("1f1b")["makespan"] == whole["makespan"]);
  CHECK(row("1f1b")["peak"] == whole["peak"]);
  // And half of that in each of two chunks: the same, where nothing else is to be done.
  CHECK(row("gpipe")["makespan"] <= row("1f1b")["makespan"].get<std::int64_t>() + 23);
  CHECK(row("zbv")["chunks"] == 2);
}

TEST_CASE(
    "of several numbers of slices each has rows, with jobs of as many slices as go into one") {
  const temporary four("four.json"), two("two.json");
  four.write(R"({"jobs": [{"kind": "F", "slice": 1, "cost": 3, "change": 2},
    {"kind": "F", "slice": 2, "cost": 6}, {"kind": "F", "slice": 3, "cost": 9},
    {"kind": "W", "slice": 1, "cost": 5, "change": -2},
    {"kind": "F", "slice": [0, 3], "microbatch": 4, "cost": 11}]})");
  two.write(R"({"jobs": [{"kind": "F", "slice": 0, "cost": 4, "change": 3},
    {"kind": "F", "slice": 1, "cost": 15, "change": 2},
    {"kind": "I", "cost": 2}, {"kind": "W", "cost": 2, "change": -2},
    {"kind": "W", "slice": 0, "cost": 6, "change": -3},
    {"kind": "F", "slice": 0, "microbatch": 4, "cost": 14},
    {"kind": "F", "slice": 1, "microbatch": 4, "cost": 17}]})");
  const std::string shape =
      "compare gpipe seq_1f1b interleaved zb_h1 v_half --ranks 3 "
      "--microbatches 6 --chunks 2 --format json --slices ";
  const json all = run_json(shape + "1,2,4 --costs " + four.path());
  const json fewer = run_json(shape + "2 --costs " + two.path());
  const auto row = [](const json& rows, const json& like) {
    for (const json& one : rows)
      if (one["schedule"] == like["schedule"] && one["slices"] == like["slices"]) return one;
    return json();
  };
  CHECK(all.size() == 4 * 3 + 1);
  CHECK(fewer.size() == 4 * 2 + 1);
  for (const json& one : fewer) CHECK(row(all, one) == one);
  CHECK(row(all, {{"schedule", "zb_h1"}, {"slices", 4}})["makespan"] ==
        row(run_json(shape + "4 --costs " + four.path()),
            {{"schedule", "zb_h1"}, {"slices", 4}})["makespan"]);
  // Words that tell them apart.
  const std::string tight =
      run("compare gpipe --ranks 3 --microbatches 6 --slices 2,4 --limit 1").out;
  for (const char* name : {"gpipe in 4 slices: needs", "gpipe in 2 slices: needs", "gpipe: needs"})
    CHECK(tight.find(name) != std::string::npos);
  CHECK(run("compare gpipe --ranks 3 --microbatches 6 --slices 2,4 --format svg")
            .out.find("3 ranks, 6 micro-batches, 4 or 2 slices: memory") != std::string::npos);
  const outcome uneven = run("compare --ranks 3 --microbatches 6 --slices 2,4,3");
  CHECK(uneven.exit == 2);
  CHECK(uneven.err.find("--slices 2,4,3: 3 does not divide 4, of whose slices costs are") !=
        std::string::npos);
}

TEST_CASE("micro-batches that differ are put in an order that makes the step shorter") {
  const temporary costs("lengths.json");
  costs.write(R"({"jobs": [{"kind": "F", "cost": 4}, {"kind": "I", "cost": 5},
    {"kind": "F", "microbatch": [2, 5], "cost": 8},
    {"kind": "I", "microbatch": [2, 5], "cost": 11}]})");
  const std::string step = "simulate 1f1b --ranks 4 --microbatches 8 --costs " + costs.path();
  const json plain = run_json(step + " --format json");
  const json found = run_json(step + " --arrange --format json");
  CHECK(found["makespan_as_given"] == plain["makespan"]);
  CHECK(found["makespan"] < plain["makespan"]);
  // As told: the file's micro-batches at other places.
  json longer = json::array();
  for (std::size_t at = 0; at < 8; ++at)
    if (found["order"][at] == 2 || found["order"][at] == 5) longer.push_back(at);
  const std::string named = longer.dump();
  costs.write(R"({"jobs": [{"kind": "F", "cost": 4}, {"kind": "I", "cost": 5},
    {"kind": "F", "cost": 8, "microbatch": )" +
              named + R"(},
    {"kind": "I", "cost": 11, "microbatch": )" +
              named + "}]}");
  CHECK(run_json(step + " --format json")["makespan"] == found["makespan"]);

  const temporary order("order.csv");
  order.write(run("schedule 1f1b --ranks 4 --microbatches 8 --format csv").out);
  const json imported = run_json("simulate --csv " + order.path() + " --costs " + costs.path() +
                                 " --arrange --format json");
  CHECK(imported["makespan"] <= imported["makespan_as_given"]);
  CHECK(imported["makespan_as_given"] == found["makespan"]);

  const outcome alike = run("simulate 1f1b --ranks 4 --microbatches 8 --arrange");
  CHECK(alike.exit == 2);
  CHECK(alike.err.find("--arrange: all micro-batches take the same") != std::string::npos);
}

TEST_CASE("what slices take in between counts where they are joined") {
  const temporary costs("between.json");
  costs.write(R"({"jobs": [{"kind": "I", "slice": 1, "change": 5},
    {"kind": "I", "slice": 0, "change": -5}]})");
  const json all = run_json("compare --ranks 1 --microbatches 1 --slices 2 --format json --costs " +
                            costs.path());
  for (const json& one : all)
    for (const char* name : {"1f1b", "zb_h1", "seq_1f1b"})
      if (one["schedule"] == name) CHECK(one["peak"] == json({7}));
  // The same of layers.
  costs.write(R"([{"slice": 1, "memory_backward_input": 5},
    {"slice": 0, "memory_backward_input": -5}])");
  int seen = 0;
  for (const json& one : run_json(
           "compare --ranks 1 --microbatches 1 --slices 2 --format json --layers 1 --layer-costs " +
           costs.path()))
    for (const char* name : {"1f1b", "zb_h1", "seq_1f1b"})
      if (one["schedule"] == name) {
        CAPTURE(name);
        CHECK(one["peak"] == json({7}));
        ++seen;
      }
  CHECK(seen == 5);  // two in slices, and whole
}

TEST_CASE("layers are dealt by all slices, and a job of several saves as often") {
  const temporary costs("slices.json");
  // The first layer takes as much as three others, by its first slice alone.
  costs.write(
      R"([{"layer": 0, "slice": 0, "forward": 12}, {"layer": 0, "slice": 1, "forward": 1}])");
  CHECK(run_json("simulate seq_1f1b --ranks 2 --microbatches 2 --slices 2 --format json "
                 "--layers balanced:4 --layer-costs " +
                 costs.path())["layers"] == json({1, 3}));
  const std::string step = " --ranks 2 --microbatches 4 --format json --layers 2 --cost ";
  const json joined = run_json("compare --slices 2" + step + "5,6,4,1 --whole-saves 2");
  const json whole = run_json("simulate 1f1b" + step + "10,12,8,1 --whole-saves 4");
  int seen = 0;
  for (const json& one : joined)
    if (one["schedule"] == "1f1b") {
      CHECK(one["makespan"] == whole["makespan"]);
      ++seen;
    }
  CHECK(seen == 1);
}

TEST_CASE("bounds stand below what is there, and searches find the shortest, whatever differs") {
  const temporary costs("apart.json");
  costs.write(R"({"jobs": [{"kind": "F", "cost": 1}, {"kind": "I", "cost": 1},
    {"kind": "W", "cost": 1}, {"kind": "W", "rank": 1, "cost": 500},
    {"kind": "I", "rank": 1, "microbatch": 0, "cost": 40},
    {"kind": "F", "microbatch": 0, "rank": 0, "cost": 100},
    {"kind": "F", "microbatch": 1, "rank": 2, "cost": 100}]})");
  const std::string step =
      " --ranks 3 --microbatches 2 --objective span --format json --costs " + costs.path();
  for (const json& one : run_json("compare" + step))
    if (one.contains("span_bound")) CHECK(one["span_bound"] <= one["span"]);
  std::int64_t least = INT64_MAX;
  for (int variant = 0;; ++variant) {
    const outcome ran = run("simulate zb_auto --variant " + std::to_string(variant) + step);
    if (ran.exit == 2) break;
    if (ran.exit == 0) least = std::min(least, json::parse(ran.out)["span"].get<std::int64_t>());
  }
  CHECK(run_json("simulate zb_auto" + step)["span"] == least);
}

TEST_CASE("searches plan by the largest micro-batch, however the file tells which that is") {
  const temporary costs("either_way.json");
  const auto found = [&](const std::string& entries, const std::string& schedule) {
    costs.write(R"({"communication": 1, "jobs": [{"kind": "F", "cost": 10}, )" + entries + "]}");
    return run_json("simulate " + schedule + " --ranks 4 --microbatches 10 --format json --costs " +
                    costs.path());
  };
  for (const char* schedule : {"zb_auto", "zbv_greedy", "v_auto"}) {
    CAPTURE(schedule);
    const json small_first = found(R"({"kind": "I", "cost": 5}, {"kind": "W", "cost": 5},
      {"kind": "I", "microbatch": [1, 2, 3, 4, 5, 6, 7, 8, 9], "cost": 40},
      {"kind": "W", "microbatch": [1, 2, 3, 4, 5, 6, 7, 8, 9], "cost": 10})",
                                   schedule);
    const json large_first = found(R"({"kind": "I", "cost": 40}, {"kind": "W", "cost": 10},
      {"kind": "I", "microbatch": 0, "cost": 5}, {"kind": "W", "microbatch": 0, "cost": 5})",
                                   schedule);
    CHECK(small_first == large_first);
    // As if it also took more memory, which nothing limits.
    const json more = found(R"({"kind": "I", "cost": 40}, {"kind": "W", "cost": 10, "change": -2},
      {"kind": "F", "cost": 10, "change": 2},
      {"kind": "F", "microbatch": 0, "cost": 10, "change": 1},
      {"kind": "I", "microbatch": 0, "cost": 5},
      {"kind": "W", "microbatch": 0, "cost": 5, "change": -1})",
                            schedule);
    CHECK(small_first["makespan"] == more["makespan"]);
  }
}

TEST_CASE("of micro-batches as large as each other searches plan by the first, in all commands") {
  const temporary file("as_large.json");
  const char* const entries[] = {R"({"kind":"I","microbatch":13,"cost":6})",
                                 R"({"kind":"W","microbatch":11,"cost":12})",
                                 R"({"kind":"F","microbatch":5,"cost":13})"};
  const std::string step = " zb_auto --ranks 4 --microbatches 16 --cost 1,0,0,1 --format json "
                           "--costs " + file.path();
  for (int first = 0; first < 3; ++first)
    for (const int next : {1, 2}) {
      const auto entry = [&](int k) { return std::string(entries[(first + k) % 3]); };
      file.write("{\"jobs\":[" + entry(0) + "," + entry(next) + "," + entry(3 - next) + "]}");
      CHECK(run_json("simulate" + step)["makespan"] == 98);
      CHECK(run_json("compare" + step)[0]["makespan"] == 98);
    }
}

TEST_CASE("of many micro-batches each may be another") {
  const temporary costs("many.json");
  std::string entries;
  std::int64_t sum = 0;
  const int microbatches = test_support::sanitized ? 300 : 3000;
  for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
    const std::string number = std::to_string(microbatch);
    const std::int64_t time = 1 + microbatch % 7;
    sum += time;
    entries += R"({"kind": "F", "microbatch": )" + number + R"(, "cost": )" + std::to_string(time) +
               "}," + R"({"kind": "B", "slice": 0, "rank": )" + std::to_string(microbatch % 2) +
               R"(, "cost": 1},)";
  }
  entries.pop_back();
  costs.write(R"({"jobs": [)" + entries + "]}");
  const json made =
      run_json("simulate 1f1b --ranks 2 --microbatches " + std::to_string(microbatches) +
               " --format json --costs " + costs.path());
  CHECK(made["busy"] == json({sum + microbatches, sum + microbatches}));
}

TEST_CASE("costs of micro-batches and slices that are not there are refused") {
  const temporary costs("wrong.json");
  const auto refused = [&](const std::string& entry, const std::string& words) {
    costs.write("{\"jobs\": [" + entry + "]}");
    const outcome ran = run("simulate 1f1b --ranks 2 --microbatches 4 --costs " + costs.path());
    CHECK(ran.exit == 2);
    CHECK_MESSAGE(ran.err.find(words) != std::string::npos, ran.err);
  };
  refused(R"({"kind": "F", "microbatch": 4, "cost": 1})",
          "jobs[0].microbatch is 4, must be an integer from 0 to 3");
  refused(R"({"kind": "F", "microbatch": [0, -1], "cost": 1})",
          "jobs[0].microbatch is -1, must be an integer from 0 to 3");
  refused(R"({"kind": "F", "slice": 1, "cost": 1})",
          "jobs[0].slice is 1, must be 0");
  refused(R"({"kind": "F", "microbatches": 1, "cost": 1})",
          "jobs[0] has an unknown key, \"microbatches\"");
  refused(R"({"microbatch": 1, "cost": 1})", "jobs[0] needs a kind");
  refused(R"({"kind": "F", "microbatch": [], "cost": 1})", "jobs[0].microbatch names none");
  costs.write(R"({"jobs": [{"kind": "I", "microbatch": 3, "cost": 0},
    {"kind": "W", "microbatch": 3, "cost": 0}]})");
  CHECK(run("simulate 1f1b --ranks 2 --microbatches 4 --whole-saves 1 --costs " + costs.path())
            .err.find("I+W = 0 on rank 0, of micro-batch 3") != std::string::npos);
}
