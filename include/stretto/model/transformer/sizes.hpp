#pragma once

// Which sizes of a transformer go together; part of transformer.hpp, which includes it.

#include <cstdint>

#include "stretto/model/transformer.hpp"

namespace stretto {

constexpr transformer_rule transformer::broken_rule() const {
  using enum transformer_rule;
  const std::int64_t shards = tensor_parallel;
  for (const std::int64_t size : {hidden, heads, sequence, microbatch, vocabulary, shards,
                                  std::int64_t{slices}, std::int64_t{experts.parallel},
                                  std::int64_t{context_parallel}, node_devices,
                                  std::int64_t{optimizer_shards}, std::int64_t{weight_shards},
                                  std::int64_t{head_pieces}})
    if (size < 1) return sizes_positive;
  for (const std::int64_t size :
       {kv_heads, head_width, feed_forward, experts.count, experts.per_token, experts.shared,
        experts.nodes, latent.keys, latent.queries, latent.rotary, latent.values, dense_layers,
        dense_feed_forward, window, window_pattern, std::int64_t{further_tokens}})
    if (size < 0) return sizes_positive;
  if (head_width == 0 && hidden % heads != 0) return heads_divide_hidden;
  if (kv_heads > 0 && heads % kv_heads != 0) return kv_heads_divide_heads;
  if (window == 0 && window_pattern > 0) return pattern_of_window;
  if (window > 0 && attention != attention_kernel::fused) return window_of_fused;
  if (latent.keys == 0 && latent != latent_attention{}) return latent_keys;
  if (latent.keys > 0 && layers != architecture::llama) return latent_of_llama;
  if (latent.keys > 0 && kv_heads > 0 && kv_heads != heads) return latent_of_heads;
  if (slice != sequence_part{}) {
    if (slice.begin < 0 || slice.begin >= slice.end || slice.end > sequence)
      return part_of_sequence;
  } else if (sequence % slices != 0) {
    return slices_divide_sequence;
  }
  if (context_parallel > 1 && length() % (2 * std::int64_t{context_parallel}) != 0)
    return context_divides_sequence;
  if (exchange == context_exchange::ring && (attention != attention_kernel::fused || window > 0))
    return ring_of_fused;
  if (deals_heads() && (heads % (shards * context_parallel) != 0 ||
                        key_heads() % (shards * context_parallel) != 0))
    return context_divides_heads;
  if (heads % shards != 0 || vocabulary % shards != 0 ||
      (sequence_parallel && held() % shards != 0))
    return shards_divide_heads;
  if (kv_heads % shards != 0 || feed_forward_width() % shards != 0) return shards_divide_widths;
  if (vocabulary / shards % head_pieces != 0) return pieces_divide_vocabulary;
  if (tied_head && head_pieces > 1) return tied_head_whole;
  if (further_tokens > 0 && head_pieces > 1) return further_head_whole;
  if (dense_layers == 0 && dense_feed_forward > 0) return dense_width_alone;
  if (experts.count == 0) return dense_layers > 0 ? dense_beside_experts : none;
  if (shards > 1 && !sequence_parallel) return experts_by_rows;
  if (experts.parallel % shards != 0) return experts_among_shards;
  if (experts.per_token > experts.count) return experts_for_token;
  if (experts.count % experts.parallel != 0) return experts_dealt;
  const auto dealt = [&](int among) { return among == 1 || among % expert_replicas() == 0; };
  return !dealt(optimizer_shards) ? optimizer_dealt : dealt(weight_shards) ? none : weights_dealt;
}

}  // namespace stretto
