// Text to learn from: files as bytes, the last tenth held back, batches that follow from numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace train {

//! The bytes of some files, one after the other. The last tenth is never trained on.
class corpus {
 public:
  //! What all files together may have: /dev/zero, say, has no end.
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  //! Reads the files as they are, binary or text.
  //! \param context  bytes per sequence; each of the two parts must hold at least one sequence and
  //!                 the byte after it
  //! @throws std::runtime_error naming a file that cannot be read or with which there are more than
  //!         `most` bytes, or the bytes that are missing
  //! @throws std::invalid_argument if there are no files or the context is below 1
  corpus(std::span<const std::filesystem::path> files, int context, std::size_t most = most_bytes);

  //! The same from bytes in memory; `origin` names them in errors.
  corpus(std::vector<std::uint8_t> bytes, int context, const std::string& origin = "the text");

  std::span<const std::uint8_t> training() const { return {bytes_.data(), training_size_}; }
  std::span<const std::uint8_t> held_back() const {
    return std::span<const std::uint8_t>(bytes_).subspan(training_size_);
  }

  //! One micro-batch: sequences from random places of the training part. Depends on the numbers
  //! given and nothing else; equal keys give equal bytes on every rank.
  //! \param tokens   [sequences * context]; the number of sequences follows from its size
  //! \param targets  the byte after each token
  //! @throws std::invalid_argument unless both have the same size, a multiple of the context
  void batch(std::uint64_t seed, long step, int microbatch, std::span<std::uint8_t> tokens,
             std::span<std::uint8_t> targets) const;

  //! One micro-batch of the held-back part: consecutive sequences, from the start again after the
  //! last. Parameters as for batch().
  void held_back_batch(int microbatch, std::span<std::uint8_t> tokens,
                       std::span<std::uint8_t> targets) const;

  //! Its size and checksum: the same wherever the same text is found.
  const std::string& described() const { return described_; }

  //! Sequences that held_back_batch goes through before it starts again.
  std::size_t held_back_sequences() const { return (held_back().size() - 1) / context_; }

 private:
  void split(const std::string& origin);
  std::size_t sequences(std::span<std::uint8_t> tokens, std::span<std::uint8_t> targets) const;
  void copy(std::span<const std::uint8_t> from, std::size_t start, std::size_t sequence,
            std::span<std::uint8_t> tokens, std::span<std::uint8_t> targets) const;

  std::vector<std::uint8_t> bytes_;
  std::size_t context_;
  std::size_t training_size_ = 0;
  std::string described_;
};

}  // namespace train
