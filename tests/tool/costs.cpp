#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "run_tool.hpp"
#include "support/sanitized.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

std::int64_t number(const json& of, const char* key) {
  return of.at(key).get<std::int64_t>();
}

const std::string sizes =
    "--hidden 4096 --heads 32 --sequence 2048 --attention fused --tensor-parallel 4 "
    "--sequence-parallel ";
const std::string llama =
    "--architecture llama --attention fused --hidden 4096 --heads 32 --kv-heads 8 "
    "--feed-forward 14336 --vocabulary 128256 --sequence 4096 ";

TEST_CASE("costs: a layer takes what overlap's shortest orders do") {
  for (const std::string& model :
       {sizes, llama + "--tensor-parallel 2 ",
        llama + "--tensor-parallel 1 --experts 8 --expert-parallel 8 "}) {
    if (test_support::sanitized && model == sizes) continue;
    CAPTURE(model);
    const json all = run_json("costs --layers 24 --device h100 -o - " + model)["costs"];
    const json jobs = run_json("overlap --device h100 --format json " + model)["jobs"];
    const auto shortest = [&](std::size_t job) {
      std::int64_t least = INT64_MAX;
      for (const json& way : jobs[job]["orders"]) least = std::min(least, number(way, "ns"));
      return least;
    };
    REQUIRE(all.size() == 3);
    CHECK_FALSE(all[0].contains("layer"));
    CHECK(number(all[1], "layer") == 0);
    CHECK(number(all[2], "layer") == 23);
    CHECK(number(all[0], "forward") == shortest(0));
    const std::int64_t halves =
        number(all[0], "backward_input") + number(all[0], "backward_weight");
    CHECK(number(all[0], "whole_saves") == std::max<std::int64_t>(0, halves - shortest(1)));
    CHECK(number(all[1], "forward") >= number(all[0], "forward"));  // the embedding
    CHECK(number(all[2], "forward") > number(all[0], "forward"));   // the head
  }
}

TEST_CASE("costs: what layers keep and hold is what memory says of ranks, in KiB") {
  const temporary file("layers.json");
  // Whole backwards, and halves, whose W are late.
  for (const auto& [step, model] :
       {std::pair<std::string, std::string>{"1f1b --ranks 4 --microbatches 8 ", sizes},
        {"1f1b --ranks 4 --microbatches 8 ", llama},
        {"zb_h2 --ranks 4 --microbatches 8 ", sizes},
        {"zb_h2 --ranks 4 --microbatches 8 ", llama}}) {
    CAPTURE(step);
    CAPTURE(model);
    REQUIRE(run("costs --layers 16 " + model + "-o " + file.path()).exit == 0);
    const json simulated = run_json("simulate " + step + "--layers 4,4,4,4 --layer-costs " +
                                    file.path() + " --cost 0,0,0,1 --format json");
    const json needs = run_json("memory " + step + "--layers 16 --format json " + model)["need"];
    for (std::size_t rank = 0; rank < 4; ++rank) {
      CAPTURE(rank);
      const json& need = needs[rank];
      // What a job needs only while it runs, or a message of its own, is not in it.
      const double kept = 1024 * simulated["peak"][rank].get<double>();
      const double most = need["jobs"].get<double>();
      CHECK(kept <= most + 1024 * 40);  // each layer's is rounded up
      CHECK(kept >= 0.98 * (most - need["working"].get<double>()));
    }
  }
}

TEST_CASE("costs: forwards alone hold the weights, as memory says, in every command") {
  const temporary file("layers.json");
  const temporary order("forwards.csv");
  REQUIRE(run("costs --layers 16 " + llama + "-o " + file.path()).exit == 0);
  const std::string sizes_of = "--ranks 4 --microbatches 2 ";
  REQUIRE(run("schedule inference " + sizes_of + "--format csv -o " + order.path()).exit == 0);
  const json needs =
      run_json("memory inference " + sizes_of + "--layers 16 --format json " + llama)["need"];
  const auto peaks = [&](const std::string& path) {
    const std::string by = "--layers even:16 --format json --layer-costs " + path;
    const json told = run_json("simulate inference " + sizes_of + by)["peak"];
    CHECK(run_json("simulate --csv " + order.path() + " " + by)["peak"] == told);
    for (const json& one : run_json("compare " + sizes_of + "--csv " + order.path() + " " + by))
      if (one["schedule"] == "inference" || one.contains("file")) CHECK(one["peak"] == told);
    return told;
  };
  const json alone = peaks(file.path());
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto bytes = needs[rank]["state"].get<std::int64_t>();
    const auto kib = alone[rank].get<std::int64_t>();
    CHECK(1024 * kib >= bytes);
    CHECK(1024 * (kib - 4) < bytes);  // each layer's is rounded up
  }
  // A file that does not tell them apart.
  json all = json::parse(contents(file.path()));
  for (json& one : all["costs"]) one.erase("memory_weights_alone");
  file.write(all.dump());
  const json state = peaks(file.path());
  for (std::size_t rank = 0; rank < 4; ++rank)
    CHECK(state[rank].get<std::int64_t>() > 3 * alone[rank].get<std::int64_t>());
}

TEST_CASE("costs: of few layers those that have embedding and head; the network carries hops") {
  std::vector<json> made;
  for (const int layers : {1, 2, 3, 4}) {
    if (test_support::sanitized && layers == 3) continue;
    CAPTURE(layers);
    const temporary file("layers.json");
    REQUIRE(
        run("costs --layers " + std::to_string(layers) + " " + sizes + "-o " + file.path()).exit ==
        0);
    const json told = json::parse(contents(file.path()));
    CHECK(told["layers"] == layers);
    const json all = made.emplace_back(told["costs"]);
    std::int64_t named = 0;
    for (const json& one : all) named += one.contains("layer") ? 1 : 0;
    CHECK(named == std::min(layers, 2));
    CHECK(all.size() == static_cast<std::size_t>(std::min(layers, 3)));
    CHECK(run("simulate 1f1b --ranks 1 --microbatches 2 --layers even:" + std::to_string(layers) +
              " --layer-costs " + file.path())
              .exit == 0);
  }
  const json alone = made[0], two = made[1], four = made.back();
  CHECK(run_json("costs -o - --layers 4 " + sizes)["costs"] == four);
  // Both in one layer.
  const auto state = [](const json& of, std::size_t at) {
    return number(of[at], "memory_weights");
  };
  CHECK(state(alone, 0) + state(four, 0) == state(two, 0) + state(two, 1));
  CHECK(number(alone[0], "forward") >
        std::max(number(two[0], "forward"), number(two[1], "forward")));

  const auto hop = [](const std::string& options) {
    const outcome told = run("costs --device h100 " + sizes + options);
    const std::string before = "a hop takes ";
    return std::stoll(told.out.substr(told.out.find(before) + before.size()));
  };
  // 2048 tokens of 4096 numbers of two bytes, a fourth of them on each device.
  const std::int64_t bytes = 2048 * 4096 * 2 / 4;
  CHECK(hop("") == bytes / 370 + 1 + 6000);
  CHECK(hop("--network 50") == bytes / 50 + 1 + 6000);
}

TEST_CASE("costs: slices of a sequence, as long as they are told to be") {
  const std::string model =
      "--hidden 1024 --heads 16 --sequence 16384 --attention fused --tensor-parallel 2 ";
  const auto times = [&](const std::string& cut) {
    std::vector<std::int64_t> made;  // of the middle layers' forwards
    const json told = run_json("costs --layers 8 -o - " + model + cut);
    for (const json& one : told["costs"])
      if (!one.contains("layer") && one.contains("forward")) made.push_back(number(one, "forward"));
    return made;
  };
  const auto spread = [](const std::vector<std::int64_t>& all) {
    const auto [least, most] = std::minmax_element(all.begin(), all.end());
    return static_cast<double>(*most) / static_cast<double>(*least);
  };
  const auto equal = times("--slices 4 --slice-lengths equal");
  REQUIRE(equal.size() == 4);
  CHECK(std::is_sorted(equal.begin(), equal.end()));
  CHECK(spread(equal) > 1.5);
  CHECK(spread(times("--slices 4")) < 1.25);
  if (!test_support::sanitized) {
    CHECK(equal == times("--slices 4 --slice-lengths 4096,4096,4096,4096"));
    CHECK(times("--slices 4 --slice-lengths balanced:128").size() == 4);
    CHECK(times("--slices 1") == times(""));
  }

  // What compare makes of them is what it makes of the same said by ranks and slices.
  const temporary file("slices.json"), jobs("jobs.json");
  const outcome told = run("costs --layers 8 --slices 4 -o " + file.path() + " " + model);
  CHECK(told.out.find(" --slices 4 ") != std::string::npos);
  const json list = json::parse(contents(file.path()))["costs"];
  json entries = json::array();
  for (const json& one : list) {
    if (!one.contains("slice")) continue;
    for (int layer = 0; layer < 8; ++layer) {
      if (one.contains("layer") ? number(one, "layer") != layer : layer == 0 || layer == 7)
        continue;
      const auto add = [&](const char* kind, const char* time, const char* memory) {
        entries.push_back({{"rank", layer},
                           {"slice", one["slice"]},
                           {"kind", kind},
                           {"cost", one[time]},
                           {"change", one[memory]}});
      };
      add("F", "forward", "memory_forward");
      add("I", "backward_input", "memory_backward_input");
      add("W", "backward_weight", "memory_backward_weight");
      entries.push_back({{"rank", layer},
                         {"slice", one["slice"]},
                         {"kind", "B"},
                         {"cost", number(one, "backward_input") + number(one, "backward_weight") -
                                      number(one, "whole_saves")}});
    }
  }
  std::vector<std::int64_t> state(8), alone(8);  // of the layers' weights, which are of all slices
  for (const json& one : list)
    for (std::size_t layer = 0; one.contains("memory_weights") && layer < 8; ++layer)
      if (!one.contains("layer") || number(one, "layer") == static_cast<std::int64_t>(layer)) {
        state[layer] = number(one, "memory_weights");
        alone[layer] = number(one, "memory_weights_alone");
      }
  jobs.write(json{{"jobs", entries}, {"communication", 7}, {"base", state}}.dump());
  const std::string step = "simulate seq_1f1b --ranks 8 --microbatches 3 --format json ";
  const std::string by_layers = "--layers even:8 --layer-costs " + file.path() + " --cost 0,0,0,7 ";
  const json sliced = run_json(step + "--slices 4 " + by_layers);
  const json by_ranks = run_json(step + "--slices 4 --costs " + jobs.path());
  CHECK(sliced["makespan"] == by_ranks["makespan"]);
  CHECK(sliced["peak"] == by_ranks["peak"]);
  const outcome halves = run(step + "--slices 2 " + by_layers);
  CHECK(halves.exit == 2);
  CHECK(halves.err.find("tells 4 slices apart, and a micro-batch has 2") != std::string::npos);
  const auto compared = [&](const std::string& costs) {
    std::map<std::string, std::pair<std::int64_t, json>> made;
    for (const json& one :
         run_json("compare --ranks 8 --microbatches 3 --slices 4 --format json " + costs))
      if (one.contains("makespan") && one["chunks"] == 1)
        made[one["schedule"].get<std::string>()] = {number(one, "makespan"), one["peak"]};
    return made;
  };
  const auto layers = compared(by_layers);
  CHECK(layers.size() > 10);
  const auto ranks = compared("--costs " + jobs.path());
  for (const auto& [name, taken] : layers) {
    CAPTURE(name);
    // Two replicas hold two stages a rank, of which --costs tells the whole alone. Forwards alone
    // keep nothing of what the layers' file says of training, and hold weights alone.
    if (name == "inference") {
      CHECK(ranks.at(name).first == taken.first);
      CHECK(taken.second == json(alone));
    } else if (name != "chimera" && name != "bitpipe" && name != "dualpipe") {
      CHECK(ranks.at(name) == taken);
    }
  }

  const auto refused = [&](const std::string& cut, const char* words) {
    CAPTURE(cut);
    const outcome ran = run("costs -o - " + model + cut);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(ran.err.find(words) != std::string::npos, ran.err);
  };
  refused("--slice-lengths equal", "--slices");
  refused("--slices 1 --slice-lengths 5,banana", "expected balanced, balanced:N, equal");
  refused("--slices 1 --slice-lengths 16383", "these are 1 slice of 16383 tokens, and");
  CHECK(times("--slices 1 --slice-lengths equal") == times(""));
  refused("--slices 3 --slice-lengths equal",
          "a sequence of 16384 tokens makes no 3 slices of one length");
  refused("--slices 2 --slice-lengths 1,2",
          "these are 2 slices of 3 tokens, and wanted are 2 slices of a");
  refused("--slices 2 --slice-lengths 16384", "these are 1 slice of 16384 tokens, and");
  refused("--slices 2 --slice-lengths 16384,1", "these are 2 slices of 16385 tokens, and");
  refused("--slices 2 --slice-lengths 8192,-8192", "expected balanced, balanced:N, equal");
  refused("--slices 2 --slice-lengths balanced:0", "after balanced comes nothing, or :N");
  refused("--slices 2 --slice-lengths balanced128", "after balanced comes nothing, or :N");
  refused("--slices 3 --slice-lengths balanced:8192", "fewer multiples of 8192 than 3 slices");
  refused("--slices 2 --sequence-parallel --slice-lengths 8191,8193",
          "gives a slice 8191 tokens, but");
  CHECK(times("--slices 3 --sequence-parallel").size() == 3);
  // Lengths are multiples of the devices only where the sequence is split among them; the last may
  // be what is left.
  const std::string short_one = "costs -o - --layers 3 --hidden 64 --heads 4 --tensor-parallel 2 ";
  CHECK(run(short_one + "--sequence 3 --slices 3").exit == 0);
  CHECK(run(short_one + "--sequence 10 --slices 2 --slice-lengths balanced:8").exit == 0);
  const auto file_refused = [&](const std::string& text, const char* words) {
    CAPTURE(text);
    file.write(text);
    const outcome ran =
        run("simulate seq_1f1b --ranks 2 --microbatches 2 --slices 2 --layers 2 "
            "--layer-costs " +
            file.path());
    CHECK(ran.exit == 2);
    CHECK_MESSAGE(ran.err.find(words) != std::string::npos, ran.err);
  };
  file_refused(R"([{"slice": 2, "forward": 1}])", "tells 3 slices apart, and a micro-batch has 2");
  file_refused(R"([{"slice": -1, "forward": 1}])", "[0].slice is -1");
  file_refused(R"([{"slice": 1, "memory_weights": 1}])", "[0].memory_weights is of all slices");
  file_refused(R"([{"forward": 1}, {"slice": [0, 1], "cost": 1}])", "[1] has an unknown key");
}

TEST_CASE("costs: copies to the host, over the link there") {
  const std::string model = "--hidden 512 --heads 8 --sequence 2048 --layers 4 ";
  const auto copies = [&](const std::string& options) {
    std::map<std::pair<int, int>, std::int64_t> made;  // by layer and slice
    const json all =
        run_json("costs -o - --slices 2 --slice-lengths 1536,512 " + model + options)["costs"];
    for (const json& one : all) {
      if (!one.contains("slice")) continue;
      const std::int64_t kept = 1024 * number(one, "memory_forward");
      REQUIRE(kept > 0);
      made[{one.value("layer", -1), one["slice"].get<int>()}] = number(one, "offload");
      // All that the forward keeps, and the launch.
      const std::int64_t rate = options.find("--host-link 100") != std::string::npos ? 100 : 52;
      CHECK(number(one, "offload") == 3000 + (kept + rate - 1) / rate);
    }
    CHECK(made.size() == 6);
    return made;
  };
  const auto usual = copies("--device h100");
  const auto faster = copies("--device h100 --host-link 100");
  for (const auto& [of, time] : usual) CHECK(faster.at(of) < time);
  CHECK(usual.at({-1, 0}) > usual.at({-1, 1}));  // the longer slice
  CHECK(usual.at({3, 0}) > usual.at({-1, 0}));   // the head
  // A step by them copies so, and no copies are known of a processor.
  const temporary file("costs.json");
  const std::string step =
      "simulate 1f1b --ranks 2 --microbatches 6 --layers 2,2 --offload all,lag=0,prefetch=0 "
      "--format json --layer-costs " + file.path();
  const std::string own = "costs -o " + file.path() + " " + model;
  REQUIRE(run(own + "--device h200").exit == 0);
  const json by_file = run_json(step);
  CHECK(run_json(step + " --copy 1") == by_file);
  REQUIRE(run(own + "--device h200 --host-link 1").exit == 0);
  CHECK(run_json(step)["makespan"] > by_file["makespan"]);
  const outcome host = run(own + "--device host");
  CHECK(host.exit == 0);
  CHECK(host.out.find("copy") == std::string::npos);
  CHECK(run(step).err.find("does not tell what a copy of layer 0") != std::string::npos);
  CHECK(run(own + "--device host --host-link 5").out.find("  copy") != std::string::npos);
  CHECK(run(step).exit == 0);
}

TEST_CASE("costs: bad input is named") {
  const auto refused = [](const std::string& options, const char* words) {
    CAPTURE(options);
    const outcome ran = run("costs " + options);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(ran.err.find(words) != std::string::npos, ran.err);
  };
  refused("--device h300", "--device h300: no such device");
  const temporary file("of mine.json");
  const outcome told = run("costs --layers 3 " + sizes + "-o '" + file.path() + "'");
  CHECK(told.out.find("compare --ranks 3 ") != std::string::npos);
  CHECK(told.out.find(" --layer-costs '" + file.path() + "' ") != std::string::npos);
  refused("--layers 0", "--layers");
  refused("--heads 7", "--heads");
  const std::string long_ones = "--hidden 192 --heads 3 --sequence 4194304 --layers 1 --experts 8";
  refused(long_ones, "--sequence 4194304 --batch 1: \"scores\" takes 105553116266496 bytes");
  refused("--machine none.json", "none.json");
  // What --layer-costs would not read, and what 64 bits would not hold.
  const std::string wide = "--attention fused --sequence 4194304 --layers 3 --hidden ";
  refused(wide + "16384 --heads 128",
          "--hidden 16384 --sequence 4194304 --batch 1: layer 0's forward takes 76659");
  refused(
      wide + "65536 --heads 512 --batch 8",
      "--hidden 65536 --sequence 4194304 --batch 8: the operations of one product pass 64 bits");
}

}  // namespace
