#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "stretto/base/viewed.hpp"
#include "stretto/model/transformer/ops.hpp"

namespace stretto {

//! A mixture of experts in place of a layer's feed-forward, from its norm to its residual: its ops,
//! and what they keep. Tokens go to the devices of their experts and back, each way an all-to-all
//! on the stream of the data-parallel replicas, among whom the experts are dealt; shared experts
//! depend on neither. Where few nodes have a token's experts, what its copies then take within a
//! node is not counted. Every expert gets as many tokens as any other, and each device as many
//! copies as it sends; the copies of a piece's tokens lie, and go, together. Kept are copies where
//! they arrive, what experts make of them, and what comes back, for the gradient of the routing
//! (DeepSeek-AI 2024, arXiv 2412.19437), or, of scores that multiply activations, these scores.
//! Ranks that share the layer have a part of the rows each, of which they send copies, and experts
//! of their own; they share the matrices of shared experts, and gather the rows for these.
class transformer_experts {
 public:
  //! @return the residual's sum
  constexpr std::int32_t forward(transformer_ops& to, std::int32_t input) {
    const std::int64_t routing = routing_bytes(to);
    const std::int64_t copies = copy_bytes(to, to.model().hidden);
    const std::int64_t operands = operand_bytes(to, to.model().hidden);
    const std::int64_t active = operand_bytes(to, to.model().feed_forward_width());
    const std::int64_t scores = score_bytes(to);
    input_ = input;
    norm_ = to.buffer("feed-forward norm", to.row());
    routing_ = to.buffer("routing", routing);
    const std::int32_t sent = to.buffer("copies", operands);
    tokens_ = among(to) ? to.buffer("tokens", operands) : sent;
    const std::int32_t scores_sent = scored(to) ? to.buffer("copies scores", scores) : -1;
    scores_ = scored(to) && among(to) ? to.buffer("scores", scores) : scores_sent;
    wide_ = to.buffer("experts wide", copy_bytes(to, to.model().wide()));
    active_ = to.buffer("experts active", active);
    const std::int32_t results = to.buffer("experts results", copies);
    returned_ = among(to) ? to.buffer("returned", copies) : results;
    const std::int32_t narrow = to.buffer("narrow", to.row());
    if (to.dropout()) mask_ = to.buffer("narrow mask", to.row_mask());
    const std::int32_t output = to.buffer("output", to.row());

    to.norm(input, norm_, to.row());
    to.add("router", {reads(norm_), writes(routing_)},
           router(to, to.model().bytes.weight));
    add_touching(to, "permute", {reads(norm_), reads(routing_), writes(sent), writes(scores_sent)},
                 to.row() + routing + operands + scores);
    all_to_all(to, "dispatch", {sent, tokens_, operands}, {scores_sent, scores_, scores});
    if (to.model().experts.shared > 0) shared_forward(to);
    to.add("experts widen", {reads(tokens_), writes(wide_)},
           expert(to, to.model().wide(), columns));
    add_touching(to, "experts activation", {reads(wide_), reads(scores_), writes(active_)},
                 copy_bytes(to, to.model().wide()) + active + scores);
    to.add("experts narrow", {reads(active_), writes(results)},
           expert(to, to.model().feed_forward_width(), inner));
    all_to_all(to, "combine", {results, returned_, copies});
    add_touching(to, "unpermute",
                 {reads(returned_), reads(routing_), reads(shared_), writes(narrow)},
                 (shared_ < 0 ? 1 : 2) * to.row() + routing + copies);
    if (scored(to)) returned_ = -1;  // no gradient reads it
    to.residual(narrow, input, mask_, output);
    return output;
  }

  //! @param weights_too  their gradients are made here, and not by backward_weight
  //! @return the gradient of its input
  constexpr std::int32_t backward_input(transformer_ops& to, std::int32_t gradient,
                                        bool weights_too) {
    const std::int64_t routing = routing_bytes(to);
    const std::int64_t copies = copy_bytes(to, to.model().hidden);
    const std::int64_t active = copy_bytes(to, to.model().feed_forward_width());
    const std::int64_t wide = copy_bytes(to, to.model().wide());
    const std::int64_t d_wide = operand_bytes(to, to.model().wide());
    const std::int64_t operands = operand_bytes(to, to.model().hidden);
    const std::int64_t scores = score_bytes(to);
    const std::int32_t d_output = to.residual_back(gradient, mask_, "narrow gradient");
    const std::int32_t d_returned = to.buffer("returned gradient", operands);
    d_routing_ = to.buffer("routing gradient", routing);
    d_results_ = among(to) ? to.buffer("experts results gradient", operands) : d_returned;
    const std::int32_t d_active = to.buffer("experts active gradient", active);
    d_wide_ = to.buffer("experts wide gradient", d_wide);
    const std::int32_t d_tokens = to.buffer("tokens gradient", copies);
    const std::int32_t d_sent = among(to) ? to.buffer("copies gradient", copies) : d_tokens;
    const std::int32_t d_scores = scored(to) ? to.buffer("scores gradient", scores) : -1;
    const std::int32_t d_scores_sent =
        scored(to) && among(to) ? to.buffer("copies scores gradient", scores) : d_scores;
    const std::int32_t d_norm = to.buffer("feed-forward norm gradient", to.row());

    add_touching(to, "unpermute back",
                 {reads(d_output), reads(returned_), reads(routing_), writes(d_returned),
                  writes(scored(to) ? -1 : d_routing_)},
                 to.row() + routing + (scored(to) ? 0 : routing + copies) + operands);
    all_to_all(to, "combine back", {d_returned, d_results_, operands});
    if (shared_ >= 0) shared_back(to, d_output, weights_too);
    to.add("experts narrow back", {reads(d_results_), writes(d_active)},
           expert(to, to.model().feed_forward_width(), columns));
    if (weights_too) narrow_weights(to);
    add_touching(to, "experts activation back",
                 {reads(wide_), reads(scores_), reads(d_active), writes(d_wide_), writes(d_scores)},
                 wide + d_wide + active + 2 * scores);
    to.add("experts widen back", {reads(d_wide_), writes(d_tokens)},
           expert(to, to.model().wide(), inner));
    if (weights_too) widen_weights(to);
    all_to_all(to, "dispatch back", {d_tokens, d_sent, copies}, {d_scores, d_scores_sent, scores});
    add_touching(to, "permute back",
                 {reads(d_sent), reads(d_scores_sent), reads(routing_), writes(d_norm),
                  writes(scored(to) ? d_routing_ : -1)},
                 to.row() + routing + (scored(to) ? routing : 0) + copies + scores);
    to.add("router back", {reads(d_routing_), reads(d_norm), writes(d_norm)},
           router(to, to.model().bytes.weight));
    if (weights_too) router_weights(to);
    if (shared_ >= 0)
      to.add("shared back", {reads(d_shared_), reads(d_norm), writes(d_norm)},
             to.moved(3 * to.row()));
    // Gradients of weights read this one again for shared experts alone.
    return to.norm_back(input_, d_norm, gradient, !weights_too && d_narrow_ == gradient);
  }
  constexpr void backward_weight(transformer_ops& to) const {
    if (shared_ >= 0) shared_weights(to, to.gathered(d_narrow_));
    narrow_weights(to);
    widen_weights(to);
    router_weights(to);
  }

 private:
  using enum made_by_product;

  //! Whether some experts are on other devices.
  static constexpr bool among(const transformer_ops& to) { return to.model().experts.parallel > 1; }
  static constexpr bool scored(const transformer_ops& to) {
    return to.model().experts.scores == expert_scores::activations;
  }
  //! An op that takes rows one by one, and touches of these buffers those that there are.
  static constexpr void add_touching(transformer_ops& to, std::string_view name,
                                     std::initializer_list<op_use> buffers, std::int64_t bytes) {
    std::vector<op_use> there;
    for (const op_use& one : buffers)
      if (one.buffer >= 0) there.push_back(one);
    to.add(name, viewed(there), to.moved(bytes), pieces_of::rows);
  }
  //! Copies of tokens: one for each of its experts.
  static constexpr std::int64_t copies(const transformer_ops& to) {
    return to.own_rows() * to.model().experts.per_token;
  }
  static constexpr std::int64_t copy_bytes(const transformer_ops& to, std::int64_t width) {
    return copies(to) * width * to.model().bytes.activation;
  }
  //! Where products alone read them.
  static constexpr std::int64_t operand_bytes(const transformer_ops& to, std::int64_t width) {
    return copies(to) * width * to.model().bytes.operands();
  }
  //! In single precision, a number for each copy that goes with its score.
  static constexpr std::int64_t score_bytes(const transformer_ops& to) {
    return scored(to) ? 4 * copies(to) : 0;
  }
  //! In single precision, a number for each token and expert.
  static constexpr std::int64_t routing_bytes(const transformer_ops& to) {
    return 4 * to.own_rows() * to.model().experts.count;
  }
  //! @param each  bytes for one of the matrix' numbers
  static constexpr op_work router(const transformer_ops& to, std::int64_t each) {
    const transformer& model = to.model();
    const std::int64_t count = model.experts.count;
    return {2 * to.own_rows() * model.hidden * count,
            to.row() + routing_bytes(to) + model.hidden * count * each,
            0,
            {to.own_rows(), model.hidden, count}};
  }
  //! Products of all copies with the device's experts' matrices.
  static constexpr op_work expert(const transformer_ops& to, std::int64_t width,
                                  made_by_product made) {
    const transformer& model = to.model();
    return to.product_of(copies(to), model.hidden, width, made,
                         model.experts.count / model.experts.parallel);
  }
  static constexpr op_work shared(const transformer_ops& to, std::int64_t width,
                                  made_by_product made) {
    return to.linear(to.model().experts.shared * width, made);
  }
  static constexpr std::int64_t shared_bytes(const transformer_ops& to, std::int64_t width) {
    return to.share(to.model().experts.shared * width);
  }
  //! What goes from one buffer to another.
  struct moved_buffer {
    std::int32_t from;  //!< -1: nothing does
    std::int32_t result;
    std::int64_t bytes;  //!< of all copies
  };
  //! All but a device's own copies leave it, or, where one serves all experts of a node, its node,
  //! within which no more is told. Alone, it has nothing to send.
  //! @param each  goes with them, for each of those that one serves, too
  static constexpr void all_to_all(transformer_ops& to, std::string_view name,
                                   const moved_buffer& whole,
                                   const moved_buffer& each = {-1, -1, 0}) {
    if (!among(to)) return;
    const expert_mixture& mixed = to.model().experts;
    const std::int64_t of_node = to.model().node_devices;
    const std::int64_t nodes = (mixed.parallel + of_node - 1) / of_node;
    network_message sent;
    if (mixed.nodes > 0 && nodes > 1) {
      const std::int64_t copies = std::min({mixed.per_token, mixed.nodes, nodes});
      sent.bytes = sent.far =
          (whole.bytes / mixed.per_token * copies + each.bytes) * (nodes - 1) / nodes;
    } else {
      sent.bytes = (whole.bytes + each.bytes) * (mixed.parallel - 1) / mixed.parallel;
      sent.far = to.model().far_of_exchange(sent.bytes, mixed.parallel, 1);
    }
    if (each.from < 0)
      to.message(name, {reads(whole.from), writes(whole.result)}, sent, pieces_of::rows);
    else
      to.message(name,
                 {reads(whole.from), reads(each.from), writes(whole.result), writes(each.result)},
                 sent, pieces_of::rows);
  }

  constexpr void shared_forward(transformer_ops& to) {
    const transformer& model = to.model();
    shared_wide_ = to.buffer("shared wide", shared_bytes(to, model.wide()));
    const std::int64_t active =
        to.operand_share(model.experts.shared * model.feed_forward_width());
    shared_active_ = to.buffer("shared active", active);
    shared_ = to.buffer("shared results", to.row());
    shared_norm_ = to.operand(norm_, to.row(), "cast norm");
    const std::int32_t norm = to.gathered(shared_norm_);
    to.add("shared widen", {reads(norm), writes(shared_wide_)},
           shared(to, model.wide(), columns));
    to.add("shared activation", {reads(shared_wide_), writes(shared_active_)},
           to.moved(shared_bytes(to, model.wide()) + active));
    to.product("shared narrow", "shared results", {reads(shared_active_)}, shared_,
               shared(to, model.feed_forward_width(), inner));
  }
  //! @param d_output  the gradient of what all experts have made
  constexpr void shared_back(transformer_ops& to, std::int32_t d_output, bool weights_too) {
    const transformer& model = to.model();
    const std::int64_t active = shared_bytes(to, model.feed_forward_width());
    const std::int64_t wide = shared_bytes(to, model.wide());
    const std::int64_t d_wide = to.operand_share(model.experts.shared * model.wide());
    d_narrow_ = to.operand(d_output, to.row());
    const std::int32_t d_active = to.buffer("shared active gradient", active);
    d_shared_wide_ = to.buffer("shared wide gradient", d_wide);
    d_shared_ = to.buffer("shared norm gradient", to.row());
    const std::int32_t d_narrow = to.gathered(d_narrow_);
    to.add("shared narrow back", {reads(d_narrow), writes(d_active)},
           shared(to, model.feed_forward_width(), columns));
    to.add("shared activation back", {reads(shared_wide_), reads(d_active), writes(d_shared_wide_)},
           to.moved(wide + d_wide + active));
    to.product("shared widen back", "shared norm gradient", {reads(d_shared_wide_)}, d_shared_,
               shared(to, model.wide(), inner));
    if (weights_too) shared_weights(to, d_narrow);
  }
  //! @param gradient  all rows of the product's
  constexpr void shared_weights(transformer_ops& to, std::int32_t gradient) const {
    to.weights("shared narrow weights", {reads(shared_active_), reads(gradient)},
               shared(to, to.model().feed_forward_width(), matrix));
    const std::int32_t norm = to.gathered(shared_norm_);
    to.weights("shared widen weights", {reads(norm), reads(d_shared_wide_)},
               shared(to, to.model().wide(), matrix));
  }
  constexpr void narrow_weights(transformer_ops& to) const {
    to.weights("experts narrow weights", {reads(active_), reads(d_results_)},
               expert(to, to.model().feed_forward_width(), matrix));
  }
  constexpr void widen_weights(transformer_ops& to) const {
    to.weights("experts widen weights", {reads(tokens_), reads(d_wide_)},
               expert(to, to.model().wide(), matrix));
  }
  constexpr void router_weights(transformer_ops& to) const {
    to.weights("router weights", {reads(norm_), reads(d_routing_)},
               router(to, to.gradient_bytes()));
  }

  std::int32_t input_ = -1, norm_ = -1, routing_ = -1, tokens_ = -1, wide_ = -1, active_ = -1;
  std::int32_t scores_ = -1, returned_ = -1, mask_ = -1;
  std::int32_t shared_norm_ = -1, shared_wide_ = -1, shared_active_ = -1, shared_ = -1;
  std::int32_t d_narrow_ = -1, d_routing_ = -1, d_results_ = -1, d_wide_ = -1;
  std::int32_t d_shared_wide_ = -1, d_shared_ = -1;
};

}  // namespace stretto
