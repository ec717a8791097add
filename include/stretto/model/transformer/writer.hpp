#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stretto/model/machine.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/transformer.hpp"
#include "stretto/model/transformer/attention.hpp"
#include "stretto/model/transformer/experts.hpp"
#include "stretto/model/transformer/feed_forward.hpp"
#include "stretto/model/transformer/further.hpp"
#include "stretto/model/transformer/head.hpp"
#include "stretto/model/transformer/ops.hpp"

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

  //! The bytes of activations between stages, with what goes with them between the head's pieces.
  constexpr std::int64_t message_bytes() const {
    return to_.row() + (to_.model().head_pieces > 1 ? transformer_head::sum_bytes(to_) : 0);
  }

  constexpr void embed() {
    input_ = {to_.buffer("embedded", to_.row())};
    to_.product("embed", "embedding", {}, input_.rows, {0, 2 * to_.full_row()});
    if (!to_.dropout()) return;
    embed_mask_ = to_.buffer("embedding mask", to_.row_mask());
    to_.add("embedding dropout", {reads(input_.rows), writes(input_.rows), writes(embed_mask_)},
            to_.moved(2 * to_.row() + to_.row_mask()));
  }
  //! @param sums  those of pieces of the head are with it; here and below
  constexpr void receive(bool sums) { receive("input", input_, sums); }
  constexpr void send(bool sums) { leave("send", input_, sums); }
  //! To the next stage, on the same rank.
  constexpr void hand_on(bool sums) { leave("hand on", input_, sums); }

  constexpr void layer_forward(const layer_kind& kind) {
    layer& one = layers_.emplace_back();
    one.kind = kind;
    one.input = input_.rows;
    input_ = {run(one)};
  }

  //! So many pieces of the head, from `first` on.
  constexpr void head_forward(std::int64_t first, std::int64_t count) {
    behind_ = input_.rows;
    heads_.emplace_back(to_, first, count);
    input_ = heads_.back().forward(to_, input_);
  }
  //! A layer behind the head, which foretells a token further ahead, and the head once more.
  constexpr void further_forward(const layer_kind& kind) {
    input_ = {further_.emplace_back().forward(to_, behind_)};
    layer_forward(kind);
    head_forward(0, 1);
  }

  constexpr void receive_gradient(bool sums) { receive("output gradient", gradient_, sums); }
  constexpr void send_gradient(bool sums) { leave("send", gradient_, sums); }
  constexpr void hand_on_gradient(bool sums) { leave("hand on", gradient_, sums); }

  //! @param at  which of the stages on the rank that have pieces
  constexpr void head_backward_input(int at) {
    gradient_ = heads_[static_cast<std::size_t>(at)].backward_input(to_, gradient_);
  }
  constexpr void head_backward_weight(int at) {
    heads_[static_cast<std::size_t>(at)].backward_weight(to_);
  }
  //! From the gradient of what the layer takes to that of what the one before has made, which
  //! add_further adds when that one's head has gone back.
  constexpr void further_backward_input(int at, bool weights_too) {
    d_behind_ =
        further_[static_cast<std::size_t>(at)].backward_input(to_, gradient_.rows, weights_too);
  }
  constexpr void further_backward_weight(int at) {
    further_[static_cast<std::size_t>(at)].backward_weight(to_);
  }
  constexpr void add_further() {
    to_.add("add further gradient",
            {reads(d_behind_), reads(gradient_.rows), writes(gradient_.rows)},
            to_.moved(3 * to_.row()));
  }
  constexpr void embed_backward_input() {
    if (to_.dropout())
      to_.add("embedding dropout back",
              {reads(embed_mask_), reads(gradient_.rows), writes(gradient_.rows)},
              to_.moved(2 * to_.row() + to_.row_mask()));
    embed_gradient_ = gradient_.rows;
  }
  //! What a stage does for the weights that has none.
  constexpr void nothing() { to_.out().add("nothing", {}); }
  constexpr void embed_backward_weight() {
    to_.add("embed weights", {reads(embed_gradient_)}, to_.moved(3 * to_.row()), pieces_of::whole);
  }

  //! From the gradient of a layer's output to that of its input.
  //! @param again  its forward runs once more before it
  constexpr void layer_backward_input(int at, bool weights_too, bool again) {
    layer& one = layers_[static_cast<std::size_t>(at)];
    if (again) run(one);
    const std::int32_t middle =
        mixes(one) ? one.experts.backward_input(to_, gradient_.rows, weights_too)
                   : one.feed_forward.backward_input(to_, gradient_.rows, weights_too);
    gradient_ = {one.attention.backward_input(to_, middle, weights_too)};
  }
  constexpr void layer_backward_weight(int at) {
    const layer& one = layers_[static_cast<std::size_t>(at)];
    mixes(one) ? one.experts.backward_weight(to_) : one.feed_forward.backward_weight(to_);
    one.attention.backward_weight(to_);
  }
  constexpr int layers() const { return static_cast<int>(layers_.size()); }
  constexpr int heads() const { return static_cast<int>(heads_.size()); }

 private:
  struct layer {
    transformer_attention attention;
    transformer_feed_forward feed_forward;
    transformer_experts experts;  // in its place
    layer_kind kind;
    std::int32_t input = -1;
  };

  constexpr bool mixes(const layer& one) const {
    return to_.model().experts.count > 0 && !one.kind.dense;
  }
  //! @return what it makes of its input
  constexpr std::int32_t run(layer& one) {
    const std::int32_t middle = one.attention.forward(to_, one.input, one.kind.windowed);
    return mixes(one) ? one.experts.forward(to_, middle) : one.feed_forward.forward(to_, middle);
  }

  constexpr void receive(std::string_view name, transformer_message& to, bool sums) {
    to = {to_.buffer(name, to_.row())};
    if (!sums) return to_.out().add("receive", {writes(to.rows)});
    to.sums = to_.buffer("received row sums", transformer_head::sum_bytes(to_));
    to_.out().add("receive", {writes(to.rows), writes(to.sums)});
  }
  constexpr void leave(std::string_view name, const transformer_message& from, bool sums) {
    if (sums)
      to_.out().add(name, {reads(from.rows), reads(from.sums)});
    else
      to_.out().add(name, {reads(from.rows)});
  }

  transformer_ops to_;
  transformer_message input_, gradient_;
  std::int32_t embed_mask_ = -1, embed_gradient_ = -1;
  std::vector<layer> layers_;
  std::vector<transformer_head> heads_;
  std::vector<transformer_further> further_;
  std::int32_t behind_ = -1, d_behind_ = -1;  // of the latest head, what it was made of
};

}  // namespace stretto
