// A head's tensors in one piece and in several: parameters, gradients, moments alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "model/config.hpp"
#include "model/layer.hpp"
#include "model/tensor.hpp"

namespace train {

//! The same model with its head in one piece, the layer behind the blocks.
inline config with_whole_head(config model) {
  model.head_pieces = 1;
  return model;
}

namespace detail {

//! Calls use(begin in the whole head, begin in the piece's layer, size) for every tensor of a
//! piece, whose table is the last one, with rows of its own, and all else there once.
template <class Use>
void each_piece_run(const config& model, int layer, Use&& use) {
  const auto parts = parameter_tensors(model, layer);
  const auto wholes = parameter_tensors(with_whole_head(model), model.layers + 1);
  const tensor& table = parts.back();
  use(wholes.back().offset + static_cast<std::size_t>(model.piece(layer)) * table.size,
      table.offset, table.size);
  for (std::size_t at = 0; at + 1 < parts.size(); ++at)
    use(wholes[at].offset, parts[at].offset, parts[at].size);
}

}  // namespace detail

//! Copies what a piece has, which is that layer of the model, out of the whole head's layer.
template <class Scalar>
void take_piece(const config& model, int layer, std::span<const Scalar> whole,
                std::span<Scalar> part) {
  detail::each_piece_run(model, layer, [&](std::size_t from, std::size_t to, std::size_t count) {
    std::ranges::copy(whole.subspan(from, count), part.subspan(to).begin());
  });
}

//! Copies it to its places there: done for all pieces, the head is put together.
template <class Scalar>
void put_piece(const config& model, int layer, std::span<const Scalar> part,
               std::span<Scalar> whole) {
  detail::each_piece_run(model, layer, [&](std::size_t to, std::size_t from, std::size_t count) {
    std::ranges::copy(part.subspan(from, count), whole.subspan(to).begin());
  });
}

}  // namespace train
