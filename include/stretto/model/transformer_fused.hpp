#pragma once

#include <cstdint>
#include <vector>

#include "stretto/base/viewed.hpp"
#include "stretto/model/transformer_context.hpp"
#include "stretto/model/transformer_ops.hpp"
#include "stretto/model/transformer_qkv.hpp"

namespace stretto {

//! From queries, keys and values to the context and back by attention_kernel::fused, which keeps the
//! sums of rows alone. Dropout needs no mask: what was dropped is drawn again.
//!
//! Round a ring (context_exchange::ring) it takes the keys and values of one device after the other,
//! its own first, and sends on those at hand meanwhile; each time it has as much to do, as sequences
//! are dealt (transformer::context_parallel). Backwards the gradients of a part go round behind it, and
//! each device adds its own.
class transformer_fused {
 public:
  //! @param all  keys and values that are attended to; round a ring the device's own
  constexpr void forward(transformer_ops& to, const transformer_qkv& qkv,
                         const transformer_context& from, const keys_and_values& all,
                         std::int32_t context) {
    context_ = context;
    sums_ = to.buffer_by_heads("sums of rows", sum_bytes(to));
    const std::int64_t own =
        to.share(to.model().query_width()) + to.share(to.model().context_width()) + sum_bytes(to);
    ring round(to, from, all);
    for (int step = 0; step < round.steps; ++step) {
      round.send_on(step, "pass keys and values");
      std::vector<op_use> touched{reads(qkv.q), reads(round.here.k), reads(round.here.v),
                                  writes(context_), writes(sums_)};
      if (step > 0) touched.insert(touched.end(), {reads(context_), reads(sums_)});
      to.add("attention", viewed(touched),
             in_one(to, from, 1, 1, own + from.read_bytes(to) / round.steps, round.steps),
             pieces_of::result);
      round.here = round.next;
    }
  }
  //! @param gradients  of all keys and values; round a ring of the device's own
  constexpr void backward(transformer_ops& to, const transformer_qkv& qkv,
                          const transformer_context& from, const keys_and_values& all,
                          const keys_and_values& gradients, std::int32_t d_context) const {
    const transformer& model = to.model();
    const std::int64_t share = to.share(model.query_width());
    // All blocks of keys add to a query's gradient, in single precision.
    const std::int64_t wide = share / model.bytes.activation * 4;
    const std::int32_t collected = to.buffer_by_heads("queries gradient, collected", wide);
    const std::int32_t products = to.buffer_by_heads("products of rows", sum_bytes(to));
    const std::int64_t own =
        2 * share + 2 * to.share(model.context_width()) + 2 * wide + 3 * sum_bytes(to);
    ring round(to, from, all);
    keys_and_values made = gradients, come;
    for (int step = 0; step < round.steps; ++step) {
      round.send_on(step, "pass keys and values back");
      if (round.steps > 1) made = from.part(to, "keys gradient here", "values gradient here");
      std::vector<op_use> touched{reads(d_context),       reads(qkv.q),         reads(round.here.k),
                                  reads(round.here.v),    reads(context_),      reads(sums_),
                                  writes(collected),      writes(products),     writes(qkv.d_q),
                                  writes(made.k),         writes(made.v)};
      if (step > 0) touched.insert(touched.end(), {reads(collected), reads(products)});
      const std::int64_t bytes = from.read_bytes(to) / round.steps;
      to.add("attention back", viewed(touched),
             in_one(to, from, 3, 2, own + 2 * bytes, round.steps), pieces_of::result);
      if (step > 0)
        to.add("add gradients of keys and values",
               {reads(come.k), reads(come.v), reads(made.k), reads(made.v), writes(made.k),
                writes(made.v)},
               to.moved(3 * bytes));
      if (round.steps > 1) {
        come = step + 1 < round.steps
                   ? from.part(to, "keys gradient so far", "values gradient so far")
                   : gradients;
        from.pass(to, "pass gradients of keys and values", made, come);
      }
      round.here = round.next;
    }
  }

 private:
  //! Keys and values as they go round; all are there at once, in one step, where they do not.
  struct ring {
    transformer_ops& to;
    const transformer_context& from;
    keys_and_values here, next;
    int steps;

    constexpr ring(transformer_ops& ops, const transformer_context& context,
                   const keys_and_values& own)
        : to(ops), from(context), here(own), next(own), steps(ops.model().ring_steps()) {}
    constexpr void send_on(int step, std::string_view name) {
      if (step + 1 == steps) return;
      next = from.part(to, "keys of another", "values of another");
      from.pass(to, name, here, next);
    }
  };

  //! A step's products of scores and of values. On the average half of the scores are masked, and
  //! skipped. Where heads' widths differ their mean is the products' inner size.
  static constexpr op_work in_one(const transformer_ops& to, const transformer_context& from,
                                  int of_scores, int of_values, std::int64_t bytes, int steps) {
    const transformer& model = to.model();
    const std::int64_t keys = model.attends_twice(from.windowed());
    const std::int64_t width =
        of_scores * model.query_width() + of_values * model.context_width();
    const std::int64_t products = of_scores + of_values;
    return {to.rows() * keys * (width / to.shards()) / steps,
            bytes,
            0,
            {model.held(), (width / model.heads + products - 1) / products,
             (keys + 1) / 2 / steps},
            products * model.microbatch * model.heads / to.shards()};
  }
  //! A number in single precision for each row and head.
  static constexpr std::int64_t sum_bytes(const transformer_ops& to) {
    return 4 * to.model().heads * to.rows() / to.shards();
  }

  std::int32_t context_ = -1, sums_ = -1;
};

}  // namespace stretto
