// Sequences that several devices share: what each holds, keeps and takes, and what they send.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::run;
using tool_tests::run_json;

const std::string grouped_llama =
    "--architecture llama --attention fused --hidden 1024 --heads 16 --kv-heads 4 "
    "--vocabulary 32000 ";

json needs(const std::string& options) {
  const json all =
      run_json("memory " + options + " --layers 8 --microbatches 8 --format json " + grouped_llama);
  REQUIRE(all.contains("need"));
  return all["need"];
}

TEST_CASE("memory: of a sequence that devices share each keeps what one would of its part") {
  for (const char* schedule : {"1f1b --ranks 4", "zb_h1 --ranks 4", "zbv --ranks 4 --chunks 2",
                               "inference --ranks 4", "dualpipe --ranks 4"})
    for (const char* how : {"gather", "ring"}) {
      CAPTURE(schedule);
      CAPTURE(how);
      const json part = needs(std::string(schedule) + " --sequence 1024");
      const json whole = needs(std::string(schedule) +
                               " --sequence 8192 --context-parallel 8 --context-exchange " + how);
      const bool trains = std::string(schedule).find("inference") == std::string::npos;
      for (std::size_t rank = 0; rank < 4; ++rank) {
        for (const char* what : {"state", "saved", "messages"})
          CHECK(whole[rank][what] == part[rank][what]);
        CHECK(whole[rank]["working"] >= part[rank]["working"]);
        // Gradients are summed as those of replicas are.
        if (trains) CHECK(whole[rank]["sums"].get<std::int64_t>() > 0);
      }
    }
}

TEST_CASE("memory: of heads that devices exchange what each makes is kept twice") {
  const std::string four = "1f1b --ranks 4 --sequence 4096 --context-parallel 4 ";
  const json gathered = needs(four), exchanged = needs(four + "--context-exchange heads");
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto saved = [&](const json& of) { return of[rank]["saved"].get<std::int64_t>(); };
    // Of two layers, for each forward under way.
    const auto under_way = static_cast<std::int64_t>(4 - rank);
    CHECK(saved(exchanged) - saved(gathered) == under_way * 2 * 1024 * 1024 * 2);
  }
}

TEST_CASE("memory: weights and optimizer are dealt among devices that share sequences, too") {
  const std::string four = "1f1b --ranks 4 --sequence 4096 ";
  for (const char* dealt : {"--optimizer-shards 8", "--weight-shards 8"}) {
    CAPTURE(dealt);
    const json alone = needs(four + dealt);
    const json shared = needs(four + dealt + " --context-parallel 4");
    CHECK(shared == needs(four + dealt + " --context-parallel 4 --data-parallel 2"));
    for (std::size_t rank = 0; rank < 4; ++rank)
      for (const char* what : {"state", "sums"}) CHECK(alone[rank][what] == shared[rank][what]);
  }
}

TEST_CASE("memory: a plain attention run again has its keys gathered again") {
  const std::string plain =
      "memory 1f1b --ranks 2 --microbatches 4 --layers 4 --sequence 512 --format json ";
  for (const char* recompute : {"attention", "full"}) {
    CAPTURE(recompute);
    const std::string again = plain + "--recompute " + recompute;
    const json alone = run_json(again + " --batch 1");
    const json shared = run_json(again + " --batch 4 --context-parallel 4");
    for (std::size_t rank = 0; rank < 2; ++rank)
      CHECK(alone["need"][rank]["saved"] == shared["need"][rank]["saved"]);
  }
}

TEST_CASE("costs: devices that share a sequence take their part each, and sum gradients") {
  const auto layer = [](const std::string& options) {
    const json all = run_json("costs --layers 4 --device h100 -o - " + grouped_llama + options);
    return all["costs"][0];
  };
  const json whole = layer("--sequence 65536 --data-parallel 8");
  const json shared = layer("--sequence 65536 --context-parallel 4 --data-parallel 2");
  CHECK(shared["reduce_grad"] == whole["reduce_grad"]);
  CHECK(shared["memory_weights"] == whole["memory_weights"]);
  CHECK(shared["memory_forward"].get<std::int64_t>() * 4 == whole["memory_forward"]);
  for (const char* job : {"forward", "backward_input", "backward_weight"}) {
    CAPTURE(job);
    CHECK(shared[job].get<double>() * 4 == doctest::Approx(whole[job].get<double>()).epsilon(0.1));
    CHECK(shared[job].get<std::int64_t>() * 4 > whole[job].get<std::int64_t>());
  }
  const std::string told =
      run("costs --layers 4 --context-parallel 4 --data-parallel 2 --tensor-parallel 2").out;
  CHECK(told.find("each on 8 of h200") != std::string::npos);
  CHECK(told.find("over 2 replicas of 4 that share sequences.") != std::string::npos);
  CHECK(run("costs --layers 4 --context-parallel 4").out.find("over 1 replica of 4 that") !=
        std::string::npos);
}

TEST_CASE("costs: slices of sequences are shared, too, in lengths that can be dealt") {
  const std::string four = "costs --layers 4 -o - --sequence 4096 --slices 4 --context-parallel 2 ";
  const json equal = run_json(four + "--slice-lengths equal " + grouped_llama);
  const json balanced = run_json(four + "--slice-lengths balanced:4 " + grouped_llama);
  CHECK(equal.dump() != balanced.dump());
  tool_tests::check_refused(
      "costs --layers 4 --slices 4 " + grouped_llama,
      {{"--sequence 4096 --context-parallel 1024 --slice-lengths equal",
        "--slice-lengths equal: gives a slice 1024 tokens, but what a job has of a sequence is no "
        "multiple of twice context_parallel"}});
}

TEST_CASE("overlap: what goes round lies behind attention, and a gather behind another job") {
  const auto all = [](const char* how) {
    return run_json("overlap --device h100 --network 50 --tensor-parallel 1 --sequence 65536 "
                    "--architecture llama --attention fused --hidden 8192 --heads 64 --kv-heads 8 "
                    "--context-parallel 16 --format json --context-exchange " +
                    std::string(how));
  };
  const json gather = all("gather"), ring = all("ring");
  CHECK(gather["context_parallel"] == 16);
  const auto hidden = [](const json& from, std::size_t job, const std::string& order) {
    for (const json& way : from["jobs"][job]["orders"])
      if (way["order"] == order) return way["hidden"].get<double>();
    return -1.0;
  };
  // Attention waits for all that is gathered, in whichever order, unless another job has work.
  CHECK(hidden(gather, 0, "as the program") == 0);
  CHECK(hidden(gather, 0, "look-ahead") == 0);
  CHECK(hidden(ring, 0, "as the program") > 0.9);
  CHECK(hidden(ring, 1, "as the program") > 0.8);
  CHECK(hidden(gather, 2, "in pieces") > 0.8);
  for (std::size_t job = 0; job < 2; ++job)
    CHECK(ring["jobs"][job]["communication_ns"] > gather["jobs"][job]["communication_ns"]);
}

TEST_CASE("sequences that cannot be shared are refused, and the option is named") {
  tool_tests::check_refused(
      "memory 1f1b --ranks 2 --microbatches 4 --layers 4 --sequence 1000",
      {{"--context-parallel 3", "--context-parallel 3: --sequence 1000 is no multiple of twice it"},
       {"--context-parallel 0", "--context-parallel"},
       {"--context-parallel 5 --sequence-parallel --tensor-parallel 16",
        "--tensor-parallel 16: what --context-parallel leaves of --sequence 200 is no multiple of "
        "it, which --sequence-parallel splits"},
       {"--context-exchange ring",
        "--context-exchange ring: has a meaning only with --context-parallel"},
       {"--context-exchange ring --context-parallel 2",
        "--context-exchange ring: goes with --attention fused"},
       {"--context-exchange ring --context-parallel 2 --attention fused --window 8",
        "--context-exchange ring: does not go with --window"},
       {"--context-exchange bus --context-parallel 2", "--context-exchange"},
       {"--context-exchange heads --context-parallel 5",
        "--context-parallel 5: --heads 16 is no multiple of it, among whom --context-exchange "
        "heads "
        "deals them"},
       {"--context-exchange heads --context-parallel 2 --tensor-parallel 4 --kv-heads 4",
        "--context-parallel 2: --kv-heads 4 is no multiple of it times --tensor-parallel 4, among"},
       {"--context-exchange heads",
        "--context-exchange heads: has a meaning only with --context-parallel"},
       {"--node-devices 4",
        "--node-devices 4: has a meaning only where several devices share a layer, a sequence or "
        "experts, or hold replicas"},
       {"--context-parallel 5 --optimizer-shards 4",
        "--optimizer-shards 4: --data-parallel 1 times --context-parallel 5 is no multiple of it"},
       {"--context-parallel 500 --data-parallel 4000",
        "--context-parallel 500: times --data-parallel 4000 is more than 1048576"}});
  tool_tests::check_refused(
      "memory seq_1f1b --ranks 2 --microbatches 4 --layers 4 --sequence 1000 --slices 4",
      {{"--context-parallel 4",
        "--context-parallel 4: a slice of --sequence, 250, is no multiple of twice it"}});
  const std::string long_ring =
      " --tensor-parallel 1 --attention fused --sequence 1048576 --context-exchange ring "
      "--context-parallel ";
  tool_tests::check_refused(
      "overlap --layers 16" + long_ring,
      {{"128",
        "--context-parallel 128: round the ring each of a job's layers (16) attends as often, "
        "and an order is sought for at most 1024 times"}});
  tool_tests::check_refused("costs --layers 4" + long_ring,
                            {{"2048", "of a job's layers (1) attends as often"},
                             {"512 --further-tokens 2", "of a job's layers (3) attends as often"}});
  for (const char* devices : {"4", "8", "16"})
    CHECK(run(std::string("overlap --tensor-parallel 1 --network 50 --node-devices 8 "
                          "--context-parallel ") + devices).exit == 0);
}

}  // namespace
