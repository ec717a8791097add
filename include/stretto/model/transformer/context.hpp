#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "stretto/model/transformer/ops.hpp"

namespace stretto {

//! Buffers of keys and values, or of their gradients.
struct keys_and_values {
  std::int32_t k = -1;
  std::int32_t v = -1;
};

//! The keys and values that an attention reads: the job's own, those of slices before it, as far as
//! a window reaches, and of both what other devices have that share the sequence. What comes from
//! these is not kept: a backward has it sent again, and sends gradients back.
class transformer_context {
 public:
  constexpr transformer_context() = default;
  //! @param windowed  see transformer::window
  constexpr explicit transformer_context(bool windowed) : windowed_(windowed) {}

  constexpr bool windowed() const { return windowed_; }

  //! Bytes of all that are read, by one of the ranks that share a layer; of equal slices the mean.
  constexpr std::int64_t read_bytes(const transformer_ops& to) const {
    const transformer& model = to.model();
    const std::int64_t width = model.key_width() + model.value_width();
    if (model.slice.end > 0) return bytes_of(to, read_from(model, model.slice.begin), width);
    std::int64_t all = 0;
    for (int slice = 0; slice < model.slices; ++slice)
      all += read_from(model, slice * model.length());
    return bytes_of(to, all, width) / model.slices;
  }

  //! All at once, round a ring in which every device sends on all parts but one. Where they come
  //! otherwise, or are there, nothing is done.
  //! @param own  the device's
  constexpr keys_and_values gather(transformer_ops& to, std::string_view name,
                                   const keys_and_values& own) const {
    if (!gathers(to)) return own;
    const keys_and_values all = buffers(to, "all keys", "all values", 1);
    send(to, name, {reads(own.k), reads(own.v), writes(all.k), writes(all.v)},
         to.model().context_parallel - 1);
    return all;
  }
  //! Where the gradients of all are made.
  constexpr keys_and_values gradients(transformer_ops& to, const keys_and_values& own) const {
    if (!gathers(to)) return own;
    return buffers(to, "all keys gradient", "all values gradient", 1);
  }
  //! Sums them, of which each device gets its own, round the same ring.
  constexpr void scatter(transformer_ops& to, const keys_and_values& all,
                         const keys_and_values& own) const {
    if (!gathers(to)) return;
    send(to, "scatter gradients of keys and values",
         {reads(all.k), reads(all.v), writes(own.k), writes(own.v)},
         to.model().context_parallel - 1);
  }

  //! What each device has of some tokens of all heads goes to those who have these heads, or what
  //! it has of some heads of all tokens to those who have these tokens.
  //! @param width  of all heads
  constexpr void exchange(transformer_ops& to, std::string_view name,
                          std::initializer_list<op_use> touched, std::int64_t width) const {
    const std::int64_t devices = to.model().context_parallel;
    const std::int64_t bytes = to.share(width) / devices * (devices - 1);
    to.message(name, touched,
               {bytes, to.model().far_of_exchange(bytes, devices, to.model().tensor_parallel)},
               pieces_of::rows);
  }

  //! Of one device's part, which goes round.
  constexpr keys_and_values part(transformer_ops& to, std::string_view keys,
                                 std::string_view values) const {
    return buffers(to, keys, values, to.model().context_parallel);
  }
  //! A device's part to the next one, or two: what is there goes to where it is to be.
  constexpr void pass(transformer_ops& to, std::string_view name, const keys_and_values& there,
                      const keys_and_values& next) const {
    send(to, name, {reads(there.k), reads(there.v), writes(next.k), writes(next.v)}, 1);
  }
  constexpr void pass(transformer_ops& to, std::string_view name, const keys_and_values& there,
                      const keys_and_values& next, const keys_and_values& other,
                      const keys_and_values& other_next) const {
    send(to, name,
         {reads(there.k), reads(there.v), reads(other.k), reads(other.v), writes(next.k),
          writes(next.v), writes(other_next.k), writes(other_next.v)},
         2);
  }

 private:
  static constexpr bool gathers(const transformer_ops& to) {
    return to.model().context_parallel > 1 && to.model().exchange == context_exchange::gather;
  }
  //! A rank's share of what so many tokens of each sequence have of some width.
  static constexpr std::int64_t bytes_of(const transformer_ops& to, std::int64_t tokens,
                                         std::int64_t width) {
    return tokens * to.model().microbatch * width * to.model().bytes.activation / to.shards();
  }
  //! Tokens of each sequence that the slice from `begin` on reads.
  constexpr std::int64_t read_from(const transformer& model, std::int64_t begin) const {
    return model.length() + (windowed_ && model.window < begin ? model.window : begin);
  }
  //! With room for what a given slice reads; of equal ones, for what the last does.
  //! @param parts  of which one is meant
  constexpr keys_and_values buffers(transformer_ops& to, std::string_view keys,
                                    std::string_view values, int parts) const {
    const transformer& model = to.model();
    const std::int64_t tokens = read_from(
        model, model.slice.end > 0 ? model.slice.begin : model.sequence - model.length());
    const std::int64_t k = bytes_of(to, tokens, model.key_width()) / parts;
    const std::int64_t v = bytes_of(to, tokens, model.value_width()) / parts;
    // Those of slices before, whose rows are others, come at once with the job's own.
    if (model.sliced()) return {to.buffer_by_heads(keys, k), to.buffer_by_heads(values, v)};
    return {to.buffer(keys, k), to.buffer(values, v)};
  }
  //! @param parts  so many of a device's leave each
  constexpr void send(transformer_ops& to, std::string_view name,
                      std::initializer_list<op_use> touched, std::int64_t parts) const {
    const transformer& model = to.model();
    const std::int64_t bytes = read_bytes(to) / model.context_parallel * parts;
    const int devices = model.context_parallel, apart = model.tensor_parallel;
    to.message(name, touched,
               {bytes, gathers(to) ? model.far_of_rings(bytes, devices, apart)
                                   : model.far_of_ring(bytes, devices, apart)},
               model.sliced() ? pieces_of::whole : pieces_of::rows);
  }

  bool windowed_ = false;
};

}  // namespace stretto
