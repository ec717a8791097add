#include "model/block.hpp"

#include <stdexcept>
#include <string>

#include "model/attention.hpp"
#include "model/gelu.hpp"
#include "model/norm.hpp"
#include "model/random.hpp"

namespace train {

template <class Scalar>
block<Scalar>::block(const config& model)
    : model_(model),
      rows_(model.rows()),
      width_(config::size(model.width)),
      share_(model.share()),
      hidden_(share_ * config::size(model.expansion)) {
  gamma1_ = parameters_.take(width_);
  beta1_ = parameters_.take(width_);
  joint_weight_ = parameters_.take(width_ * 3 * share_, true, 3 * width_);
  joint_bias_ = parameters_.take(3 * share_, false, 3);
  mix_weight_ = parameters_.take(share_ * width_, true, 1);
  mix_bias_ = parameters_.take(width_);
  gamma2_ = parameters_.take(width_);
  beta2_ = parameters_.take(width_);
  up_weight_ = parameters_.take(width_ * hidden_, true, width_);
  up_bias_ = parameters_.take(hidden_, false, 1);
  down_weight_ = parameters_.take(hidden_ * width_, true, 1);
  down_bias_ = parameters_.take(width_);

  const attention_shape shape(model);
  normal1_ = stash_.take(rows_ * width_);
  deviation1_ = stash_.take(rows_);
  output1_ = stash_.take(rows_ * width_);
  joint_ = stash_.take(rows_ * 3 * share_);
  weights_ = stash_.take(shape.weights());
  mixed_ = stash_.take(rows_ * share_);
  normal2_ = stash_.take(rows_ * width_);
  deviation2_ = stash_.take(rows_);
  output2_ = stash_.take(rows_ * width_);
  slope_ = stash_.take(rows_ * hidden_);
  hidden_values_ = stash_.take(rows_ * hidden_);
  hidden_gradient_ = stash_.take(rows_ * hidden_);
  output2_gradient_ = stash_.take(rows_ * width_);
  middle_gradient_ = stash_.take(rows_ * width_);
  joint_gradient_ = stash_.take(rows_ * 3 * share_);
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

// Each function below sees the caller's buffers as matrices.
template <class Scalar>
struct block_views {
  const block_call<Scalar>& with;
  std::size_t rows;

  auto weight(const tensor& part, std::size_t inputs) const {
    return matrix(&with.parameters[part.offset], inputs, part.size / inputs);
  }
  auto transposed(const tensor& part, std::size_t inputs) const {
    return weight(part, inputs).transpose();
  }
  auto bias(const tensor& part) const {
    return row_vector(&with.parameters[part.offset], part.size);
  }
  auto kept(const tensor& part) const {
    return matrix(&with.stash[part.offset], rows, part.size / rows);
  }
  auto read(const tensor& part) const {
    return matrix<const Scalar>(&with.stash[part.offset], rows, part.size / rows);
  }
  // What is to be summed, or was: `part` is its place where nothing is.
  auto sum(const tensor& part) const {
    return with.sums.empty() ? kept(part) : matrix(with.sums.data(), rows, part.size / rows);
  }
  // A sum that the weights need keeps no longer than the next one needs the caller's buffer.
  auto kept_sum(const tensor& part) const {
    if (!with.sums.empty()) kept(part) = sum(part);
    return read(part);
  }
};

template <class Scalar>
void block<Scalar>::norm1(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  norm_forward(&with.parameters[gamma1_.offset], &with.parameters[beta1_.offset],
               matrix(with.from.data(), rows_, width_), view.kept(normal1_),
               &with.stash[deviation1_.offset], view.kept(output1_));
}

template <class Scalar>
void block<Scalar>::qkv(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  auto joint = view.kept(joint_);
  assign_product(joint, view.kept(output1_), view.weight(joint_weight_, width_),
                 with.multiply_adds);
  joint.rowwise() += view.bias(joint_bias_);
}

template <class Scalar>
void block<Scalar>::attention(const call& with) const {
  attention_forward<Scalar>(attention_shape(model_),
                            {&with.stash[joint_.offset], with.earlier, with.place + joint_.offset},
                            &with.stash[weights_.offset], &with.stash[mixed_.offset],
                            with.multiply_adds);
}

// The places of gradients are free before the backward: for what is summed that of one of its size,
// for the hidden features before the GELU that of their gradient.
template <class Scalar>
void block<Scalar>::mix(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  assign_product(view.sum(output2_gradient_), view.kept(mixed_), view.weight(mix_weight_, share_),
                 with.multiply_adds);
}

template <class Scalar>
void block<Scalar>::middle(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  auto y = matrix(with.to.data(), rows_, width_);
  y = (matrix(with.from.data(), rows_, width_).rowwise() + view.bias(mix_bias_)) +
      view.sum(output2_gradient_);
  norm_forward(&with.parameters[gamma2_.offset], &with.parameters[beta2_.offset],
               matrix<const Scalar>(with.to.data(), rows_, width_), view.kept(normal2_),
               &with.stash[deviation2_.offset], view.kept(output2_));
}

template <class Scalar>
void block<Scalar>::up(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  auto hidden = view.kept(hidden_gradient_);
  assign_product(hidden, view.kept(output2_), view.weight(up_weight_, width_), with.multiply_adds);
  hidden.rowwise() += view.bias(up_bias_);
  gelu<Scalar>(view.read(hidden_gradient_), view.kept(hidden_values_), view.kept(slope_));
}

template <class Scalar>
void block<Scalar>::down(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  assign_product(view.sum(output2_gradient_), view.kept(hidden_values_),
                 view.weight(down_weight_, hidden_), with.multiply_adds);
}

template <class Scalar>
void block<Scalar>::output(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  auto y = matrix(with.to.data(), rows_, width_);
  y = (y.rowwise() + view.bias(down_bias_)) + view.sum(output2_gradient_);
}

template <class Scalar>
void block<Scalar>::down_back(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  auto hidden = view.kept(hidden_gradient_);
  assign_product(hidden, matrix(with.from.data(), rows_, width_),
                 view.transposed(down_weight_, hidden_), with.multiply_adds);
  hidden.array() *= view.kept(slope_).array();
}

template <class Scalar>
void block<Scalar>::up_back(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  assign_product(view.sum(output2_gradient_), view.kept(hidden_gradient_),
                 view.transposed(up_weight_, width_), with.multiply_adds);
}

// The gradient of `mixed` is needed no longer than the attention's backward: it takes the place of
// the input's gradient, which is written last.
template <class Scalar>
void block<Scalar>::middle_back(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  norm_backward_input(&with.parameters[gamma2_.offset], view.read(normal2_),
                      &with.stash[deviation2_.offset], view.kept_sum(output2_gradient_),
                      matrix(with.from.data(), rows_, width_), view.kept(middle_gradient_));
  assign_product(matrix(with.to.data(), rows_, share_), view.kept(middle_gradient_),
                 view.transposed(mix_weight_, share_), with.multiply_adds);
}

template <class Scalar>
void block<Scalar>::attention_back(const call& with) const {
  const auto in_slices = [&](const tensor& part) {
    return slices_of<Scalar>{&with.stash[part.offset], with.earlier, with.place + part.offset};
  };
  attention_backward<Scalar>(
      attention_shape(model_), in_slices(joint_), &with.stash[weights_.offset], with.to.data(),
      &with.stash[scratch_.offset], in_slices(joint_gradient_),
      with.earlier.size() + 1 == config::size(model_.slices), with.multiply_adds);
}

template <class Scalar>
void block<Scalar>::qkv_back(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  assign_product(view.sum(output1_gradient_), view.kept(joint_gradient_),
                 view.transposed(joint_weight_, width_), with.multiply_adds);
}

template <class Scalar>
void block<Scalar>::input_back(const call& with) const {
  const block_views<Scalar> view{with, rows_};
  norm_backward_input(&with.parameters[gamma1_.offset], view.read(normal1_),
                      &with.stash[deviation1_.offset], view.kept_sum(output1_gradient_),
                      view.read(middle_gradient_), matrix(with.to.data(), rows_, width_));
}

template <class Scalar>
void block<Scalar>::run(op_code op, const call& with) const {
  switch (op) {
    case op_code::norm1:
      return norm1(with);
    case op_code::qkv:
      return qkv(with);
    case op_code::attention:
      return attention(with);
    case op_code::mix:
      return mix(with);
    case op_code::middle:
      return middle(with);
    case op_code::up:
      return up(with);
    case op_code::down:
      return down(with);
    case op_code::output:
      return output(with);
    case op_code::down_back:
      return down_back(with);
    case op_code::up_back:
      return up_back(with);
    case op_code::middle_back:
      return middle_back(with);
    case op_code::attention_back:
      return attention_back(with);
    case op_code::qkv_back:
      return qkv_back(with);
    case op_code::input_back:
      return input_back(with);
    default:
      throw std::invalid_argument("block: it has no op \"" + std::string(name(op)) + "\" to run");
  }
}

template <class Scalar>
void block<Scalar>::run_weight(op_code op, std::span<const Scalar> output_gradient,
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
  switch (op) {
    case op_code::down_weight:
      return linear(down_weight_, down_bias_, kept(hidden_values_),
                    matrix(output_gradient.data(), rows_, width_));
    case op_code::up_weight:
      return linear(up_weight_, up_bias_, kept(output2_), kept(hidden_gradient_));
    case op_code::norm2_weight:
      return norm_backward_weight(kept(normal2_), kept(output2_gradient_),
                                  &gradients[gamma2_.offset], &gradients[beta2_.offset]);
    case op_code::mix_weight:
      return linear(mix_weight_, mix_bias_, kept(mixed_), kept(middle_gradient_));
    case op_code::qkv_weight:
      return linear(joint_weight_, joint_bias_, kept(output1_), kept(joint_gradient_));
    case op_code::norm1_weight:
      return norm_backward_weight(kept(normal1_), kept(output1_gradient_),
                                  &gradients[gamma1_.offset], &gradients[beta1_.offset]);
    default:
      throw std::invalid_argument("block: the op \"" + std::string(name(op)) +
                                  "\" is none for weights");
  }
}

template <class Scalar>
void block<Scalar>::forward(std::span<const Scalar> parameters, std::span<const Scalar> input,
                            std::span<Scalar> output, std::span<Scalar> stash,
                            std::uint64_t& multiply_adds) const {
  for (const op_code op : block_forward_ops)
    if (!is_sum(op)) run(op, {parameters, input, output, stash, {}, {}, 0, multiply_adds});
}

template class block<float>;
template class block<double>;

}  // namespace train
