// How a sequence is cut in slices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace train {

//! Slices of a sequence, one behind the other. Refers to its ends.
struct sequence_cut {
  std::size_t context = 1;      //!< tokens of the sequence
  std::size_t slices = 1;       //!< of which it is a multiple where these are equal
  std::span<const int> ends{};  //!< of each slice; empty: all are equal

  //! Where a slice begins; of the number behind the last the sequence's end.
  std::size_t begin(std::size_t slice) const {
    if (ends.empty()) return slice * (context / slices);
    return slice == 0 ? 0 : static_cast<std::size_t>(ends[slice - 1]);
  }
  std::size_t length(std::size_t slice) const { return begin(slice + 1) - begin(slice); }
  std::size_t longest() const {
    if (ends.empty()) return context / slices;
    std::size_t most = 0;
    for (std::size_t slice = 0; slice < slices; ++slice) most = std::max(most, length(slice));
    return most;
  }
  //! The slice with that token of the sequence.
  std::size_t slice_of(std::size_t token) const {
    std::size_t slice = 0;
    while (begin(slice + 1) <= token) ++slice;
    return slice;
  }
};

}  // namespace train
