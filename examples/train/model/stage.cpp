#include "model/stage.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace train {
namespace {

config checked(const config& model, int first, int last) {
  model.check();
  if (first < 0 || first >= last || last > model.layer_count()) {
    throw std::invalid_argument("stage: layers [" + std::to_string(first) + ", " +
                                std::to_string(last) + ") are not a run of the model's " +
                                std::to_string(model.layer_count()) + " layers");
  }
  return model;
}

void check_tokens(const char* name, const config& model, std::span<const std::uint8_t> tokens) {
  if (tokens.size() != model.rows()) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(tokens.size()) +
                                " bytes, it needs " + std::to_string(model.rows()));
  }
  if (model.vocabulary == 256) return;
  for (const std::uint8_t token : tokens) {
    if (token >= model.vocabulary) {
      throw std::invalid_argument(std::string(name) + " has the byte " + std::to_string(token) +
                                  ", the vocabulary ends at " +
                                  std::to_string(model.vocabulary - 1));
    }
  }
}

}  // namespace

template <class Scalar>
basic_stage<Scalar>::basic_stage(const config& model, int first, int last, std::uint64_t seed)
    : model_(checked(model, first, last)),
      first_(first),
      last_(last),
      embedding_(model),
      block_(model),
      head_(model) {
  tensor_layout parameters;
  if (has_embedding()) {
    tokens_ = stash_.take((model_.rows() + sizeof(Scalar) - 1) / sizeof(Scalar));
  }
  for (int layer = first; layer < last; ++layer) {
    place here;
    here.parameters = parameters.take(parameter_scalars(model, layer));
    here.stash = stash_.take(train::stash_scalars(model, layer));
    if (model.kind(layer) != layer_kind::head) here.slot = stash_.take(model.activation_scalars());
    here.tensors = parameter_tensors(model, layer);
    places_.push_back(std::move(here));
  }
  parameters_ = aligned_array<Scalar>(parameters.end());
  gradients_ = aligned_array<Scalar>(parameters.end());
  mean_ = aligned_array<Scalar>(parameters.end());
  square_ = aligned_array<Scalar>(parameters.end());
  for (int layer = first; layer < last; ++layer) {
    initialise<Scalar>(model, layer, seed, this->parameters(layer));
  }
}

template <class Scalar>
template <class Value>
std::span<Value> basic_stage<Scalar>::part(std::span<Value> whole, int layer) const {
  if (layer < first_ || layer >= last_) {
    throw std::invalid_argument("stage: layer " + std::to_string(layer) + " is not in [" +
                                std::to_string(first_) + ", " + std::to_string(last_) + ")");
  }
  return at(layer).parameters.of(whole);
}

template <class Scalar>
std::span<const std::uint8_t> basic_stage<Scalar>::stashed_tokens(
    std::span<const Scalar> stash) const {
  return {reinterpret_cast<const std::uint8_t*>(&stash[tokens_.offset]), model_.rows()};
}

template <class Scalar>
void basic_stage<Scalar>::check_slices(earlier_slices<Scalar> earlier) const {
  if (earlier.size() >= config::size(model_.slices)) {
    throw std::invalid_argument("slice " + std::to_string(earlier.size()) +
                                " does not exist: the model has " + std::to_string(model_.slices));
  }
  for (const std::span<Scalar> stash : earlier) {
    check_buffer("the stash of an earlier slice", stash, stash_scalars(), false);
  }
}

template <class Scalar>
double basic_stage<Scalar>::forward(std::span<const std::uint8_t> tokens,
                                    std::span<const std::uint8_t> targets,
                                    std::span<const Scalar> input, std::span<Scalar> output,
                                    std::span<Scalar> stash, double loss_scale,
                                    earlier_slices<Scalar> earlier) {
  if (!has_head()) check_buffer("output", output, model_.activation_scalars());
  return pass(tokens, targets, input, output, stash, loss_scale, earlier);
}

template <class Scalar>
void basic_stage<Scalar>::recompute(std::span<const std::uint8_t> tokens,
                                    std::span<const std::uint8_t> targets,
                                    std::span<const Scalar> input, std::span<Scalar> stash,
                                    double loss_scale) {
  pass(tokens, targets, input, {}, stash, loss_scale, {});
}

template <class Scalar>
double basic_stage<Scalar>::pass(std::span<const std::uint8_t> tokens,
                                 std::span<const std::uint8_t> targets,
                                 std::span<const Scalar> input, std::span<Scalar> output,
                                 std::span<Scalar> stash, double loss_scale,
                                 earlier_slices<Scalar> earlier) {
  check_buffer("stash", stash, stash_scalars(), false);
  check_slices(earlier);
  if (has_embedding()) {
    check_tokens("tokens", model_, tokens);
    std::copy(tokens.begin(), tokens.end(),
              reinterpret_cast<std::uint8_t*>(&stash[tokens_.offset]));
  } else {
    check_buffer("input", input, model_.activation_scalars());
  }
  if (has_head()) check_tokens("targets", model_, targets);

  double loss = 0;
  for (int layer = first_; layer < last_; ++layer) {
    const std::span<const Scalar> from = parameters(layer);
    const std::span<Scalar> own = at(layer).stash.of(stash);
    const bool leaves = layer == last_ - 1 && !output.empty();
    const std::span<Scalar> to = leaves ? output : at(layer).slot.of(stash);
    switch (model_.kind(layer)) {
      case layer_kind::embedding:
        embedding_.forward(from, tokens, to, earlier.size());
        break;
      case layer_kind::block:
        block_.forward(from, input, to, own, earlier, at(layer).stash, products_.forward);
        break;
      case layer_kind::head:
        loss = head_.forward(from, input, targets, loss_scale, own, products_.forward);
        break;
    }
    input = to;
  }
  return loss;
}

// What both backwards do first: after this, every layer finds the gradient of its output in its
// slot, and the caller's buffer is free.
template <class Scalar>
void basic_stage<Scalar>::receive_gradient(std::span<const Scalar> output_gradient,
                                           std::span<Scalar> input_gradient,
                                           std::span<Scalar> stash,
                                           earlier_slices<Scalar> earlier) const {
  check_buffer("stash", stash, stash_scalars(), false);
  check_slices(earlier);
  if (!has_embedding()) {
    check_buffer("input_gradient", input_gradient, model_.activation_scalars());
  }
  if (!has_head()) {
    check_buffer("output_gradient", output_gradient, model_.activation_scalars());
    std::copy(output_gradient.begin(), output_gradient.end(), at(last_ - 1).slot.of(stash).begin());
  }
}

template <class Scalar>
void basic_stage<Scalar>::layer_backward_input(int layer, std::span<Scalar> input_gradient,
                                               std::span<Scalar> stash,
                                               earlier_slices<Scalar> earlier) {
  const std::span<const Scalar> from = parameters(layer);
  const std::span<Scalar> own = at(layer).stash.of(stash);
  const std::span<Scalar> to = layer == first_ ? input_gradient : at(layer - 1).slot.of(stash);
  switch (model_.kind(layer)) {
    case layer_kind::embedding:
      break;
    case layer_kind::block:
      block_.backward_input(from, at(layer).slot.of(stash), to, own, earlier, at(layer).stash,
                            products_.backward_input);
      break;
    case layer_kind::head:
      head_.backward_input(from, to, own, products_.backward_input);
      break;
  }
}

template <class Scalar>
void basic_stage<Scalar>::layer_backward_weight(int layer, std::span<const Scalar> stash,
                                                std::size_t slice) {
  const std::span<Scalar> to = gradients(layer);
  const std::span<const Scalar> own = at(layer).stash.of(stash);
  switch (model_.kind(layer)) {
    case layer_kind::embedding:
      embedding_.backward_weight(stashed_tokens(stash), at(layer).slot.of(stash), to, slice);
      break;
    case layer_kind::block:
      block_.backward_weight(at(layer).slot.of(stash), own, to, products_.backward_weight);
      break;
    case layer_kind::head:
      head_.backward_weight(own, to, products_.backward_weight);
      break;
  }
}

template <class Scalar>
void basic_stage<Scalar>::backward_input(std::span<const Scalar> output_gradient,
                                         std::span<Scalar> input_gradient, std::span<Scalar> stash,
                                         earlier_slices<Scalar> earlier) {
  receive_gradient(output_gradient, input_gradient, stash, earlier);
  for (int layer = last_ - 1; layer >= first_; --layer) {
    layer_backward_input(layer, input_gradient, stash, earlier);
  }
}

template <class Scalar>
void basic_stage<Scalar>::backward_weight(std::span<const Scalar> stash, std::size_t slice) {
  check_buffer("stash", stash, stash_scalars(), false);
  for (int layer = last_ - 1; layer >= first_; --layer) layer_backward_weight(layer, stash, slice);
}

template <class Scalar>
void basic_stage<Scalar>::backward(std::span<const Scalar> output_gradient,
                                   std::span<Scalar> input_gradient, std::span<Scalar> stash,
                                   earlier_slices<Scalar> earlier) {
  receive_gradient(output_gradient, input_gradient, stash, earlier);
  for (int layer = last_ - 1; layer >= first_; --layer) {
    layer_backward_input(layer, input_gradient, stash, earlier);
    layer_backward_weight(layer, stash, earlier.size());
  }
}

template <class Scalar>
void basic_stage<Scalar>::zero_gradients() {
  std::ranges::fill(gradients_.span(), Scalar(0));
}

template <class Scalar>
tensor basic_stage<Scalar>::tied_table(layer_kind side) const {
  return side == layer_kind::embedding ? embedding_.table() : head_.table();
}

template <class Scalar>
std::span<Scalar> basic_stage<Scalar>::tied_gradient(layer_kind side) {
  if (!model_.tied) return {};
  if (side == layer_kind::embedding && has_embedding()) {
    return tied_table(side).of(gradients(0));
  }
  if (side == layer_kind::head && has_head()) return tied_table(side).of(gradients(last_ - 1));
  return {};
}

template <class Scalar>
void basic_stage<Scalar>::join_tied(std::span<const Scalar> from_embedding,
                                    std::span<const Scalar> from_head) {
  for (const layer_kind side : {layer_kind::embedding, layer_kind::head}) {
    const auto given = side == layer_kind::embedding ? from_embedding : from_head;
    if (!model_.tied || given.size() != tied_table(side).size) {
      throw std::invalid_argument(
          std::string("join_tied: the ") + (side == layer_kind::embedding ? "embedding" : "head") +
          "'s gradient has " + std::to_string(given.size()) + " scalars, the tied table has " +
          std::to_string(model_.tied ? tied_table(side).size : 0));
    }
  }
  const std::span<Scalar> embedding_side = tied_gradient(layer_kind::embedding);
  const std::span<Scalar> head_side = tied_gradient(layer_kind::head);
  for (std::size_t at = 0; at < from_embedding.size(); ++at) {
    const Scalar sum = from_embedding[at] + from_head[at];
    if (!embedding_side.empty()) embedding_side[at] = sum;
    if (!head_side.empty()) head_side[at] = sum;
  }
}

template <class Scalar>
void basic_stage<Scalar>::squared_norms(std::span<double> slots) const {
  if (slots.size() != config::size(model_.layer_count())) {
    throw std::invalid_argument("squared_norms: " + std::to_string(slots.size()) +
                                " slots for a model of " + std::to_string(model_.layer_count()) +
                                " layers");
  }
  for (int layer = first_; layer < last_; ++layer) {
    const bool skip_table = model_.tied && model_.kind(layer) == layer_kind::head;
    double sum = 0;
    for (const tensor& each : at(layer).tensors) {
      if (skip_table && each.offset == head_.table().offset) continue;
      for (const Scalar value : each.of(gradients(layer))) {
        sum += static_cast<double>(value) * static_cast<double>(value);
      }
    }
    slots[config::size(layer)] = sum;
  }
}

template <class Scalar>
void basic_stage<Scalar>::clip_and_update(const adamw& rule, long step, double learning_rate,
                                          double clip_factor) {
  for (int layer = first_; layer < last_; ++layer) {
    for (const tensor& each : at(layer).tensors) {
      update<Scalar>(rule, step, learning_rate, clip_factor, each.decayed,
                     each.of(parameters(layer)), each.of(std::as_const(*this).gradients(layer)),
                     each.of(part(mean_.span(), layer)), each.of(part(square_.span(), layer)));
    }
  }
}

template class basic_stage<float>;
template class basic_stage<double>;

}  // namespace train
