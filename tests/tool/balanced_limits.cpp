// Balanced layers under a limit, beside every cut that there is.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "run_tool.hpp"
#include "support/sanitized.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

//! All ways to write `layers` as so many stages of one layer at least: `3,1,2`.
void cuts(int layers, int stages, const std::string& before, std::vector<std::string>& all) {
  if (stages == 1) return all.push_back(before + std::to_string(layers));
  for (int first = 1; first <= layers - stages + 1; ++first)
    cuts(layers - first, stages - 1, before + std::to_string(first) + ",", all);
}

std::int64_t peak_of(const json& made) {
  std::int64_t greatest = 0;
  for (const json& rank : made["peak"]) greatest = std::max(greatest, rank.get<std::int64_t>());
  return greatest;
}

//! What any cut needs, each.
std::vector<std::int64_t> peaks(const std::string& step, int layers, int stages) {
  std::vector<std::string> all;
  cuts(layers, stages, "", all);
  std::vector<std::int64_t> made;
  for (const std::string& one : all)
    made.push_back(peak_of(run_json(step + " --layers table:" + one)));
  return made;
}

}  // namespace

TEST_CASE("balanced layers keep to a limit wherever a cut does, if a rank is one stage") {
  std::mt19937 random(20);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  const temporary file("layer_costs.json");
  for (const std::string schedule :
       {"1f1b", "eager_1f1b", "zb_h1", "zb_h1_light", "zb_h2", "gpipe"})
    for (int turn = 0; turn < (test_support::sanitized ? 1 : 4); ++turn) {
      const int ranks = draw(2, 3);
      const int layers = draw(ranks + 1, ranks + 4);
      json costs = json::array();
      for (int layer = 0; layer < layers; ++layer) {
        // It is given back when the backward ends, or half of it before.
        const int memory = 2 * draw(0, 3);
        costs.push_back({{"layer", layer},
                         {"forward", draw(1, 6)},
                         {"backward_input", draw(1, 6)},
                         {"backward_weight", draw(1, 6)},
                         {"memory_forward", memory},
                         {"memory_backward_input", turn % 2 == 0 ? 0 : -memory / 2},
                         {"memory_backward_weight", turn % 2 == 0 ? -memory : -memory / 2},
                         {"memory_weights", draw(0, 6)}});
      }
      file.write(costs.dump());
      const std::string step = "simulate " + schedule + " --ranks " + std::to_string(ranks) +
                               " --microbatches " + std::to_string(draw(2, 6)) +
                               " --format json --layer-costs " + file.path();
      const std::vector<std::int64_t> all = peaks(step, layers, ranks);
      const auto [least, most] = std::minmax_element(all.begin(), all.end());
      CAPTURE(step);
      CAPTURE(costs.dump());
      for (std::int64_t limit = *least - 2; limit <= *most; limit += 2) {
        CAPTURE(limit);
        const outcome made = run(step + " --layers balanced:" + std::to_string(layers) +
                                 " --limit " + std::to_string(limit));
        const bool fits = *least <= limit;
        // Halves of what layers keep are rounded.
        if (turn % 2 == 0 || !fits) CHECK((made.exit == 0) == fits);
        if (made.exit == 0)
          CHECK(peak_of(json::parse(made.out)) <= limit);
        else
          CHECK(made.err.find("memory in use exceeds the rank's limit") != std::string::npos);
      }
    }
}

TEST_CASE("balanced layers: more memory leaves what less of it does") {
  const std::string model =
      " --microbatches 4 --layers balanced:8 --cost 2,4,5,0 --weights 4 --embedding 3,0,0 "
      "--head 6,13,8 --format json --limit ";
  // Dealt as 1F1B would keep to 28, ZB-H2 needs 32; as it keeps to 24 itself it keeps to 28.
  for (const int limit : {24, 26, 28, 30, 32}) {
    const json made = run_json("simulate zb_h2 --ranks 3" + model + std::to_string(limit));
    CAPTURE(limit);
    REQUIRE(made.contains("layers"));
    CHECK(peak_of(made) <= limit);
    CHECK(made["layers"] == (limit < 32 ? json({3, 3, 2}) : json({4, 3, 1})));
  }
  // What is refused says what is needed least.
  CHECK(run("simulate zb_h2 --ranks 3" + model + "22").err.find("the order needs 24 on rank 0") !=
        std::string::npos);
  // An order that is read is dealt to by what it keeps itself.
  const temporary order("order.csv");
  REQUIRE(run("schedule zb_h2 --ranks 3 --microbatches 4 --format csv -o " + order.path()).exit ==
          0);
  std::string step = "simulate --csv " + order.path() + model;
  step.replace(step.find("--microbatches 4 "), 17, "");
  CHECK(run_json(step + "28")["layers"] == json({3, 3, 2}));
  CHECK(run_json(step + "34")["layers"] == json({4, 3, 1}));
}

TEST_CASE("balanced layers of a V: what fits within some memory fits within more") {
  // Of eight ranks whose fullest moments are at different times, and a head that is long and large.
  const temporary file("layer_costs.json");
  file.write(R"([{"forward": 31, "backward_input": 36, "backward_weight": 23, "memory_forward": 69,
                  "memory_backward_input": 0, "memory_backward_weight": -69, "memory_weights": 170},
                 {"layer": 0, "forward": 32, "memory_weights": 581},
                 {"layer": 31, "forward": 100, "backward_input": 93, "backward_weight": 77,
                  "memory_forward": 287, "memory_backward_weight": -287, "memory_weights": 581}])");
  bool fits = false;
  for (int limit = 1900; limit <= 2900; limit += test_support::sanitized ? 250 : 50) {
    const outcome made =
        run("simulate v_half --ranks 8 --microbatches 32 --layers balanced:32 --layer-costs " +
            file.path() + " --format json --limit " + std::to_string(limit));
    CAPTURE(limit);
    CHECK((made.exit == 0 || !fits));
    fits = fits || made.exit == 0;
    if (made.exit == 0) CHECK(peak_of(json::parse(made.out)) <= limit);
  }
  CHECK(fits);
}

TEST_CASE("balanced layers of a search: what a cut keeps to, and a limit that is enough") {
  std::mt19937 random(3);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  const temporary file("layer_costs.json");
  int refusals = 0;
  struct search {
    std::string name;
    int chunks;
  };
  for (const search& of :
       {search{"zb_auto", 1}, {"zbv_greedy", 1}, {"v_auto", 2}, {"zbv_greedy", 2}})
    for (int turn = 0; turn < (test_support::sanitized ? 1 : 3); ++turn) {
      const int ranks = draw(2, 3);
      const int stages = ranks * of.chunks;
      const int layers = draw(stages, stages + 2);
      json costs = json::array();
      for (int layer = 0; layer < layers; ++layer) {
        const int memory = draw(0, 4);
        const int between = draw(0, memory);
        costs.push_back({{"layer", layer},
                         {"forward", draw(1, 6)},
                         {"memory_forward", memory},
                         {"memory_backward_input", -between},
                         {"memory_backward_weight", between - memory},
                         {"memory_weights", draw(0, 6)}});
      }
      file.write(costs.dump());
      const std::string step = "simulate " + of.name + " --ranks " + std::to_string(ranks) +
                               " --chunks " + std::to_string(of.chunks) +
                               " --microbatches 4 --format json --layer-costs " + file.path();
      const std::string balanced = step + " --layers balanced:" + std::to_string(layers);
      std::vector<std::string> all;
      cuts(layers, stages, "", all);
      for (const int limit : {draw(5, 12), draw(13, 20), draw(21, 30)}) {
        const std::string within = " --limit " + std::to_string(limit);
        CAPTURE(balanced + within);
        CAPTURE(costs.dump());
        const bool fits = std::any_of(all.begin(), all.end(), [&](const std::string& one) {
          return run(step + within + " --layers table:" + one).exit == 0;
        });
        const outcome made = run(balanced + within);
        CHECK((made.exit == 0) == fits);
        if (made.exit == 0) {
          CHECK(peak_of(json::parse(made.out)) <= limit);
          continue;
        }
        // Within more, layers are dealt in another way, so that no less may be known to do.
        const std::string words = "a limit of ";
        const std::size_t at = made.err.find(words);
        REQUIRE_MESSAGE(at != std::string::npos, made.err);
        CHECK(made.err.ends_with(" is enough\n"));
        const std::int64_t enough = std::stoll(made.err.substr(at + words.size()));
        CHECK(enough > limit);
        CHECK(run(balanced + " --limit " + std::to_string(enough)).exit == 0);
        ++refusals;
      }
    }
  CHECK(refusals > 2);
}
