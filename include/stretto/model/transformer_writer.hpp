#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/model/machine.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/transformer.hpp"
#include "stretto/model/transformer_attention.hpp"
#include "stretto/model/transformer_experts.hpp"
#include "stretto/model/transformer_feed_forward.hpp"
#include "stretto/model/transformer_ops.hpp"

namespace stretto {

//! Writes the programs of one rank of a transformer. What is kept for the backward is what Megatron
//! keeps (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models",
//! section 4): for a GPT-like layer, bytes of 34 s b h + 5 a s^2 b in half precision, with a fused
//! kernel for attention 34 s b h + 4 a s b. In a SwiGLU's gradient nothing is recomputed.
class transformer_writer {
 public:
  //! @param on  what ops take there, by its roofline; a machine without a name: they have no times
  constexpr transformer_writer(const transformer& model, program_chain& out, const machine& on = {})
      : to_(model, out, on) {}

  //! The bytes of activations between stages.
  constexpr std::int64_t message_bytes() const { return to_.row(); }

  constexpr void embed() {
    input_ = to_.buffer("embedded", to_.row());
    to_.product("embed", "embedding", {}, input_, {0, 2 * to_.full_row()});
    if (!to_.dropout()) return;
    embed_mask_ = to_.buffer("embedding mask", to_.row_mask());
    to_.add("embedding dropout", {reads(input_), writes(input_), writes(embed_mask_)},
            to_.moved(2 * to_.row() + to_.row_mask()));
  }
  constexpr void receive() {
    input_ = to_.buffer("input", to_.row());
    to_.out().add("receive", {writes(input_)});
  }
  constexpr void send() { to_.out().add("send", {reads(input_)}); }

  constexpr void layer_forward() {
    layer& one = layers_.emplace_back();
    input_ = one.attention.forward(to_, input_);
    input_ = mixes() ? one.experts.forward(to_, input_) : one.feed_forward.forward(to_, input_);
  }

  constexpr void head_forward() {
    head_input_ = input_;
    head_norm_ = to_.buffer("head norm", to_.row());
    logits_ = to_.buffer("logits", logit_bytes());
    to_.norm(input_, head_norm_);
    const std::int32_t norm = to_.gathered(head_norm_);
    to_.add("logits", {reads(norm), writes(logits_)}, vocabulary());
    if (to_.shards() > 1) {  // the largest logit of a row, and the sum of exponentials
      const std::int64_t t = to_.shards();
      const std::int32_t sums = to_.buffer("row sums", 8 * to_.rows());
      to_.collective("row sums", {reads(logits_), writes(sums)}, 16 * to_.rows() * (t - 1) / t,
                     pieces_of::rows);
      to_.add("loss", {reads(logits_), reads(sums), writes(logits_)}, to_.moved(2 * logit_bytes()));
    } else {
      // The loss turns the logits into their gradient, in place.
      to_.add("loss", {reads(logits_), writes(logits_)}, to_.moved(2 * logit_bytes()));
    }
  }

  constexpr void receive_gradient() {
    gradient_ = to_.buffer("output gradient", to_.row());
    to_.out().add("receive", {writes(gradient_)});
  }
  constexpr void send_gradient() { to_.out().add("send", {reads(gradient_)}); }

  constexpr void head_backward_input() {
    gradient_ = to_.buffer("head gradient", to_.row());
    to_.product("logits back", "head gradient", {reads(logits_)}, gradient_, vocabulary());
    to_.add("norm back", {reads(head_input_), reads(gradient_), writes(gradient_)},
            to_.moved(3 * to_.row()));
  }
  constexpr void head_backward_weight() {
    const std::int32_t norm = to_.gathered(head_norm_);
    to_.weights("logits weights", {reads(norm), reads(logits_)}, vocabulary());
  }
  constexpr void embed_backward_input() {
    if (to_.dropout())
      to_.add("embedding dropout back", {reads(embed_mask_), reads(gradient_), writes(gradient_)},
              to_.moved(2 * to_.row() + to_.row_mask()));
    embed_gradient_ = gradient_;
  }
  constexpr void embed_backward_weight() {
    to_.add("embed weights", {reads(embed_gradient_)}, to_.moved(3 * to_.row()), pieces_of::whole);
  }

  //! From the gradient of a layer's output to that of its input.
  constexpr void layer_backward_input(int at, bool weights_too) {
    layer& one = layers_[static_cast<std::size_t>(at)];
    gradient_ = mixes() ? one.experts.backward_input(to_, gradient_, weights_too)
                        : one.feed_forward.backward_input(to_, gradient_, weights_too);
    gradient_ = one.attention.backward_input(to_, gradient_, weights_too);
  }
  constexpr void layer_backward_weight(int at) {
    const layer& one = layers_[static_cast<std::size_t>(at)];
    mixes() ? one.experts.backward_weight(to_) : one.feed_forward.backward_weight(to_);
    one.attention.backward_weight(to_);
  }
  constexpr int layers() const { return static_cast<int>(layers_.size()); }

 private:
  struct layer {
    transformer_attention attention;
    transformer_feed_forward feed_forward;
    transformer_experts experts;  // in its place
  };

  constexpr bool mixes() const { return to_.model().experts.count > 0; }

  //! In single precision for the loss.
  constexpr std::int64_t logit_bytes() const {
    return to_.rows() * to_.model().vocabulary * 4 / to_.shards();
  }
  constexpr op_work vocabulary() const {
    const transformer& model = to_.model();
    const std::int64_t columns = model.vocabulary / to_.shards();
    return {2 * to_.rows() * columns * model.hidden,
            to_.full_row() + logit_bytes() + columns * model.hidden * model.bytes.weight,
            0,
            {to_.rows(), model.hidden, columns}};
  }

  transformer_ops to_;
  std::int32_t input_ = -1, gradient_ = -1, embed_mask_ = -1, embed_gradient_ = -1;
  std::int32_t head_input_ = -1, head_norm_ = -1, logits_ = -1;
  std::vector<layer> layers_;
};

}  // namespace stretto
