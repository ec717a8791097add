#include "model/corpus.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "model/random.hpp"

namespace train {
namespace {

std::string in_quotes(const std::filesystem::path& file) {
  std::string text(1, '\'');
  text += file.string();
  text += '\'';
  return text;
}

void append(const std::filesystem::path& file, std::size_t most, std::vector<std::uint8_t>& bytes) {
  const auto refuse = [&](const std::string& why) {
    throw std::runtime_error("corpus: cannot read " + in_quotes(file) + ": " + why);
  };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) refuse("it is a directory");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(errno != 0 ? std::strerror(errno) : "it cannot be opened");
  char buffer[1 << 16];
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0) {
    if (static_cast<std::size_t>(stream.gcount()) > most - bytes.size())
      refuse("with it the text has more than " + std::to_string(most) + " bytes");
    bytes.insert(bytes.end(), buffer, buffer + stream.gcount());
  }
  if (stream.bad()) refuse("reading failed half-way");
}

std::size_t checked_context(int context) {
  if (context < 1) {
    throw std::invalid_argument("corpus: context is " + std::to_string(context) +
                                ", it must be at least 1");
  }
  return static_cast<std::size_t>(context);
}

}  // namespace

corpus::corpus(std::span<const std::filesystem::path> files, int context, std::size_t most)
    : context_(checked_context(context)) {
  if (files.empty()) throw std::invalid_argument("corpus: no files given");
  for (const auto& file : files) append(file, most, bytes_);
  std::string origin = in_quotes(files.front());
  if (files.size() > 1) {
    origin =
        std::to_string(files.size()) + " files from " + origin + " to " + in_quotes(files.back());
  }
  split(origin);
}

corpus::corpus(std::vector<std::uint8_t> bytes, int context, const std::string& origin)
    : bytes_(std::move(bytes)), context_(checked_context(context)) {
  split(origin);
}

void corpus::split(const std::string& origin) {
  const std::size_t held_back = bytes_.size() / 10;
  training_size_ = bytes_.size() - held_back;
  if (held_back < context_ + 1) {
    throw std::runtime_error("corpus: " + origin + " has " + std::to_string(bytes_.size()) +
                             " bytes, a context of " + std::to_string(context_) +
                             " needs at least " + std::to_string(10 * (context_ + 1)) +
                             " (a tenth is held back)");
  }
  char text[64];
  std::snprintf(text, sizeof text, "of %zu bytes with checksum %08lx", bytes_.size(),
                crc32_z(crc32_z(0, nullptr, 0), bytes_.data(), bytes_.size()));
  described_ = text;
}

std::size_t corpus::sequences(std::span<std::uint8_t> tokens,
                              std::span<std::uint8_t> targets) const {
  if (tokens.size() != targets.size() || tokens.size() % context_ != 0) {
    throw std::invalid_argument("corpus: a batch of " + std::to_string(tokens.size()) +
                                " tokens and " + std::to_string(targets.size()) +
                                " targets is not made of sequences of " + std::to_string(context_));
  }
  return tokens.size() / context_;
}

void corpus::copy(std::span<const std::uint8_t> from, std::size_t start, std::size_t sequence,
                  std::span<std::uint8_t> tokens, std::span<std::uint8_t> targets) const {
  std::ranges::copy(from.subspan(start, context_), &tokens[sequence * context_]);
  std::ranges::copy(from.subspan(start + 1, context_), &targets[sequence * context_]);
}

void corpus::batch(std::uint64_t seed, long step, int microbatch, std::span<std::uint8_t> tokens,
                   std::span<std::uint8_t> targets) const {
  random_stream places(seed, step, microbatch);
  const std::size_t count = sequences(tokens, targets);
  for (std::size_t sequence = 0; sequence < count; ++sequence) {
    const std::size_t start = places.next() % (training_size_ - context_);
    copy(training(), start, sequence, tokens, targets);
  }
}

void corpus::held_back_batch(int microbatch, std::span<std::uint8_t> tokens,
                             std::span<std::uint8_t> targets) const {
  const std::size_t count = sequences(tokens, targets);
  for (std::size_t sequence = 0; sequence < count; ++sequence) {
    const std::size_t number = static_cast<std::size_t>(microbatch) * count + sequence;
    copy(held_back(), number % held_back_sequences() * context_, sequence, tokens, targets);
  }
}

}  // namespace train
