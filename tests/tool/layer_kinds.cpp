// Models whose layers differ: latent attention, dense layers before those with experts, experts of
// few nodes, windows of attention.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "run_tool.hpp"
#include "stretto/model/transformer.hpp"

namespace {

using nlohmann::json;
using stretto::transformer;
using stretto::transformer_part;
using tool_tests::run;
using tool_tests::run_json;

const std::string sizes =
    "--architecture llama --attention fused --hidden 512 --heads 8 --head-width 48 --kv-rank 128 "
    "--query-rank 96 --rotary-width 16 --value-width 40 --feed-forward 384 --sequence 256 "
    "--vocabulary 960 --experts 16 --experts-per-token 3 --shared-experts 1 ";
//! The same.
constexpr transformer model{.hidden = 512,
                            .heads = 8,
                            .sequence = 256,
                            .vocabulary = 960,
                            .bytes = stretto::mixed_precision,
                            .layers = stretto::architecture::llama,
                            .attention = stretto::attention_kernel::fused,
                            .head_width = 48,
                            .latent = {128, 96, 16, 40},
                            .feed_forward = 384,
                            .experts = {.count = 16, .per_token = 3, .shared = 1},
                            .dense_layers = 2,
                            .dense_feed_forward = 1024};
const std::string dense = "--dense-layers 2 --dense-feed-forward 1024 ";

std::int64_t kib(const transformer_part& part, int head_pieces) {
  transformer of = model;
  of.head_pieces = head_pieces;
  return (of.state_bytes(part) + 1023) / 1024;
}

TEST_CASE("costs: dense layers are told apart, wherever the embedding is") {
  struct entry {
    json layer;
    transformer_part part;
  };
  const auto check = [&](const std::string& more, const std::vector<entry>& wanted,
                         int head_pieces = 1) {
    CAPTURE(more);
    const json all = run_json("costs -o - " + sizes + dense + more)["costs"];
    REQUIRE(all.size() == wanted.size());
    for (std::size_t at = 0; at < wanted.size(); ++at) {
      CAPTURE(at);
      CHECK(all[at].value("layer", json()) == wanted[at].layer);
      CHECK(all[at]["memory_weights"] == kib(wanted[at].part, head_pieces));
    }
  };
  const transformer_part mixed{1, false, 0, false, 2}, first{1, true}, other{1, false, 0, false, 1};
  check("--layers 5",
        {{nullptr, mixed}, {0, first}, {1, other}, {4, {1, false, 1, true, 4}}});
  check("--layers 5 --ends-apart", {{nullptr, mixed},
                                    {0, {0, true}},
                                    {json{1, 2}, other},
                                    {6, {0, false, 1, true}}});
  check("--layers 3 --head-pieces 2",
        {{nullptr, mixed}, {0, first}, {1, other}, {3, {0, false, 1, true}}, {4, {0, false, 1}}},
        2);
  check("--layers 2", {{0, first}, {1, {1, false, 1, true, 1}}});
}

TEST_CASE("memory: ranks hold the weights of the dense layers and of those with experts") {
  const auto check = [&](const std::string& layers, const std::vector<transformer_part>& wanted) {
    CAPTURE(layers);
    const json needs = run_json("memory 1f1b --ranks " + std::to_string(wanted.size()) +
                                " --microbatches 4 --format json " + sizes + dense + "--layers '" +
                                layers + "'")["need"];
    REQUIRE(needs.size() == wanted.size());
    for (std::size_t rank = 0; rank < wanted.size(); ++rank)
      CHECK(needs[rank]["state"] == model.state_bytes(wanted[rank]));
  };
  check("3,2", {{3, true}, {2, false, 1, true, 3}});
  check("1,4", {{1, true}, {4, false, 1, true, 1}});
  check("Et|ttt|L", {{1, true}, {3, false, 0, false, 1}, {0, false, 1, true, 4}});
}

TEST_CASE("costs: what norms and latent attention make runs again, and need not be kept") {
  const json all = run_json("costs --layers 4 --recompute norms -o - " + sizes)["costs"];
  // Of both norms and of those of what all is made of; queries and keys, values.
  const std::int64_t numbers = 2 * 512 + 128 + 96 + 2 * 8 * (48 + 16) + 8 * 40;
  CHECK(all[0]["memory_recompute"] == 256 * 2 * numbers / 1024);
  const json plain = run_json(
      "costs --layers 4 --recompute norms --architecture llama --hidden 512 "
      "--heads 8 --sequence 256 --vocabulary 960 -o -")["costs"];
  CHECK(plain[0]["memory_recompute"] == 256 * 2 * 2 * 512 / 1024);
}

TEST_CASE("devices that share layers with experts and latent attention keep their part of all") {
  const std::string split = "--tensor-parallel 4 --sequence-parallel --expert-parallel 8 ";
  for (const char* recompute : {"none", "norms", "full"}) {
    CAPTURE(recompute);
    const std::string again = std::string(" --recompute ") + recompute;
    const auto needs = [&](const std::string& options) {
      return run_json("memory 1f1b --ranks 4 --microbatches 4 --layers 4 --format json " + sizes +
                      options + again)["need"];
    };
    const json whole = needs("--expert-parallel 8"), shared = needs(split);
    for (std::size_t rank = 0; rank < 4; ++rank)
      CHECK(shared[rank]["saved"].get<std::int64_t>() * 4 == whole[rank]["saved"]);
    const auto layer = [&](const std::string& options) {
      return run_json("costs --layers 4 -o - " + sizes + options + again)["costs"][0];
    };
    const json all = layer("--expert-parallel 8"), part = layer(split);
    if (std::string(recompute) != "none")
      CHECK(part["memory_recompute"].get<std::int64_t>() * 4 == all["memory_recompute"]);
  }
  // Devices of a layer and of two replicas have the experts, which no two hold.
  const std::string one = "memory 1f1b --ranks 2 --microbatches 4 --layers 4 --format json ";
  CHECK(run_json(one + sizes + split) == run_json(one + sizes + split + "--data-parallel 2"));
  CHECK(run("costs --layers 4 " + sizes + split).out.find("each on 8 of h200") !=
        std::string::npos);
  tool_tests::check_refused(
      one + sizes + split,
      {{"--data-parallel 3",
        "--expert-parallel 8: --data-parallel 3 times --tensor-parallel 4 is "
        "no multiple of it"},
       {"--optimizer-shards 3",
        "--optimizer-shards 3: is no multiple of --expert-parallel 8 by "
        "--tensor-parallel 4, so that not as many replicas hold each expert"}});
}

TEST_CASE("overlap: experts of few nodes are sent fewer copies") {
  const std::string device =
      "overlap --tensor-parallel 1 --expert-parallel 16 --node-devices 4 --format json " + sizes;
  const auto sends = [&](const std::string& more) {
    return run_json(device + more)["jobs"][0]["communication_ns"].get<std::int64_t>();
  };
  CHECK(sends("--expert-nodes 1") < sends("--expert-nodes 2"));
  CHECK(sends("--expert-nodes 2") < sends("--expert-nodes 3"));
  CHECK(sends("--expert-nodes 3") == sends("--expert-nodes 4"));  // no more copies than experts
}

TEST_CASE("memory: scores that multiply activations leave no results to keep") {
  const std::string one =
      "costs --layers 2 -o - --architecture llama --attention fused --hidden 512 --heads 8 "
      "--sequence 256 --experts 8 --experts-per-token 3 --feed-forward 256 ";
  const auto keeps = [&](const std::string& more) {
    const json all = run_json(one + more);
    return all["costs"][0]["memory_forward"].get<std::int64_t>();
  };
  const std::int64_t copies = 3 * 256;
  CHECK(keeps("--expert-scores results") == keeps(""));
  CHECK(keeps("") - keeps("--expert-scores activations") == copies * (512 * 2 - 4) / 1024);
}

TEST_CASE("costs: layers that attend to all are told apart from those with a window") {
  const std::string fused = "costs -o - --architecture llama --attention fused --sequence 4096 ";
  const auto layers = [&](const std::string& more) {
    const json all = run_json(fused + more);
    json made = json::array();
    for (const json& one : all["costs"]) made.push_back(one.value("layer", json()));
    return made;
  };
  CHECK(layers("--layers 20 --window 128 --window-pattern 6") == json{nullptr, 0, {5, 11, 17}, 19});
  CHECK(layers("--layers 20 --window 128") == json{nullptr, 0, 19});
  CHECK(layers("--layers 6 --window 128 --window-pattern 2") == json{nullptr, 0, {1, 3}, 5});
  CHECK(
      layers(
          "--layers 6 --ends-apart --window 128 --window-pattern 3 --experts 4 --dense-layers 4") ==
      json{nullptr, 0, 3, 5, 6, 7});
  CHECK(layers("--layers 14 --window 128 --window-pattern 3 --experts 4 --dense-layers 8") ==
        json{nullptr, 0, {2, 5}, {8, 11}, {9, 10, 12}, 13});
  const json all = run_json(fused + "--layers 20 --window 128 --window-pattern 6")["costs"];
  const auto takes = [&](std::size_t at) { return all[at]["forward"].get<std::int64_t>(); };
  CHECK(takes(0) < takes(2));
  const json without = run_json(fused + "--layers 20")["costs"];
  CHECK(takes(2) == without[0]["forward"]);
  CHECK(all[0]["memory_forward"] == without[0]["memory_forward"]);
  CHECK(run(fused.substr(0, 6) + "--layers 20 --attention fused --window 128 --window-pattern 6")
            .out.find("\n5,11..17 ") != std::string::npos);
}

TEST_CASE("sizes that do not go together are refused, and the option is named") {
  tool_tests::check_refused(
      "memory 1f1b --ranks 2 --microbatches 4",
      {
          {"--query-rank 8", "--query-rank 8: has a meaning only with --kv-rank"},
          {"--rotary-width 8", "--rotary-width 8: has a meaning only with --kv-rank"},
          {"--value-width 8", "--value-width 8: has a meaning only with --kv-rank"},
          {"--kv-rank 64", "--kv-rank 64: goes with --architecture llama"},
          {"--kv-rank 64 --architecture llama --kv-heads 4",
           "--kv-rank 64: makes keys and values for each of --heads 16, and --kv-heads says 4"},
          {"--head-width 0", "--head-width 0: expected a whole number from 1 to 1048576"},
          {"--heads 7", "--heads 7: --hidden is no multiple of it, which --head-width need not be"},
          {"--heads 1048576 --head-width 1048576",
           "--heads 1048576 --head-width 1048576 --sequence 1024 --batch 1: the operations of one "
           "product pass 64 bits"},
          {"--window 8", "--window 8: goes with --attention fused: plain makes all scores"},
          {"--window-pattern 8", "--window-pattern 8: has a meaning only with --window"},
          {"--dense-layers 1", "--dense-layers 1: has a meaning only with --experts"},
          {"--dense-feed-forward 8",
           "--dense-feed-forward 8: has a meaning only with --dense-layers"},
          {"--experts 4 --dense-feed-forward 8",
           "--dense-feed-forward 8: has a meaning only with --dense-layers"},
          {"--experts 4 --node-devices 4",
           "--node-devices 4: has a meaning only where several devices"},
          {"--expert-nodes 2", "--expert-nodes 2: has a meaning only with --experts"},
          {"--expert-scores activations",
           "--expert-scores activations: has a meaning only with --experts"},
          {"--experts 4 --expert-scores tokens",
           "--expert-scores: tokens not in {results,activations}"},
          {"--experts 4 --dense-layers 25", "--dense-layers 25: --layers has 24"},
          {"--experts 4 --dense-layers 6 --layers 'Ettt|ttL'", "--dense-layers 6: --layers has 5"},
      });
}

}  // namespace
