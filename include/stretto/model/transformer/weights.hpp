#pragma once

// The weights of a transformer's parts, what they take, and what replicas send of them; part of
// transformer.hpp, which includes it.

#include <cstdint>

#include "stretto/model/transformer.hpp"

namespace stretto {

constexpr std::int64_t transformer::layer_weights(const layer_kind& kind) const {
  const bool mixes = experts.count > 0 && !kind.dense;
  const std::int64_t held = mixes ? experts.count / experts.parallel : 0;
  const std::int64_t matrices =
      attention_matrices() - low_matrices() + (mixes        ? experts.shared * one_feed_forward()
                                               : kind.dense ? dense_matrices()
                                                            : one_feed_forward());
  // Not shared with other ranks: the experts, what leads to them, and to few numbers of a token.
  const std::int64_t own =
      low_matrices() + held * one_feed_forward() + (mixes ? hidden * experts.count : 0);
  const std::int64_t norms = latent.keys + latent.queries;
  if (layers == architecture::llama) return matrices / tensor_parallel + own + 2 * hidden + norms;
  const std::int64_t blocks = mixes ? experts.shared : 1;
  const std::int64_t width = kind.dense ? dense_width() : feed_forward_width();
  return (matrices + query_width() + key_width() + value_width() + blocks * width) /
             tensor_parallel +
         own + held * width + (5 + held + blocks) * hidden;
}

constexpr std::int64_t transformer::gathered_bytes(const transformer_part& part) const {
  if (weight_shards == 1) return 0;
  const std::int64_t whole = weight_shards > expert_replicas() ? 0 : dealt_weights(part);
  return bytes.weight * (used_weights(part) - whole);
}

// Both are of weights that neighbours hold, of those who share no layer, and of experts', whose
// holders have all others between them.
constexpr network_message transformer::rings(std::int64_t replicated, std::int64_t dealt,
                                             int members) const {
  const int holders = members > expert_replicas() ? members / expert_replicas() : 1;
  const std::int64_t apart = std::int64_t{tensor_parallel} * expert_replicas();
  return {replicated + dealt, far_of_rings(replicated, members, tensor_parallel) +
                                  far_of_rings(dealt, holders, apart)};
}

constexpr network_message transformer::gather_message(const transformer_part& part) const {
  const std::int64_t dealt = dealt_weights(part);
  const auto around = [&](int members, std::int64_t weights) {
    return members < 2 ? 0 : (members - 1) * one_of(members, bytes.weight * weights);
  };
  return rings(around(weight_shards, used_weights(part) - dealt),
               around(weight_shards / expert_replicas(), dealt), weight_shards);
}

constexpr network_message transformer::sum_message(const transformer_part& part,
                                                   int replicas) const {
  const std::int64_t dealt = dealt_weights(part);
  const int updaters = optimizer_shards > weight_shards ? optimizer_shards : weight_shards;
  const auto around = [&](int members, int shards, int holders, std::int64_t weights) {
    const std::int64_t own = one_of(shards, 4 * weights);
    const int others = members / shards;  // with the same
    return (shards - 1) * own + (others < 2 ? 0 : 2 * (others - 1) * one_of(others, own)) +
           (shards / holders - 1) * one_of(shards, bytes.weight * weights);
  };
  const auto among = [&](int all) {
    return all > expert_replicas() ? all / expert_replicas() : 1;
  };
  return rings(around(replicas, updaters, weight_shards, stage_weights(part) - dealt),
               around(among(replicas), among(updaters), among(weight_shards), dealt), replicas);
}

constexpr std::int64_t transformer::used_weights(const transformer_part& part) const {
  const std::int64_t dense = dense_in(part), further = further_in(part);
  // A tied head's matrix is a table; what embeds further tokens, without one, is one more.
  const std::int64_t tables = (needs_table(part) && !part.embedding ? 1 : 0) -
                              (tied_head && part.head_pieces > 0 ? 1 : 0);
  return (part.layers + further - dense) * layer_weights() +
         dense * layer_weights({.dense = true}) +
         further * further_weights() +
         (part.embedding ? embedding_weights() : 0) +
         head_weights(part.head_pieces, part.head_norm) + tables * table_weights();
}

constexpr std::int64_t transformer::share_of(int shards, const transformer_part& part) const {
  const std::int64_t dealt = dealt_weights(part);
  const int holders = shards == 1 ? 1 : shards / expert_replicas();
  return one_of(shards, stage_weights(part) - dealt) + one_of(holders, dealt);
}

constexpr std::int64_t transformer::dealt_weights(const transformer_part& part) const {
  const std::int64_t biases = layers == architecture::gpt ? feed_forward_width() + hidden : 0;
  return (part.layers + further_in(part) - dense_in(part)) * (experts.count / experts.parallel) *
         (hidden * (wide() + feed_forward_width()) + biases);
}

constexpr std::int64_t transformer::state_bytes(const transformer_part& part) const {
  const int shards = optimizer_shards > weight_shards ? optimizer_shards : weight_shards;
  return weight_bytes(part) + bytes.gradient * stage_weights(part) +
         bytes.optimizer * share_of(shards, part);
}

}  // namespace stretto
