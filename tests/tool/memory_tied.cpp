// A head that is tied to the embedding: one matrix on a rank that has both ends, else two, summed.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::run_json;

constexpr std::int64_t hidden = 512, vocabulary = 32768, table = hidden * vocabulary;

json needs(const std::string& schedule, const std::string& options) {
  const json all = run_json("memory " + schedule +
                            " --microbatches 8 --layers 16 --heads 8 --sequence 256 --format json "
                            "--hidden " +
                            std::to_string(hidden) + " --vocabulary " + std::to_string(vocabulary) +
                            " " + options);
  return all.contains("need") ? all["need"] : all;
}

//! How much less a rank's number is with a tied head.
std::int64_t saved(const std::string& schedule, const std::string& options, std::size_t rank,
                   const char* what) {
  const json apart = needs(schedule, options), tied = needs(schedule, options + " --tied-head");
  CAPTURE(apart.dump());
  CAPTURE(tied.dump());
  REQUIRE(apart.is_array());
  REQUIRE(tied.is_array());
  return apart[rank][what].get<std::int64_t>() - tied[rank][what].get<std::int64_t>();
}

TEST_CASE("a rank that has both ends has the tied matrix once") {
  // In mixed precision 16 bytes a weight.
  for (const char* v : {"zbv", "v_half", "v_1f1b", "zbv_greedy"}) {
    CAPTURE(v);
    CHECK(saved(v, "--ranks 4 --chunks 2", 0, "state") == 16 * table);
    CHECK(saved(v, "--ranks 4 --chunks 2", 0, "activations") == 0);
    for (const std::size_t other : {1u, 3u})
      CHECK(saved(v, "--ranks 4 --chunks 2", other, "total") == 0);
  }
  CHECK(saved("1f1b", "--ranks 1", 0, "total") == 16 * table);
  CHECK(saved("hanayo", "--ranks 4 --chunks 4", 0, "state") == 16 * table);
  CHECK(saved("inference", "--ranks 1", 0, "total") == 2 * table);
  // In either direction a rank at the end has both.
  for (const std::size_t end : {0u, 3u}) {
    CHECK(saved("dualpipe", "--ranks 4", end, "state") == 16 * table);
    CHECK(saved("dualpipe", "--ranks 4", end, "sums") == 4 * table);
  }
  CHECK(saved("dualpipe", "--ranks 4", 1, "total") == 0);
  // Replicas sum its gradients once, and hold parts of it.
  CHECK(saved("zbv", "--ranks 4 --chunks 2 --data-parallel 2", 0, "sums") == 4 * table);
  CHECK(saved("zbv", "--ranks 4 --chunks 2 --tensor-parallel 2", 0, "state") == 8 * table);
  CHECK(saved("zbv", "--ranks 4 --chunks 2 --optimizer-shards 4", 0, "state") ==
        (4 + 12 / 4) * table);
}

TEST_CASE("two ranks at the ends have a copy each of the tied matrix, whose gradients they sum") {
  const auto sums = [](const std::string& schedule, const std::string& options) {
    const json all = needs(schedule, options + " --tied-head");
    CAPTURE(all.dump());
    std::string text;
    for (const json& one : all)
      text += std::to_string(one["sums"].get<std::int64_t>() / table) + " ";
    return text;
  };
  for (const char* other : {"1f1b", "zb_h1", "gpipe"}) {
    CAPTURE(other);
    CHECK(saved(other, "--ranks 4", 0, "state") == 0);
    CHECK(sums(other, "--ranks 4") == "4 0 0 4 ");
  }
  CHECK(sums("interleaved", "--ranks 4 --chunks 2") == "4 0 0 4 ");
  CHECK(sums("hanayo", "--ranks 4 --chunks 3") == "4 0 0 4 ");
  CHECK(sums("zbv", "--ranks 4 --chunks 2") == "0 0 0 0 ");
  CHECK(sums("inference", "--ranks 4") == "0 0 0 0 ");
  // Beside what replicas sum of all stages.
  CHECK(-saved("1f1b", "--ranks 4 --data-parallel 2", 0, "sums") == 4 * table);
  CHECK(saved("1f1b", "--ranks 4 --data-parallel 2", 1, "total") == 0);
}

TEST_CASE("a tied head is not in pieces") {
  tool_tests::check_refused(
      "memory zbv --ranks 2 --chunks 2 --microbatches 4 --layers 8 --tied-head",
      {{"--head-pieces 2", "--head-pieces 2: cuts no head that is tied (--tied-head)"}});
  tool_tests::check_refused("memory 1f1b --ranks 2 --microbatches 4 --layers 2 --tied-head",
                            {{"--vocabulary 16777216 --hidden 65536 --heads 64 --sequence 1 ",
                              "the gradients of the tied head take 4398046511104 bytes in single "
                              "precision, in which both ends sum them, and may take 2^40"}});
}

}  // namespace
