// A head whose vocabulary is cut in pieces, each a layer: what they take, and where memory has
// them.
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

const std::string narrow_model = " --hidden 256 --heads 4 --sequence 64 --vocabulary 960 ";

//! The entries of a file, one for each layer.
std::vector<json> by_layer(const json& file) {
  std::vector<json> all(file["layers"].get<std::size_t>());
  const json& costs = file["costs"];
  for (const json& entry : costs) {
    json takes = entry;
    takes.erase("layer");
    if (!entry.contains("layer")) {
      all.assign(all.size(), takes);
    } else if (entry["layer"].is_array()) {
      for (const json& one : entry["layer"]) all.at(one.get<std::size_t>()) = takes;
    } else {
      all.at(entry["layer"].get<std::size_t>()) = takes;
    }
  }
  return all;
}

std::int64_t sum_of(const std::vector<json>& layers, std::size_t from, const char* what) {
  std::int64_t sum = 0;
  for (std::size_t at = from; at < layers.size(); ++at) sum += layers[at][what].get<std::int64_t>();
  return sum;
}

TEST_CASE("pieces of a head are layers of their own, the last ones") {
  for (const bool apart : {false, true})
    for (const int layers : {1, 2, 5})
      for (const int pieces : {2, 3, 6}) {
        CAPTURE(apart);
        CAPTURE(layers);
        CAPTURE(pieces);
        const std::string model = "costs --layers " + std::to_string(layers) + narrow_model +
                                  (apart ? "--ends-apart " : "");
        const json cut = run_json(model + "-o - --head-pieces " + std::to_string(pieces));
        const json whole = run_json("costs --ends-apart --layers " + std::to_string(layers) +
                                    narrow_model + "-o -");
        const std::size_t before = static_cast<std::size_t>(layers) + (apart ? 1 : 0);
        CHECK(cut["layers"] == before + static_cast<std::size_t>(pieces));
        CHECK(cut.contains("ends_apart") == apart);
        const std::vector<json> all = by_layer(cut);
        const std::vector<json> uncut = by_layer(whole);
        // Those before the head are what they are with a head of its own.
        if (layers > 1 || apart) CHECK(all[before - 1] == uncut[uncut.size() - 2]);
        if (apart) CHECK(all[0] == uncut[0]);
        // The pieces have its weights, and logits; each has what comes out of the norm.
        const json& head = uncut.back();
        for (const char* what : {"memory_weights", "memory_weights_alone"})
          CHECK(sum_of(all, before, what) ==
                doctest::Approx(head[what].get<double>()).epsilon(0.02));
        const std::int64_t row = 64 * 256 * 2 / 1024;
        CHECK(sum_of(all, before, "memory_backward_weight") ==
              head["memory_backward_weight"].get<std::int64_t>() - (pieces - 1) * row);
        CHECK(sum_of(all, before, "memory_forward") ==
              head["memory_forward"].get<std::int64_t>() + (pieces - 1) * row + 1);
        for (const char* time : {"forward", "backward_input", "backward_weight"})
          CHECK(sum_of(all, before, time) >= head[time].get<std::int64_t>());
        for (std::size_t at = before; at < all.size(); ++at)
          CHECK(all[at]["backward_weight"] < head["backward_weight"]);
      }
}

TEST_CASE("what is told of a head in pieces says so, and the command that it ends with runs") {
  const temporary file("layers.json");
  const outcome told =
      run("costs --layers 4 --head-pieces 4 -o " + file.path() + " " + narrow_model);
  REQUIRE(told.exit == 0);
  CHECK(told.out.find("4 layers and the head in 4 pieces, each on 1 of h200") == 0);
  CHECK(told.out.find("The first layer has the embedding, the last 4 are the head's pieces.\n") !=
        std::string::npos);
  CHECK(told.out.find("\n5-6 ") != std::string::npos);
  const std::string command = tool_tests::found(told.out, "stretto (compare .*)\n").at(0).at(0);
  CHECK(command.find("--chunks 2 --layers balanced:8 ") != std::string::npos);
  CHECK(run(command).exit == 0);
  for (const char* const sizes : {"8 --head-pieces 2", "1 --head-pieces 8", "1 --head-pieces 2"}) {
    const temporary other("few.json");
    const outcome few = run("costs --layers " + std::string(sizes) + " -o " + other.path() + " " +
                            narrow_model);
    const outcome ran = run(tool_tests::found(few.out, "stretto (compare .*)\n").at(0).at(0));
    CHECK_MESSAGE(ran.exit == 0, ran.err);
    for (const char* const name : {"zbv_greedy", "interleaved"})
      CHECK(tool_tests::found(ran.out, "\n" + std::string(name) + " +2 ").size() == 1);
  }
  CHECK(run("costs --ends-apart --layers 4 --head-pieces 4 " + narrow_model)
            .out.find("4 layers, embedding and head in 4 pieces, each on") == 0);
  CHECK(run("simulate zbv --ranks 4 --chunks 2 --microbatches 8 --layers 't|t|t|t|t|t|t|t' "
            "--layer-costs " +
            file.path())
            .exit == 0);
  // In a layout L is the last of them.
  REQUIRE(
      run("costs --ends-apart --layers 4 --head-pieces 2 -o " + file.path() + " " + narrow_model)
          .exit == 0);
  CHECK(run("simulate 1f1b --ranks 4 --microbatches 8 --layers 'Et|tt|t|tL' --layer-costs " +
            file.path())
            .exit == 0);
}

TEST_CASE("a large head, of which every rank has a piece, no longer sets the pace") {
  const temporary cut("cut.json");
  const temporary whole("whole.json");
  const std::string model =
      "costs --layers 16 --hidden 1024 --heads 16 --sequence 2048 --vocabulary 262144 ";
  REQUIRE(run(model + "--head-pieces 8 -o " + cut.path()).exit == 0);
  REQUIRE(run(model + "-o " + whole.path()).exit == 0);
  const auto makespan = [](const std::string& layers, const temporary& file) {
    return run_json(
               "simulate zbv_greedy --ranks 8 --microbatches 32 --chunks 2 --layers balanced:" +
               layers + " --layer-costs " + file.path() + " --format json")["makespan"]
        .get<double>();
  };
  CHECK(makespan("24", cut) < 0.5 * makespan("16", whole));
}

TEST_CASE("memory deals pieces of a head as the last layers, with their weights and logits") {
  const std::string zbv = "memory zbv --ranks 4 --chunks 2 --microbatches 8" + narrow_model;
  const json cut = run_json(zbv + "--format json --head-pieces 4 --layers table:1,1,1,1,1,1,1,1");
  const json& ranks = cut["need"];
  REQUIRE(ranks.size() == 4);
  for (const json& rank : ranks) {
    CHECK(rank["layers"] == 1);
    CHECK(rank["head_pieces"] == 1);
  }
  // Adam's 16 bytes a weight of a quarter of the table; rank 3 has the last norm, too.
  const auto state = [&](std::size_t rank) { return ranks[rank]["state"].get<std::int64_t>(); };
  CHECK(state(3) - state(2) == 16 * 2 * 256);
  CHECK(state(1) == state(2));
  CHECK(state(1) == 16 * (12 * 256 * 256 + 13 * 256 + 960 / 4 * 256));
  const outcome table = run(zbv + "--head-pieces 4 --layers balanced:8");
  CHECK(table.out.find("rank  layers  head pieces  state") != std::string::npos);
  CHECK(run(zbv + "--layers balanced:8").out.find("head pieces") == std::string::npos);
}

TEST_CASE("memory counts the sums of rows once: as messages, or as what the last piece keeps") {
  const auto need = [](const std::string& step) {
    return run_json(
        "memory " + step +
        " --head-pieces 2 --hidden 4 --heads 1 --sequence 64 --vocabulary 48 "
        "--architecture llama --attention fused --feed-forward 8 --format json")["need"];
  };
  const std::int64_t row = 64 * 4 * 2, logits = 64 * 24 * 4, sums = 64 * 12;
  const auto saved = [](const json& of, std::size_t rank) {
    return of[rank]["saved"].get<std::int64_t>();
  };
  const json apart = need("gpipe --ranks 3 --microbatches 4 --layers 2,1,1");
  CHECK(saved(apart, 1) == 4 * (row + logits));
  CHECK(saved(apart, 2) == 4 * (row + logits + sums));
  // On one rank the same, but for what the layers keep.
  const json layer = need("gpipe --ranks 3 --microbatches 1 --layers 1,1,1");
  const json together =
      need("interleaved --ranks 1 --chunks 3 --microbatches 1 --layers table:1,1,1");
  CHECK(saved(together, 0) == saved(layer, 0) + saved(layer, 1) + saved(layer, 2));
  // A stage may have nothing.
  CHECK(need("1f1b --ranks 4 --microbatches 2 --layers sparse_table:2,0,1,1")[1]["saved"] == 0);
  const outcome empty = run("memory zb_h1 --ranks 3 --microbatches 4 --layers sparse_table:3,0,3");
  CHECK_MESSAGE(empty.exit == 0, empty.err);
}

TEST_CASE("pieces that cannot be, or have no place, are refused by what they do not go with") {
  const auto refused = [](const std::string& command, const std::string& why) {
    const outcome ran = run(command + narrow_model);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err == "stretto: " + why + "\n");
  };
  refused("costs --head-pieces 7", "--head-pieces 7: --vocabulary 960 is no multiple of it");
  refused("costs --head-pieces 96 --tensor-parallel 4",
          "--head-pieces 96: --vocabulary 960 is no multiple of it times --tensor-parallel 4");
  const std::string memory = "memory 1f1b --ranks 2 --microbatches 4 --head-pieces 3 --layers ";
  refused(memory + "3", "--layers 3: leaves no layer before the 3 of --head-pieces");
  refused(memory + "'Et|mL'",
          "--layers Et|mL: has m among the last 3, which are the pieces of --head-pieces");
  refused(memory + "sparse_table:6,0",
          "--layers sparse_table:6,0: has embedding or head on another than the first and the last "
          "stage, where memory looks for them");
  const outcome zero = run("costs --head-pieces 0" + narrow_model);
  CHECK(zero.exit == 2);
  CHECK(zero.err.find("--head-pieces") != std::string::npos);
}

}  // namespace
