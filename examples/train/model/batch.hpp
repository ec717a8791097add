// The bytes of one micro-batch, and of one slice of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config.hpp"

namespace train {

//! What a micro-batch reads and has to predict: sequences one after the other.
class batch {
 public:
  explicit batch(const config& model)
      : context_(config::size(model.context)),
        length_(model.length()),
        tokens_(config::size(model.microbatch) * context_),
        targets_(tokens_.size()),
        part_(model.slices > 1 ? 2 * model.rows() : 0) {}

  //! The whole micro-batch, to be filled.
  std::span<std::uint8_t> tokens() { return tokens_; }
  std::span<std::uint8_t> targets() { return targets_; }

  //! That this holds.
  std::size_t bytes() const { return tokens_.size() + targets_.size() + part_.size(); }

  //! The slice's bytes, sequence after sequence; valid until the next call for another slice.
  std::span<const std::uint8_t> tokens(std::size_t slice) { return cut(tokens_, slice, 0); }
  std::span<const std::uint8_t> targets(std::size_t slice) { return cut(targets_, slice, 1); }

 private:
  std::span<const std::uint8_t> cut(const std::vector<std::uint8_t>& whole, std::size_t slice,
                                    std::size_t half) {
    if (part_.empty()) return whole;
    const auto made = std::span(part_).subspan(half * part_.size() / 2, part_.size() / 2);
    for (std::size_t sequence = 0; sequence * length_ < made.size(); ++sequence)
      std::copy_n(
          whole.begin() + static_cast<std::ptrdiff_t>(sequence * context_ + slice * length_),
          length_, made.begin() + static_cast<std::ptrdiff_t>(sequence * length_));
    return made;
  }

  std::size_t context_, length_;
  std::vector<std::uint8_t> tokens_, targets_, part_;
};

}  // namespace train
