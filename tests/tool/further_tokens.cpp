// Layers with the head that foretell further tokens: who holds them, what they take, what is
// refused.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::run;
using tool_tests::run_json;

constexpr std::int64_t features = 512, tokens = 32768, table_bytes = 16 * features * tokens;
//! Of a layer like GPT's, with what begins it and a norm of its own for the head; mixed precision.
constexpr std::int64_t further_bytes =
    16 * (12 * features * features + 13 * features + 2 * features * features + 3 * 2 * features);
const std::string narrow = " --microbatches 8 --hidden 512 --vocabulary 32768 --sequence 256 ";

json ranks_of(const std::string& schedule, const std::string& options) {
  return run_json("memory " + schedule + narrow + "--layers 16 --format json " + options)["need"];
}

//! How much more a rank's number is with one such layer.
std::int64_t more(const std::string& schedule, const std::string& options, std::size_t rank,
                  const char* what) {
  const json without = ranks_of(schedule, options);
  const json with = ranks_of(schedule, options + " --further-tokens 1");
  CAPTURE(with.dump());
  REQUIRE(with.size() == without.size());
  return with[rank][what].get<std::int64_t>() - without[rank][what].get<std::int64_t>();
}

TEST_CASE("memory: the rank with the head has them, and a table where it has none") {
  CHECK(more("1f1b --ranks 4", "", 3, "state") == further_bytes + table_bytes);
  CHECK(more("zbv --ranks 4 --chunks 2", "", 0, "state") == further_bytes);
  CHECK(more("1f1b --ranks 1", "", 0, "state") == further_bytes);
  CHECK(more("1f1b --ranks 4", "--tied-head", 3, "state") == further_bytes);
  for (const std::size_t rank : {0u, 1u, 2u}) CHECK(more("1f1b --ranks 4", "", rank, "state") == 0);
  // Of both tables the gradients are summed by the ranks at the ends, as of a tied head.
  for (const std::size_t end : {0u, 3u}) {
    CHECK(more("1f1b --ranks 4", "", end, "sums") == table_bytes / 4);
    CHECK(more("1f1b --ranks 4", "--tied-head", end, "sums") == 0);
  }
  CHECK(more("1f1b --ranks 4", "", 1, "sums") == 0);
  CHECK(more("zbv --ranks 4 --chunks 2", "", 0, "sums") == 0);
  // Forwards alone foretell them, too.
  CHECK(more("inference --ranks 4", "", 3, "state") == (further_bytes + table_bytes) / 8);
  CHECK(more("inference --ranks 4", "", 3, "sums") == 0);
  CHECK(more("1f1b --ranks 4", "", 3, "saved") > 0);
  CHECK(more("1f1b --ranks 4", "", 2, "saved") == 0);
}

TEST_CASE("memory: balanced layers make room for them") {
  const auto last = [](const std::string& more_options) {
    const json all = run_json(
        "memory 1f1b --ranks 4 --microbatches 8 --hidden 512 --vocabulary 512 "
        "--sequence 256 --layers balanced:16 --format json " +
        more_options);
    return all["need"][3]["layers"].get<int>();
  };
  CHECK(last("") == 4);
  CHECK(last("--further-tokens 2") == 2);  // of 18 that take the same, with two more
}

TEST_CASE("costs: the layer with the head takes and keeps them") {
  const auto last = [](const std::string& options) {
    const json all =
        run_json("costs --layers 4 --hidden 2048 --heads 16 --sequence 2048 -o - " + options);
    return all["costs"].back();
  };
  const json without = last(""), with = last("--further-tokens 1");
  for (const char* what : {"forward", "backward_input", "backward_weight", "memory_forward",
                           "memory_weights"}) {
    CAPTURE(what);
    CHECK(with[what].get<double>() > 1.5 * without[what].get<double>());
  }
  CHECK(run("costs --layers 4 --further-tokens 1").out.find(
            "the last the head, and a layer that foretells a further token.") != std::string::npos);
  CHECK(run("costs --layers 4 --further-tokens 2 --ends-apart").out.find(
            "the last the head, and 2 layers that foretell further tokens.") != std::string::npos);
}

TEST_CASE("heads and layouts that do not go with further tokens are refused") {
  tool_tests::check_refused(
      "memory 1f1b --ranks 2" + narrow + "--further-tokens 1",
      {{"--head-pieces 2",
        "--head-pieces 2: cuts no head that foretells further tokens (--further-tokens)"},
       {"--layers 'Ett|tmL'", "--layers Ett|tmL: has m, a layer that foretells a further token"}});
  tool_tests::check_refused("costs --layers 4", {{"--further-tokens 65", "--further-tokens 65"},
                                                 {"--further-tokens -1", "--further-tokens -1"}});
}

}  // namespace
