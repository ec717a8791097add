#include "model/sample.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "model/block.hpp"
#include "model/embedding.hpp"
#include "model/head.hpp"
#include "model/host_math.hpp"
#include "model/layer.hpp"

namespace train {
namespace {

config one_sequence(config model) {
  model.check();
  model.microbatch = 1;
  model.slices = 1;
  model.shards = 1;
  return model;
}

}  // namespace

forward_only::forward_only(const config& model,
                           std::vector<std::span<const float>> layer_parameters)
    : model_(one_sequence(model)),
      layer_parameters_(std::move(layer_parameters)),
      stash_(std::max(block<float>(model_).stash_scalars(), head<float>(model_).stash_scalars())),
      ping_(model_.activation_scalars()),
      pong_(model_.activation_scalars()),
      logits_(config::size(model_.vocabulary)) {
  if (layer_parameters_.size() != config::size(model_.layer_count())) {
    throw std::invalid_argument("forward_only: parameters of " +
                                std::to_string(layer_parameters_.size()) +
                                " layers, the model has " + std::to_string(model_.layer_count()));
  }
  for (int layer = 0; layer < model_.layer_count(); ++layer) {
    check_buffer(("parameters of layer " + std::to_string(layer)).c_str(),
                 layer_parameters_[config::size(layer)], parameter_scalars(model_, layer));
  }
}

std::span<const float> forward_only::operator()(std::span<const std::uint8_t> text) {
  if (text.empty()) throw std::invalid_argument("forward_only: the text is empty");
  text = text.last(std::min(text.size(), config::size(model_.context)));
  for (const std::uint8_t byte : text) {
    if (byte >= model_.vocabulary) {
      throw std::invalid_argument("forward_only: the byte " + std::to_string(byte) +
                                  " is outside the vocabulary");
    }
  }
  // A block's parameters do not depend on the context, and the position table of the embedding is
  // cut at its end only: so a shorter text is a model of a shorter context.
  config model = model_;
  model.context = static_cast<int>(text.size());
  const auto from = [&](int layer) { return layer_parameters_[config::size(layer)]; };
  std::span<float> now = ping_.span().first(model.activation_scalars());
  std::span<float> then = pong_.span().first(model.activation_scalars());

  std::uint64_t multiply_adds = 0;
  const counted_math<float> by(host_math<float>(), multiply_adds);
  embedding<float>(model).forward(host_math<float>(), from(0), text, now);
  const block<float> body(model);
  for (int layer = 1; layer <= model.layers; ++layer) {
    body.forward(by, from(layer), now, then, stash_.span());
    std::swap(now, then);
  }
  head<float>(model).logits(by, from(model.layers + 1), now.last(config::size(model.width)),
                            logits_.span(), stash_.span());
  return std::as_const(logits_).span();
}

std::uint8_t choose(std::span<const float> logits, double temperature, random_stream& numbers) {
  if (!(temperature >= 0) || !std::isfinite(temperature)) {
    throw std::invalid_argument("sampling: temperature is " + std::to_string(temperature) +
                                ", it must be finite and not below 0");
  }
  for (std::size_t byte = 0; byte < logits.size(); ++byte) {
    if (!std::isfinite(logits[byte])) {
      throw std::runtime_error("sampling: the logit of byte " + std::to_string(byte) +
                               " is not finite");
    }
  }
  const auto likeliest = std::ranges::max_element(logits);
  if (temperature == 0) return static_cast<std::uint8_t>(likeliest - logits.begin());
  const auto weight = [&](float logit) {
    return std::exp((static_cast<double>(logit) - static_cast<double>(*likeliest)) / temperature);
  };
  double total = 0;
  for (const float logit : logits) total += weight(logit);
  double left = numbers.uniform() * total;
  for (std::size_t byte = 0; byte < logits.size(); ++byte) {
    left -= weight(logits[byte]);
    if (left < 0) return static_cast<std::uint8_t>(byte);
  }
  return static_cast<std::uint8_t>(likeliest - logits.begin());  // rounding used it all up
}

std::string printable(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string result;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '\n') {
      result += "\\n";
    } else if (character == '\t') {
      result += "\\t";
    } else if (character == '\\') {
      result += "\\\\";
    } else if (byte < 0x20 || byte > 0x7e) {
      result += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    } else {
      result += character;
    }
  }
  return result;
}

}  // namespace train
