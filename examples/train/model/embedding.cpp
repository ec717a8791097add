#include "model/embedding.hpp"

#include "model/algebra.hpp"
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
void embedding<Scalar>::forward(std::span<const Scalar> parameters,
                                std::span<const std::uint8_t> tokens, std::span<Scalar> output,
                                std::size_t slice) const {
  const auto width = config::size(model_.width);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    row_vector(&output[row * width], width) =
        row_vector(&parameters[table_.offset + tokens[row] * width], width) +
        row_vector(&parameters[position(row, slice)], width);
  }
}

template <class Scalar>
void embedding<Scalar>::backward_weight(std::span<const std::uint8_t> tokens,
                                        std::span<const Scalar> output_gradient,
                                        std::span<Scalar> gradients, std::size_t slice) const {
  const auto width = config::size(model_.width);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    const auto gradient = row_vector(&output_gradient[row * width], width);
    row_vector(&gradients[table_.offset + tokens[row] * width], width) += gradient;
    row_vector(&gradients[position(row, slice)], width) += gradient;
  }
}

template class embedding<float>;
template class embedding<double>;

}  // namespace train
