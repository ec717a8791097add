#include "model/head.hpp"

#include "model/cross_entropy.hpp"
#include "model/embedding.hpp"
#include "model/norm.hpp"
#include "model/random.hpp"

namespace train {

template <class Scalar>
head<Scalar>::head(const config& model)
    : model_(model),
      rows_(model.rows()),
      width_(config::size(model.width)),
      vocabulary_(config::size(model.vocabulary)) {
  gamma_ = parameters_.take(width_);
  beta_ = parameters_.take(width_);
  table_ = parameters_.take(vocabulary_ * width_, true);
  normal_ = stash_.take(rows_ * width_);
  deviation_ = stash_.take(rows_);
  output_ = stash_.take(rows_ * width_);
  logits_ = stash_.take(rows_ * vocabulary_);
  output_gradient_ = stash_.take(rows_ * width_);
}

template <class Scalar>
void head<Scalar>::initialise(std::uint64_t seed, std::span<Scalar> parameters) const {
  for (Scalar& value : gamma_.of(parameters)) value = Scalar(1);
  for (Scalar& value : beta_.of(parameters)) value = Scalar(0);
  if (model_.tied) {
    embedding<Scalar>::initialise_table(seed, table_.of(parameters));
    return;
  }
  random_stream numbers(seed, model_.layers + 1);
  for (Scalar& value : table_.of(parameters)) value = static_cast<Scalar>(0.02 * numbers.normal());
}

template <class Scalar>
double head<Scalar>::forward(std::span<const Scalar> parameters, std::span<const Scalar> input,
                             std::span<const std::uint8_t> targets, double loss_scale,
                             std::span<Scalar> stash, std::uint64_t& multiply_adds) const {
  auto output = matrix(&stash[output_.offset], rows_, width_);
  norm_forward(&parameters[gamma_.offset], &parameters[beta_.offset],
               matrix(input.data(), rows_, width_), matrix(&stash[normal_.offset], rows_, width_),
               &stash[deviation_.offset], output);
  auto logits = matrix(&stash[logits_.offset], rows_, vocabulary_);
  assign_product(logits, output,
                 matrix(&parameters[table_.offset], vocabulary_, width_).transpose(),
                 multiply_adds);

  const double factor = loss_scale / static_cast<double>(rows_ * config::size(model_.slices));
  return cross_entropy(&stash[logits_.offset], targets, vocabulary_, factor);
}

template <class Scalar>
void head<Scalar>::backward_input(std::span<const Scalar> parameters,
                                  std::span<Scalar> input_gradient, std::span<Scalar> stash,
                                  std::uint64_t& multiply_adds) const {
  assign_product(matrix(&stash[output_gradient_.offset], rows_, width_),
                 matrix(&stash[logits_.offset], rows_, vocabulary_),
                 matrix(&parameters[table_.offset], vocabulary_, width_), multiply_adds);
  // There is no residual beside the final norm.
  auto gradient = matrix(input_gradient.data(), rows_, width_);
  gradient.setZero();
  norm_backward_input<Scalar>(&parameters[gamma_.offset],
                              matrix<const Scalar>(&stash[normal_.offset], rows_, width_),
                              &stash[deviation_.offset],
                              matrix<const Scalar>(&stash[output_gradient_.offset], rows_, width_),
                              matrix<const Scalar>(input_gradient.data(), rows_, width_), gradient);
}

template <class Scalar>
void head<Scalar>::backward_weight(std::span<const Scalar> stash, std::span<Scalar> gradients,
                                   std::uint64_t& multiply_adds) const {
  add_product(matrix(&gradients[table_.offset], vocabulary_, width_),
              matrix(&stash[logits_.offset], rows_, vocabulary_).transpose(),
              matrix(&stash[output_.offset], rows_, width_), multiply_adds);
  norm_backward_weight<Scalar>(matrix(&stash[normal_.offset], rows_, width_),
                               matrix(&stash[output_gradient_.offset], rows_, width_),
                               &gradients[gamma_.offset], &gradients[beta_.offset]);
}

template <class Scalar>
void head<Scalar>::logits(std::span<const Scalar> parameters, std::span<const Scalar> row,
                          std::span<Scalar> result, std::span<Scalar> stash) const {
  auto output = matrix(&stash[output_.offset], 1, width_);
  norm_forward(&parameters[gamma_.offset], &parameters[beta_.offset], matrix(row.data(), 1, width_),
               matrix(&stash[normal_.offset], 1, width_), &stash[deviation_.offset], output);
  std::uint64_t multiply_adds = 0;
  assign_product(matrix(result.data(), 1, vocabulary_), output,
                 matrix(&parameters[table_.offset], vocabulary_, width_).transpose(),
                 multiply_adds);
}

template class head<float>;
template class head<double>;

}  // namespace train
