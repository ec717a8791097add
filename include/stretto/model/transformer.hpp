#pragma once

#include <cstdint>

namespace stretto {

//! Bytes of a number in each of its roles.
struct precision {
  std::int64_t activation = 4;
  std::int64_t weight = 4;
  std::int64_t gradient = 4;
  std::int64_t optimizer = 8;  //!< all that Adam keeps for one weight, its master copy included

  constexpr bool operator==(const precision&) const = default;
};
//! All in single precision.
inline constexpr precision single_precision{};
//! Half-precision weights, activations and gradients; master weights and moments in single.
inline constexpr precision mixed_precision{2, 2, 2, 12};

//! What layers are made of. Both norm before a block, and add its result to what it had.
enum class architecture : std::uint8_t {
  gpt,    //!< LayerNorm, learned positions, GELU, biases, dropout (Radford et al. 2019)
  llama,  //!< RMSNorm, rotary positions, SwiGLU, neither biases nor dropout (Touvron et al. 2023)
};

//! How attention is computed, causal in either case.
enum class attention_kernel : std::uint8_t {
  plain,  //!< products and softmax one by one, over all scores, which are kept
  fused,  //!< one kernel, which skips what is masked, keeps the sums of rows alone, and computes
          //!< the scores again for the backward (FlashAttention-2, Dao 2023)
};

//! Experts in place of a layer's feed-forward, each with its width; every token goes to some.
struct expert_mixture {
  std::int64_t count = 0;      //!< 0: none
  std::int64_t per_token = 2;  //!< of these, those that a token goes to
  std::int64_t shared = 0;     //!< beside these, those that every token goes to
  int parallel = 1;            //!< replicas among whom the experts are dealt (not the shared ones)

  constexpr bool operator==(const expert_mixture&) const = default;
};

//! The sizes of a model of transformer layers, each attention and a feed-forward.
struct transformer {
  std::int64_t hidden = 1024;
  std::int64_t heads = 16;
  std::int64_t sequence = 1024;
  std::int64_t microbatch = 1;  //!< sequences in a micro-batch
  std::int64_t vocabulary = 50304;
  int tensor_parallel = 1;  //!< ranks that share each layer (Megatron's column and row split)
  bool sequence_parallel = false;  //!< what tensor parallelism would replicate is split, too
  precision bytes{};
  architecture layers = architecture::gpt;
  attention_kernel attention = attention_kernel::plain;
  std::int64_t kv_heads = 0;  //!< heads of keys and values, each shared by several; 0: as many
  //! Its width; 0: 4 hidden, or, in a SwiGLU, 8/3 hidden rounded up to a multiple of 256.
  std::int64_t feed_forward = 0;
  //! Equal parts of every sequence, which are a job each: numbers are those of one.
  int slices = 1;
  expert_mixture experts{};

  constexpr bool operator==(const transformer&) const = default;
  //! Of one job.
  constexpr std::int64_t tokens() const { return sequence / slices * microbatch; }
  //! Of keys, and of values.
  constexpr std::int64_t kv_width() const {
    return kv_heads == 0 ? hidden : hidden / heads * kv_heads;
  }
  constexpr std::int64_t feed_forward_width() const {
    return feed_forward > 0              ? feed_forward
           : layers == architecture::gpt ? 4 * hidden
                                         : (8 * hidden / 3 + 255) / 256 * 256;
  }
  //! Of the first of its products: in a SwiGLU the gate comes with what goes through it.
  constexpr std::int64_t wide() const {
    return (layers == architecture::llama ? 2 : 1) * feed_forward_width();
  }
  //! Multiply-adds of a token in one layer, ranks that share it taken together.
  constexpr std::int64_t layer_products() const {
    return attention_matrices() + feed_forwards(experts.per_token) +
           (attention == attention_kernel::fused ? 1 : 2) * sequence * hidden;
  }
  //! Weights of one layer on each rank; of GPT's default widths 12 h^2 + 13 h. Tensor parallelism
  //! leaves the norms and the biases of the row-split products whole.
  constexpr std::int64_t layer_weights() const {
    const std::int64_t held = experts.count / experts.parallel;
    const std::int64_t matrices = attention_matrices() + feed_forwards(held);
    if (layers == architecture::llama) return matrices / tensor_parallel + 2 * hidden;
    const std::int64_t blocks = experts.count == 0 ? 1 : held + experts.shared;
    return (matrices + hidden + 2 * kv_width() + blocks * feed_forward_width()) / tensor_parallel +
           (5 + blocks) * hidden;
  }
  //! Token embeddings, and GPT's of positions; the head shares none of them.
  constexpr std::int64_t embedding_weights() const {
    return vocabulary * hidden / tensor_parallel +
           (layers == architecture::gpt ? sequence * hidden : 0);
  }
  //! The last norm and the product with the vocabulary.
  constexpr std::int64_t head_weights() const {
    return vocabulary * hidden / tensor_parallel + (layers == architecture::gpt ? 2 : 1) * hidden;
  }
  //! Weights, gradients and optimizer state of so many weights.
  constexpr std::int64_t state_bytes(std::int64_t weights) const {
    return weights * (bytes.weight + bytes.gradient + bytes.optimizer);
  }

 private:
  constexpr std::int64_t attention_matrices() const {
    return hidden * (2 * hidden + 2 * kv_width());
  }
  //! Of so many experts, the shared ones, and the router; or of the feed-forward.
  constexpr std::int64_t feed_forwards(std::int64_t dealt) const {
    const std::int64_t one = hidden * (wide() + feed_forward_width());
    return experts.count == 0 ? one : (dealt + experts.shared) * one + hidden * experts.count;
  }
};

}  // namespace stretto
