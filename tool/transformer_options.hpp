#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "stretto/model/machine.hpp"
#include "stretto/model/transformer.hpp"

namespace CLI {
class App;
}

namespace stretto {
struct program_chain;
}

namespace stretto::tool {

//! --hidden, --heads, --kv-heads, --head-width, --kv-rank and what goes with it, --feed-forward,
//! --sequence, --batch, --vocabulary, --architecture, --attention, --window and its pattern,
//! --experts and what goes with it, --tensor-parallel, --sequence-parallel, --context-parallel,
//! --context-exchange, --node-devices, --precision.
struct transformer_options {
  transformer model{};
  std::string precision = "mixed";
  std::string layers = "gpt";
  std::string attention = "plain";
  std::string exchange = "gather";
  std::string scored = "results";
  std::optional<int> data_parallel;
  std::optional<int> gradient_bytes, optimizer_bytes;
  int replicas = 1;  //!< whose gradients are summed: so many, or as something is dealt among, each
                     //!< time as many as share a sequence

  void add(CLI::App& command);
  //! --data-parallel, --optimizer-shards, --weight-shards, --gradient-bytes and --optimizer-bytes,
  //! which matter to what holds weights.
  void add_state(CLI::App& command);
  //! --dense-layers and --dense-feed-forward, which matter where all layers of a model are.
  void add_dense(CLI::App& command);
  //! --head-pieces, --tied-head and --further-tokens, which matter where the head is.
  //! @param says  which layers are the pieces
  void add_head(CLI::App& command, const char* says);
  //! Sets what depends on other options.
  //! @param count  that the model has, and
  //! @param layers_text   the option as typed, for an error about the whole's size
  //! @param slices        of every sequence
  //! @throws bad_input for sizes that do not divide, or whose sums leave 64 bits
  void settle(int count, const std::string& layers_text, int slices);
  //! That a layer is on.
  int devices() const {
    return std::max(model.tensor_parallel * model.context_parallel, model.experts.parallel);
  }
  //! "8 replicas", or what they are made of.
  std::string told_replicas() const;
  //! @param of  layers of attention that the model has
  //! @throws bad_input for more of --dense-layers
  void refuse_dense(std::int64_t of) const;
  //! @param of_job  layers of the largest one
  //! @throws bad_input for more steps of rings than orders of ops are sought for in seconds
  void refuse_long_ring(int of_job) const;
  //! @param chain  the model's, or a part of it
  //! @throws bad_input for sizes that make a buffer larger than any may be
  void refuse_huge(const program_chain& chain) const;
  //! @throws bad_input for products that the machine has no rate for
  void refuse_machine(const machine& on) const;

 private:
  void refuse_experts_alone() const;
  void refuse_context_alone() const;
  void refuse_latent_alone() const;
  void refuse_replicas() const;
  void refuse_overflow() const;
  //! Of all that a token has in one layer's attention: the widest, and the sum.
  double widest_head() const;
  double attention_widths() const;
  void refuse(transformer_rule broken) const;
};

}  // namespace stretto::tool
