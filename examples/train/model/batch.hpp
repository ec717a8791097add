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
        sequences_(config::size(model.microbatch)),
        ends_(model.slice_ends),
        cut_{context_, config::size(model.slices), ends_},
        tokens_(sequences_ * context_),
        targets_(tokens_.size()),
        part_(model.slices > 1 ? 2 * model.rows() : 0) {}
  batch(const batch&) = delete;
  batch& operator=(const batch&) = delete;

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
    const std::size_t begin = cut_.begin(slice), length = cut_.length(slice);
    const auto made = std::span(part_).subspan(half * part_.size() / 2, sequences_ * length);
    for (std::size_t sequence = 0; sequence < sequences_; ++sequence)
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(sequence * context_ + begin), length,
                  made.begin() + static_cast<std::ptrdiff_t>(sequence * length));
    return made;
  }

  std::size_t context_, sequences_;
  std::vector<int> ends_;
  sequence_cut cut_;
  std::vector<std::uint8_t> tokens_, targets_, part_;
};

}  // namespace train
