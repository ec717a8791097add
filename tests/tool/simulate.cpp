#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "run_tool.hpp"
#include "support/sanitized.hpp"

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

}  // namespace

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
  // Unless told, a copy moves all that its forward keeps, whoever says what that is.
  const json all = run_json(step + "--copy 1,10 --offload all");
  CHECK(run_json(step + "--offload all") == all);
  CHECK(run_json(step + "--copy 1 --offload all") == all);
  const temporary file("costs.json");
  const std::string two =
      "simulate 1f1b --ranks 2 --microbatches 4 --offload all,lag=0,prefetch=0 ";
  file.write(R"({"jobs": [{"kind": "F", "rank": 0, "change": 6}, {"kind": "B", "rank": 0,
                           "change": -6}]})");
  CHECK(run_json(two + "--format json --costs " + file.path())["peak"] == json({6, 1}));
  file.write(R"([{"memory_forward": 3, "memory_backward_weight": -3}])");
  const std::string by_layers = two + "--layers 2,2 --layer-costs " + file.path();
  CHECK(run_json(by_layers + " --format json --copy 1")["peak"] == json({6, 6}));
  const std::string untold =
      "does not tell what a copy of layer 0 to the host takes (\"offload\"); "
      "nor does --copy";
  CHECK(run(by_layers).err.find("--layer-costs " + file.path() + ": " + untold) !=
        std::string::npos);
  CHECK(run("compare --ranks 2 --microbatches 4 --offload all --layers 2,2 --layer-costs " +
            file.path())
            .err.find(untold) != std::string::npos);
  // A rank copies its layers one after another; what the file says comes before --copy.
  const auto takes = [&](const std::string& more) {
    return run_json(two + "--layers 2,2 --format json --layer-costs " + file.path() + more);
  };
  file.write(R"([{"layer": [0, 1], "offload": 3}, {"layer": 2, "offload": 4}])");
  CHECK(run(by_layers).err.find("copy of layer 3 to the host") != std::string::npos);
  const json by_both = takes(" --copy 7");
  file.write(R"([{"layer": [0, 1], "offload": 3}, {"layer": 2, "offload": 4},
                 {"layer": 3, "offload": 7}])");
  CHECK(takes("") == by_both);
  CHECK(takes(" --copy 1") == by_both);
  const outcome list = run("schedule 1f1b --ranks 3 --microbatches 4 --offload all");
  for (const char* copy : {"0OFFLOAD1", "0RELOAD1"})
    CHECK(list.out.find(copy) != std::string::npos);
  // No backward of so short a step is far enough behind its forward.
  CHECK(run("simulate 1f1b --ranks 2 --microbatches 2 --cost 2,3,4,1 --offload all --copy 2").out ==
        run("simulate 1f1b --ranks 2 --microbatches 2 --cost 2,3,4,1 --offload all").out);
  const struct {
    const char* arguments;
    const char* says;
  } wrong[] = {
      {"simulate gpipe --offload some", "--offload some: is not none, all"},
      {"simulate gpipe --copy 1", "--copy 1: has a meaning only with --offload"},
      {"simulate gpipe --offload all --copy 1,2,3", "--copy 1,2,3: expected 2 integers"},
      {"simulate gpipe --offload all --copy x", "--copy x: expected 1 integers, T or T,M"},
      {"simulate gpipe --offload all --copy 1,2",
       "--copy 1,2: a copy of rank 0, chunk 0 moves 2, and its forward keeps 1"},
      {"simulate seq_1f1b --slices 2 --offload all", "a slice cannot be offloaded"},
      {"simulate 1f1b --memory 1,0,-10",
       "on rank 0: the rank's jobs give back more memory than they"},
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

TEST_CASE(
    "forwards alone keep nothing unless told to, whichever command asks, and from a file too") {
  const std::string step = " inference --ranks 2 --microbatches 3";
  const json none = {0, 0};
  CHECK(run_json("simulate" + step + " --format json")["peak"] == none);
  CHECK(run_json("simulate" + step + " --memory 2,0,0 --format json")["peak"] == json({6, 6}));
  // Nor what their backwards would give back, if there were any.
  CHECK(run_json("simulate" + step + " --memory 1,0,-1 --format json")["peak"] == none);
  CHECK(run_json("simulate" + step + " --memory 5,-2,-1 --format json")["peak"] == json({6, 6}));
  const temporary costs("costs.json");
  costs.write(R"({"jobs": [{"kind": "F", "rank": 1, "change": 8}, {"kind": "I", "change": -2},
                           {"kind": "W", "change": -6}]})");
  const std::string by = " --format json --costs " + costs.path();
  CHECK(run_json("simulate" + step + by)["peak"] == none);
  for (const json& one : run_json("compare inference 1f1b --ranks 2 --microbatches 3" + by +
                                  " --memory 8,-2,-6"))
    CHECK((one["peak"] == none) == (one["schedule"] == "inference"));
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

TEST_CASE("what is said of backwards is refused of forwards alone, wherever it can be said") {
  const temporary file("forwards.csv");
  file.write("0F0,0F1\n1F0,1F1\n");
  const std::string step = " inference --ranks 2 --microbatches 2";
  const auto refused = [](const std::string& arguments, const std::string& words) {
    INFO(arguments);
    const outcome ran = run(arguments);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err == "stretto: " + words + "\n");
  };
  const std::string saves = " has no backward that could take less";
  for (const char* command : {"simulate", "plot", "trace", "schedule", "plan"}) {
    refused(command + step + " --whole-saves 3", "--whole-saves 3: inference" + saves);
    refused(command + step + " --merge shortest",
            "--merge shortest: inference has no backward whose halves could be one");
    refused(std::string(command) + " --whole-saves 3 --csv " + file.path(),
            "--whole-saves 3: " + file.path() + saves);
    CHECK(run(command + step + " --merge none --whole-saves 0").exit == 0);
  }
  refused("check --whole-saves 3 " + file.path(), "--whole-saves 3: " + file.path() + saves);
  for (const char* command : {"simulate", "plot", "trace"}) {
    refused(command + step + " --reduce-grad 3",
            "--reduce-grad 3: inference has no gradients to sum");
    refused(std::string(command) + " --reduce-grad 3 --csv " + file.path(),
            "--reduce-grad 3: " + file.path() + " has no gradients to sum");
  }
  // Of all schedules, it is said of the others.
  for (const char* command : {"compare", "sweep", "compare inference"})
    CHECK(run(std::string(command) +
              " --ranks 2 --microbatches 2 --whole-saves 1 --merge shortest --reduce-grad 3")
              .exit == 0);
}

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

TEST_CASE("what of a span is idle: of equal work what the zero-bubble papers call the bubble") {
  const std::string shape = " --ranks 4 --microbatches 8 --cost 10,12,8,1";
  for (const std::string name : {"1f1b", "zb_h1", "zb_h2", "zb_auto --objective span", "zbv"}) {
    INFO(name);
    const json found = run_json("simulate " + name + shape + " --format json");
    const double span = found["span"], work = (name == "zbv" ? 2 : 1) * 8 * 30;
    CHECK(found["span_bubble"].get<double>() == doctest::Approx((span - work) / span));
  }
  // Of unequal work the rank's with the least.
  const json uneven = run_json(
      "simulate 1f1b --ranks 3 --microbatches 4 --format json "
      "--layers sparse_table:2,1,2");
  CHECK(uneven["span_bubble"].get<double>() ==
        doctest::Approx(1 - uneven["busy"][1].get<double>() / uneven["span"].get<double>()));
  CHECK(run("simulate zb_auto --ranks 4 --microbatches 8 --objective span")
            .out.find("bubble   11.1 % (3 of 27)\nspan     24, of which 0.0 % idle (0)\n\n") !=
        std::string::npos);
  CHECK(run("simulate zb_auto --ranks 4 --microbatches 8").out.find("\nspan") == std::string::npos);
  // compare tells what is to be short.
  const std::string by_span = run("compare --ranks 4 --microbatches 8 --objective span").out;
  CHECK_MESSAGE(
      by_span.find("\nzb_h2                1    x 1        27     24   0.0 %") != std::string::npos,
      by_span);
}

TEST_CASE("messages that a link could not carry one after the other within the step are told") {
  const auto busiest = [](const std::string& options) {
    return run_json("simulate " + options + " --format json")["busiest_link"].get<std::int64_t>();
  };
  CHECK(busiest("1f1b --ranks 4 --microbatches 8 --cost 1,1,1,5") == 8 * 5);
  // Of two chunks a link has twice as many, on a V forwards of one and backwards of the other.
  for (const std::string name : {"interleaved", "zbv", "looped_bfs"})
    CHECK(busiest(name + " --ranks 4 --microbatches 8 --chunks 2 --cost 1,1,1,5") == 2 * 8 * 5);
  CHECK(busiest("dualpipe --ranks 4 --microbatches 8 --cost 1,1,1,5") == 8 * 5);
  CHECK(busiest("seq_1f1b --ranks 4 --microbatches 8 --slices 3 --cost 1,1,1,5") == 3 * 8 * 5);
  CHECK(busiest("1f1b --ranks 1 --microbatches 8 --cost 1,1,1,5") == 0);
  const std::string forwards = "inference --ranks 2 --microbatches 8 --cost 1,0,0,10";
  CHECK(busiest(forwards) == 80);
  CHECK(
      run("simulate " + forwards)
          .out.find("\nmessages 8 from rank 0 to 1, one after the other 80: longer than the step, "
                    "which lets a link carry any number at once (see --serial-links)\n") !=
      std::string::npos);
  CHECK(
      run("simulate inference --ranks 2 --microbatches 8 --cost 3,0,0,1").out.find("messages 8") ==
      std::string::npos);
  const std::string both = run("compare --ranks 4 --microbatches 32 --chunks 2 --cost 1,1,1,4").out;
  const std::size_t at =
      both.find("\nlonger than the step, one after the other, are the messages of one link: ") + 1;
  REQUIRE_MESSAGE(at != 0, both);
  const std::string names = both.substr(at, both.find('\n', at) - at);
  CHECK_MESSAGE(names.find(" looped_bfs") != std::string::npos, names);
  CHECK_MESSAGE(names.find("v_min") == std::string::npos, names);
  CHECK(run("compare inference --ranks 2 --microbatches 80 --cost 1,1,1,50 --limit 2,3")
            .out.find("longer than the step, one after the other") != std::string::npos);
  CHECK(run("compare --ranks 4 --microbatches 32 --chunks 2 --cost 4,4,4,1")
            .out.find("longer than the step") == std::string::npos);
}

TEST_CASE("shapes as large as the library's are simulated, seldom as they are" *
          doctest::skip(test_support::sanitized)) {
  const json large = run_json("simulate 1f1b --ranks 1024 --microbatches 4100 --format json");
  CHECK(large["makespan"] == 3 * (4100 + 1023));
  CHECK(large["peak"][0] == 1024);
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

TEST_CASE("balanced layers under a limit are dealt as suits the schedule") {
  const temporary file("order.csv");
  for (const std::string schedule : {"v_auto", "zb_auto", "zbv_greedy", "zbv", "dualpipe", "1f1b"})
    for (const int limit : {12, 13, 14, 15, 16, 18, 22, 30}) {
      if (test_support::sanitized && limit != 14 && limit != 18) continue;
      const bool two = schedule == "v_auto" || schedule == "zbv" || schedule == "zbv_greedy";
      const std::string step = "simulate " + schedule + " --ranks 4 --microbatches 16 --chunks " +
                               (two ? "2" : "1") + " --limit " + std::to_string(limit) +
                               " --format json --layers ";
      CAPTURE(step);
      const auto balanced = run(step + "balanced:16");
      const auto even = run(step + "even:16");
      // Layers that take the same are dealt evenly, unless another way keeps to the limit or is
      // faster within it.
      if (even.exit != 0) continue;
      REQUIRE_MESSAGE(balanced.exit == 0, balanced.err);
      const json mine = json::parse(balanced.out), other = json::parse(even.out);
      CHECK(mine["makespan"] <= other["makespan"]);
      std::string table;
      int layers = 0;
      for (const json& count : mine["layers"]) {
        table += (table.empty() ? "table:" : ",") + count.dump();
        layers += count.get<int>();
      }
      CHECK(layers == 16);
      // What is told can be asked for.
      CHECK(run_json(step + table)["makespan"] == mine["makespan"]);
      // The same order from a file, and beside the others.
      if (schedule == "dualpipe") continue;
      REQUIRE(run("schedule" + step.substr(8, step.find(" --format") - 8) +
                  " --layers balanced:16 --format csv -o " + file.path())
                  .exit == 0);
      CHECK(run_json("simulate --csv " + file.path() + " --limit " + std::to_string(limit) +
                     " --layers balanced:16 --format json")["makespan"] <= mine["makespan"]);
      for (const json& one : run_json(
               "compare --ranks 4 --microbatches 16 --format json --layers balanced:16 --chunks " +
               std::string(two ? "2" : "1") + " --limit " + std::to_string(limit)))
        if (one["schedule"] == schedule) CHECK(one["makespan"] == mine["makespan"]);
      if (limit > 14 && schedule != "zb_auto") break;  // compare takes a while
    }
  // Only a way that fills early ranks keeps to it.
  const json tight = run_json(
      "simulate 1f1b --ranks 4 --microbatches 16 --limit 13 --layers "
      "balanced:16 --format json");
  REQUIRE(tight.contains("makespan"));
  CHECK(tight["layers"] != json({4, 4, 4, 4}));
  CHECK(run("simulate 1f1b --ranks 4 --microbatches 16 --limit 13 --layers even:16").exit == 1);
}

TEST_CASE("of the ways to deal balanced layers the one that is better by the objective is kept") {
  const auto table_of = [](const json& made) {
    std::string text;
    for (const json& count : made["layers"]) text += (text.empty() ? "table:" : ",") + count.dump();
    return text;
  };
  const auto simulated = [](const std::string& step, const std::string& layers) {
    return run_json("simulate --format json " + step + " --layers " + layers);
  };
  // By makespan the way that keeps to the limit is, by span the one that knows none.
  const std::string head = " --embedding 5,0,5";
  const std::string search = "zbv_greedy --ranks 4 --microbatches 7 --chunks 2 --weights 1";
  const std::string limit = search + " --limit 18";
  const std::string free = table_of(simulated(search, "balanced:12" + head));
  const json by_makespan = simulated(limit, "balanced:12" + head);
  CHECK(table_of(by_makespan) != free);
  CHECK(by_makespan["makespan"] < simulated(limit, free + head)["makespan"]);
  const json by_span = simulated(limit + " --objective span", "balanced:12" + head);
  CHECK(table_of(by_span) == free);
  CHECK(by_span["span"] <
        simulated(limit + " --objective span", table_of(by_makespan) + head)["span"]);
  // An order from a file, which both keep: the shorter.
  const temporary file("order.csv");
  REQUIRE(run("schedule zbv --ranks 3 --microbatches 4 --chunks 2 --format csv -o " + file.path())
              .exit == 0);
  const std::string order =
      "--csv " + file.path() + " --weights 3 --cost 10,12,8,1 --head 9,9,9";
  const json kept = simulated(order + " --limit 24", "balanced:11");
  CHECK(kept["makespan"] < simulated(order + " --limit 24",
                                     table_of(simulated(order, "balanced:11")))["makespan"]);
  // Beside schedules, by what is compared.
  REQUIRE(run("schedule zbv --ranks 3 --microbatches 5 --chunks 2 --format csv -o " + file.path())
              .exit == 0);
  const auto beside = [&](const std::string& objective) {
    for (const json& one :
         run_json("compare --ranks 3 --microbatches 5 --chunks 2 --limit 24 --weights 1 "
                  "--cost 3,2,2,0 --head 7,1,9 --layers balanced:16 --format json --objective " +
                  objective + " --csv " + file.path()))
      if (one.contains("file")) return one;
    return json{};
  };
  CHECK(beside("flush")["makespan"] < beside("span")["makespan"]);
  CHECK(beside("span")["span"] < beside("flush")["span"]);
}

TEST_CASE("numbers are decimal, with zeros before them or without") {
  CHECK(run("simulate 1f1b --ranks 010 --microbatches 0016")
            .out.starts_with("1f1b: 10 ranks, 16 micro-batches\n"));
  CHECK(run("simulate 1f1b --ranks 08 --microbatches 9").out.starts_with("1f1b: 8 ranks"));
  const outcome other = run("simulate 1f1b --ranks 0x4 --microbatches 8");
  CHECK(other.exit == 2);
  CHECK(other.err == "stretto: --ranks: Value 0x4 is no decimal number\n");
  CHECK(run("simulate 1f1b --ranks 0 --microbatches 8").exit == 2);
}

TEST_CASE("a critical path is what a step is as long as: jobs and messages without a gap") {
  const std::string step = "simulate 1f1b --ranks 4 --microbatches 8 --cost 10,10,10,1 ";
  const json made = run_json(step + "--critical-path --format json");
  const json& path = made["critical_path"];
  std::int64_t now = 0;
  std::int64_t messages = 0;
  std::vector<std::int64_t> ranks(4);
  for (const json& one : path["jobs"]) {
    CHECK(one["start"].get<std::int64_t>() == now + one["waited"].get<std::int64_t>());
    now = one["end"].get<std::int64_t>();
    messages += one["messages"].get<std::int64_t>();
    ranks[one["rank"].get<std::size_t>()] += now - one["start"].get<std::int64_t>();
  }
  CHECK(now == made["makespan"]);
  CHECK(made["critical"] == ranks);
  CHECK(path["count"] == json({{"F", 11}, {"B", 11}, {"messages", messages}}));
  CHECK(path["time"] == json({{"F", 110}, {"B", 220}, {"messages", 16}}));
  CHECK_FALSE(run_json(step + "--format json").contains("critical_path"));

  const std::string text = run(step + "--critical-path").out;
  CHECK(text.find("critical path: forward 110 (11), backward 220 (11), messages 16 (16)\n") !=
        std::string::npos);
  // A line is one rank's, or one micro-batch's way through several.
  CHECK(text.find("\n0 to 2     0   32     3    0F0   2F0         2\n"
                  "3         33   63     2    3F0   3B0         1\n"
                  "2 to 1    64  105     2    2B0   1B0         2\n") != std::string::npos);
  CHECK(run(step).out.find("critical") == std::string::npos);
  // Such a way ends where it begins anew on the first rank.
  CHECK(run("simulate interleaved --ranks 2 --microbatches 2 --chunks 3 --cost 10,10,10,3 "
            "--critical-path")
            .out.find("\n0 to 1     0   23     2    0F0   1F0         3\n"
                      "0 to 1    26   49     2    2F0   3F0         6\n") != std::string::npos);
}

TEST_CASE("pairs, sums and gathers are on it, in parts of a unit, too") {
  const std::string step =
      "simulate dualpipe_v --ranks 2 --microbatches 6 --chunks 2 --cost 1,1,1,1 --hides 75 "
      "--reduce-grad 4 --unshard 3,1 --critical-path --format json";
  const json made = run_json(step);
  const json& path = made["critical_path"];
  double sum = 0;
  for (const auto& [kind, time] : path["time"].items()) sum += time.get<double>();
  CHECK(sum == doctest::Approx(made["makespan"].get<double>()));
  for (const char* kind : {"pairs", "REDUCE_GRAD", "UNSHARD", "messages"})
    CHECK(path["count"].contains(kind));
  CHECK(path["jobs"].front()["job"].get<std::string>().find("UNSHARD") != std::string::npos);
  bool paired = false;
  for (const json& one : path["jobs"])
    paired = paired || one["job"].get<std::string>().find(';') != std::string::npos;
  CHECK(paired);
}
