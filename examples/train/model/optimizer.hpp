// AdamW, its learning rate over time, and global-norm clipping.
#pragma once

#include <span>

namespace train {

//! AdamW (Loshchilov and Hutter 2019): Adam with weight decay beside the gradient, not in it.
struct adamw {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  //!< per unit of learning rate; matrices only, not norms and biases

  //! @throws std::invalid_argument naming the member and the rule that it breaks
  void check() const;

  bool operator==(const adamw&) const = default;
};

//! What the updates of one step multiply by, in the tensors' precision.
template <class Scalar>
struct adamw_factors {
  Scalar beta1, beta2, rate, unbias, epsilon;
  Scalar keep;  //!< of what decays

  //! @param step  1 for the first update
  adamw_factors(const adamw& rule, long step, double learning_rate);
};

extern template struct adamw_factors<float>;
extern template struct adamw_factors<double>;

//! What a training step reports.
struct step_result {
  double loss = 0;           //!< mean cross-entropy of the step's micro-batches, nats per byte
  double gradient_norm = 0;  //!< before clipping
  double clip_factor = 1;

  bool operator==(const step_result&) const = default;
};

//! One update of one tensor, in place. All spans have the same size.
//! \param clip_factor   multiplies the gradient, see clip_factor()
//! \param decayed       whether weight decay applies
template <class Scalar>
void update(const adamw_factors<Scalar>& by, double clip_factor, bool decayed,
            std::span<Scalar> parameters, std::span<const Scalar> gradients, std::span<Scalar> mean,
            std::span<Scalar> square);

extern template void update(const adamw_factors<float>&, double, bool, std::span<float>,
                            std::span<const float>, std::span<float>, std::span<float>);
extern template void update(const adamw_factors<double>&, double, bool, std::span<double>,
                            std::span<const double>, std::span<double>, std::span<double>);

//! Linear warm-up from 0 to `peak`, then half a cosine down to `floor`.
struct learning_rate_schedule {
  double peak = 1e-3;
  double floor = 1e-4;
  long warmup = 10;  //!< steps until the peak
  long steps = 100;  //!< steps until the floor, warm-up included

  //! @throws std::invalid_argument naming the member and the rule that it breaks
  void check() const;

  //! The learning rate of a step; 1 is the first.
  double at(long step) const;
};

//! The root of the sum, in the order given: one squared norm per layer, in layer order, makes the
//! result independent of how layers are dealt to stages.
double global_norm(std::span<const double> squared_norms);

//! What gradients are multiplied by, so that their global norm is at most `limit`.
//! @throws std::runtime_error if the norm is not finite: the step would destroy the model
double clip_factor(double norm, double limit);

}  // namespace train
