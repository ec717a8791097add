#include "model/sample.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace train {

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
