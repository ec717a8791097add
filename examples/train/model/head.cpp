#include "model/head.hpp"

#include <algorithm>

#include "model/embedding.hpp"
#include "model/random.hpp"

namespace train {

template <class Scalar>
head<Scalar>::head(const config& model, int piece)
    : model_(model),
      piece_(piece),
      width_(config::size(model.width)),
      tokens_(model.piece_tokens()) {
  const std::size_t rows = model.rows();
  if (norms()) {
    gamma_ = parameters_.take(width_);
    beta_ = parameters_.take(width_);
  }
  table_ = parameters_.take(tokens_ * width_, true);
  if (norms()) {
    normal_ = stash_.take_held(model, rows, width_);
    deviation_ = stash_.take(rows);
  }
  output_ = stash_.take_held(model, rows, width_);
  if (whole()) {
    logits_ = logits_gradient_ = stash_.take_held(model, rows, tokens_);
  } else {
    logits_ = {stash_.take(rows * tokens_).offset, rows, tokens_, false};
    logits_gradient_ = model.in_bf16() ? stash_.take_held(model, rows, tokens_) : logits_;
    targets_ = stash_.take((rows + sizeof(Scalar) - 1) / sizeof(Scalar));
    if (ends()) sums_ = stash_.take(model.sums_scalars());
  }
  if (norms()) output_gradient_ = stash_.take_held(model, rows, width_);
}

template <class Scalar>
std::vector<tensor> head<Scalar>::tensors() const {
  if (!norms()) return {table_};
  return {gamma_, beta_, table_};
}

template <class Scalar>
void head<Scalar>::initialise(std::uint64_t seed, std::span<Scalar> parameters) const {
  if (norms()) {
    for (Scalar& value : gamma_.of(parameters)) value = Scalar(1);
    for (Scalar& value : beta_.of(parameters)) value = Scalar(0);
  }
  std::vector<Scalar> all(config::size(model_.vocabulary) * width_);
  if (model_.tied) {
    embedding<Scalar>::initialise_table(seed, all);
  } else {
    random_stream numbers(seed, model_.layers + 1);
    for (Scalar& value : all) value = static_cast<Scalar>(0.02 * numbers.normal());
  }
  std::ranges::copy(std::span(all).subspan(config::size(piece_) * table_.size, table_.size),
                    table_.of(parameters).begin());
}

template <class Scalar>
void head<Scalar>::forward(const counted_math<Scalar>& with, std::span<const Scalar> parameters,
                           std::span<const Scalar> input, std::span<Scalar> output,
                           std::span<const std::uint8_t> targets, double loss_scale,
                           std::span<Scalar> stash, double* loss,
                           row_logits<Scalar> asked) const {
  const std::size_t rows = targets.size();
  const double factor = loss_scale / static_cast<double>(config::size(model_.microbatch) *
                                                         config::size(model_.context));
  if (norms()) {
    const held_matrix<const Scalar> from(input.data(), model_.in_bf16(), rows, width_);
    with->norm(&parameters[gamma_.offset], &parameters[beta_.offset], from, normal_.of(stash, rows),
               &stash[deviation_.offset], output_.of(stash, rows));
  } else {
    with->copy(input.data(), &stash[output_.offset], held_bytes(rows));
  }
  // The loss is that of logits in Scalar.
  const matrix_span<Scalar> logits =
      whole() ? with.place(logits_.of(stash, rows)) : logits_of(stash, rows);
  with.product(logits, output_.of(stash, rows), transposed(table_of(parameters)));
  const std::size_t first = config::size(piece_) * tokens_;
  if (asked.to != nullptr)
    with->copy(logits.data + asked.row * tokens_, asked.to + first, tokens_ * sizeof(Scalar));
  if (whole()) {  // what is kept is their gradient
    with->cross_entropy(logits, targets.data(), factor, loss, logits_.of(stash, rows));
    return;
  }
  with->copy(targets.data(), &stash[targets_.offset], targets.size());
  Scalar* const sums = ends() ? &stash[sums_.offset] : output.data() + model_.sums_place();
  with->row_sums(logits, targets.data(), first,
                 norms() ? nullptr : input.data() + model_.sums_place(), sums);
  if (ends())
    with->summed_loss(sums, rows, factor, loss);
  else
    with->copy(&stash[output_.offset], output.data(), held_bytes(rows));
}

template <class Scalar>
void head<Scalar>::backward_input(const counted_math<Scalar>& with,
                                  std::span<const Scalar> parameters,
                                  std::span<const Scalar> output_gradient,
                                  std::span<Scalar> input_gradient, std::span<Scalar> stash,
                                  std::size_t rows) const {
  const held_matrix<Scalar> to(input_gradient.data(), model_.in_bf16(), rows, width_);
  const held_matrix<Scalar> made = norms() ? output_gradient_.of(stash, rows) : to;
  const held_matrix<Scalar> gradient = logits_gradient_.of(stash, rows);
  if (whole()) {
    with.product(made, gradient, table_of(parameters));
  } else {
    const Scalar* const sums =
        ends() ? &stash[sums_.offset] : output_gradient.data() + model_.sums_place();
    with->logits_back(logits_of(stash, rows),
                      reinterpret_cast<const std::uint8_t*>(&stash[targets_.offset]),
                      config::size(piece_) * tokens_, sums, gradient);
    if (!ends())
      with->copy(output_gradient.data(),
                 norms() ? &stash[output_gradient_.offset] : input_gradient.data(),
                 held_bytes(rows));
    with.product(made, gradient, table_of(parameters), !ends());
    if (!norms()) {
      with->copy(sums, input_gradient.data() + model_.sums_place(),
                 sums_of_row * rows * sizeof(Scalar));
      return;
    }
  }
  // There is no residual beside the final norm.
  with->zero(input_gradient.data(), held_bytes(rows));
  with->norm_back(&parameters[gamma_.offset], normal_.of(stash, rows), &stash[deviation_.offset],
                  made, to, to);
}

template <class Scalar>
void head<Scalar>::backward_weight(const counted_math<Scalar>& with, std::span<const Scalar> stash,
                                   std::span<Scalar> gradients, std::size_t rows) const {
  const matrix_span<Scalar> table(&gradients[table_.offset], tokens_, width_);
  with.product(table, transposed(logits_gradient_.of(stash, rows)), output_.of(stash, rows), true);
  if (norms())
    with->norm_weights(normal_.of(stash, rows), output_gradient_.of(stash, rows),
                       &gradients[gamma_.offset], &gradients[beta_.offset]);
}

template class head<float>;
template class head<double>;

}  // namespace train
