// What of a transformer's messages goes to other nodes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "stretto/model/transformer/chain.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::transformer;
using stretto::transformer_part;
using transformer_chains::chain_of;

TEST_CASE("to the experts of a node one copy travels, and none to a token's own node") {
  stretto::machine slow{"one byte a ns between nodes", std::int64_t{1} << 60, std::int64_t{1} << 60,
                        std::int64_t{1} << 60};
  slow.network = 1;
  const auto bytes = [&](const stretto::expert_mixture& mixed, std::int64_t of_node = 8) {
    const transformer model{.hidden = 512,
                            .heads = 8,
                            .sequence = 256,
                            .node_devices = of_node,
                            .bytes = stretto::mixed_precision,
                            .experts = mixed};
    std::int64_t sum = 0;
    for (const stretto::op& one : chain_of(model, 1, false, slow).ops)
      if (one.stream != 0) sum += one.time;
    return sum;
  };
  const auto sends = [&](const stretto::expert_mixture& mixed, std::int64_t of_node = 8) {
    return bytes(mixed, of_node) / (4 * 256 * 512 * 2 / 64);  // copies of a token, by 64
  };
  // DeepSeek-V3's: of four copies half of one stays in one of eight nodes.
  CHECK(sends({256, 8, 1, 64, 4}) == 64 * 4 * 7 / 8);
  CHECK(sends({256, 8, 1, 64}) == 8 * 56);  // as far as no expert of its own node gets them
  CHECK(sends({256, 3, 1, 64, 4}) == 64 * 3 * 7 / 8);  // no more copies than experts,
  CHECK(sends({16, 8, 0, 16, 4}) == 64 * 2 / 2);       // nor than nodes
  CHECK(sends({16, 8, 0, 16, 1}, 4) == 64 * 3 / 4);
  CHECK(sends({16, 8, 0, 8, 4}) == 0);  // one node: between its devices
  CHECK(sends({16, 8, 0, 8}) == 0);
  // Each of a token's eight scores goes to its expert's node, and its gradient comes back.
  using enum stretto::expert_scores;
  const std::int64_t scores = 2 * 256 * 8 * 4;
  for (const std::int64_t nodes : {0, 4})
    CHECK(bytes({256, 8, 1, 64, nodes, activations}) - bytes({256, 8, 1, 64, nodes, results}) ==
          scores * 7 / 8);
}

TEST_CASE("what goes to other nodes: of neighbours, of replicas, of holders of experts") {
  transformer model{.tensor_parallel = 2, .node_devices = 8};
  // Of 16 devices that are two apart a node has four, whose rings leave it by one each.
  CHECK(model.on_a_node(16, 2) == 4);
  CHECK(model.on_a_node(4, 2) == 4);
  CHECK(model.on_a_node(6, 2) == 2);  // the other node has two
  CHECK(model.on_a_node(3, 8) == 1);
  CHECK(model.on_a_node(3, 100) == 1);
  CHECK(model.far_of_rings(1001, 16, 2) == 251);
  CHECK(model.far_of_rings(1001, 4, 2) == 0);
  CHECK(model.far_of_exchange(1500, 16, 2) == 1500 / 15 * 12);
  CHECK(model.far_of_exchange(1500, 4, 2) == 0);
  CHECK(model.far_of_ring(1001, 16, 2) == 1001);
  CHECK(model.far_of_ring(1001, 4, 2) == 0);
  CHECK(model.far_of_ring(0, 1, 2) == 0);
  const transformer_part one{1, false};
  for (const int replicas : {1, 4, 8, 12}) {
    const stretto::network_message sum = model.sum_message(one, replicas);
    CHECK(sum.far == (replicas <= 4 ? 0 : (sum.bytes + 3) / 4));
  }
  // Each expert has two holders, 8 devices apart, and all else 8 of it, two apart.
  transformer mixed = model;
  mixed.sequence_parallel = true;
  mixed.experts = {.count = 16, .per_token = 2, .parallel = 8};
  const std::int64_t dealt = mixed.stage_weights(one) - mixed.summed_weights(one, 4);
  const std::int64_t rest = mixed.stage_weights(one) - dealt;
  const stretto::network_message sum = mixed.sum_message(one, 8);
  const std::int64_t of_rest = 2 * 7 * ((4 * rest + 7) / 8);
  CHECK(sum.bytes == of_rest + 4 * dealt);
  CHECK(sum.far == (of_rest + 3) / 4 + 4 * dealt);
  CHECK(mixed.sum_message(one, 4).far == 0);
  mixed.weight_shards = 8;
  const std::int64_t gathered = 7 * ((4 * rest + 7) / 8);
  CHECK(mixed.gather_message(one).far == (gathered + 3) / 4 + 4 * dealt / 2);
}

TEST_CASE("a layer that more devices share than a node has sums over the network") {
  stretto::machine slow{"one byte a ns between nodes", std::int64_t{1} << 60, std::int64_t{1} << 60,
                        std::int64_t{1} << 60};
  slow.network = 1;
  const auto takes = [&](int shards) {
    const transformer model{.hidden = 512, .heads = 16, .sequence = 256, .tensor_parallel = shards};
    std::int64_t longest = 0;
    for (const stretto::op& one : chain_of(model, 1, false, slow).ops)
      if (one.collective) longest = std::max(longest, one.time);
    return longest;
  };
  CHECK(takes(8) == 1);
  // Its rows round a ring, twice, by eight of them.
  CHECK(takes(16) == 2 * 256 * 512 * 4 * 15 / 16 / 8);
}

}  // namespace
