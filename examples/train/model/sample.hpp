// Text from a trained model, one byte at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/random.hpp"

namespace train {

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

//! What follows `prompt`, given a callable that returns the byte after a text: `next(text, choose)`
//! with `text` a std::span<const std::uint8_t>, and `choose` a callable that makes a byte of
//! logits.
template <class Next>
std::string sample(Next&& next, std::string_view prompt, const sampling& how) {
  random_stream numbers(how.seed);
  const auto by_chance = [&](std::span<const float> logits) {
    return choose(logits, how.temperature, numbers);
  };
  std::vector<std::uint8_t> text(prompt.begin(), prompt.end());
  for (int added = 0; added < how.length; ++added) {
    const std::uint8_t byte = next(std::span<const std::uint8_t>(text), by_chance);
    if (how.stop_at_newline && byte == '\n') break;
    text.push_back(byte);
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

//! Fit for a terminal: bytes outside printable ASCII as \n, \t or \xNN, a backslash doubled.
std::string printable(std::string_view text);

}  // namespace train
