#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/model/placement.hpp"
#include "stretto/model/program.hpp"

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

//! The sizes of a GPT-like model: pre-norm layers of attention and a feed-forward of four times
//! the width, with GELU and dropout.
struct transformer {
  std::int64_t hidden = 1024;
  std::int64_t heads = 16;
  std::int64_t sequence = 1024;
  std::int64_t microbatch = 1;  //!< sequences in a micro-batch
  std::int64_t vocabulary = 50304;
  int tensor_parallel = 1;  //!< ranks that share each layer (Megatron's column and row split)
  bool sequence_parallel = false;  //!< what tensor parallelism would replicate is split, too
  precision bytes{};

  constexpr bool operator==(const transformer&) const = default;
  constexpr std::int64_t tokens() const { return sequence * microbatch; }
  //! Weights of one layer: 12 h^2 + 13 h, of which tensor parallelism leaves the norms and the
  //! biases of the row-split products whole.
  constexpr std::int64_t layer_weights() const {
    return (12 * hidden * hidden + 7 * hidden) / tensor_parallel + 6 * hidden;
  }
  //! Token and position embeddings; the head shares none of them.
  constexpr std::int64_t embedding_weights() const {
    return vocabulary * hidden / tensor_parallel + sequence * hidden;
  }
  //! The last norm and the product with the vocabulary.
  constexpr std::int64_t head_weights() const {
    return vocabulary * hidden / tensor_parallel + 2 * hidden;
  }
  //! Weights, gradients and optimizer state of so many weights.
  constexpr std::int64_t state_bytes(std::int64_t weights) const {
    return weights * (bytes.weight + bytes.gradient + bytes.optimizer);
  }
};

}  // namespace stretto
