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

std::int64_t of(const json& need, const char* what) { return need[what].get<std::int64_t>(); }

TEST_CASE("no rank's state, gathered weights and saved need more than its limit is held against") {
  stretto::schedule::all::for_each([](const auto& made) {
    stretto::shape sizes{.ranks = 4, .microbatches = 8};
    if (!made.supports(sizes).ok()) sizes.chunks = 2;
    int told = 0;
    for (const char* recompute :
         {"none", "attention", "norms", "full", "full --recompute-of 3 --recompute-count 2"}) {
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
    CHECK(told == (made.name == "inference" ? 1 : 5));
  });
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
