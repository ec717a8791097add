#include "model/block.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "model/attention.hpp"
#include "model/random.hpp"

namespace train {

template <class Scalar>
block<Scalar>::block(const config& model)
    : model_(model),
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

  // Room for the longest slice.
  const std::size_t rows = model.rows(), context = config::size(model.context);
  const auto held = [&](std::size_t columns) { return stash_.take_held(model, rows, columns); };
  normal1_ = held(width_);
  deviation1_ = stash_.take(rows);
  output1_ = held(width_);
  joint_ = held(3 * share_);
  weights_ = stash_.take_held(model, rows * config::size(model.heads / model.shards), context);
  mixed_ = held(share_);
  normal2_ = held(width_);
  deviation2_ = stash_.take(rows);
  output2_ = held(width_);
  slope_ = held(hidden_);
  hidden_values_ = held(hidden_);
  hidden_gradient_ = held(hidden_);
  output2_gradient_ = held(width_);
  middle_gradient_ = held(width_);
  joint_gradient_ = held(3 * share_);
  output1_gradient_ = held(width_);
  scratch_ = stash_.take(model.length() * context);
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

// Each function below sees the caller's buffers as matrices: of an op in pieces, its own rows.
template <class Scalar>
struct block_views {
  using held = held_matrix<Scalar>;
  using held_constant = held_matrix<const Scalar>;

  const block_call<Scalar>& with;
  std::size_t rows, width;  // of the longest slice
  bool in_bf16;
  std::size_t first, count;

  // A plan cuts ops by the rows of the longest slice, of which a shorter one has the first.
  block_views(const block_call<Scalar>& of, const config& model)
      : with(of), rows(model.rows()), width(config::size(model.width)), in_bf16(model.in_bf16()) {
    const auto mine =
        stretto::piece_of(static_cast<std::int64_t>(rows), of.piece.index, of.piece.count);
    const std::size_t end = model.rows(of.slice);
    first = std::min(static_cast<std::size_t>(mine.first), end);
    count = std::min(static_cast<std::size_t>(mine.count), end - first);
  }

  template <class Value>
  held_matrix<Value> own(const held_matrix<Value>& all) const {
    return all.rows_from(first, count);
  }

  matrix_span<const Scalar> weight(const tensor& part, std::size_t inputs) const {
    return {&with.parameters[part.offset], inputs, part.size / inputs};
  }
  const Scalar* at(const tensor& part) const { return &with.parameters[part.offset]; }
  held kept(const held_tensor& part) const { return own(part.of(with.stash)); }
  Scalar* of_rows(const tensor& part) const { return &with.stash[part.offset] + first; }
  held_constant from() const {
    return own(held_constant(with.from.data(), in_bf16, rows, width));
  }
  held to() const { return own(held(with.to.data(), in_bf16, rows, width)); }
  // In its place meanwhile, the gradient of what the attention mixes.
  held to_mixed(std::size_t share) const {
    return held(with.to.data(), in_bf16, rows, share);
  }
  // What is to be summed, or was: `part` is its place where nothing is.
  held sum(const held_tensor& part) const {
    return with.sums.empty() ? kept(part)
                             : own(held(with.sums.data(), false, rows, part.columns));
  }
  // A sum that the weights need keeps no longer than the next one needs the caller's buffer.
  held_constant kept_sum(const held_tensor& part) const {
    if (!with.sums.empty()) with.by.keep(sum(part).wide(), kept(part));
    return kept(part);
  }
};

template <class Scalar>
void block<Scalar>::norm1(const call& with) const {
  const block_views<Scalar> view(with, model_);
  with.by->norm(view.at(gamma1_), view.at(beta1_), view.from(), view.kept(normal1_),
                view.of_rows(deviation1_), view.kept(output1_));
}

template <class Scalar>
void block<Scalar>::qkv(const call& with) const {
  const block_views<Scalar> view(with, model_);
  const auto made = with.by.place(view.kept(joint_));
  with.by.product(made, view.kept(output1_), view.weight(joint_weight_, width_));
  with.by->add_bias(view.kept(joint_), made, view.at(joint_bias_));
}

template <class Scalar>
void block<Scalar>::attention(const call& with) const {
  attention_forward<Scalar>(with.by, attention_shape(model_, with.slice),
                            {joint_.of(with.stash), with.earlier, with.place + joint_.offset},
                            weights_.of(with.stash), mixed_.of(with.stash));
}

// The places of gradients are free before the backward: for what is summed that of one of its size,
// for the hidden features before the GELU that of their gradient.
template <class Scalar>
void block<Scalar>::mix(const call& with) const {
  const block_views<Scalar> view(with, model_);
  with.by.product(view.sum(output2_gradient_), view.kept(mixed_),
                  view.weight(mix_weight_, share_));
}

template <class Scalar>
void block<Scalar>::middle(const call& with) const {
  const block_views<Scalar> view(with, model_);
  const auto made = with.by.place(view.to());
  with.by->residual(view.to(), view.from(), view.at(mix_bias_), view.sum(output2_gradient_), made);
  with.by->norm(view.at(gamma2_), view.at(beta2_), made, view.kept(normal2_),
                view.of_rows(deviation2_), view.kept(output2_));
}

template <class Scalar>
void block<Scalar>::up(const call& with) const {
  const block_views<Scalar> view(with, model_);
  const auto hidden = with.by.place(view.kept(hidden_gradient_));
  with.by.product(hidden, view.kept(output2_), view.weight(up_weight_, width_));
  with.by->add_bias(hidden, hidden, view.at(up_bias_));
  with.by->gelu(hidden, view.kept(hidden_values_), view.kept(slope_));
}

template <class Scalar>
void block<Scalar>::down(const call& with) const {
  const block_views<Scalar> view(with, model_);
  with.by.product(view.sum(output2_gradient_), view.kept(hidden_values_),
                  view.weight(down_weight_, hidden_));
}

template <class Scalar>
void block<Scalar>::output(const call& with) const {
  const block_views<Scalar> view(with, model_);
  with.by->residual(view.to(), view.to(), view.at(down_bias_), view.sum(output2_gradient_));
}

template <class Scalar>
void block<Scalar>::down_back(const call& with) const {
  const block_views<Scalar> view(with, model_);
  const auto hidden = with.by.place(view.kept(hidden_gradient_));
  with.by.product(hidden, view.from(), transposed(view.weight(down_weight_, hidden_)));
  with.by->multiply(view.kept(hidden_gradient_), hidden, view.kept(slope_));
}

template <class Scalar>
void block<Scalar>::up_back(const call& with) const {
  const block_views<Scalar> view(with, model_);
  with.by.product(view.sum(output2_gradient_), view.kept(hidden_gradient_),
                  transposed(view.weight(up_weight_, width_)));
}

// The gradient of `mixed` is needed no longer than the attention's backward: it takes the place of
// the input's gradient, which is written last.
template <class Scalar>
void block<Scalar>::middle_back(const call& with) const {
  const block_views<Scalar> view(with, model_);
  with.by->norm_back(view.at(gamma2_), view.kept(normal2_), view.of_rows(deviation2_),
                     view.kept_sum(output2_gradient_), view.from(), view.kept(middle_gradient_));
  with.by.product(view.own(view.to_mixed(share_)), view.kept(middle_gradient_),
                  transposed(view.weight(mix_weight_, share_)));
}

template <class Scalar>
void block<Scalar>::attention_back(const call& with) const {
  const block_views<Scalar> view(with, model_);
  const auto in_slices = [&](const held_tensor& part) {
    return slices_of<Scalar>{part.of(with.stash), with.earlier, with.place + part.offset};
  };
  attention_backward<Scalar>(with.by, attention_shape(model_, with.slice), in_slices(joint_),
                             weights_.of(with.stash), view.to_mixed(share_),
                             &with.stash[scratch_.offset], in_slices(joint_gradient_),
                             with.slice + 1 == config::size(model_.slices));
}

template <class Scalar>
void block<Scalar>::qkv_back(const call& with) const {
  const block_views<Scalar> view(with, model_);
  with.by.product(view.sum(output1_gradient_), view.kept(joint_gradient_),
                  transposed(view.weight(joint_weight_, width_)));
}

template <class Scalar>
void block<Scalar>::input_back(const call& with) const {
  const block_views<Scalar> view(with, model_);
  with.by->norm_back(view.at(gamma1_), view.kept(normal1_), view.of_rows(deviation1_),
                     view.kept_sum(output1_gradient_), view.kept(middle_gradient_), view.to());
}

template <class Scalar>
void block<Scalar>::run(op_code op, const call& with) const {
  if (block_views<Scalar>(with, model_).count == 0) return;  // a piece behind a shorter slice's end
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
void block<Scalar>::run_weight(op_code op, const counted_math<Scalar>& with,
                               std::span<const Scalar> output_gradient,
                               std::span<const Scalar> stash, std::span<Scalar> gradients,
                               std::size_t slice, op_piece piece) const {
  using held_constant = held_matrix<const Scalar>;
  const std::size_t rows = model_.rows(slice);
  const auto kept = [&](const held_tensor& part) { return part.of(stash, rows); };
  const auto linear = [&](const tensor& weight, const tensor& bias,
                          const held_constant& input, const held_constant& gradient) {
    const matrix_span<Scalar> sums(&gradients[weight.offset], input.columns(), gradient.columns());
    const auto mine = stretto::piece_of(static_cast<std::int64_t>(gradient.columns()), piece.index,
                                        piece.count);
    const auto first = static_cast<std::size_t>(mine.first);
    const auto own = gradient.columns_from(first, static_cast<std::size_t>(mine.count));
    with.product(sums.columns_from(first, own.columns()), transposed(input), own, true);
    with->add_rows(&gradients[bias.offset + first], own);
  };
  switch (op) {
    case op_code::down_weight:
      return linear(down_weight_, down_bias_, kept(hidden_values_),
                    {output_gradient.data(), model_.in_bf16(), rows, width_});
    case op_code::up_weight:
      return linear(up_weight_, up_bias_, kept(output2_), kept(hidden_gradient_));
    case op_code::norm2_weight:
      return with->norm_weights(kept(normal2_), kept(output2_gradient_),
                                &gradients[gamma2_.offset], &gradients[beta2_.offset]);
    case op_code::mix_weight:
      return linear(mix_weight_, mix_bias_, kept(mixed_), kept(middle_gradient_));
    case op_code::qkv_weight:
      return linear(joint_weight_, joint_bias_, kept(output1_), kept(joint_gradient_));
    case op_code::norm1_weight:
      return with->norm_weights(kept(normal1_), kept(output1_gradient_),
                                &gradients[gamma1_.offset], &gradients[beta1_.offset]);
    default:
      throw std::invalid_argument("block: the op \"" + std::string(name(op)) +
                                  "\" is none for weights");
  }
}

template class block<float>;
template class block<double>;

}  // namespace train
