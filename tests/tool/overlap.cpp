#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;

const std::string gpt_layers =
    "overlap --hidden 4096 --heads 32 --sequence 2048 --tensor-parallel ";

TEST_CASE(
    "of GPT-3 6.7B's layers nearly all that can be hidden is hidden, and more by each order") {
  for (const char* t : {"2", "4", "8"}) {
    CAPTURE(t);
    const json all = run_json(gpt_layers + t + " --format json");
    REQUIRE(all["jobs"].size() == 3);
    for (const json& job : all["jobs"]) {
      const json& orders = job["orders"];
      const auto hidden = [&](std::size_t at) { return orders[at]["hidden"].get<double>(); };
      const std::size_t last = orders.size() - 1;
      CHECK(hidden(last) >= hidden(last - 1));
      CHECK(hidden(last) <= job["ceiling"].get<double>());
      // NCCL's blocks hold 8 of 132 multiprocessors while they run.
      CHECK(job["ceiling"].get<double>() == doctest::Approx(1 - 8.0 / 132).epsilon(0.001));
      for (const json& way : orders)
        CHECK(way["ns"].get<std::int64_t>() >= job["bound_ns"].get<std::int64_t>());
    }
    const json& backward = all["jobs"][1]["orders"];
    CHECK(backward[0]["hidden"].get<double>() == doctest::Approx(0));  // one stream
    CHECK(backward[2]["hidden"].get<double>() > 0.7);                  // input gradient first
    const json& both = all["jobs"][2];
    CHECK(both["orders"][2]["hidden"].get<double>() >= 0.95 * both["ceiling"].get<double>());
    const json& step = all["step"];
    CHECK(step["paired_1f1b_ns"].get<std::int64_t>() < step["1f1b_ns"].get<std::int64_t>());
    // Of 4 ranks the first keeps 4 forwards, and with pairs 2 * 4 - 1 and the one beside a
    // backward.
    const auto bytes = [&](const char* name) { return step[name].get<double>(); };
    CHECK(bytes("paired_1f1b_bytes") / bytes("1f1b_bytes") == doctest::Approx(2).epsilon(0.01));
  }
}

TEST_CASE(
    "of Llama's layers fused attention takes less, and what sequences share hides in pieces") {
  const std::string llama =
      "overlap --architecture llama --hidden 4096 --heads 32 --kv-heads 8 --feed-forward 14336 "
      "--sequence 8192 --tensor-parallel 8 --device h100 --format json ";
  const json plain = run_json(llama);
  const json fused = run_json(llama + "--attention fused");
  const json shared = run_json(llama + "--attention fused --sequence-parallel");
  for (std::size_t job = 0; job < 3; ++job) {
    CAPTURE(job);
    const auto of = [&](const json& all, const char* what) {
      return all["jobs"][job][what].get<std::int64_t>();
    };
    CHECK(of(fused, "compute_ns") < of(plain, "compute_ns"));
    CHECK(of(fused, "communication_ns") == of(plain, "communication_ns"));
    // A gather and a scatter are a sum, in two launches; a backward gathers what both norms made
    // once more, for its weights, and what came in once for both.
    const auto passes = [&](const json& all) { return of(all, "communication_ns"); };
    const double launches = 6000 * (job == 0 ? 2 : job == 1 ? 4 : 6);
    const double ratio = job == 0 ? 1 : job == 1 ? 1.5 : 1.25;
    CHECK(static_cast<double>(passes(shared)) - launches ==
          doctest::Approx(ratio * static_cast<double>(passes(fused))).epsilon(0.01));
    const json& orders = shared["jobs"][job]["orders"];
    const double pieces = orders[orders.size() - 1]["hidden"].get<double>();
    CHECK(pieces > (job == 0 ? 0.4 : 0.7));
    CHECK(pieces > orders[orders.size() - 2]["hidden"].get<double>());
  }
}

TEST_CASE("a backward hides more of another forward's way to its experts than that does itself") {
  const std::string experts =
      "overlap --architecture llama --attention fused --hidden 4096 --heads 32 --feed-forward 2048 "
      "--experts 64 --experts-per-token 6 --shared-experts 2 --sequence 4096 --tensor-parallel 1 "
      "--format json --expert-parallel ";
  const json near = run_json(experts + "8");
  const json far = run_json(experts + "8 --network 100 --node-devices 1");
  const json alone = run_json(experts + "1");
  CHECK(near["expert_parallel"] == 8);
  for (std::size_t job = 0; job < 3; ++job) {
    CAPTURE(job);
    const auto of = [&](const json& all, const char* what) {
      return all["jobs"][job][what].get<std::int64_t>();
    };
    CHECK(of(alone, "communication_ns") == 0);
    CHECK(of(near, "communication_ns") > 0);
    // Within a node nothing goes over the network. But for launches, as many times longer as the
    // rate of a H200's links is that of the network.
    CHECK(static_cast<double>(of(far, "communication_ns")) ==
          doctest::Approx(3.7 * static_cast<double>(of(near, "communication_ns"))).epsilon(0.05));
    CHECK(of(far, "compute_ns") == of(near, "compute_ns"));
    CHECK(run_json(experts + "8 --network 100")["jobs"][job] == near["jobs"][job]);
  }
  const auto hidden = [&](std::size_t job) {
    return far["jobs"][job]["orders"].back()["hidden"].get<double>();
  };
  CHECK(hidden(0) > 0);
  CHECK(hidden(2) > hidden(0));
}

TEST_CASE(
    "what a stage keeps is told of scores of two TiB, too, and refused where it leaves 2^46") {
  const std::string huge =
      "overlap --hidden 64 --heads 2 --tensor-parallel 2 --format json --sequence ";
  const double bytes = run_json(huge + "1048576")["step"]["1f1b_bytes"].get<double>();
  // Softmax and what dropout makes of it, of two bytes, and the mask: of 4 forwards; and their
  // gradient.
  CHECK(bytes / ((4 * 5 + 2) * 1048576.0 * 1048576.0) == doctest::Approx(1).epsilon(0.001));
  const outcome far =
      run("overlap --hidden 64 --heads 64 --tensor-parallel 1 --vocabulary 1 --sequence 1048576 "
          "--format json");
  CHECK(far.exit == 2);
  CHECK(far.out.empty());
  CHECK(
      far.err ==
      "stretto: --sequence 1048576 --batch 1: \"scores\" takes 140737488355328 bytes, and a buffer "
      "may have at most 2^46\n");
}

// Where the orders themselves are not looked at: communication that holds no multiprocessors is put
// in order the fastest.
const std::string soon_ordered = gpt_layers + "2 --copy-engine ";

TEST_CASE("a step is never longer with pairs, and as long where there are none") {
  for (const char* sizes : {"--ranks 1 --microbatches 8", "--ranks 32 --microbatches 4"}) {
    const json step = run_json(soon_ordered + "--format json " + sizes)["step"];
    CHECK(step["paired_1f1b_ns"].get<std::int64_t>() < step["1f1b_ns"].get<std::int64_t>());
  }
  const outcome said = run(soon_ordered + "--ranks 32 --microbatches 1");
  CHECK(said.exit == 0);
  CHECK(said.out.find("pairs gain nothing") != std::string::npos);
  // What it says of pairs is what other commands take.
  CHECK_MESSAGE(said.out.find("hides 5.1 % of the shorter (--hides 5).\n") != std::string::npos,
                said.out);
}

TEST_CASE("less than a percent that pairs hide is not lost") {
  const json all = run_json(
      "overlap --device v100 --hidden 8192 --heads 64 --sequence 4096 --tensor-parallel 2 "
      "--microbatches 8 --format json");
  const auto shortest = [&](std::size_t job) {
    std::int64_t least = INT64_MAX;
    for (const json& way : all["jobs"][job]["orders"])
      least = std::min(least, way["ns"].get<std::int64_t>());
    return least;
  };
  const std::int64_t shorter = std::min(shortest(0), shortest(1));
  const std::int64_t saved = shortest(0) + shortest(1) - shortest(2);
  REQUIRE(saved > 0);
  REQUIRE(100 * saved < shorter);
  const std::int64_t gained = all["step"]["1f1b_ns"].get<std::int64_t>() -
                              all["step"]["paired_1f1b_ns"].get<std::int64_t>();
  CHECK(all["hides"].get<double>() ==
        doctest::Approx(100 * static_cast<double>(saved) / static_cast<double>(shorter)));
  // One by one they make the steady part shorter, of which there are fewer than micro-batches.
  CHECK(gained >= saved);
  CHECK(gained <= 8 * saved);
}

TEST_CASE("orders with more collectives under way than are asked for are left out") {
  const auto orders = [](const std::string& options) {
    json named = json::object();
    const json jobs = run_json("overlap --format json " + options)["jobs"];
    for (const json& way : jobs[1]["orders"]) named[way["order"]] = way["ns"];
    return named;
  };
  const std::string experts =
      "--hidden 4096 --heads 32 --sequence 2048 --experts 8 --expert-parallel 8 "
      "--tensor-parallel 1 --outstanding ";
  CHECK(orders(experts + "0").contains("input gradient first"));
  const json one = orders(experts + "1");
  CHECK(!one.contains("input gradient first"));
  CHECK(one["look-ahead"] <= one["as the program"]);
  // A bound that keeps out none changes nothing.
  const std::string fused =
      "--device h200 --hidden 4096 --heads 16 --sequence 1024 --tensor-parallel 2 "
      "--attention fused --outstanding ";
  CHECK(orders(fused + "1000") == orders(fused + "0"));
}

TEST_CASE("single precision computes at its own rate, and sends twice as much") {
  const auto jobs = [](const char* precision) {
    return run_json(std::string("overlap --device v100 --hidden 4096 --heads 32 --sequence 2048 "
                                "--attention fused --copy-engine --format json --precision ") +
                    precision)["jobs"];
  };
  const json mixed = jobs("mixed"), single = jobs("single");
  const auto ratio = [&](const char* what) {
    return single[0][what].get<double>() / mixed[0][what].get<double>();
  };
  // A V100 has tensor cores for half precision alone.
  CHECK(ratio("compute_ns") > 6);
  CHECK(ratio("compute_ns") <= 8);
  CHECK(ratio("communication_ns") == doctest::Approx(2).epsilon(0.02));
}

TEST_CASE("products in FP8 take up to half as long, and what they read is sent in half the bytes") {
  const auto forward = [](const std::string& rest) {
    return run_json("overlap --device h200 --hidden 8192 --heads 64 --sequence 4096 "
                    "--attention fused --copy-engine --format json --tensor-parallel 4 "
                    "--sequence-parallel --precision " + rest)["jobs"][0];
  };
  const json wide = forward("mixed_wide_gradients"), narrow = forward("fp8");
  const auto ratio = [&](const char* what) {
    return narrow[what].get<double>() / wide[what].get<double>();
  };
  // Attention, norms and the like take as long.
  CHECK(ratio("compute_ns") < 0.7);
  CHECK(ratio("compute_ns") > 0.5);
  // Of as many gathers as scatters.
  CHECK(ratio("communication_ns") == doctest::Approx(0.75).epsilon(0.02));
}

TEST_CASE("a trace has every op on the track of its stream") {
  const json trace = run_json(soon_ordered + "--trace -");
  int tracks = 0;
  int sums = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") {
      ++tracks;
      CHECK((event["args"]["name"] == "compute" || event["args"]["name"] == "tensor_parallel"));
    } else if (event["tid"] == 1) {
      ++sums;
    }
  }
  CHECK(tracks == 2);
  CHECK(sums >= 4);
}

TEST_CASE("what does not fit is named") {
  const auto complaint = [](const std::string& words) {
    const outcome said = run("overlap " + words);
    CHECK(said.exit == 2);
    return said.err;
  };
  CHECK(complaint("--device abacus") ==
        "stretto: --device abacus: no such device; there are h200, h100, a100, v100, host\n");
  CHECK(complaint("--heads 3").find("--heads 3: --hidden is no multiple of it") !=
        std::string::npos);
  CHECK(complaint("--tensor-parallel 3").find("--tensor-parallel 3") != std::string::npos);
  CHECK(complaint("--layers 0").find("--layers") != std::string::npos);
  CHECK(complaint("--tensor-parallel 1 --network 50") ==
        "stretto: --network 50: has a meaning only with --tensor-parallel, --context-parallel or "
        "--expert-parallel\n");
}

}  // namespace
