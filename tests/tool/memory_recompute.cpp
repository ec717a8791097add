// What is told of recomputation is what plans keep.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "run_tool.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;

std::int64_t of(const json& need, const char* what) { return need[what].get<std::int64_t>(); }

TEST_CASE("no rank's state, gathered weights and saved need more than its limit is held against") {
  stretto::schedule::all::for_each([](const auto& made) {
    stretto::shape sizes{.ranks = 4, .microbatches = 8};
    if (!made.supports(sizes).ok()) sizes.chunks = 2;
    int told = 0;
    for (const char* recompute : {"none", "attention", "norms", "layers", "full",
                                  "full --recompute-of 3 --recompute-count 2",
                                  "attention,norms,feed-forward --recompute-inside"}) {
      const outcome ran = run("memory " + std::string(made.name) + " --chunks " +
                              std::to_string(sizes.chunks) +
                              " --ranks 4 --microbatches 8 --layers 16 --hidden 256 --heads 4"
                              " --sequence 256 --format json --recompute " + recompute);
      if (ran.exit != 0) continue;
      ++told;
      const json all = json::parse(ran.out);
      for (const json& need : all["need"]) {
        CAPTURE(std::string(made.name));
        CAPTURE(std::string(recompute));
        CHECK(of(need, "jobs") >= of(need, "state") + of(need, "gathered") + of(need, "saved"));
      }
    }
    CHECK(told == (made.name == "inference" ? 1 : 7));
  });
}

TEST_CASE("inside a backward what runs again comes back layer by layer") {
  const auto told = [&](int layers, const std::string& what) {
    return run_json("memory 1f1b --ranks 4 --microbatches 8 --hidden 1024 --heads 16 "
                    "--sequence 1024 --vocabulary 1024 --format json --layers " +
                    std::to_string(layers) + " --recompute " + what)["need"][1];
  };
  // Of scores 5 a s s bytes, which no forward keeps; norms' results 2 s h, twice in a layer; and of
  // a GELU's 8 s h.
  const std::int64_t sh = 1024 * 1024, scores = 5 * 16 * sh;
  for (const int layers : {8, 32}) {
    const std::int64_t all = 3 * layers / 4;  // of three micro-batches in flight
    const json none = told(layers, "none");
    const auto less = [&](const std::string& what) {
      return of(none, "saved") - of(told(layers, what), "saved");
    };
    CHECK(less("attention --recompute-inside") == all * scores);
    CHECK(less("norms --recompute-inside") == all * 2 * 2 * sh);
    CHECK(less("activations --recompute-inside") == all * 8 * sh);
    CHECK(less("norms,activations,attention --recompute-inside") == all * (12 * sh + scores));
    // Queries, keys, values and context, inputs, masks: all else.
    CHECK(less("feed-forward --recompute-inside") == all * 16 * sh);
  }
  for (const std::string what : {"attention", "norms,activations", "attention,feed-forward"}) {
    const json few = told(8, what + " --recompute-inside");
    const json many = told(32, what + " --recompute-inside");
    CHECK(of(few, "working") == of(many, "working"));
    const json apart = told(32, what);
    CHECK(of(apart, "saved") + of(apart, "working") > of(many, "saved") + of(many, "working"));
  }
  // By halves, too: what they take is in sum what a forward would by itself.
  const std::string sizes = "costs -o - --layers 4 --device h100 --recompute attention,activations";
  const json apart = run_json(sizes)["costs"];
  const json inside = run_json(sizes + " --recompute-inside")["costs"];
  const auto number = [](const json& one, const char* what) {
    return one[what].get<std::int64_t>();
  };
  for (std::size_t at = 0; at < apart.size(); ++at) {
    CHECK_FALSE(inside[at].contains("memory_recompute"));
    CHECK(number(inside[at], "forward") == number(apart[at], "forward"));
    CHECK(number(inside[at], "memory_forward") ==
          number(apart[at], "memory_forward") - number(apart[at], "memory_recompute"));
    CHECK(number(inside[at], "backward_input") + number(inside[at], "backward_weight") >
          number(apart[at], "backward_input") + number(apart[at], "backward_weight"));
  }
}

TEST_CASE("what runs again is told by words that go together") {
  tool_tests::check_refused(
      "memory 1f1b --ranks 2 --microbatches 2 --layers 4",
      {{"--recompute some", "--recompute some: expected none, full, layers, layers:N, or some of"},
       {"--recompute norms,some", "--recompute norms,some: expected none"},
       {"--recompute norms,full", "--recompute norms,full: full goes with no other"},
       {"--recompute none,norms", "--recompute none,norms: none goes with no other"},
       {"--recompute norms,norms", "--recompute norms,norms: has norms twice"},
       {"--recompute norms,", "--recompute norms,: has an empty word"},
       {"--recompute ,norms", "--recompute ,norms: expected none"},
       {"--recompute layers,norms", "--recompute layers,norms: layers goes with no other"},
       {"--recompute layers:", "--recompute layers:: expected a number of layers, from 1"},
       {"--recompute layers:0", "--recompute layers:0: expected a number of layers, from 1"},
       {"--recompute layers:2x", "--recompute layers:2x: expected a number of layers, from 1"},
       {"--recompute layers:2,norms", "--recompute layers:2,norms: expected a number of layers"},
       {"--recompute norms,attention --attention fused",
        "--recompute norms,attention: --attention fused keeps none of that"},
       {"--recompute-inside", "--recompute-inside: has a meaning only with --recompute"},
       {"--recompute layers --recompute-inside", "--recompute-inside: --recompute layers is so"},
       {"--recompute norms --recompute-inside --recompute-of 2 --recompute-count 1",
        "--recompute-of 2: does not go with --recompute-inside"},
       {"--slices 2 --recompute norms --recompute-inside", "a slice cannot be recomputed"}});
  CHECK(run("memory inference --ranks 2 --microbatches 2 --layers 4 --recompute norms "
            "--recompute-inside")
            .err.starts_with("stretto: --recompute norms: inference has no backward"));
}

TEST_CASE("layer by layer all that is kept is inputs, and what is brought back is one layer's") {
  const std::string model =
      " --hidden 1024 --heads 16 --sequence 1024 --vocabulary 1024 --format json --recompute ";
  const std::string step = "1f1b --ranks 4 --microbatches 8 ";
  const auto told = [&](const std::string& what) {
    const outcome ran = run("memory " + step + "--layers 32" + model + what);
    REQUIRE(ran.exit == 0);
    return json::parse(ran.out)["need"];
  };
  const json layers = told("layers"), full = told("full"), none = told("none");
  const std::int64_t input = 2 * 1024 * 1024, layer = 34 * 1024 * 1024 + 5 * 16 * 1024 * 1024;
  // The second rank has at most three micro-batches in flight, each with a message and 7 inputs.
  CHECK(of(layers[1], "saved") == 3 * 7 * input);
  CHECK(of(none[1], "saved") == 3 * (8 * layer - input));
  CHECK(of(full[1], "saved") >= 8 * layer - input);
  CHECK(of(layers[1], "working") > layer);
  CHECK(of(layers[1], "working") < 2 * layer);
  CHECK(of(layers[1], "total") * 2 < of(full[1], "total") - of(full[1], "state") +
                                         2 * of(full[1], "state"));
  // Of some of a stage's layers, the others keep all.
  const json two = told("layers:2"), eight = told("layers:8");
  CHECK(of(two[1], "saved") == 3 * (6 * layer + input));
  CHECK(eight == layers);
  CHECK(told("layers:100") == layers);
  CHECK(run("costs --layers 4 --recompute layers:2").err ==
        "stretto: --recompute layers:2: which layers are the first of a stage is not known here\n");
  // By layer's costs a step is told to take as much, and the forwards again.
  const test_support::temporary file("layers.json");
  const auto compared = [&](const std::string& what) {
    REQUIRE(run("costs --device h100 --layers 32 --tensor-parallel 1 -o " + file.path() +
                model.substr(0, model.find(" --format")) + " --recompute " + what)
                .exit == 0);
    return json::parse(
        run("simulate " + step + "--layers even:32 --format json --layer-costs " + file.path())
            .out);
  };
  const json once = compared("none"), again = compared("layers");
  CHECK(again["makespan"].get<double>() > 1.2 * once["makespan"].get<double>());
  CHECK(again["makespan"].get<double>() < 1.5 * once["makespan"].get<double>());
  tool_tests::check_refused(
      "memory " + step + "--layers 32 --recompute layers",
      {{"--recompute-of 2 --recompute-count 1",
        "--recompute-of 2: does not go with --recompute layers"},
       {"--slices 2", "--recompute layers: a slice cannot be recomputed"}});
  // Of halves the first leaves to the second what it needs of a layer's second run.
  const auto halves = [&](const std::string& what) {
    return run_json("memory zb_h1 --ranks 4 --microbatches 8 --layers 32" + model + what)["need"];
  };
  const json once_split = halves("none"), layers_split = halves("layers");
  const json inside = halves("attention,feed-forward --recompute-inside");
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(of(layers_split[rank], "saved") <= of(inside[rank], "saved"));
    CHECK(of(inside[rank], "saved") < of(once_split[rank], "saved"));
    CHECK(of(layers_split[rank], "saved") > of(layers[rank], "saved"));
    CHECK(of(layers_split[rank], "total") < of(once_split[rank], "total"));
  }
  CHECK(run("memory inference --ranks 2 --microbatches 2 --layers 4 --recompute layers")
            .err.starts_with("stretto: --recompute layers: inference has no backward"));
}

TEST_CASE("in a pair, a forward that runs again is given no second stash beside the other's") {
  const std::string llama =
      "memory paired_1f1b --ranks 4 --microbatches 16 --layers even:32 --architecture llama"
      " --attention fused --hidden 4096 --heads 32 --kv-heads 8 --feed-forward 14336"
      " --vocabulary 128256 --sequence 8192 --tensor-parallel 8 --sequence-parallel"
      " --recompute full --format json --limit ";
  const outcome ran = run(llama + "6600");
  REQUIRE(ran.exit == 0);
  const json all = json::parse(ran.out);
  for (const json& need : all["need"]) {
    CHECK(of(need, "total") - of(need, "messages") <= of(need, "jobs"));
    CHECK(of(need, "jobs") <= std::int64_t{6600} << 20);
  }
  CHECK(run(llama + "6582").exit == 1);
}

}  // namespace
