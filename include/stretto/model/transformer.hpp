#pragma once

#include <cstdint>

#include "stretto/model/transformer/layer.hpp"
#include "stretto/model/transformer/rule.hpp"

namespace stretto {

//! The sizes of a model of transformer layers, each attention and a feed-forward.
struct transformer {
  std::int64_t hidden = 1024;
  std::int64_t heads = 16;
  std::int64_t sequence = 1024;
  std::int64_t microbatch = 1;  //!< sequences in a micro-batch
  std::int64_t vocabulary = 50304;
  int tensor_parallel = 1;  //!< ranks that share each layer (Megatron's column and row split)
  bool sequence_parallel = false;  //!< what tensor parallelism would replicate is split, too
  //! Devices (each as many as share a layer) among whom the tokens of every sequence are dealt:
  //! each has two equal parts, one as far from the beginning as the other is from the end, so that
  //! all attend to as much (Llama 3 and Megatron-LM deal them so). To weights, their gradients and
  //! what the optimizer keeps they are data-parallel replicas, with which those below are counted.
  int context_parallel = 1;
  context_exchange exchange = context_exchange::gather;
  //! Between which messages do not go over the network. Those that share a layer are neighbours,
  //! then come those that share a sequence, then data-parallel replicas.
  std::int64_t node_devices = 8;
  precision bytes{};
  //! Data-parallel replicas among whom what the optimizer keeps is dealt, each weight's with one of
  //! those who hold it (ZeRO's first stage, Rajbhandari et al. 2020, as Megatron-LM's distributed
  //! optimizer has it). 1: each replica keeps all.
  int optimizer_shards = 1;
  //! The same of weights, of which each gathers a stage's before it uses them, and of what the
  //! optimizer keeps of them (ZeRO's third stage; FSDP, Zhao et al. 2023). Gradients stay whole
  //! until they are summed.
  int weight_shards = 1;
  architecture layers = architecture::gpt;
  attention_kernel attention = attention_kernel::plain;
  //! Tokens, itself and those before, that each attends to; 0: all. Of `window_pattern` layers the
  //! last has no window (0: all have it): 6 with Gemma 3.
  std::int64_t window = 0;
  std::int64_t window_pattern = 0;
  std::int64_t kv_heads = 0;  //!< heads of keys and values, each shared by several; 0: as many
  std::int64_t head_width = 0;  //!< of a head's queries, keys and values; 0: hidden / heads
  latent_attention latent{};
  //! Its width; 0: 4 hidden, or, in a SwiGLU, 8/3 hidden rounded up to a multiple of 256.
  std::int64_t feed_forward = 0;
  //! Parts of every sequence, which are a job each: numbers are those of one, the mean of equal
  //! ones unless it is given.
  int slices = 1;
  sequence_part slice{};  //!< which later ones attend to, unless it is the last; empty: not given
  expert_mixture experts{};
  std::int64_t dense_layers = 0;  //!< that come first, with a feed-forward in place of experts,
  //! and its width; 0: that of all experts together which a token goes to.
  std::int64_t dense_feed_forward = 0;
  //! Equal parts of the vocabulary, in which the head is cut: each may be on a stage of its own,
  //! one behind the other, so that ranks share its weights, its products and its logits. What goes
  //! from one to the next is the last norm's result, with each token's largest logit, sum of
  //! exponentials and target's logit so far; what comes back, its gradient so far, with the sum of
  //! all. 1: whole.
  int head_pieces = 1;
  //! The head's matrix is the embeddings' (Press and Wolf 2017; GPT-2, Gemma): a rank that has both
  //! has one. Where stages of two ranks have them each has a copy, whose gradients are summed.
  bool tied_head = false;
  //! Layers behind the head, with which they are, each of which foretells a token further ahead
  //! than the one before, by the same head (multi-token prediction, DeepSeek-AI 2024, arXiv
  //! 2412.19437, section 2.2; Megatron-LM's mtp-num-layers). They embed tokens once more: where a
  //! stage of another rank has the embedding a copy of it is with them, as of a tied head.
  int further_tokens = 0;

  constexpr bool operator==(const transformer&) const = default;
  //! The first rule that the sizes break: all else here, and what is made of it, means something
  //! when there is none.
  constexpr transformer_rule broken_rule() const;
  //! Tokens of a sequence in one job.
  constexpr std::int64_t length() const {
    return slice.end > 0 ? slice.end - slice.begin : sequence / slices;
  }
  //! Of these what a device has that shares it with others.
  constexpr std::int64_t held() const { return length() / context_parallel; }
  //! Times that a device attends to what one has, of all that go round.
  constexpr int ring_steps() const {
    return exchange == context_exchange::ring ? context_parallel : 1;
  }
  //! Devices that share a sequence have all of it for some heads, while they attend.
  constexpr bool deals_heads() const {
    return context_parallel > 1 && exchange == context_exchange::heads;
  }
  //! Of so many devices, each so far from the next, those on one node; on the one with the fewest.
  constexpr std::int64_t on_a_node(std::int64_t members, std::int64_t apart) const {
    const std::int64_t most = node_devices > apart ? node_devices / apart : 1;
    if (members <= most) return members;
    return members % most > 0 ? members % most : most;
  }
  //! Of what each of them sends when all of them gather, or sum, what goes to another node: round
  //! as many rings as there are of them on a node, which leave it by one each, as NCCL has them.
  constexpr std::int64_t far_of_rings(std::int64_t message, std::int64_t members,
                                      std::int64_t apart) const {
    const std::int64_t near = on_a_node(members, apart);
    return near == members ? 0 : one_of(near, message);
  }
  //! The same where each sends to every other as much; or as much to the next one.
  constexpr std::int64_t far_of_exchange(std::int64_t message, std::int64_t members,
                                         std::int64_t apart) const {
    const std::int64_t near = on_a_node(members, apart);
    return near == members ? 0 : message / (members - 1) * (members - near);
  }
  constexpr std::int64_t far_of_ring(std::int64_t message, std::int64_t members,
                                     std::int64_t apart) const {
    return on_a_node(members, apart) == members ? 0 : message;
  }
  //! Tokens, and heads, with which a device attends to others.
  constexpr std::int64_t attends_at_once() const { return deals_heads() ? length() : held(); }
  constexpr std::int64_t heads_at_once() const {
    return deals_heads() ? heads / context_parallel : heads;
  }
  //! Of one job, on one device.
  constexpr std::int64_t tokens() const { return held() * microbatch; }
  //! A job has but a part of each sequence.
  constexpr bool sliced() const { return length() < sequence; }
  //! The sequence from its beginning to the end of what the job has of it; of equal slices to that
  //! of the last.
  constexpr std::int64_t seen() const { return slice.end > 0 ? slice.end : sequence; }
  //! Of the layer of that number.
  constexpr layer_kind kind_of(std::int64_t layer) const {
    return {.dense = layer < dense_layers,
            .windowed = window > 0 && (window_pattern == 0 || (layer + 1) % window_pattern != 0)};
  }
  //! Twice the keys that a token attends to, on the average, where each sees itself and those
  //! before, as far as a window reaches. Of devices that share a sequence with a window, and not
  //! its heads, the one with its middle has most, which is told.
  constexpr std::int64_t attends_twice(bool windowed = false) const {
    if (!windowed || window >= seen()) return seen() + slice.begin;
    const bool given = slice.end > 0;
    const std::int64_t tokens = attends_at_once();
    std::int64_t sum = 0;
    for (int at = 0; at < (given ? 1 : slices); ++at) {
      const std::int64_t begin = given ? slice.begin : at * length();
      sum += attended_twice(begin + (length() - tokens) / 2, tokens);
    }
    return sum / (given ? 1 : slices) / tokens;
  }
  //! Of all heads' queries, of keys, of values, and of what attention makes of these.
  constexpr std::int64_t query_width() const { return heads * (one_head() + latent.rotary); }
  constexpr std::int64_t key_width() const { return key_heads() * (one_head() + latent.rotary); }
  constexpr std::int64_t value_width() const { return key_heads() * value_head(); }
  constexpr std::int64_t context_width() const { return heads * value_head(); }
  constexpr std::int64_t feed_forward_width() const {
    return feed_forward > 0              ? feed_forward
           : layers == architecture::gpt ? 4 * hidden
                                         : (8 * hidden / 3 + 255) / 256 * 256;
  }
  //! Of that of a layer which has one in place of experts.
  constexpr std::int64_t dense_width() const {
    if (dense_feed_forward > 0) return dense_feed_forward;
    return (experts.count == 0 ? 1 : experts.per_token + experts.shared) * feed_forward_width();
  }
  //! Of the first of its products: in a SwiGLU the gate comes with what goes through it.
  constexpr std::int64_t wide_of(std::int64_t width) const {
    return (layers == architecture::llama ? 2 : 1) * width;
  }
  constexpr std::int64_t wide() const { return wide_of(feed_forward_width()); }
  //! Multiply-adds of a token in one layer, ranks that share it taken together.
  constexpr std::int64_t layer_products(const layer_kind& kind = {}) const {
    const std::int64_t keys =
        attention == attention_kernel::fused ? attends_twice(kind.windowed) : 2 * seen();
    return attention_matrices() +
           (kind.dense ? dense_matrices() : feed_forwards()) +
           keys * (query_width() + context_width()) / 2;
  }
  //! The mean of those of a pattern, none of which is dense.
  constexpr std::int64_t mean_products() const {
    if (window == 0) return layer_products();
    const std::int64_t windowed = layer_products({.windowed = true});
    if (window_pattern == 0) return windowed;
    return windowed + (layer_products() - windowed) / window_pattern;
  }
  //! Weights of one layer on each rank; of GPT's default widths 12 h^2 + 13 h. Tensor parallelism
  //! leaves the norms and the biases of the row-split products whole.
  constexpr std::int64_t layer_weights(const layer_kind& kind = {}) const;
  //! Among whom the experts are dealt, each with as many devices as share a layer.
  constexpr int expert_replicas() const {
    return experts.count == 0 ? 1 : experts.parallel / tensor_parallel;
  }
  //! A vector for each token.
  constexpr std::int64_t table_weights() const { return vocabulary * hidden / tensor_parallel; }
  //! Token embeddings, and GPT's of positions.
  constexpr std::int64_t embedding_weights() const {
    return table_weights() + (layers == architecture::gpt ? sequence * hidden : 0);
  }
  //! So many pieces of the product with the vocabulary, and the last norm.
  constexpr std::int64_t head_weights(std::int64_t pieces, bool norm) const {
    return vocabulary / tensor_parallel / head_pieces * pieces * hidden +
           (norm ? norm_weights() : 0);
  }
  //! Of a stage, on each rank. (Without a matrix that another stage of the rank has.)
  constexpr std::int64_t stage_weights(const transformer_part& part) const {
    return used_weights(part) -
           (needs_table(part) && part.beside_embedding ? table_weights() : 0);
  }
  //! Weights, gradients and optimizer state of such a stage.
  constexpr std::int64_t state_bytes(const transformer_part& part) const;
  //! Of the weights alone what each rank holds all the time.
  constexpr std::int64_t weight_bytes(const transformer_part& part) const {
    return bytes.weight * share_of(weight_shards, part);
  }
  //! What a stage's weights take while they are gathered: of experts that each have one holder
  //! nothing is.
  constexpr std::int64_t gathered_bytes(const transformer_part& part) const;

  //! Bytes that leave each device when the weights of such a stage are gathered: around a ring;
  //! experts' among those that hold them.
  constexpr network_message gather_message(const transformer_part& part) const;
  //! Of the weights of such a stage those whose gradients so many data-parallel replicas sum: not
  //! experts' that each have one holder.
  constexpr std::int64_t summed_weights(const transformer_part& part, int replicas) const {
    const std::int64_t whole = replicas > expert_replicas() ? 0 : dealt_weights(part);
    return stage_weights(part) - whole;
  }
  //! Bytes that leave each device when the gradients of such a stage are summed over so many
  //! data-parallel replicas: in single precision, around a ring; experts' among those that hold
  //! them. Where weights, or what the optimizer keeps of them, are dealt each replica keeps the sum
  //! of its own alone; and where only the latter is, new weights go back to those that hold them.
  //! @param replicas  a multiple of optimizer_shards, weight_shards and expert_replicas
  constexpr network_message sum_message(const transformer_part& part, int replicas) const;

 private:
  //! Twice the keys of a window that so many tokens attend to, from `begin` on.
  constexpr std::int64_t attended_twice(std::int64_t begin, std::int64_t tokens) const {
    const std::int64_t end = begin + tokens;
    if (window >= end) return end * end - begin * begin;
    if (window <= begin) return 2 * window * (end - begin);
    return window * window - begin * begin + 2 * window * (end - window);
  }
  //! What so many replicas send round rings of weights that all of them have, and of experts'.
  constexpr network_message rings(std::int64_t replicated, std::int64_t dealt, int members) const;
  //! What the jobs of a stage read.
  constexpr std::int64_t used_weights(const transformer_part& part) const;
  constexpr std::int64_t norm_weights() const {
    return (layers == architecture::gpt ? 2 : 1) * hidden;
  }
  //! Of what is about a layer that foretells a further token: the norms of both that it begins
  //! with, the product that joins these, and the norm of its head.
  constexpr std::int64_t further_weights() const {
    return 3 * norm_weights() + 2 * hidden * hidden / tensor_parallel;
  }
  //! Layers of a stage that foretell further tokens.
  constexpr std::int64_t further_in(const transformer_part& part) const {
    return part.head_norm ? further_tokens : 0;
  }
  //! Whether a stage without the embedding needs its table.
  constexpr bool needs_table(const transformer_part& part) const {
    return (tied_head && part.head_pieces > 0) || further_in(part) > 0;
  }
  //! Layers of a stage that are among dense_layers.
  constexpr std::int64_t dense_in(const transformer_part& part) const {
    const std::int64_t left = dense_layers - part.first;
    const std::int64_t all = part.layers + further_in(part);
    return left < 0 ? 0 : left < all ? left : all;
  }
  //! The largest share of a stage's weights, dealt among so many replicas; of experts among those
  //! that hold them.
  constexpr std::int64_t share_of(int shards, const transformer_part& part) const;
  //! The largest of so many equal parts.
  static constexpr std::int64_t one_of(std::int64_t parts, std::int64_t whole) {
    return (whole + parts - 1) / parts;
  }
  //! Of the experts that a rank holds of a stage's layers, and other replicas do not.
  constexpr std::int64_t dealt_weights(const transformer_part& part) const;
  constexpr std::int64_t one_head() const { return head_width > 0 ? head_width : hidden / heads; }
  constexpr std::int64_t value_head() const {
    return latent.values > 0 ? latent.values : one_head();
  }
  constexpr std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  constexpr std::int64_t attention_matrices() const {
    const std::int64_t output = context_width() * hidden;
    if (latent.keys == 0)
      return hidden * (query_width() + key_width() + value_width()) + output;
    const std::int64_t queries =
        latent.queries > 0 ? latent.queries * (hidden + query_width()) : hidden * query_width();
    return queries + hidden * (latent.keys + latent.rotary) +
           latent.keys * (heads * one_head() + value_width()) + output;
  }
  //! Of these those that make what latent attention makes queries, keys and values of.
  constexpr std::int64_t low_matrices() const {
    return latent.keys == 0 ? 0 : hidden * (latent.keys + latent.rotary + latent.queries);
  }
  constexpr std::int64_t dense_matrices() const {
    return hidden * (wide_of(dense_width()) + dense_width());
  }
  constexpr std::int64_t one_feed_forward() const {
    return hidden * (wide() + feed_forward_width());
  }
  //! Of a token's experts, the shared ones, and the router; or of the feed-forward.
  constexpr std::int64_t feed_forwards() const {
    return experts.count == 0 ? one_feed_forward()
                              : (experts.per_token + experts.shared) * one_feed_forward() +
                                    hidden * experts.count;
  }
};

}  // namespace stretto

#include "stretto/model/transformer/sizes.hpp"
#include "stretto/model/transformer/weights.hpp"
