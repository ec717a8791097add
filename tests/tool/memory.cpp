#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;

const std::string gpt =
    " --ranks 8 --microbatches 16 --layers 96 --hidden 12288 --heads 96 --sequence 2048"
    " --tensor-parallel 8 --format json ";

std::int64_t of(const json& all, std::size_t rank, const char* what) {
  return all["need"][rank][what].get<std::int64_t>();
}

TEST_CASE("1F1B keeps a share of the model less on each rank") {
  const json all = run_json("memory 1f1b" + gpt);
  // Korthikanti et al. 2022: 10 s b h + (24 s b h + 5 a s^2 b) / t bytes for each of 12 layers.
  const std::int64_t sbh = std::int64_t{2048} * 12288;
  const std::int64_t as2b = std::int64_t{96} * 2048 * 2048;
  const std::int64_t share = 12 * (10 * sbh + (24 * sbh + 5 * as2b) / 8);
  for (std::size_t rank = 1; rank < 6; ++rank)
    CHECK(of(all, rank, "activations") - of(all, rank + 1, "activations") == share);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    CHECK(of(all, rank, "layers") == 12);
    CHECK(of(all, rank, "total") == of(all, rank, "state") + of(all, rank, "activations"));
  }
  CHECK(of(all, 0, "state") > of(all, 1, "state"));  // the embedding
  const json single = run_json("memory 1f1b" + gpt + "--precision single");
  CHECK(of(single, 1, "state") == of(all, 1, "state"));  // 16 bytes a weight
  CHECK(of(single, 1, "activations") > of(all, 1, "activations"));
  const json more = run_json("memory 1f1b" + gpt + "--batch 2");
  CHECK(of(more, 1, "activations") == 2 * of(all, 1, "activations"));
  CHECK(of(more, 1, "state") == of(all, 1, "state"));
}

TEST_CASE("layers are dealt as `assign` deals them") {
  const auto layers = [](const std::string& text) {
    std::string made;
    const json all = run_json(
        "memory interleaved --ranks 2 --microbatches 4 --chunks 2 --hidden 64 "
        "--heads 4 --sequence 32 --format json --layers '" +
        text + "'");
    for (const json& need : all["need"]) made += std::to_string(need["layers"].get<int>()) + " ";
    return made;
  };
  CHECK(layers("8") == "4 4 ");
  CHECK(layers("5,3") == "5 3 ");
  CHECK(layers("Ett|tt|ttt|tL") == "5 3 ");
  // The head's product with 50304 tokens is worth more than all layers of this width.
  CHECK(layers("balanced:8") == "6 2 ");
}

TEST_CASE("recomputation saves what it says, for as many micro-batches as it is asked for") {
  const auto most = [](const std::string& arguments) {
    return of(run_json("memory 1f1b" + gpt + arguments), 1, "activations");
  };
  const std::int64_t none = most("");
  const std::int64_t attention = most("--recompute attention");
  const std::int64_t half = most("--recompute full --recompute-of 7 --recompute-count 3");
  const std::int64_t full = most("--recompute full");
  CHECK(none > attention);
  CHECK(attention > full);
  CHECK(none > half);
  CHECK(half > full);
}

TEST_CASE("a limit: at it, one byte under it, far under it") {
  for (const std::string name : {"zbv_greedy", "zb_auto"}) {
    const std::string arguments = "memory " + name +
                                  " --ranks 4 --microbatches 8 --layers 8 --hidden 256 --heads 4 "
                                  "--sequence 128 --chunks " +
                                  (name == "zb_auto" ? "1" : "2");
    const outcome far = run(arguments + " --limit 1");
    CHECK(far.exit == 1);
    CHECK(far.out.empty());
    CHECK(far.err.find(name + ": rule bounded broken on rank ") != std::string::npos);
    // The smallest limit that fits is found, to a byte, and none of less does.
    std::int64_t least = 0;
    std::int64_t enough = std::int64_t{1} << 40;
    const auto fits = [&](std::int64_t bytes) {
      char limit[64];
      std::snprintf(limit, sizeof limit, " --limit %.9f", static_cast<double>(bytes) / (1 << 20));
      const outcome ran = run(arguments + " --format json" + limit);
      if (ran.exit != 0) return false;
      const json all = json::parse(ran.out);
      for (std::size_t rank = 0; rank < 4; ++rank) CHECK(of(all, rank, "total") <= bytes);
      return true;
    };
    while (enough - least > 1) {
      const std::int64_t middle = least + (enough - least) / 2;
      (fits(middle) ? enough : least) = middle;
    }
    const auto mib = (enough + (1 << 20) - 1) >> 20;
    CHECK(far.err.find("(" + std::to_string(mib) + " MiB, at most 1)") != std::string::npos);
  }
}

TEST_CASE("wrong models: exit 2, one line with option and rule") {
  const struct {
    const char* arguments;
    const char* says;
  } cases[] = {
      {"--heads 7", "--heads 7: --hidden is no multiple of it"},
      {"--tensor-parallel 3", "--tensor-parallel 3: --heads and --vocabulary"},
      {"--layers 3", "--layers 3: "},
      {"--layers 0", "--layers 0: "},
      {"--layers 5,4,4", "--layers 5,4,4: "},
      {"--layers some:4", "--layers some:4: "},
      {"--recompute some", "--recompute"},
      {"--recompute full --recompute-of 0", "--recompute-of"},
      {"--limit -4", "--limit"},
      {"--hidden 1048576 --layers 100000", "--hidden 1048576 --layers 100000: the model passes"},
      {"--chunks 2", "1f1b does not serve this: this schedule has one chunk per rank"},
      {"--precision half", "--precision"},
      {"--slices 2", "--slices 2: what slices keep is not estimated"},
  };
  for (const auto& one : cases) {
    INFO(one.arguments);
    const outcome ran = run(std::string("memory 1f1b --ranks 4 --microbatches 8 ") + one.arguments);
    INFO(ran.err);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.find(one.says) != std::string::npos);
    CHECK(std::ranges::count(ran.err, '\n') == 1);
  }
}

}  // namespace
