#pragma once

#include <cstdint>
#include <limits>

namespace stretto {

//! Bytes of a number in each of its roles.
struct precision {
  std::int64_t activation = 4;
  std::int64_t weight = 4;
  std::int64_t gradient = 4;
  std::int64_t optimizer = 8;  //!< all that Adam keeps for one weight, its master copy included
  //! What products with a layer's matrices read, but for the router's; 0: activations as they are.
  //! What is made for them alone is made so at once, of the rest they read copies, which are kept
  //! in its place for gradients of weights; rows are gathered, and go to experts, so. Results are
  //! activations.
  std::int64_t operand = 0;

  constexpr bool operator==(const precision&) const = default;
  constexpr std::int64_t operands() const { return operand > 0 ? operand : activation; }
};
//! All in single precision.
inline constexpr precision single_precision{};
//! Half-precision weights, activations and gradients; master weights and moments in single.
inline constexpr precision mixed_precision{2, 2, 2, 12};
//! The same, but for gradients, which micro-batch by micro-batch are added in single precision, as
//! Megatron-LM does by default.
inline constexpr precision mixed_precision_wide_gradients{2, 2, 4, 12};
//! The same with products in FP8 (DeepSeek-AI 2024, arXiv 2412.19437, section 3.3; NVIDIA's
//! Transformer Engine). Weights are there twice, by rows and by columns, as a Hopper's products of
//! outputs and of gradients read them, which together takes what one in half precision does
//! (Megatron-LM's fp8-param-gather). Their gathering, embedding, head, router and what attention
//! does with queries, keys and values stay in half precision.
inline constexpr precision fp8_precision{2, 2, 4, 12, 1};

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

//! How devices that share a sequence come to the keys and values of one another.
enum class context_exchange : std::uint8_t {
  gather,  //!< all at once, before they are attended to (Llama 3, Grattafiori et al. 2024, section
           //!< 3.3.2); gradients are summed at once, of which each gets its own
  ring,  //!< device by device, while those that came before are attended to (Ring Attention, Liu et
         //!< al. 2023); each device adds its own to the gradients, which go round behind them
  heads,  //!< not at all: each gets some heads' queries, keys and values of all tokens for those of
          //!< its own tokens, and gives what it makes of them back (DeepSpeed-Ulysses, Jacobs et
          //!< al. 2023)
};

//! What the score of a token's expert, which the router gives it, multiplies. The sum over its
//! experts is the same.
enum class expert_scores : std::uint8_t {
  results,  //!< what the expert makes: kept for the score's gradient where the token is
  activations,  //!< what its second product reads, for which the score goes there with the token;
                //!< no result is kept (Megatron-LM's weighted SwiGLU)
};

//! Experts in place of a layer's feed-forward, each with its width; every token goes to some.
struct expert_mixture {
  std::int64_t count = 0;      //!< 0: none
  std::int64_t per_token = 2;  //!< of these, those that a token goes to
  std::int64_t shared = 0;     //!< beside these, those that every token goes to
  //! Devices among whom the experts are dealt (not the shared ones): those that share a layer and
  //! their like of data-parallel replicas. Each is whole on one (Megatron-LM's
  //! expert-tensor-parallel size of 1).
  int parallel = 1;
  //! Nodes on which a token's experts lie, at most: one copy travels to each but its own, and is
  //! shared there over faster links. 0: a copy travels for each expert on another device.
  std::int64_t nodes = 0;
  expert_scores scores = expert_scores::results;

  constexpr bool operator==(const expert_mixture&) const = default;
};

//! Keys and values that are made, for all heads, of a few numbers of each token, and queries
//! likewise (multi-head latent attention, DeepSeek-AI 2024, arXiv 2405.04434). Every head has its
//! own. What they are made of is normed first.
struct latent_attention {
  std::int64_t keys = 0;     //!< numbers that keys and values are made of; 0: of all features
  std::int64_t queries = 0;  //!< the same of queries
  //! Further features of each head's queries and keys, which alone say positions; those of keys are
  //! the same for all heads, and made of a token's features.
  std::int64_t rotary = 0;
  std::int64_t values = 0;  //!< width of a head's values; 0: of its queries' but rotary ones

  constexpr bool operator==(const latent_attention&) const = default;
};

//! Bytes that leave a device, and those of them that go to another node.
struct network_message {
  std::int64_t bytes = 0;
  std::int64_t far = 0;

  constexpr bool operator==(const network_message&) const = default;
};

//! Tokens [begin, end) of a sequence.
struct sequence_part {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  constexpr bool operator==(const sequence_part&) const = default;
};

//! How a layer of a transformer differs from others of it; see transformer::kind_of.
struct layer_kind {
  bool dense = false;     //!< has a feed-forward in place of experts
  bool windowed = false;  //!< attends to a window alone

  constexpr bool operator==(const layer_kind&) const = default;
};

//! Of every stage so many layers, the first, run their forwards once more in its backward, each
//! right before its own, so that no two of these layers' activations are there at once.
struct layers_again {
  std::int64_t first = 0;

  //! All (Megatron-LM's uniform recomputation of one layer; Chen et al. 2016); some are its block
  //! method.
  static constexpr layers_again each() { return {std::numeric_limits<std::int64_t>::max()}; }
};

//! What a stage has of a transformer.
struct transformer_part {
  std::int64_t layers = 0;
  bool embedding = false;
  std::int64_t head_pieces = 0;  //!< of transformer::head_pieces, behind the layers
  bool head_norm = false;        //!< the first of them is among these: the last norm goes with it
  std::int64_t first = 0;  //!< the number of its first layer in the model: see kind_of
  bool beside_embedding = false;  //!< another stage of its rank has it: see transformer::tied_head

  constexpr bool operator==(const transformer_part&) const = default;
  constexpr bool is_empty() const { return layers == 0 && !embedding && head_pieces == 0; }
};

}  // namespace stretto
