#include "model/head.hpp"

#include "model/embedding.hpp"
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
  normal_ = stash_.take_held(model, rows_, width_);
  deviation_ = stash_.take(rows_);
  output_ = stash_.take_held(model, rows_, width_);
  logits_ = stash_.take_held(model, rows_, vocabulary_);
  output_gradient_ = stash_.take_held(model, rows_, width_);
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
void head<Scalar>::forward(const counted_math<Scalar>& with, std::span<const Scalar> parameters,
                           std::span<const Scalar> input, std::span<const std::uint8_t> targets,
                           double loss_scale, std::span<Scalar> stash, double* loss,
                           row_logits<Scalar> asked) const {
  const held_matrix<const Scalar> from(input.data(), model_.in_bf16(), rows_, width_);
  with->norm(&parameters[gamma_.offset], &parameters[beta_.offset], from, normal_.of(stash),
             &stash[deviation_.offset], output_.of(stash));
  // The loss is that of logits in Scalar; what is kept is their gradient.
  const matrix_span<Scalar> logits = with.place(logits_.of(stash));
  with.product(logits, output_.of(stash), transposed(table_of(parameters)));
  if (asked.to != nullptr)
    with->copy(logits.data + asked.row * vocabulary_, asked.to, vocabulary_ * sizeof(Scalar));
  with->cross_entropy(logits, targets.data(),
                      loss_scale / static_cast<double>(rows_ * config::size(model_.slices)), loss,
                      logits_.of(stash));
}

template <class Scalar>
void head<Scalar>::backward_input(const counted_math<Scalar>& with,
                                  std::span<const Scalar> parameters,
                                  std::span<Scalar> input_gradient, std::span<Scalar> stash) const {
  const held_matrix<Scalar> to(input_gradient.data(), model_.in_bf16(), rows_, width_);
  with.product(output_gradient_.of(stash), logits_.of(stash), table_of(parameters));
  // There is no residual beside the final norm.
  with->zero(input_gradient.data(), model_.held_scalars(rows_ * width_) * sizeof(Scalar));
  with->norm_back(&parameters[gamma_.offset], normal_.of(stash), &stash[deviation_.offset],
                  output_gradient_.of(stash), to, to);
}

template <class Scalar>
void head<Scalar>::backward_weight(const counted_math<Scalar>& with, std::span<const Scalar> stash,
                                   std::span<Scalar> gradients) const {
  const matrix_span<Scalar> table(&gradients[table_.offset], vocabulary_, width_);
  with.product(table, transposed(logits_.of(stash)), output_.of(stash), true);
  with->norm_weights(normal_.of(stash), output_gradient_.of(stash), &gradients[gamma_.offset],
                     &gradients[beta_.offset]);
}

template class head<float>;
template class head<double>;

}  // namespace train
