#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "run_tool.hpp"

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
    CAPTURE(model);
    const json all = run_json("costs --layers 24 --device h100 -o - " + model);
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

TEST_CASE("costs: of few layers those that have embedding and head; the network carries hops") {
  for (const int layers : {1, 2, 3, 4}) {
    CAPTURE(layers);
    const json all = run_json("costs -o - --layers " + std::to_string(layers) + " " + sizes);
    std::int64_t named = 0;
    for (const json& one : all) named += one.contains("layer") ? 1 : 0;
    CHECK(named == std::min(layers, 2));
    CHECK(all.size() == static_cast<std::size_t>(std::min(layers, 3)));
    const temporary file("layers.json");
    REQUIRE(
        run("costs --layers " + std::to_string(layers) + " " + sizes + "-o " + file.path()).exit ==
        0);
    CHECK(json::parse(contents(file.path())) == all);
    CHECK(run("simulate 1f1b --ranks 1 --microbatches 2 --layers even:" + std::to_string(layers) +
              " --layer-costs " + file.path())
              .exit == 0);
  }
  const json alone = run_json("costs -o - --layers 1 " + sizes);
  const json two = run_json("costs -o - --layers 2 " + sizes);
  const json four = run_json("costs -o - --layers 4 " + sizes);
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
  refused("--machine none.json", "none.json");
}

}  // namespace
