#include "model/embedding.hpp"

#include "model/random.hpp"

namespace train {

template <class Scalar>
embedding<Scalar>::embedding(const config& model)
    : model_(model),
      table_(layout_.take(config::size(model.vocabulary) * config::size(model.width), true)),
      positions_(layout_.take(config::size(model.context) * config::size(model.width), true)) {}

template <class Scalar>
void embedding<Scalar>::initialise_table(std::uint64_t seed, std::span<Scalar> table) {
  random_stream numbers(seed, 0, 0);
  for (Scalar& value : table) value = static_cast<Scalar>(0.02 * numbers.normal());
}

template <class Scalar>
void embedding<Scalar>::initialise(std::uint64_t seed, std::span<Scalar> parameters) const {
  initialise_table(seed, table_.of(parameters));
  random_stream numbers(seed, 0, 1);
  for (Scalar& value : positions_.of(parameters)) {
    value = static_cast<Scalar>(0.02 * numbers.normal());
  }
}

template <class Scalar>
void embedding<Scalar>::forward(const counted_math<Scalar>& with,
                                std::span<const Scalar> parameters,
                                std::span<const std::uint8_t> tokens, std::span<Scalar> output,
                                std::size_t slice) const {
  const held_matrix<Scalar> to(output.data(), model_.in_bf16(), tokens.size(),
                               config::size(model_.width));
  with->embed(to, &parameters[table_.offset], &parameters[positions(slice)], tokens.data(),
              model_.cut().length(slice));
}

template <class Scalar>
void embedding<Scalar>::backward_weight(const counted_math<Scalar>& with,
                                        std::span<const std::uint8_t> tokens,
                                        std::span<const Scalar> output_gradient,
                                        std::span<Scalar> gradients, std::size_t slice) const {
  const held_matrix<const Scalar> from(output_gradient.data(), model_.in_bf16(), tokens.size(),
                                       config::size(model_.width));
  with->embed_weights(from, &gradients[table_.offset], &gradients[positions(slice)], tokens.data(),
                      model_.cut().length(slice));
}

template class embedding<float>;
template class embedding<double>;

}  // namespace train
