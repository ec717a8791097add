#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "stretto/model/transformer.hpp"

namespace stretto {

namespace detail {

//! Multiply-adds of a layer's forward of one slice, in the mean of a pattern's, by features.
constexpr std::int64_t products_of(const transformer& model, const sequence_part& slice) {
  transformer one = model;
  one.slice = slice;
  return one.mean_products() / one.hidden * one.length();
}

}  // namespace detail

//! Cuts the sequence so that every slice takes a layer as many multiply-adds as any other, or as
//! nearly as its lengths allow: later ones, which attend to more, are shorter. The longest takes
//! the least that any cut does. *Seq1F1B, [Sun et al. 2024](https://arxiv.org/abs/2406.03488).*
//! @param model     whose own slices are not looked at
//! @param multiple  of which every length is one, but for the last of a sequence that is none
//! @return the slices in order
//! @throws std::invalid_argument where there are fewer such lengths in the sequence than slices
constexpr std::vector<sequence_part> balanced_slices(const transformer& model, int slices,
                                                     std::int64_t multiple = 1) {
  const std::int64_t all = model.sequence;
  if (slices < 1 || multiple < 1 || all / multiple + (all % multiple > 0) < slices)
    throw std::invalid_argument("stretto::balanced_slices: too few tokens for so many slices");
  std::vector<sequence_part> made(static_cast<std::size_t>(slices));
  // Each as long as `most` allows, and no longer than leaves one length to each behind it.
  const auto cut = [&](std::int64_t most) {
    std::int64_t begin = 0;
    for (int slice = 0; slice < slices; ++slice) {
      std::int64_t low = begin / multiple + 1;  // in lengths
      std::int64_t high = all / multiple + (all % multiple > 0) - (slices - 1 - slice);
      const auto end_of = [&](std::int64_t lengths) { return std::min(all, lengths * multiple); };
      if (slice + 1 == slices) low = high;
      while (low < high) {
        const std::int64_t middle = low + (high - low + 1) / 2;
        if (detail::products_of(model, {begin, end_of(middle)}) <= most)
          low = middle;
        else
          high = middle - 1;
      }
      made[static_cast<std::size_t>(slice)] = {begin, end_of(low)};
      begin = end_of(low);
    }
    bool fits = true;
    for (const sequence_part& one : made) fits = fits && detail::products_of(model, one) <= most;
    return fits;
  };
  std::int64_t low = 0;
  std::int64_t high = detail::products_of(model, {0, all});
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (cut(middle))
      high = middle;
    else
      low = middle + 1;
  }
  cut(high);
  return made;
}

}  // namespace stretto
