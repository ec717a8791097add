// What data-parallel replicas sum of their gradients, and which numbers of them go together.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;

std::int64_t need(const json& all, std::size_t rank, const char* what) {
  return all["need"][rank][what].get<std::int64_t>();
}

TEST_CASE("of experts' gradients the copies are of those that replicas sum") {
  const auto sums = [](const std::string& options) {
    return need(run_json("memory 1f1b --ranks 4 --microbatches 4 --layers 4 --experts 8 " +
                         options + " --format json"),
                1, "sums");
  };
  // A layer's attention, norms and router; each expert has one holder.
  const std::int64_t others = 4 * 1024 * 1024 + 9 * 1024 + 8 * 1024 - 1024;
  const std::int64_t expert = 2 * 4 * 1024 * 1024 + 5 * 1024;
  const auto alone = sums("--data-parallel 8 --expert-parallel 8");
  CHECK(sums("--data-parallel 8 --expert-parallel 4") - alone == 4 * 2 * expert);
  CHECK(sums("--data-parallel 8") - alone == 4 * 8 * expert);
  MESSAGE(alone, " of ", 4 * others);
  CHECK(alone == 16842752);
  // Both directions' replicas sum all that their ranks hold.
  const auto both = [](const std::string& options) {
    return need(run_json("memory dualpipe --ranks 2 --microbatches 4 --layers 4 --experts 8 "
                       "--format json " +
                       options),
              0, "sums");
  };
  CHECK(both("--data-parallel 8 --expert-parallel 8") > 2 * expert);
}

TEST_CASE("weights and what the optimizer keeps are dealt among replicas that divide one another") {
  const auto refused = [](const std::string& options) {
    const outcome ran = run("memory 1f1b --ranks 2 --microbatches 4 --layers 4 " + options);
    CHECK(ran.exit == 2);
    return ran.err;
  };
  CHECK(refused("--weight-shards 4 --optimizer-shards 8 --data-parallel 4") ==
        "stretto: --optimizer-shards 8: --data-parallel 4 is no multiple of it\n");
  const std::string two = "memory 1f1b --ranks 2 --microbatches 4 --layers 4 --format json ";
  CHECK(run_json(two + "--weight-shards 4 --optimizer-shards 8") ==
        run_json(two + "--weight-shards 4 --optimizer-shards 8 --data-parallel 8"));
  CHECK(refused("--weight-shards 8 --optimizer-shards 3") ==
        "stretto: --optimizer-shards 3: is no multiple of --weight-shards 8, among whom what the "
        "optimizer keeps is dealt with the weights\n");
  CHECK(run("memory 1f1b --ranks 2 --microbatches 4 --layers 4 --weight-shards 4 "
            "--optimizer-shards 8 --data-parallel 8")
            .exit == 0);
  CHECK(refused("--sequence 4194304").find("--sequence 4194304 ") != std::string::npos);
  CHECK(run("memory 1f1b --ranks 2 --microbatches 2 --layers 4 --experts 4 --shared-experts 0")
            .exit == 0);
}

TEST_CASE("copies of gradients that replicas sum have a column of their own, where there are any") {
  const std::string two = " --ranks 2 --microbatches 4 --layers 4 ";
  const auto columns = [&](const std::string& name, const std::string& options) {
    const outcome ran = run("memory " + name + two + options);
    REQUIRE(ran.exit == 0);
    CHECK((ran.out.find("copies of gradients") != std::string::npos) ==
          (ran.out.find("messages  sums  working  total") != std::string::npos));
    return ran.out.find("sums") != std::string::npos;
  };
  CHECK_FALSE(columns("1f1b", ""));
  CHECK(columns("1f1b", "--optimizer-shards 2"));  // among replicas, whose gradients are summed
  CHECK(columns("1f1b", "--data-parallel 4 --optimizer-shards 2"));
  CHECK(columns("dualpipe", ""));
  // 12 h^2 + 13 h weights a layer, two layers a rank, the embedding (or the head) beside.
  const json all = run_json("memory 1f1b" + two +
                            "--hidden 512 --heads 8 --sequence 64 "
                            "--vocabulary 1000 --data-parallel 3 --format json");
  CHECK(need(all, 0, "sums") == 4 * (2 * (12 * 512 * 512 + 13 * 512) + 1064 * 512));
  CHECK(need(all, 1, "sums") == 4 * (2 * (12 * 512 * 512 + 13 * 512) + 1002 * 512));
  // Gradients in single precision are summed where they are, those of a table that both ends have,
  // too: nothing is added to what one replica has.
  for (const std::string precision : {"single", "mixed_wide_gradients", "fp8"})
    for (const std::string name : {"1f1b", "dualpipe"})
      for (const std::string head : {"", " --tied-head"}) {
        const std::string in_place = "--precision " + precision + head;
        CHECK_FALSE(columns(name, in_place + " --data-parallel 2"));
        CHECK(run_json("memory " + name + two + in_place + " --data-parallel 2 --format json") ==
              run_json("memory " + name + two + in_place + " --format json"));
      }
  const auto refused = [&](const std::string& command) {
    const outcome ran = run("memory " + command);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(refused("inference" + two + "--data-parallel 2") ==
        "stretto: --data-parallel 2: inference has no gradients to sum\n");
  CHECK(refused("1f1b" + two + "--data-parallel 6 --optimizer-shards 4") ==
        "stretto: --optimizer-shards 4: --data-parallel 6 is no multiple of it\n");
  CHECK(refused("1f1b --ranks 1 --microbatches 1 --layers 1000 --hidden 10240 --data-parallel 2") ==
        "stretto: --layers 1000: the gradients of stage 0 take 5037860208640 bytes in single "
        "precision, in which replicas sum them, and may take 2^40\n");
}

}  // namespace
