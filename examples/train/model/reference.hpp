// The unpipelined trainer: one stage with all layers. What the pipelined one must equal, bit for
// bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/batch.hpp"
#include "model/config.hpp"
#include "model/optimizer.hpp"
#include "model/stage.hpp"
#include "model/tensor.hpp"

namespace train {

//! What is summed into the gradients at once: a slice of a micro-batch.
struct sum_term {
  int microbatch = 0;
  int slice = 0;

  bool operator==(const sum_term&) const = default;
};

//! In which order a step's are: each list in its order, from zero; then the lists of a part one
//! after the other (of data-parallel replicas), then the parts (of directions).
using sum_order = std::vector<std::vector<std::vector<sum_term>>>;

//! The order for some layers, [first, last).
struct layer_sums {
  int first = 0;
  int last = 0;
  sum_order order;
};

//! Trains with the same layer functions as the pipeline.
//! `fill(microbatch, tokens, targets)` writes one micro-batch of data into the two spans.
template <class Scalar>
class basic_reference {
 public:
  //! @param by  the host's; it outlives this
  basic_reference(const config& model, std::uint64_t seed,
                  const math<Scalar>& by = host_math<Scalar>())
      : stage_(model, 0, model.layer_count(), seed, 0, by),
        batch_(model),
        norms_(config::size(model.layer_count())) {
    flights_.emplace_back(stage_);
  }

  //! One step: forward and backward of each micro-batch in ascending order (of its slices forward
  //! in ascending order, then backward in reverse), clipping, AdamW. The gradients stay (not
  //! clipped, tied ones joined) until the next step. Allocates nothing.
  //! @throws std::invalid_argument if there are no micro-batches
  //! @throws std::runtime_error if the gradient is not finite; parameters are then untouched
  template <class Fill>
  step_result step(long number, int microbatches, double learning_rate, double norm_limit,
                   const adamw& rule, Fill&& fill) {
    stage_.round_weights();
    stage_.zero_gradients();
    flight& one = flights_.front();
    const double loss = each(microbatches, fill, [&] {
      for (std::size_t slice = one.stashes.size(); slice-- > 0;)
        stage_.backward({}, {}, one.stashes[slice], one.before(slice));
    });
    return update(number, loss, learning_rate, norm_limit, rule);
  }

  //! The same with the gradients summed in other orders. The loss is summed in ascending order.
  //! @param sums every layer once, every slice of every micro-batch once in each order; the whole
  //!             model runs once for every order among them, and keeps what its slices saved of all
  //!             micro-batches that others of an order stand between
  //! @throws as above
  template <class Fill>
  step_result step(long number, std::span<const layer_sums> sums, double learning_rate,
                   double norm_limit, const adamw& rule, Fill&& fill) {
    stage_.round_weights();
    std::vector<Scalar> chosen(stage_.gradients().size());
    std::vector<double> losses;
    for (std::size_t one = 0; one < sums.size(); ++one) {
      const auto same = [&](const layer_sums& other) { return other.order == sums[one].order; };
      if (std::ranges::any_of(sums.first(one), same)) continue;
      accumulate(sums[one].order, losses, fill);
      for (const layer_sums& of : sums.subspan(one))
        for (int layer = of.first; same(of) && layer < of.last; ++layer) {
          const auto from = stage_.gradients(layer);
          std::ranges::copy(from, chosen.begin() + (from.data() - stage_.gradients().data()));
        }
    }
    std::ranges::copy(chosen, stage_.gradients().begin());
    double loss = 0;
    for (const double part : losses) loss += part;
    return update(number, loss, learning_rate, norm_limit, rule);
  }

  //! The loss alone, over `microbatches` micro-batches.
  template <class Fill>
  double evaluate(int microbatches, Fill&& fill) {
    stage_.round_weights();
    return each(microbatches, fill, [] {});
  }

  basic_stage<Scalar>& stage() { return stage_; }
  const basic_stage<Scalar>& stage() const { return stage_; }

 private:
  //! What a micro-batch's slices save.
  struct flight {
    explicit flight(const basic_stage<Scalar>& of) {
      for (int slice = 0; slice < of.model().slices; ++slice) {
        memory.emplace_back(of.stash_scalars());
        stashes.push_back(memory.back().span());
      }
    }
    earlier_slices<Scalar> before(std::size_t slice) const {
      return std::span(stashes).first(slice);
    }

    std::vector<aligned_array<Scalar>> memory;
    std::vector<std::span<Scalar>> stashes;
    int microbatch = -1;
    int left = 0;  // slices that are still to be summed
  };

  template <class Fill>
  void forward(flight& one, int microbatch, int microbatches, Fill& fill, auto&& add_loss) {
    fill(microbatch, batch_.tokens(), batch_.targets());
    for (std::size_t slice = 0; slice < one.stashes.size(); ++slice)
      add_loss(slice, stage_.forward(batch_.tokens(slice), batch_.targets(slice), {}, {},
                                     one.stashes[slice], 1.0 / microbatches, one.before(slice)));
  }

  template <class Fill, class After>
  double each(int microbatches, Fill& fill, After&& after) {
    if (microbatches < 1) {
      throw std::invalid_argument("microbatches is " + std::to_string(microbatches) +
                                  ", it must be at least 1");
    }
    double loss = 0;
    for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
      forward(flights_.front(), microbatch, microbatches, fill,
              [&](std::size_t, double part) { loss += part; });
      after();
    }
    return loss;
  }

  //! Leaves the sums in the stage's gradients.
  template <class Fill>
  void accumulate(const sum_order& order, std::vector<double>& losses, Fill& fill) {
    const std::size_t slices = flights_.front().stashes.size();
    std::size_t terms = 0;
    for (const auto& part : order)
      for (const std::vector<sum_term>& list : part) terms += list.size();
    losses.assign(terms, 0.0);
    const auto add_list = [&](const std::vector<sum_term>& list) {
      for (const sum_term& term : list) {
        flight& one = flight_of(term.microbatch);
        if (one.left == 0) {
          const std::size_t first = config::size(term.microbatch) * slices;
          forward(one, term.microbatch, static_cast<int>(terms / slices), fill,
                  [&](std::size_t slice, double loss) { losses[first + slice] = loss; });
          for (std::size_t slice = slices; slice-- > 0;)
            stage_.backward_input({}, {}, one.stashes[slice], one.before(slice));
          one.microbatch = term.microbatch;
          one.left = static_cast<int>(slices);
        }
        stage_.backward_weight(one.stashes[config::size(term.slice)], config::size(term.slice));
        --one.left;
      }
    };
    add_each(order, [&](const auto& part) { add_each(part, add_list); });
  }
  //! The one that the micro-batch is in, or is to be in.
  flight& flight_of(int microbatch) {
    flight* free = nullptr;
    for (flight& one : flights_) {
      if (one.left > 0 && one.microbatch == microbatch) return one;
      if (one.left == 0) free = &one;
    }
    return free != nullptr ? *free : flights_.emplace_back(stage_);
  }
  //! Leaves in the gradients what `add` makes of each part, from zero, one after the other.
  void add_each(const auto& parts, auto&& add) {
    const std::span<Scalar> sums = stage_.gradients();
    std::vector<Scalar> before;
    for (const auto& part : parts) {
      before.assign(sums.begin(), sums.end());
      stage_.zero_gradients();
      add(part);
      if (&part != &parts.front())
        for (std::size_t at = 0; at < sums.size(); ++at) sums[at] = before[at] + sums[at];
    }
  }

  step_result update(long number, double loss, double learning_rate, double norm_limit,
                     const adamw& rule) {
    step_result result{.loss = loss};
    if (stage_.model().tied) {
      for (int piece = 0; piece < stage_.model().head_pieces; ++piece)
        stage_.join_tied(stage_.tied_gradient(layer_kind::embedding, piece),
                         stage_.tied_gradient(layer_kind::head, piece), piece);
    }
    stage_.squared_norms(norms_);
    result.gradient_norm = global_norm(norms_);
    result.clip_factor = clip_factor(result.gradient_norm, norm_limit);
    const adamw_factors<Scalar> by(rule, number, learning_rate);
    stage_.clip_and_update(&by, &result.clip_factor);
    return result;
  }

  basic_stage<Scalar> stage_;
  batch batch_;
  std::vector<flight> flights_;
  std::vector<double> norms_;
};

using reference = basic_reference<float>;

}  // namespace train
