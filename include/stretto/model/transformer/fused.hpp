#pragma once

#include <cstdint>
#include <vector>

#include "stretto/base/viewed.hpp"
#include "stretto/model/transformer/context.hpp"
#include "stretto/model/transformer/ops.hpp"

namespace stretto {

//! From queries, keys and values to the context and back by attention_kernel::fused, which keeps
//! the sums of rows alone. Dropout needs no mask: what was dropped is drawn again.
//!
//! Round a ring (context_exchange::ring) it takes the keys and values of one device after the
//! other, its own first, and sends on those at hand meanwhile; each time it has as much to do, as
//! sequences are dealt (transformer::context_parallel). Backwards the gradients of a part go round
//! behind it, and each device adds its own.
class transformer_fused {
 public:
  //! @param all  keys and values that are attended to; round a ring the device's own
  constexpr void forward(transformer_ops& to, const transformer_context& from,
                         std::int32_t queries, const keys_and_values& all, std::int32_t context) {
    context_ = context;
    sums_ = to.buffer_by_heads("sums of rows", sum_bytes(to));
    const std::int64_t own =
        to.share(to.model().query_width()) + to.share(to.model().context_width()) + sum_bytes(to);
    keys_and_values here = all, next = all;
    for (int step = 0, steps = to.model().ring_steps(); step < steps; ++step) {
      if (step + 1 < steps) {
        next = from.part(to, "keys of another", "values of another");
        from.pass(to, "pass keys and values", here, next);
      }
      std::vector<op_use> touched{reads(queries), reads(here.k), reads(here.v), writes(context_),
                                  writes(sums_)};
      if (step > 0) touched.insert(touched.end(), {reads(context_), reads(sums_)});
      to.add("attention", viewed(touched),
             in_one(to, from, 1, 1, own + from.read_bytes(to) / steps, steps),
             pieces_of::result);
      here = next;
    }
  }
  //! @param gradients  of all keys and values; round a ring of the device's own
  constexpr void backward(transformer_ops& to, const transformer_context& from,
                          std::int32_t queries, const keys_and_values& all, std::int32_t d_queries,
                          const keys_and_values& gradients, std::int32_t d_context) const {
    const transformer& model = to.model();
    const std::int64_t share = to.share(model.query_width());
    // All blocks of keys add to a query's gradient, in single precision.
    const std::int64_t wide = share / model.bytes.activation * 4;
    const std::int32_t collected = to.buffer_by_heads("queries gradient, collected", wide);
    const std::int32_t products = to.buffer_by_heads("products of rows", sum_bytes(to));
    const std::int64_t own =
        2 * share + 2 * to.share(model.context_width()) + 2 * wide + 3 * sum_bytes(to);
    const int steps = model.ring_steps();
    const std::int64_t bytes = from.read_bytes(to) / steps;
    keys_and_values here = all, next = all, made = gradients, come;
    for (int step = 0; step < steps; ++step) {
      // On its way meanwhile: what is attended to next, and the gradients of what was before.
      const bool goes_on = step + 1 < steps;
      if (goes_on) next = from.part(to, "keys of another", "values of another");
      if (step > 0) come = from.part(to, "keys gradient so far", "values gradient so far");
      if (goes_on && step > 0)
        from.pass(to, "pass keys and values, and gradients", here, next, made, come);
      else if (goes_on)
        from.pass(to, "pass keys and values back", here, next);
      else if (step > 0)
        from.pass(to, "pass gradients of keys and values", made, come);
      if (steps > 1) made = from.part(to, "keys gradient here", "values gradient here");
      std::vector<op_use> touched{reads(d_context),  reads(queries),   reads(here.k),
                                  reads(here.v),     reads(context_),  reads(sums_),
                                  writes(collected), writes(products), writes(d_queries),
                                  writes(made.k),    writes(made.v)};
      if (step > 0) touched.insert(touched.end(), {reads(collected), reads(products)});
      to.add("attention back", viewed(touched),
             in_one(to, from, 3, 2, own + 2 * bytes, steps), pieces_of::result);
      if (step > 0)
        to.add("add gradients of keys and values",
               {reads(come.k), reads(come.v), reads(made.k), reads(made.v), writes(made.k),
                writes(made.v)},
               to.moved(3 * bytes));
      here = next;
    }
    if (steps > 1) from.pass(to, "bring gradients of keys and values home", made, gradients);
  }

 private:
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
            {model.attends_at_once(), (width / model.heads + products - 1) / products,
             (keys + 1) / 2 / steps},
            products * model.microbatch * model.heads_at_once() / to.shards()};
  }
  //! A number in single precision for each row and head.
  static constexpr std::int64_t sum_bytes(const transformer_ops& to) {
    return 4 * to.model().heads * to.rows() / to.shards();
  }

  std::int32_t context_ = -1, sums_ = -1;
};

}  // namespace stretto
