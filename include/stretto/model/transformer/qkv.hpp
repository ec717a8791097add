#pragma once

#include <cstdint>

#include "stretto/model/transformer/ops.hpp"

namespace stretto {

//! From what an attention's norm makes to queries, keys and values, and back: by one product, or,
//! with latent attention, by way of the few numbers that these are made of. Keys and values of all
//! heads are there in either case, and kept for the backward: no product is moved past another, as
//! one may for inference.
class transformer_qkv {
 public:
  //! @param norm  the rank's part of the rows, as products read it
  constexpr void forward(transformer_ops& to, std::int32_t norm) {
    const transformer& model = to.model();
    norm_ = norm;
    q = to.buffer("queries", to.share(model.query_width()));
    k = to.buffer("keys", to.share(model.key_width()));
    v = to.buffer("values", to.share(model.value_width()));
    if (model.latent.keys > 0) return latent_forward(to);
    const std::int32_t all = to.gathered(norm_);
    to.add("qkv", {reads(all), writes(q), writes(k), writes(v)}, to.linear(width(to), columns));
    if (model.layers == architecture::llama)
      to.add("rotary", {reads(q), reads(k), writes(q), writes(k)}, to.moved(turned_bytes(to)));
  }
  //! Gradients of keys and values, to which a slice's later ones add.
  constexpr void make_kv_gradients(transformer_ops& to) {
    d_k = to.buffer("keys gradient", to.share(to.model().key_width()));
    d_v = to.buffer("values gradient", to.share(to.model().value_width()));
  }
  constexpr void make_query_gradients(transformer_ops& to) {
    d_q = to.buffer("queries gradient", to.share(to.model().query_width()));
  }
  //! From the gradients that are made above to that of what the norm makes.
  constexpr void backward_input(transformer_ops& to, std::int32_t d_norm) {
    if (to.model().latent.keys > 0) return latent_back(to, d_norm);
    if (to.model().layers == architecture::llama)
      to.add("rotary back", {reads(d_q), reads(d_k), writes(d_q), writes(d_k)},
             to.moved(turned_bytes(to)));
    cast_gradients(to);
    to.product("qkv back", "attention norm gradient",
               {reads(from_q_), reads(from_k_), reads(from_v_)}, d_norm,
               to.linear(width(to), inner));
  }
  constexpr void backward_weight(transformer_ops& to) const {
    const transformer& model = to.model();
    const latent_attention& latent = model.latent;
    if (latent.keys == 0) {
      const std::int32_t all = to.gathered(norm_);
      to.weights("qkv weights", {reads(all), reads(from_q_), reads(from_k_), reads(from_v_)},
                 to.linear(width(to), matrix));
      return;
    }
    to.weights("key and value weights",
               {reads(to.gathered("gather low keys", low_norm_, latent.keys)), reads(from_k_),
                reads(from_v_)},
               made_kv(to, matrix));
    to.weights("low key weights", {reads(norm_), reads(d_low_)},
               to.own_matrix(model.hidden, latent.keys + latent.rotary, matrix));
    if (latent.queries == 0) {
      const std::int32_t all = to.gathered(norm_);
      to.weights("query weights", {reads(all), reads(from_q_)},
                 to.linear(model.query_width(), matrix));
      return;
    }
    const std::int32_t all = to.gathered("gather low queries", low_query_norm_, latent.queries);
    to.weights("query weights", {reads(all), reads(from_q_)},
               to.matrix(latent.queries, model.query_width(), matrix));
    to.weights("low query weights", {reads(norm_), reads(d_low_query_)},
               to.own_matrix(model.hidden, latent.queries, matrix));
  }
  //! Of queries, keys and values.
  static constexpr std::int64_t width(const transformer_ops& to) {
    return to.model().query_width() + to.model().key_width() + to.model().value_width();
  }

  std::int32_t q = -1, k = -1, v = -1;
  std::int32_t d_q = -1, d_k = -1, d_v = -1;

 private:
  using enum made_by_product;

  //! What products read of the gradients of queries, keys and values.
  constexpr void cast_gradients(transformer_ops& to) {
    from_q_ = to.operand(d_q, to.share(to.model().query_width()));
    from_k_ = to.operand(d_k, to.share(to.model().key_width()));
    from_v_ = to.operand(d_v, to.share(to.model().value_width()));
  }
  //! What the positions are turned into: all features, read and written; with latent attention the
  //! rotary ones, of which those of keys come once and go to every head.
  static constexpr std::int64_t turned_bytes(const transformer_ops& to) {
    const transformer& model = to.model();
    if (model.latent.keys == 0)
      return 2 * (to.share(model.query_width()) + to.share(model.key_width()));
    return to.share(3 * model.heads * model.latent.rotary) +
           to.rows() * model.latent.rotary * model.bytes.activation;
  }
  //! Of keys without their rotary part, and values.
  static constexpr op_work made_kv(const transformer_ops& to, made_by_product made) {
    const transformer& model = to.model();
    return to.matrix(
        model.latent.keys,
        model.key_width() - model.heads * model.latent.rotary + model.value_width(), made);
  }

  // The few numbers are made by each rank, of its own rows, and gathered; what is made of them is
  // shared, by heads.
  constexpr void latent_forward(transformer_ops& to) {
    const transformer& model = to.model();
    const latent_attention& latent = model.latent;
    const std::int64_t width = latent.keys + latent.rotary;
    low_ = to.buffer("low keys", to.own(width));
    low_norm_ = to.buffer("low keys norm", to.operand_own(latent.keys));
    to.add("low keys", {reads(norm_), writes(low_)}, to.own_matrix(model.hidden, width, columns));
    to.add("low keys norm", {reads(low_), writes(low_norm_)},
           to.moved(to.own(latent.keys) + to.operand_own(latent.keys)));
    const std::int32_t low_norm = to.gathered("gather low keys", low_norm_, latent.keys);
    to.add("keys and values", {reads(low_norm), writes(k), writes(v)}, made_kv(to, columns));
    if (latent.queries > 0) {
      low_query_ = to.buffer("low queries", to.own(latent.queries));
      low_query_norm_ = to.buffer("low queries norm", to.operand_own(latent.queries));
      to.add("low queries", {reads(norm_), writes(low_query_)},
             to.own_matrix(model.hidden, latent.queries, columns));
      to.add("low queries norm", {reads(low_query_), writes(low_query_norm_)},
             to.moved(to.own(latent.queries) + to.operand_own(latent.queries)));
      const std::int32_t all = to.gathered("gather low queries", low_query_norm_, latent.queries);
      to.add("queries", {reads(all), writes(q)},
             to.matrix(latent.queries, model.query_width(), columns));
    } else {
      const std::int32_t all = to.gathered(norm_);
      to.add("queries", {reads(all), writes(q)}, to.linear(model.query_width(), columns));
    }
    if (latent.rotary == 0) return;
    const std::int32_t low = 
        to.gathered("gather rotary", low_, latent.rotary, model.bytes.activation);
    to.add("rotary", {reads(q), reads(low), reads(k), writes(q), writes(k)},
           to.moved(turned_bytes(to)));
  }
  constexpr void latent_back(transformer_ops& to, std::int32_t d_norm) {
    const transformer& model = to.model();
    const latent_attention& latent = model.latent;
    const std::int64_t width = latent.keys + latent.rotary;
    const std::int32_t d_low = to.buffer("low keys gradient", to.own(width));
    const std::int32_t d_low_norm = to.buffer("low keys norm gradient", to.own(latent.keys));
    if (latent.rotary > 0) {
      const std::int32_t made = to.summand(d_low, latent.rotary);
      to.add("rotary back", {reads(d_q), reads(d_k), writes(d_q), writes(made)},
             to.moved(turned_bytes(to)));
      to.add_up("rotary gradient", made, d_low, latent.rotary);
    }
    cast_gradients(to);
    to.product("keys and values back", "low keys norm gradient", {reads(from_k_), reads(from_v_)},
               d_low_norm, made_kv(to, inner), latent.keys);
    const op_work norm = to.moved(3 * to.own(latent.keys));
    if (latent.rotary > 0)
      to.add("low keys norm back", {reads(low_), reads(d_low_norm), reads(d_low), writes(d_low)},
             norm);
    else
      to.add("low keys norm back", {reads(low_), reads(d_low_norm), writes(d_low)}, norm);
    d_low_ = to.operand(d_low, to.own(width));
    if (latent.queries == 0) {
      to.product("queries back", "attention norm gradient", {reads(from_q_)}, d_norm,
                 to.linear(model.query_width(), inner));
      to.add("low keys back", {reads(d_low_), reads(d_norm), writes(d_norm)},
             to.own_matrix(model.hidden, width, inner));
      return;
    }
    to.add("low keys back", {reads(d_low_), writes(d_norm)},
           to.own_matrix(model.hidden, width, inner));
    const std::int32_t d_low_query =
        to.buffer("low queries gradient", to.own(latent.queries));
    const std::int32_t d_query_norm =
        to.buffer("low queries norm gradient", to.own(latent.queries));
    to.product("queries back", "low queries norm gradient", {reads(from_q_)}, d_query_norm,
               to.matrix(latent.queries, model.query_width(), inner), latent.queries);
    to.add("low queries norm back", {reads(low_query_), reads(d_query_norm), writes(d_low_query)},
           to.moved(3 * to.own(latent.queries)));
    d_low_query_ = to.operand(d_low_query, to.own(latent.queries));
    to.add("low queries back", {reads(d_low_query_), reads(d_norm), writes(d_norm)},
           to.own_matrix(model.hidden, latent.queries, inner));
  }

  std::int32_t norm_ = -1;
  std::int32_t from_q_ = -1, from_k_ = -1, from_v_ = -1;  // gradients, as products read them
  std::int32_t low_ = -1, low_norm_ = -1, low_query_ = -1, low_query_norm_ = -1;
  std::int32_t d_low_ = -1, d_low_query_ = -1;
};

}  // namespace stretto
