// Text from a trained model: forward only, one byte at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.hpp"
#include "model/random.hpp"
#include "model/tensor.hpp"

namespace train {

//! A forward-only pass over all layers for a single sequence of any length up to the context. The
//! parameters may lie in many stages: it takes one span for each layer, in layer order, and keeps
//! no copy of them.
class forward_only {
 public:
  //! @throws std::invalid_argument if a span is missing or of the wrong size
  forward_only(const config& model, std::vector<std::span<const float>> layer_parameters);

  //! The logits [vocabulary] of the byte after `text`, of which the last `context` bytes count.
  //! Valid until the next call.
  //! @throws std::invalid_argument if the text is empty or leaves the vocabulary
  std::span<const float> operator()(std::span<const std::uint8_t> text);

 private:
  config model_;
  std::vector<std::span<const float>> layer_parameters_;
  aligned_array<float> stash_, ping_, pong_, logits_;
};

//! How sample() chooses bytes.
struct sampling {
  int length = 80;              //!< bytes to add
  double temperature = 0;       //!< 0 takes the likeliest byte; 1 samples the model's belief
  std::uint64_t seed = 0;       //!< for temperatures above 0
  bool stop_at_newline = true;  //!< a line; the newline is not part of the result
};

//! The index of the next byte.
//! @throws std::invalid_argument if the temperature is negative or not finite
//! @throws std::runtime_error naming a logit that is not finite
std::uint8_t choose(std::span<const float> logits, double temperature, random_stream& numbers);

//! What follows `prompt`, given a callable that returns the logits after a text:
//! `logits(std::span<const std::uint8_t>) -> std::span<const float>`.
template <class Logits>
std::string sample(Logits&& logits, std::string_view prompt, const sampling& how) {
  random_stream numbers(how.seed);
  std::vector<std::uint8_t> text(prompt.begin(), prompt.end());
  for (int added = 0; added < how.length; ++added) {
    const std::uint8_t next =
        choose(logits(std::span<const std::uint8_t>(text)), how.temperature, numbers);
    if (how.stop_at_newline && next == '\n') break;
    text.push_back(next);
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

//! Fit for a terminal: bytes outside printable ASCII as \n, \t or \xNN, a backslash doubled.
std::string printable(std::string_view text);

}  // namespace train
