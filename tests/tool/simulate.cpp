#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

const std::string tool_dir = STRETTO_CSV_DIR "/";

std::vector<std::filesystem::path> files(const std::string& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(tool_dir + folder))
    if (entry.path().extension() == ".csv") found.push_back(entry.path());
  return found;
}

TEST_CASE("a receive lead shortens how long receives wait, and costs time where it is short") {
  const std::string step =
      "simulate 1f1b --ranks 4 --microbatches 8 --cost 4,4,4,2 --format json ";
  const json plain = run_json(step);
  const auto with = [&](const char* lead) {
    return run_json(step + "--receive-lead " + std::string(lead));
  };
  const auto sum = [](const json& of) {
    std::int64_t all = 0;
    for (const auto& one : of["receives_wait"]) all += one.get<std::int64_t>();
    return all;
  };
  REQUIRE(plain["receives_wait"].size() == 4);
  // The first rank's only receives are gradients: behind its last forward before them.
  CHECK(with("0")["makespan"] > with("1")["makespan"]);
  CHECK(with("1")["makespan"] == plain["makespan"]);
  CHECK(sum(with("0")) < sum(with("1")));
  CHECK(sum(with("1")) < sum(plain));
  CHECK(with("1000") == plain);
  const outcome comms =
      run("schedule 1f1b --ranks 2 --microbatches 3 --comms --format json --receive-lead 0");
  CHECK(comms.exit == 0);
  CHECK(run("schedule 1f1b --ranks 2 --microbatches 3 --receive-lead 0").err.find("--comms") !=
        std::string::npos);
  CHECK(run(step + "--receive-lead -1").exit == 2);
}

TEST_CASE("what is offloaded is not counted meanwhile, and a copy that takes long delays") {
  const std::string step =
      "simulate 1f1b --ranks 4 --microbatches 8 --memory 10,0,-10 --format json ";
  const json plain = run_json(step);
  const json away = run_json(step + "--copy 1,8 --offload all");
  CHECK(plain["peak"] == json({40, 30, 20, 10}));
  CHECK(away["peak"] == json({32, 30, 20, 10}));
  CHECK(away["makespan"] == plain["makespan"]);
  CHECK(away["busy"] == plain["busy"]);
  const json at_once = run_json(step + "--copy 1,8 --offload all,lag=0,prefetch=0");
  CHECK(at_once["peak"] == json({16, 14, 12, 10}));
  CHECK(at_once["makespan"] > plain["makespan"]);
  CHECK(run_json(step + "--copy 5,8 --offload all")["makespan"] > plain["makespan"]);
  const outcome list = run("schedule 1f1b --ranks 3 --microbatches 4 --offload all");
  for (const char* copy : {"0OFFLOAD1", "0RELOAD1"})
    CHECK(list.out.find(copy) != std::string::npos);
  const struct {
    const char* arguments;
    const char* says;
  } wrong[] = {{"simulate gpipe --offload some", "--offload some: is not none, all"},
               {"simulate gpipe --copy 1", "--copy 1: expected 2 integers, T,M"},
               {"simulate seq_1f1b --slices 2 --offload all", "a slice cannot be offloaded"},
               {"schedule gpipe --offload all --format csv", "0OFFLOAD0 of rank 0: this job has no"}};
  for (const auto& one : wrong) {
    const outcome ran = run(std::string(one.arguments) + " --ranks 2 --microbatches 4");
    INFO(ran.err);
    CHECK(ran.exit == 2);
    CHECK(ran.err.find(one.says) != std::string::npos);
  }
}

TEST_CASE("a step that takes no time has no bubble, of no time") {
  const std::string step = " 1f1b --ranks 2 --microbatches 2 --cost 0,0,0,0";
  CHECK(run("simulate" + step).out.find("\nmakespan 0\nbubble   0.0 % (0 of 0)\n") !=
        std::string::npos);
  CHECK(run("schedule" + step + " --emit header").out.find("makespan 0, bubble 0 of 0. ") !=
        std::string::npos);
}

TEST_CASE("forwards alone keep nothing unless told to, whichever command asks, and from a file too") {
  const std::string step = " inference --ranks 2 --microbatches 3";
  const json none = {0, 0};
  CHECK(run_json("simulate" + step + " --format json")["peak"] == none);
  CHECK(run_json("simulate" + step + " --memory 2,0,0 --format json")["peak"] == json({6, 6}));
  CHECK(run("schedule" + step + " --limit 0").exit == 0);
  const temporary file("forwards.csv");
  REQUIRE(run("schedule" + step + " --format csv -o " + file.path()).exit == 0);
  CHECK(run("check " + file.path() + " --limit 0").exit == 0);
  CHECK(run_json("simulate --csv " + file.path() + " --format json")["peak"] == none);
  // Nor is there what could be copied to the host.
  for (const char* command : {"simulate", "schedule", "plot", "trace", "memory"}) {
    const outcome ran = run(command + step + " --offload 1/2");
    CHECK(ran.exit == 2);
    CHECK(ran.err ==
          "stretto: --offload 1/2: inference has no backward, and so its forwards save nothing to "
          "copy\n");
  }
}

TEST_CASE("what a whole backward holds between its halves counts, with a file of costs and without") {
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
  for (const char* command : {"simulate gpipe", "compare"}) {
    const outcome ran = run(step(command, "1000000"));
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.starts_with(
        "stretto: --cost 10000000000,10000000000,10000000000,0: with so many jobs, times of 1/100 "));
  }
  CHECK(run_json(step("simulate gpipe", "10000") + " --format json")["makespan"] ==
        std::int64_t{1'200'000'000'000'000});
}

// From sail-sg's zero-bubble evaluator, which replays the same orders.
TEST_CASE("makespan, bubble and peaks are those of an independent evaluator") {
  const struct {
    const char* arguments;
    std::int64_t makespan;
    double bubble;
    std::vector<std::int64_t> peak;
  } cases[] = {{"1f1b --ranks 4 --microbatches 8", 33, 0.272727, {4, 3, 2, 1}},
               {"1f1b --ranks 4 --microbatches 8 --cost 10,12,8,1", 346, 0.306358, {4, 3, 2, 1}},
               {"1f1b --ranks 4 --microbatches 8 --cost 18522,18086,9337,601",
                515011,
                0.286307,
                {4, 3, 2, 1}},
               {"interleaved --ranks 4 --microbatches 8 --chunks 2", 57, 0.157895, {11, 9, 7, 5}},
               {"interleaved --ranks 4 --microbatches 8 --chunks 2 --cost 10,12,8,1",
                584,
                0.178082,
                {11, 9, 7, 5}},
               {"interleaved --ranks 4 --microbatches 8 --chunks 2 --cost 5,6,4,1",
                299,
                0.197324,
                {11, 9, 7, 5}},
               {"seq_1f1b --ranks 4 --microbatches 8 --slices 2 --cost 5,6,4,1",
                311,
                0.228296,
                {5, 4, 3, 2}}};
  for (const auto& one : cases) {
    INFO(one.arguments);
    const json text = run_json(std::string("simulate --format json ") + one.arguments);
    CHECK(text["makespan"] == one.makespan);
    CHECK(text["bubble"].get<double>() == doctest::Approx(one.bubble).epsilon(1e-5));
    CHECK(text["peak"] == json(one.peak));
    std::int64_t most_idle = 0;
    for (std::int64_t idle : text["idle"]) most_idle = std::max(most_idle, idle);
    CHECK(static_cast<double>(most_idle) / static_cast<double>(one.makespan) ==
          doctest::Approx(text["bubble"].get<double>()));
  }
}

TEST_CASE("every file of PyTorch's is accepted and simulated") {
  for (const auto& path : files("csv")) {
    INFO(path.filename().string());
    const outcome checked = run("check " + path.string());
    INFO(checked.err);
    CHECK(checked.exit == 0);
    const json text = run_json("simulate --format json --cost 2,3,1,1 --csv " + path.string());
    REQUIRE(text.contains("makespan"));
    for (std::size_t rank = 0; rank < text["idle"].size(); ++rank)
      CHECK(text["idle"][rank].get<std::int64_t>() + text["busy"][rank].get<std::int64_t>() ==
            text["makespan"]);
    CHECK(run("simulate --csv " + path.string()).exit == 0);
  }
  // ZB-V with unit costs idles p - 1 units; its memory is that of 1F1B.
  const json zbv = run_json("simulate --format json --csv " + tool_dir +
                            "csv/zbvzerobubble_p4_v2_m8_compute_only.csv");
  CHECK(zbv["makespan"] == 51);
  CHECK(zbv["idle"] == json({3, 3, 3, 3}));
  CHECK(zbv["peak"] == json({8, 8, 8, 8}));
}

TEST_CASE("every broken file is refused with row and rule, by each command that reads one") {
  for (const auto& path : files("csv_invalid"))
    for (const std::string command : {"check ", "simulate --csv ", "plot --csv ", "trace --csv "}) {
      INFO((command + path.filename().string()));
      const outcome ran = run(command + path.string());
      INFO(ran.err);
      CHECK(ran.exit == 1);
      CHECK(ran.out.empty());
      CHECK(ran.err.find(": row ") != std::string::npos);
      const bool rule = ran.err.find("rule ") != std::string::npos;
      const bool syntax = ran.err.find("syntax: ") != std::string::npos;
      CHECK((rule || syntax));
      CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    }
}

TEST_CASE("a file is read as spreadsheets write it, and from standard input") {
  const temporary file("piped.csv");
  const auto piped = [&](const std::string& text) {
    file.write(text);
    return test_support::run(
        "sh", "-c '\"" STRETTO_TOOL_PATH "\" check - <" + file.path() + "'");
  };
  for (const char* mark : {"", "\xef\xbb\xbf"}) {
    const outcome ran = piped(std::string(mark) + "0F0,0B0\r\n1F0,1B0\r\n");
    INFO(ran.err);
    CHECK(ran.out == "-: 2 ranks, 1 micro-batch, 2 stages, compute_only: ok\n");
  }
  CHECK(piped("0F0,0B0").out == "-: 1 rank, 1 micro-batch, 1 stage, compute_only: ok\n");
  const outcome none = piped("");
  CHECK(none.exit == 1);
  CHECK(none.err == "stretto: -: the file is empty\n");
}

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
  refused(R"({"jobs": [{"kind": "F"}, {"kind": "Q"}]})", "jobs[1] needs a kind");
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
  CHECK(length("1f1b" + one + " --whole-saves 3 --layers 3 --embedding 1,1,1") == 4 * (27 + 3 + 27));
  file.write(R"([{"layer": 2, "whole_saves": 5}])");
  CHECK(length("1f1b" + one + " --whole-saves 3 --layers 3 --layer-costs " + file.path()) ==
        4 * (27 + 27 + 25));
  file.write(R"([{"layer": 1, "whole_saves": 21}])");
  const auto refused =
      run("simulate 1f1b" + one + " --layers 3 --layer-costs " + file.path());
  CHECK(refused.exit == 2);
  CHECK(refused.err.find("layer 1 of --layers 3 saves 21 of a whole backward, whose halves take 20") !=
        std::string::npos);
  // Dealt by whole backwards; a file's entry says of one what it says and no more.
  const std::string dealt = " --ranks 2 --cost 10,12,8,0 --whole-saves 8 --head 30,30,30 --layers ";
  CHECK(length("1f1b --microbatches 16" + dealt + "balanced:5") ==
        length("1f1b --microbatches 16" + dealt + "4,1"));
  CHECK(run("assign" + dealt + "balanced:5").out.find("slowest rank 90; ") != std::string::npos);
  file.write(R"({"jobs": [{"kind": "B", "change": -1}, {"kind": "I", "cost": 5}]})");
  CHECK(length("1f1b" + one + " --whole-saves 3 --costs " + file.path()) == 4 * (10 + 5 + 8 - 3));
  CHECK(length("inference --ranks 2 --microbatches 3 --whole-saves 3") == 4);
  // Compared, and cut anew: jobs of half of it.
  for (const json& entry :
       run_json("compare --ranks 4 --microbatches 8 --cost 10,12,8,1 --whole-saves 3 --merge shortest "
                "--format json"))
    if (entry["schedule"] == "zb_h1" || entry["schedule"] == "zbv")
      CHECK(2 * entry["makespan"].get<double>() ==
            static_cast<double>(
                entry["schedule"] == "zbv"
                    ? length("zbv --ranks 4 --microbatches 8 --cost 10,12,8,2 --whole-saves 3 "
                             "--merge shortest")
                    : 2 * length("zb_h1 --ranks 4 --microbatches 8 --cost 10,12,8,1 --whole-saves 3 "
                                 "--merge shortest")));
}

TEST_CASE("compare runs every schedule on one model") {
  const json all = run_json("compare --ranks 4 --microbatches 8 --chunks 2 --format json");
  REQUIRE(all.is_array());
  const auto find = [&](const std::string& name) {
    for (const json& one : all)
      if (one["schedule"] == name) return one;
    return json{};
  };
  // 1F1B has one stage of two chunks per rank: twice its 33 units and its peaks.
  CHECK(find("1f1b")["makespan"] == 66);
  CHECK(find("1f1b")["chunks"] == 1);
  CHECK(find("1f1b")["peak"] == json({8, 6, 4, 2}));
  CHECK(find("interleaved")["makespan"] == 57);
  CHECK(find("interleaved")["peak"] == json({11, 9, 7, 5}));
  CHECK(find("gpipe")["peak"] == json({16, 16, 16, 16}));
  CHECK(find("inference")["peak"] == json({0, 0, 0, 0}));
  CHECK(find("inference").contains("bound") == false);
  // Every schedule is there, the shortest first, forwards alone last; none beats its bound.
  const std::string listed = run("list").out;
  CHECK(static_cast<std::ptrdiff_t>(all.size()) == std::count(listed.begin(), listed.end(), '\n'));
  CHECK(all.back()["schedule"] == "inference");
  double before = 0;
  for (const json& one : all) {
    INFO(one.dump());
    if (one.contains("refused") || one["schedule"] == "inference") continue;
    CHECK(one["makespan"].get<double>() >= before);
    before = one["makespan"];
    CHECK(one["makespan"].get<double>() >= one["bound"].get<double>());
    CHECK(one["span"].get<double>() >= one["span_bound"].get<double>());
  }
  // Two chunks of one slice make a job of seq_1f1b, of a whole micro-batch four parts one of 1F1B.
  const std::string sliced = "compare --ranks 4 --microbatches 8 --chunks 2 --slices 2";
  for (const json& one : run_json(sliced + " --format json")) {
    const bool slices = one["schedule"] == "seq_1f1b";
    CHECK(one["slices"] == (slices || one["schedule"] == "inference" ? 2 : 1));
    if (slices) {
      CHECK(one["makespan"] == 2 * (8 * 2 + 3) * 3);
      CHECK(one["peak"] == json({10, 8, 6, 4}));
    } else if (one["schedule"] == "1f1b") {
      CHECK(one["makespan"] == 132);
      CHECK(one["peak"] == json({16, 12, 8, 4}));
    }
  }
  CHECK(run(sliced).out.find("schedule        chunks  slices  job") == 0);
  // What does not fit says what it needs, a search what would be enough.
  const json tight = run_json("compare --ranks 4 --microbatches 8 --limit 3 --format json");
  for (const json& one : tight)
    if (one["schedule"] == "gpipe") CHECK(one["refused"] == "needs 8 on rank 0, whose limit is 3");
  const std::string none = run("compare --ranks 4 --microbatches 8 --limit 0").out;
  CHECK(none.find("\n1f1b: needs 4 on rank 0, whose limit is 0\n") != std::string::npos);
  CHECK(none.find("\nzb_auto: needs 1 on rank ") != std::string::npos);
  // When not even forwards alone fit, each says so, and so does the exit.
  for (const std::string format : {"table", "json"}) {
    const outcome left = run("compare --ranks 4 --microbatches 8 --limit 0 --format " + format);
    CHECK(left.exit == 0);
    CHECK(left.err.empty());
    const outcome bare =
        run("compare --ranks 4 --microbatches 8 --limit 0 --weights 1 --format " + format);
    CHECK(bare.exit == 2);
    CHECK(bare.err.starts_with("stretto: no schedule serves this"));
    CHECK(bare.out.find("needs 5 on rank 0, whose limit is 0") != std::string::npos);
  }
  // Room is for the micro-batches that there are, not for as many as so many ranks could keep.
  CHECK(run("simulate v_auto --variant 0 --ranks 60000 --microbatches 1").exit == 0);
}

TEST_CASE("compare cuts one model into the chunks that a schedule has") {
  const temporary file("costs.json");
  const auto find = [](const std::string& arguments, const std::string& name) {
    for (const json& one :
         run_json("compare --ranks 4 --microbatches 8 --format json " + arguments))
      if (one["schedule"] == name) return one;
    return json{};
  };
  // A stage of 3, 5, 7 in two halves; the hop is the same.
  const json halves = find("--cost 3,5,7,1", "zbv");
  const json doubled =
      run_json("simulate zbv --ranks 4 --microbatches 8 --chunks 2 --cost 3,5,7,2 --format json");
  CHECK(halves["chunks"] == 2);
  CHECK(2 * halves["makespan"].get<double>() == doubled["makespan"]);
  CHECK(halves["peak"] == json({4, 4, 4, 4}));
  // Within a limit of whole activations.
  CHECK(find("--cost 3,5,7,1 --limit 4", "zbv")["makespan"] == halves["makespan"]);
  CHECK(find("--cost 3,5,7,1 --limit 3", "zbv")["refused"] == "needs 4 on rank 0, whose limit is 3");
  CHECK(find("--limit 3", "dualpipe_v")["refused"] == "needs 4.50 on rank 0, whose limit is 3");
  // Three chunks in two: a half more each.
  const json thirds = find("--chunks 3 --cost 2,2,2,0", "zbv");
  CHECK(thirds["makespan"] == 153);
  CHECK(thirds["peak"] == json({12, 12, 12, 12}));
  // From a file: the loss stays on the last stage, which is rank 0's; the rest is cut.
  file.write(R"({"loss": 10, "jobs": [{"rank": 1, "kind": "F", "cost": 4}]})");
  const json given = find("--costs " + file.path(), "zbv");
  file.write(R"({"loss": 20, "jobs": [{"rank": 1, "kind": "F", "cost": 4}]})");
  const json same = run_json(
      "simulate zbv --ranks 4 --microbatches 8 --chunks 2 --format json --cost 1,1,1,0 --costs " +
      file.path());
  CHECK(2 * given["makespan"].get<double>() == same["makespan"]);
  // The same from a pipe, which can be read once, and twice asked.
  const std::string asked = "compare --ranks 4 --microbatches 8 --costs ";
  const auto piped = test_support::run(
      "sh", "-c 'cat " + file.path() + " | \"" STRETTO_TOOL_PATH "\" " + asked + "-'");
  CHECK(piped.err == "");
  CHECK(piped.out == run(asked + file.path()).out);

  // What a pair hides shortens the schedules that have any, and none other.
  const json alone = find("--cost 2,2,2,0", "dualpipe");
  const json hidden = find("--cost 2,2,2,0 --hides 100", "dualpipe");
  CHECK(alone["makespan"] == 52);
  CHECK(hidden["makespan"].get<double>() < 52);
  CHECK(find("--cost 2,2,2,0 --hides 100", "1f1b")["makespan"] == 66);
  // A part of a unit is not rounded away.
  const json tenths = run_json(
      "simulate dualpipe --ranks 4 --microbatches 8 --format json --cost 10,10,10,0 --hides 30");
  CHECK(10 * find("--cost 1,1,1,0 --hides 30", "dualpipe")["makespan"].get<double>() ==
        doctest::Approx(tenths["makespan"].get<double>()));
  CHECK(find("--layers 8 --cost 1,1,1,0 --hides 30", "1f1b")["makespan"] ==
        find("--layers 8 --cost 1,1,1,0", "1f1b")["makespan"]);
  CHECK(10 * find("--layers 8 --cost 1,1,1,0 --hides 30", "dualpipe")["makespan"].get<double>() ==
        doctest::Approx(
            find("--layers 8 --cost 10,10,10,0 --hides 30", "dualpipe")["makespan"].get<double>()));
  CHECK(run("compare --ranks 4 --microbatches 8 --hides 101").exit == 2);

  const auto first = [](const std::string& arguments) {
    const std::string out = run("compare --ranks 4 --microbatches 8 " + arguments).out;
    const auto line = out.find('\n') + 1;
    return out.substr(line, out.find(' ', line) - line);
  };
  CHECK(first("--sort name") == "1f1b");
  CHECK(first("--sort bubble") == "zbv");
  CHECK(run("compare --ranks 4 --microbatches 8 --sort peek").exit == 2);
  // A search is asked for what is compared.
  const std::string tight = "--cost 10,12,8,1 --limit 3 --objective ";
  CHECK(find(tight + "span", "zb_auto")["span"].get<std::int64_t>() <=
        find(tight + "flush", "zb_auto")["span"].get<std::int64_t>());
  CHECK(run("compare --ranks 4 --microbatches 8 --objective span").out.find("span") !=
        std::string::npos);
}

TEST_CASE("one variant of a search is no shorter than the best") {
  const std::string shape = " --ranks 4 --microbatches 9 --chunks ";
  const auto makespan = [](const std::string& arguments) {
    return run_json("simulate --format json --cost 10,12,8,1 " + arguments)["makespan"]
        .get<std::int64_t>();
  };
  for (const std::string& search : {"zb_auto" + shape + "1", "zbv_greedy" + shape + "2"}) {
    std::int64_t least = makespan(search + " --variant 0");
    for (const char* other : {" --variant 1", " --variant 2", " --variant 3"})
      least = std::min(least, makespan(search + other));
    CHECK(makespan(search) <= least);
  }
  const auto refused = run("simulate zbv_greedy" + shape + "2 --variant 99");
  CHECK(refused.exit == 2);
  CHECK(refused.err.find("--variant 99") != std::string::npos);
  CHECK(run("simulate zbv" + shape + "2 --variant 0").exit == 2);
}

TEST_CASE("assign deals layers in pipeline order") {
  CHECK(run_json("assign --layers 5,3 --chunks 2 --format json") ==
        json::parse(R"([{"rank":0,"chunk":0,"layers":[0,1,2],"time":9},
                        {"rank":1,"chunk":0,"layers":[3,4],"time":6},
                        {"rank":0,"chunk":1,"layers":[5,6],"time":6},
                        {"rank":1,"chunk":1,"layers":[7],"time":3}])"));
  CHECK(run_json("assign --layers 3,2 --chunks 2 --placement wave --format json") ==
        json::parse(R"([{"rank":0,"chunk":0,"layers":[0,1],"time":6},
                        {"rank":1,"chunk":0,"layers":[2],"time":3},
                        {"rank":1,"chunk":1,"layers":[3],"time":3},
                        {"rank":0,"chunk":1,"layers":[4],"time":3}])"));
  CHECK(run("assign --layers 2,1 --format table").out ==
        "stage  rank  chunk  layers  time\n"
        "0         0      0     0-1     6\n"
        "1         1      0       2     3\n\n"
        "rank  layers  time  of the slowest\n"
        "0          2     6         100.0 %\n"
        "1          1     3          50.0 %\n\n"
        "slowest rank 6; dealt evenly 6\n");
  const json layout = run_json("assign --layers \"Ett||(t|)*2L\" --chunks 1 --format json");
  REQUIRE(layout.size() == 5);
  CHECK(layout[0]["letters"] == "Ett");
  CHECK(layout[1]["layers"].empty());
  CHECK(layout[4]["letters"] == "L");
  const auto svg = run("assign --layers balanced:18 --ranks 4 --chunks 2 --head 2,2,2 --format svg");
  CHECK(svg.exit == 0);
  CHECK(svg.out.starts_with("<svg"));
  CHECK(svg.out.find("<title>layer 17, 6</title>") != std::string::npos);
}

TEST_CASE("what layers cost reaches every schedule") {
  const std::string shape = " --ranks 4 --microbatches 16 --cost 10,10,10,0 --head 30,30,30";
  const auto makespan = [&](const std::string& rest) {
    return run_json("simulate --format json" + shape + rest)["makespan"].get<std::int64_t>();
  };
  for (const char* one : {" 1f1b", " interleaved --chunks 2", " zbv --chunks 2", " dualpipe"}) {
    INFO(one);
    CHECK(makespan(std::string(one) + " --layers balanced:26") <
          makespan(std::string(one) + " --layers even:26"));
  }
  // One stage holds as much as eight layers of three, and four ranks are as slow as it.
  CHECK(makespan(" 1f1b --layers 2,2,2,2") == 15 * 120 + 60 + 60 + 60 + 120);
  // Memory of a rank's layers, those of all its chunks.
  CHECK(run_json("simulate interleaved --chunks 2 --format json --ranks 2 --microbatches 2 "
                 "--layers 5,3 --memory 0,0,0 --weights 7")["peak"] == json({35, 21}));
  const auto all = run_json("compare --format json --chunks 2" + shape + " --layers table:4,4,4,2");
  int refused = 0;
  for (const json& one : all)
    if (one.contains("refused")) {
      ++refused;
      CHECK(one["chunks"] == 2);
      CHECK(one["refused"].get<std::string>().find("counts: 4, must be 8") != std::string::npos);
    }
  CHECK(refused > 3);
  const temporary profile("profile.json");
  profile.write(R"([{"forward": 2}, {"layer": [0, 3], "backward_input": 9},
                    {"layer": 3, "backward_weight": 40}])");
  const auto dealt = run_json("assign --layers even:4 --ranks 4 --format json --layer-costs " +
                              profile.path());
  for (const auto& [stage, time] : {std::pair{0, 12}, {1, 4}, {2, 4}, {3, 51}})
    CHECK(dealt[static_cast<std::size_t>(stage)]["time"] == time);
}

}  // namespace

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
