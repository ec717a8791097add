// --recompute of the commands that make a step: forwards that run again, and what they take.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "run_tool.hpp"
#include "support/sanitized.hpp"

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

// All parts of eight micro-batches or fewer, the least first.
std::vector<std::string> parts_of(int microbatches) {
  std::vector<std::pair<double, std::string>> made;
  for (int period = 2; period <= std::min(8, microbatches); ++period)
    for (int count = 1; count < period; ++count)
      if (std::gcd(count, period) == 1)
        made.push_back({static_cast<double>(count) / period,
                        std::to_string(count) + "/" + std::to_string(period)});
  std::sort(made.begin(), made.end());
  std::vector<std::string> names{"none"};
  for (const auto& [part, name] : made) names.push_back(name);
  names.push_back("all");
  return names;
}

TEST_CASE("auto is the part that makes the step shortest within the limit") {
  const std::string searches =
      " --ranks 4 --chunks 2 --microbatches 6 --cost 10,12,8,1 --memory 34,0,-34 ";
  const std::string orders = " --ranks 4 --microbatches 8 --cost 3,3,3,1 --memory 10,0,-10 ";
  const struct {
    std::string step, option;
  } steps[] = {
      {"zbv_greedy" + searches + "--limit 136 ", "--recompute"},
      {"zbv_greedy" + searches + "--limit 170 ", "--offload"},
      {"1f1b" + orders + "--limit 40 ", "--recompute"},  // which needs none
      {"1f1b" + orders + "--limit 30 ", "--recompute"},
      {"1f1b" + orders + "--limit 30 ", "--offload"},
      {"gpipe" + orders + "--limit 25 ", "--recompute"},
  };
  for (const auto& [step, option] : steps) {
    if (test_support::sanitized && &step != &steps[0].step && &step != &steps[4].step) continue;
    CAPTURE(step);
    CAPTURE(option);
    const bool copies = option == "--offload";
    std::string best, which;
    for (const std::string& part : parts_of(step.find("batches 6") != std::string::npos ? 6 : 8))
      for (const int jobs : {0, 1, 2, 4, 8}) {
        if (jobs > 0 && (!copies || part == "none")) break;
        const std::string with = copies && part != "none" ? part + ",lag=" + std::to_string(jobs) +
                                                                ",prefetch=" + std::to_string(jobs)
                                                          : part;
        const outcome one = run("simulate " + step + option + " " + with);
        if (one.exit != 0) continue;
        const auto length = [](const std::string& text) {
          return std::stol(text.substr(text.find("makespan ") + 9));
        };
        if (!best.empty() && length(one.out) >= length(best)) continue;
        best = one.out;
        which = with;
      }
    REQUIRE_FALSE(best.empty());
    CHECK_MESSAGE(run("simulate " + step + option + " auto").out == best, which);
  }
}

TEST_CASE("micro-batches are arranged with the part that was found") {
  const temporary file("costs.json");
  file.write(R"({"jobs": [{"kind": "F", "microbatch": 1, "cost": 4},
                          {"kind": "B", "microbatch": 1, "cost": 9}]})");
  const std::string step =
      "simulate 1f1b --ranks 4 --microbatches 8 --memory 10,0,-10 --limit 30 "
      "--arrange --costs " +
      file.path() + " --recompute ";
  const outcome found = run(step + "auto");
  REQUIRE_MESSAGE(found.exit == 0, found.err);
  const std::size_t at = found.out.find("recompute ") + 10;
  const std::string part = found.out.substr(at, found.out.find('\n') - at);
  CHECK(part.find('/') != std::string::npos);
  CHECK(run(step + part).out == found.out);
}

TEST_CASE("auto is refused where there is no choice, and tells what it needs least") {
  const struct {
    const char* arguments;
    int exit;
    const char* says;
  } wrong[] = {
      {"simulate 1f1b --ranks 2 --microbatches 4 --recompute auto", 2,
       "--recompute auto: without --limit none is the best"},
      {"compare --ranks 2 --microbatches 4 --offload auto", 2,
       "--offload auto: without --limit none is the best"},
      {"simulate 1f1b --ranks 2 --microbatches 4 --limit 4 --recompute auto --offload auto", 2,
       "--offload auto: one of --recompute and --offload can be found, not both"},
      {"simulate inference --ranks 2 --microbatches 4 --limit 4 --recompute auto", 2,
       "inference has no backward before which a forward could run again"},
      {"simulate seq_1f1b --ranks 2 --microbatches 4 --slices 2 --limit 9 --recompute auto", 2,
       "a slice cannot be recomputed"},
      {"simulate 1f1b --ranks 4 --microbatches 8 --memory 10,0,-10 --again 1,9 --limit 12 "
       "--recompute auto",
       1,
       "the order needs 13 on rank 0, whose limit is 12; nothing needs less than --recompute all "
       "--offload none"},
      {"simulate 1f1b --ranks 2 --microbatches 4 --memory 1,0,-2 --limit 4 --recompute auto", 2,
       "give back more memory than they take"},
  };
  for (const auto& [arguments, exit, says] : wrong) {
    CAPTURE(arguments);
    const outcome ran = run(arguments);
    CHECK(ran.exit == exit);
    CHECK_MESSAGE(ran.err.find(says) != std::string::npos, ran.err);
    // More memory would not help all of them.
    const bool more = std::string(says).find("needs") != std::string::npos;
    CHECK((ran.err.find("nothing needs less") != std::string::npos) == more);
  }
}

TEST_CASE("auto tells no least part where how much is enough is not known") {
  const temporary file("costs.json");
  file.write(R"({"jobs": [{"kind": "F", "microbatch": 1, "change": 4},
                          {"kind": "W", "microbatch": 1, "change": -4}]})");
  const outcome ran =
      run("simulate zb_auto --ranks 2 --microbatches 4 --limit 0 --recompute auto "
          "--costs " +
          file.path());
  CHECK(ran.exit == 1);
  CHECK(ran.err.find("how much is enough is not known") != std::string::npos);
  CHECK(ran.err.find("nothing needs less") == std::string::npos);
}

TEST_CASE("compare finds for each schedule what it needs within the limit") {
  const std::string costs =
      " --ranks 4 --microbatches 8 --chunks 2 --cost 10,12,8,1 --memory 34,0,-34 --format json ";
  const json all = run_json("compare" + costs + "--recompute auto --limit 102");
  int made = 0, chosen = 0;
  for (const json& one : all) {
    if (one.contains("refused")) continue;
    if (one["schedule"] == "inference") {
      CHECK_FALSE(one.contains("recompute"));
      continue;
    }
    const std::string name = one["schedule"], part = one["recompute"];
    CAPTURE(name);
    ++made;
    chosen += part != "none" && part != "all";
    for (const json& peak : one["peak"]) CHECK(peak <= 102);
    const json with = run_json("compare " + name + costs + "--limit 102 --recompute " + part);
    for (const char* what : {"makespan", "peak", "bound"}) CHECK(one[what] == with[0][what]);
  }
  CHECK(made >= 12);
  CHECK(chosen >= 3);
  const outcome table =
      run("compare 1f1b inference --ranks 4 --microbatches 8 --offload auto "
          "--limit 3 --weights 0");
  CHECK(table.out.find("  offload  ") != std::string::npos);
  CHECK(table.out.find("  -  ") != std::string::npos);
  // Within each of several limits; the picture says so.
  const std::string limits =
      "compare 1f1b gpipe --ranks 4 --microbatches 8 --recompute auto --limit 2,4 ";
  const json runs = run_json(limits + "--format json");
  CHECK(runs[0]["schedules"][0]["recompute"] != "none");
  CHECK(runs[1]["schedules"][0]["recompute"] == "none");
  CHECK(run(limits + "--format svg").out.find("recompute auto") != std::string::npos);
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

TEST_CASE("files of layers say what each takes when it runs again, and brings back") {
  const temporary file("layers.json");
  const std::string shape =
      "--ranks 2 --microbatches 4 --layers 3,3 --cost 10,12,8,0 --memory 9,0,-9 --recompute all "
      "--format json ";
  const auto with = [&](const std::string& schedule, const std::string& text) {
    file.write(text);
    return run_json("simulate " + schedule + " " + shape + "--layer-costs " + file.path());
  };
  for (const std::string schedule : {"1f1b", "gpipe", "zbv", "zb_h1", "interleaved --chunks 3"}) {
    CAPTURE(schedule);
    // As --again says it of each layer.
    CHECK(with(schedule, R"([{"recompute_saves": 7, "memory_recompute": 5}])") ==
          run_json("simulate " + schedule + " " + shape + "--again 3,5"));
    CHECK(with(schedule, R"([{"recompute_saves": 7}])") ==
          run_json("simulate " + schedule + " " + shape + "--again 3"));
    CHECK(with(schedule, R"([{"layer": 2, "forward": 10}])") ==
          run_json("simulate " + schedule + " " + shape));
    // What --again says is said of all of them.
    CHECK(run_json("simulate " + schedule + " " + shape + "--again 3,5 --layer-costs " +
                   file.path()) == run_json("simulate " + schedule + " " + shape + "--again 3,5"));
  }
  // Of one layer, on the first rank, whose forwards all run again, three of them while it is
  // fullest.
  const json all = run_json("simulate gpipe " + shape);
  const json less =
      with("gpipe", R"([{"layer": 1, "recompute_saves": 10, "memory_recompute": 0}])");
  CHECK(all["busy"][0].get<int>() - less["busy"][0].get<int>() == 4 * 10);
  CHECK(all["busy"][1] == less["busy"][1]);
  CHECK(less["peak"][0].get<int>() - all["peak"][0].get<int>() == 3 * 9);

  const auto refused = [&](const std::string& text) {
    file.write(text);
    const outcome ran = run("simulate gpipe " + shape + "--layer-costs " + file.path());
    CHECK(ran.exit == 2);
    return ran.err.substr(ran.err.find(".json") + 5);
  };
  CHECK(refused(R"([{"layer": 4, "recompute_saves": 11}])") ==
        ": a forward of layer 4 saves 11 when it runs again, and takes 10\n");
  CHECK(refused(R"([{"layer": 4, "memory_recompute": 10}])") ==
        ": a forward of rank 1, chunk 0 brings back 28 when it runs again, and it keeps 27\n");
  CHECK(refused(R"([{"recompute_saves": -1}])").starts_with(": [0].recompute_saves is -1"));
}

TEST_CASE("costs of a transformer tell what its forwards take when they run again") {
  const std::string model =
      "costs -o - --layers 4 --hidden 1024 --heads 16 --sequence 1024 --batch 2 "
      "--tensor-parallel 4 --sequence-parallel --recompute ";
  const json plain = run_json(model + "none"), core = run_json(model + "attention");
  const json full = run_json(model + "full");
  // Scores, softmax and its dropout: 5 a s^2 b, of which each device has its part.
  const std::int64_t kept = 5LL * 16 * 1024 * 1024 * 2 / 4 / 1024;
  for (std::size_t at = 0; at < plain["costs"].size(); ++at) {
    const json& first = plain["costs"][at];
    CHECK_FALSE(first.contains("recompute_saves"));
    CHECK(core["costs"][at]["memory_recompute"] == kept);
    const std::int64_t forward = first["forward"];
    const std::int64_t saves[] = {core["costs"][at]["recompute_saves"],
                                  full["costs"][at]["recompute_saves"]};
    CHECK(saves[0] > forward / 2);
    CHECK(saves[0] < forward);
    CHECK(saves[1] < forward / 4);
    // All but the input, of 2 s b h, which sequence parallelism splits (of the embedding tokens).
    const std::int64_t left = first["memory_forward"].get<std::int64_t>() -
                              full["costs"][at]["memory_recompute"].get<std::int64_t>();
    if (first.value("layer", json()) != 0) CHECK(left == 2 * 1024 * 2 * 1024 / 4 / 1024);
    for (const char* key : {"forward", "backward_input", "backward_weight", "memory_forward"})
      CHECK(core["costs"][at][key] == first[key]);
  }
  const std::string table = run("costs --layers 4 --recompute attention").out;
  CHECK(table.find("again  brings back") != std::string::npos);
  CHECK(table.ends_with(" --recompute all\n"));
  const auto refused = [](const std::string& options) {
    const outcome ran = run("costs --layers 4 " + options);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(refused("--recompute attention --attention fused") ==
        "stretto: --recompute attention: --attention fused keeps none of that\n");
  CHECK(refused("--recompute full --slices 2") ==
        "stretto: --recompute full: a slice cannot be recomputed\n");
  CHECK(refused("--recompute some").find("--recompute") != std::string::npos);
}

TEST_CASE("an order with forwards that run again is frozen, with what these take; no other is") {
  const std::string step =
      "schedule 1f1b --ranks 2 --microbatches 3 --memory 4,0,-4 --emit header ";
  CHECK(run(step).out.find("memory_recompute") == std::string::npos);
  CHECK(run(step).out.find("memory_offload") == std::string::npos);
  CHECK(run(step + "--recompute all").out.find(".memory_recompute = 4\n") != std::string::npos);
  const std::string longer = run(step + "--recompute all --again 2").out;
  CHECK(longer.find(".recompute_saves = -1\n") != std::string::npos);
  CHECK(longer.find("for its order alone") == std::string::npos);
  CHECK(run(step + "--recompute all").out.find("recompute_saves") == std::string::npos);
}

TEST_CASE("what --recompute and --again cannot be of is refused") {
  const struct {
    const char* arguments;
    const char* says;
  } wrong[] = {
      {"simulate gpipe --recompute some", "--recompute some: is not none, all or a part as 2/3"},
      {"simulate gpipe --recompute 3/2", "--recompute 3/2: is not none, all"},
      {"simulate gpipe --recompute all,lag=1", "--recompute all,lag=1: is not none, all"},
      {"simulate gpipe --again 1", "--again 1: has a meaning only with --recompute"},
      {"simulate gpipe --recompute all --again 1,2,3", "--again 1,2,3: expected 2 integers"},
      {"simulate gpipe --recompute all --again x", "--again x: expected 1 integers, T or T,M"},
      {"simulate gpipe --recompute all --again 1,2",
       "--again 1,2: a forward of rank 0, chunk 0 brings back 2 when it runs again, and it keeps "
       "1"},
      {"compare inference --recompute all",
       "--recompute all: inference has no backward before which a forward could run again"},
      {"compare --again 1", "--again 1: has a meaning only with --recompute"},
      {"compare --copy 1", "--copy 1: has a meaning only with --offload"},
      {"compare --recompute all --slices 2", "--slices 2: what forwards keep runs again"},
      {"compare --recompute all --csv a.csv", "--recompute excludes --csv"},
      {"compare --offload all --csv a.csv", "--offload excludes --csv"},
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
