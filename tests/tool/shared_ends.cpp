// What both ends of a model have, in files of --layer-costs: once on a rank with both of them.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

const std::string tied_sizes = " --hidden 512 --heads 8 --sequence 256 --vocabulary 32768 ";
constexpr std::int64_t table_kib = 16 * 512 * 32768 / 1024;
constexpr std::int64_t sum_ns = (4 * 512 * 32768 + 369) / 370 + 6000;  // a H200's link

//! The most that each rank holds, in KiB.
std::vector<std::int64_t> peaks(const std::string& schedule, const temporary& file,
                                const std::string& layers = "even:16") {
  const json step = run_json("simulate " + schedule + " --microbatches 8 --layers '" + layers +
                             "' --format json --layer-costs " + file.path());
  std::vector<std::int64_t> all;
  for (const json& one : step["peak"]) all.push_back(one.get<std::int64_t>());
  return all;
}

//! By how much less with what both ends have, on each rank.
std::vector<std::int64_t> less(const std::string& schedule, const std::string& more = "--tied-head",
                               const std::string& layers = "even:16") {
  const temporary with("with.json"), without("without.json");
  REQUIRE(run("costs --layers 16 -o " + with.path() + tied_sizes + more).exit == 0);
  json file = json::parse(tool_tests::contents(with.path()));
  file.erase("shared_ends");
  file.erase("shared_ends_alone");
  file.erase("reduce_ends");
  without.write(file.dump());
  std::vector<std::int64_t> found = peaks(schedule, without, layers);
  const std::vector<std::int64_t> shared = peaks(schedule, with, layers);
  REQUIRE(found.size() == shared.size());
  for (std::size_t rank = 0; rank < found.size(); ++rank) found[rank] -= shared[rank];
  return found;
}

TEST_CASE("a rank with both ends has once what they share, another one nothing less") {
  using numbers = std::vector<std::int64_t>;
  CHECK(less("zbv --ranks 4 --chunks 2") == numbers{table_kib, 0, 0, 0});
  CHECK(less("1f1b --ranks 4") == numbers{0, 0, 0, 0});
  CHECK(less("1f1b --ranks 1") == numbers{table_kib});
  CHECK(less("interleaved --ranks 4 --chunks 2") == numbers{0, 0, 0, 0});
  CHECK(less("hanayo --ranks 4 --chunks 4") == numbers{table_kib, 0, 0, 0});
  CHECK(less("dualpipe --ranks 4") == numbers{table_kib, 0, 0, table_kib});
  // Forwards alone hold the weights.
  CHECK(less("inference --ranks 1") == numbers{table_kib / 8});
  CHECK(less("zbv --ranks 4 --chunks 2", "--further-tokens 1") == numbers{table_kib, 0, 0, 0});
  CHECK(less("zbv --ranks 4 --chunks 2", "--tied-head --ends-apart", "Ettt|tt|tt|tt|tt|tt|tt|tL") ==
        numbers{table_kib, 0, 0, 0});
  CHECK(less("zbv --ranks 4 --chunks 2", "--tied-head --slices 1 --optimizer-shards 4") ==
        numbers{table_kib * (4 + 12 / 4) / 16, 0, 0, 0});
}

TEST_CASE("two ranks with an end each sum the gradients of what both have, when the step is done") {
  const temporary file("layers.json");
  REQUIRE(run("costs --layers 16 --tied-head -o " + file.path() + tied_sizes).exit == 0);
  json without = json::parse(tool_tests::contents(file.path()));
  without.erase("reduce_ends");
  const temporary plain("plain.json");
  plain.write(without.dump());
  const auto makespan = [](const std::string& schedule, const temporary& of,
                           const char* slices = "") {
    return run_json("simulate " + schedule + " --microbatches 8 --layers even:16 --format json "
                    "--layer-costs " + of.path() + slices)["makespan"].get<std::int64_t>();
  };
  // The first stage's gradients are all there when the last backward is done.
  for (const char* apart :
       {"1f1b --ranks 4", "zb_h1 --ranks 4", "interleaved --ranks 4 --chunks 2"}) {
    CAPTURE(apart);
    CHECK(makespan(apart, file) == makespan(apart, plain) + sum_ns);
  }
  for (const char* together : {"zbv --ranks 4 --chunks 2", "1f1b --ranks 1", "dualpipe --ranks 4",
                               "inference --ranks 4"}) {
    CAPTURE(together);
    CHECK(makespan(together, file) == makespan(together, plain));
  }
  // And so in slices that are told apart.
  REQUIRE(run("costs --layers 16 --tied-head --slices 2 --slice-lengths equal -o " + file.path() +
              tied_sizes).exit == 0);
  without = json::parse(tool_tests::contents(file.path()));
  without.erase("reduce_ends");
  plain.write(without.dump());
  CHECK(makespan("seq_1f1b --ranks 4", file, " --slices 2") ==
        makespan("seq_1f1b --ranks 4", plain, " --slices 2") + sum_ns);
}

TEST_CASE("layers are dealt within a limit by what a rank with both ends holds") {
  const temporary file("layers.json");
  file.write(
      R"({"layers": 8, "shared_ends": 40, "costs": [{"memory_weights": 10, "memory_forward": 0,
    "memory_backward_weight": 0}, {"layer": [0, 7], "memory_weights": 50}]})");
  const auto dealt = [&](const std::string& how) {
    const outcome ran = run("assign --ranks 2 --chunks 2 --layer-costs " + file.path() + " " + how);
    return ran.exit == 0 ? "" : ran.err.substr(ran.err.find(": ") + 2);
  };
  // Of a V the rank with both ends has at least 50 + 50 - 40, the other the six layers between.
  CHECK(dealt("--placement wave --layers balanced:8 --limit 60") == "");
  CHECK(dealt("--placement wave --layers balanced:8 --limit 59") ==
        "--limit 59: no cut of --layers balanced:8 keeps to it; 60 is enough\n");
  CHECK(dealt("--placement looped --layers balanced:8 --limit 80") == "");
  CHECK(dealt("--placement looped --layers balanced:8 --limit 79") ==
        "--limit 79: no cut of --layers balanced:8 keeps to it; 80 is enough\n");
  // Either rank of two directions has all layers.
  CHECK(dealt("--placement bidirectional --layers balanced:8 --limit 120") == "");
  CHECK(dealt("--placement bidirectional --layers balanced:8 --limit 119") ==
        "--limit 119: no cut of --layers balanced:8 keeps to it; 120 is enough\n");
  CHECK(dealt("--placement wave --layers even:8 --limit 80") == "");
  CHECK(dealt("--placement wave --layers even:8 --limit 79") ==
        "--limit 79: with --layers even:8 rank 0 needs 80\n");
}

TEST_CASE("by layers a rank's state is what `memory` says it is") {
  const temporary file("layers.json");
  for (const char* what :
       {"--tied-head", "--further-tokens 1", "--tied-head --further-tokens 2", ""}) {
    CAPTURE(what);
    REQUIRE(run("costs --layers 16 -o " + file.path() + tied_sizes + what).exit == 0);
    const json told = json::parse(tool_tests::contents(file.path()));
    CHECK(told.contains("shared_ends") == (std::string(what) != ""));
    std::int64_t first = 0, last = 0;
    for (const json& one : told["costs"]) {
      if (!one.contains("layer")) continue;
      (one["layer"] == 0 ? first : last) = one["memory_weights"].get<std::int64_t>();
    }
    const json needs = run_json("memory zbv --ranks 8 --chunks 2 --microbatches 8 --layers 16 "
                                "--format json" + tied_sizes + what)["need"];
    const std::int64_t shared = told.value("shared_ends", std::int64_t{0});
    const std::int64_t state = needs[0]["state"].get<std::int64_t>() / 1024;
    // Each layer is rounded up to a KiB.
    CHECK(first + last - shared >= state);
    CHECK(first + last - shared <= state + 2);
  }
}

TEST_CASE("a table says what its ends share") {
  const auto told = [](const std::string& more) {
    return run("costs --layers 4" + tied_sizes + more).out;
  };
  const std::string says =
      ", the last the head.\nA rank that has both has " + std::to_string(table_kib) +
      " less of state: a table that they share, whose\ngradients two ranks sum in " +
      std::to_string(sum_ns) + ".\n\n";
  CHECK(told("--tied-head").find(says) != std::string::npos);
  CHECK(told("").find("A rank that has both") == std::string::npos);
  CHECK(run("costs --layers 1 --tied-head" + tied_sizes).out.find("A rank that has both") ==
        std::string::npos);
}

TEST_CASE("a file that says of its ends what they cannot share is refused") {
  const temporary file("layers.json");
  const auto refused = [&](const std::string& text, const std::string& layers) {
    file.write(text);
    const outcome ran = run("simulate 1f1b --ranks 1 --microbatches 2 --layers " + layers +
                            " --layer-costs " + file.path());
    CHECK(ran.exit == 2);
    return ran.err.substr(ran.err.find(": ", 25) + 2);
  };
  const std::string two = R"({"layers": 2, "costs": [{"memory_weights": 5}], )";
  CHECK(refused(two + R"("shared_ends": 6})", "even:2") ==
        "\"shared_ends\" is 6, more than an end has: 5\n");
  CHECK(refused(two + R"("shared_ends": -1})", "even:2").find("\"shared_ends\" is -1") == 0);
  CHECK(refused(two + R"("shared_ends": true})", "even:2").find("\"shared_ends\" is true") == 0);
  CHECK(refused(R"({"layers": 1, "costs": [{"memory_weights": 5}], "shared_ends": 1})", "even:1") ==
        "\"shared_ends\" is of two layers, and there is one\n");
  CHECK(refused(two + R"("shared_end": 1})", "even:2").find("unknown key, \"shared_end\"") !=
        std::string::npos);
}

}  // namespace
