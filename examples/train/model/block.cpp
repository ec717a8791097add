#include "model/block.hpp"

#include <cmath>
#include <numbers>

#include "model/attention.hpp"
#include "model/norm.hpp"
#include "model/random.hpp"

namespace train {
namespace {

// GELU in its tanh form (Hendrycks and Gimpel 2016): value = u * p with
// p = (1 + tanh(z)) / 2 and z = sqrt(2 / pi) * (u + 0.044715 u^3). The slope is kept in place of
// u, so that the backward needs no tanh.
template <class Scalar>
void gelu(matrix_view<const Scalar> input, matrix_view<Scalar> value, matrix_view<Scalar> slope) {
  const Scalar c = static_cast<Scalar>(std::sqrt(2.0 / std::numbers::pi));
  const Scalar cubic = Scalar(0.044715);
  for (Eigen::Index row = 0; row < input.rows(); ++row) {
    const auto u = input.row(row).array();
    auto p = slope.row(row).array();
    p = Scalar(0.5) * (Scalar(1) + (c * (u + cubic * u.cube())).tanh());
    value.row(row).array() = u * p;
    p += Scalar(2) * p * (Scalar(1) - p) * u * (c * (Scalar(1) + Scalar(3) * cubic * u.square()));
  }
}

}  // namespace

template <class Scalar>
block<Scalar>::block(const config& model)
    : model_(model),
      rows_(model.rows()),
      width_(config::size(model.width)),
      hidden_(config::size(model.width) * config::size(model.expansion)) {
  gamma1_ = parameters_.take(width_);
  beta1_ = parameters_.take(width_);
  joint_weight_ = parameters_.take(width_ * 3 * width_, true);
  joint_bias_ = parameters_.take(3 * width_);
  mix_weight_ = parameters_.take(width_ * width_, true);
  mix_bias_ = parameters_.take(width_);
  gamma2_ = parameters_.take(width_);
  beta2_ = parameters_.take(width_);
  up_weight_ = parameters_.take(width_ * hidden_, true);
  up_bias_ = parameters_.take(hidden_);
  down_weight_ = parameters_.take(hidden_ * width_, true);
  down_bias_ = parameters_.take(width_);

  const attention_shape shape(model);
  normal1_ = stash_.take(rows_ * width_);
  deviation1_ = stash_.take(rows_);
  output1_ = stash_.take(rows_ * width_);
  joint_ = stash_.take(rows_ * 3 * width_);
  weights_ = stash_.take(shape.weights());
  mixed_ = stash_.take(rows_ * width_);
  normal2_ = stash_.take(rows_ * width_);
  deviation2_ = stash_.take(rows_);
  output2_ = stash_.take(rows_ * width_);
  slope_ = stash_.take(rows_ * hidden_);
  hidden_values_ = stash_.take(rows_ * hidden_);
  hidden_gradient_ = stash_.take(rows_ * hidden_);
  output2_gradient_ = stash_.take(rows_ * width_);
  middle_gradient_ = stash_.take(rows_ * width_);
  joint_gradient_ = stash_.take(rows_ * 3 * width_);
  output1_gradient_ = stash_.take(rows_ * width_);
  scratch_ = stash_.take(shape.length * shape.context);
}

template <class Scalar>
std::vector<tensor> block<Scalar>::tensors() const {
  return {gamma1_, beta1_, joint_weight_, joint_bias_, mix_weight_,  mix_bias_,
          gamma2_, beta2_, up_weight_,    up_bias_,    down_weight_, down_bias_};
}

template <class Scalar>
void block<Scalar>::initialise(std::uint64_t seed, int layer, std::span<Scalar> parameters) const {
  const auto fill = [&](const tensor& part, int key, double deviation) {
    random_stream numbers(seed, layer, key);
    for (Scalar& value : part.of(parameters)) {
      value = static_cast<Scalar>(deviation * numbers.normal());
    }
  };
  std::fill(parameters.begin(), parameters.end(), Scalar(0));
  for (const tensor& gamma : {gamma1_, gamma2_}) {
    for (Scalar& value : gamma.of(parameters)) value = Scalar(1);
  }
  const double residual = 0.02 / std::sqrt(2.0 * model_.layers);
  fill(joint_weight_, 0, 0.02);
  fill(mix_weight_, 1, residual);
  fill(up_weight_, 2, 0.02);
  fill(down_weight_, 3, residual);
}

template <class Scalar>
void block<Scalar>::forward(std::span<const Scalar> parameters, std::span<const Scalar> input,
                            std::span<Scalar> output, std::span<Scalar> stash,
                            earlier_slices<Scalar> earlier, const tensor& place,
                            std::uint64_t& multiply_adds) const {
  const auto weight = [&](const tensor& part, std::size_t rows) {
    return matrix(&parameters[part.offset], rows, part.size / rows);
  };
  const auto bias = [&](const tensor& part) {
    return row_vector(&parameters[part.offset], part.size);
  };
  const auto kept = [&](const tensor& part) {
    return matrix(&stash[part.offset], rows_, part.size / rows_);
  };
  const auto x = matrix(input.data(), rows_, width_);
  auto y = matrix(output.data(), rows_, width_);

  norm_forward(&parameters[gamma1_.offset], &parameters[beta1_.offset], x, kept(normal1_),
               &stash[deviation1_.offset], kept(output1_));
  auto joint = kept(joint_);
  assign_product(joint, kept(output1_), weight(joint_weight_, width_), multiply_adds);
  joint.rowwise() += bias(joint_bias_);
  attention_forward<Scalar>(attention_shape(model_),
                            {joint.data(), earlier, place.offset + joint_.offset},
                            &stash[weights_.offset], &stash[mixed_.offset], multiply_adds);
  y = x.rowwise() + bias(mix_bias_);
  add_product(y, kept(mixed_), weight(mix_weight_, width_), multiply_adds);

  const auto middle = matrix<const Scalar>(output.data(), rows_, width_);
  norm_forward(&parameters[gamma2_.offset], &parameters[beta2_.offset], middle, kept(normal2_),
               &stash[deviation2_.offset], kept(output2_));
  // Before backward_input, the place of the hidden gradient is free for the hidden input.
  auto hidden = kept(hidden_gradient_);
  assign_product(hidden, kept(output2_), weight(up_weight_, width_), multiply_adds);
  hidden.rowwise() += bias(up_bias_);
  gelu<Scalar>(matrix<const Scalar>(hidden.data(), rows_, hidden_), kept(hidden_values_),
               kept(slope_));
  y.rowwise() += bias(down_bias_);
  add_product(y, kept(hidden_values_), weight(down_weight_, hidden_), multiply_adds);
}

template <class Scalar>
void block<Scalar>::backward_input(std::span<const Scalar> parameters,
                                   std::span<const Scalar> output_gradient,
                                   std::span<Scalar> input_gradient, std::span<Scalar> stash,
                                   earlier_slices<Scalar> earlier, const tensor& place,
                                   std::uint64_t& multiply_adds) const {
  const auto transposed = [&](const tensor& part, std::size_t rows) {
    return matrix(&parameters[part.offset], rows, part.size / rows).transpose();
  };
  const auto kept = [&](const tensor& part) {
    return matrix(&stash[part.offset], rows_, part.size / rows_);
  };
  const auto read = [&](const tensor& part) {
    return matrix<const Scalar>(&stash[part.offset], rows_, part.size / rows_);
  };
  const auto y_gradient = matrix(output_gradient.data(), rows_, width_);

  auto hidden = kept(hidden_gradient_);
  assign_product(hidden, y_gradient, transposed(down_weight_, hidden_), multiply_adds);
  hidden.array() *= kept(slope_).array();
  assign_product(kept(output2_gradient_), hidden, transposed(up_weight_, width_), multiply_adds);
  norm_backward_input(&parameters[gamma2_.offset], read(normal2_), &stash[deviation2_.offset],
                      read(output2_gradient_), y_gradient, kept(middle_gradient_));

  // The gradient of `mixed` is needed no longer than the attention's backward: it takes the place
  // of the result, which is written last.
  auto mixed = matrix(input_gradient.data(), rows_, width_);
  assign_product(mixed, kept(middle_gradient_), transposed(mix_weight_, width_), multiply_adds);
  const auto in_slices = [&](const tensor& part) {
    return slices_of<Scalar>{&stash[part.offset], earlier, place.offset + part.offset};
  };
  attention_backward<Scalar>(attention_shape(model_), in_slices(joint_), &stash[weights_.offset],
                             mixed.data(), &stash[scratch_.offset], in_slices(joint_gradient_),
                             earlier.size() + 1 == config::size(model_.slices), multiply_adds);
  assign_product(kept(output1_gradient_), kept(joint_gradient_), transposed(joint_weight_, width_),
                 multiply_adds);
  norm_backward_input(&parameters[gamma1_.offset], read(normal1_), &stash[deviation1_.offset],
                      read(output1_gradient_), read(middle_gradient_),
                      matrix(input_gradient.data(), rows_, width_));
}

template <class Scalar>
void block<Scalar>::backward_weight(std::span<const Scalar> output_gradient,
                                    std::span<const Scalar> stash, std::span<Scalar> gradients,
                                    std::uint64_t& multiply_adds) const {
  const auto kept = [&](const tensor& part) {
    return matrix(&stash[part.offset], rows_, part.size / rows_);
  };
  const auto linear = [&](const tensor& weight, const tensor& bias, const auto& input,
                          matrix_view<const Scalar> gradient) {
    const auto inputs = static_cast<std::size_t>(input.cols());
    add_product(matrix(&gradients[weight.offset], inputs, weight.size / inputs), input.transpose(),
                gradient, multiply_adds);
    add_rows(&gradients[bias.offset], gradient);
  };
  linear(down_weight_, down_bias_, kept(hidden_values_),
         matrix(output_gradient.data(), rows_, width_));
  linear(up_weight_, up_bias_, kept(output2_), kept(hidden_gradient_));
  norm_backward_weight(kept(normal2_), kept(output2_gradient_), &gradients[gamma2_.offset],
                       &gradients[beta2_.offset]);
  linear(mix_weight_, mix_bias_, kept(mixed_), kept(middle_gradient_));
  linear(joint_weight_, joint_bias_, kept(output1_), kept(joint_gradient_));
  norm_backward_weight(kept(normal1_), kept(output1_gradient_), &gradients[gamma1_.offset],
                       &gradients[beta1_.offset]);
}

template class block<float>;
template class block<double>;

}  // namespace train
