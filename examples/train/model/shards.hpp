// A layer's tensors in one piece and in shards: parameters, gradients, moments alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "model/config.hpp"
#include "model/layer.hpp"
#include "model/tensor.hpp"

namespace train {

//! The same model in one piece.
inline config unsharded(config model) {
  model.shards = 1;
  return model;
}

namespace detail {

//! Calls use(begin in the whole layer, begin in the shard's layer, size) for every run of scalars
//! that the shard has.
template <class Use>
void each_run(const config& model, int layer, int shard, std::size_t whole_scalars,
              std::size_t part_scalars, Use&& use) {
  model.check();
  const config one = unsharded(model);
  const auto require = [&](const char* name, std::size_t found, std::size_t needed) {
    if (found != needed)
      throw std::invalid_argument(std::string(name) + " of layer " + std::to_string(layer) +
                                  " has " + std::to_string(found) + " scalars, it needs " +
                                  std::to_string(needed));
  };
  require("the whole", whole_scalars, parameter_scalars(one, layer));
  require("the shard", part_scalars, parameter_scalars(model, layer));
  if (shard < 0 || shard >= model.shards)
    throw std::invalid_argument("shard " + std::to_string(shard) + " does not exist: there are " +
                                std::to_string(model.shards));
  const auto parts = parameter_tensors(model, layer);
  const auto wholes = parameter_tensors(one, layer);
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const bool has_all = parts[at].pieces == 0;
    const std::size_t pieces = has_all ? 1 : parts[at].pieces;
    const std::size_t run = parts[at].size / pieces;
    const std::size_t step = wholes[at].size / pieces;
    const std::size_t first = has_all ? 0 : config::size(shard) * run;
    for (std::size_t piece = 0; piece < pieces; ++piece)
      use(wholes[at].offset + piece * step + first, parts[at].offset + piece * run, run);
  }
}

}  // namespace detail

//! Copies a shard's part of a layer out of the layer in one piece, laid out as parameter_tensors
//! says of either model. What lies between tensors is left alone.
//! @throws std::invalid_argument naming a shard that does not exist, or a span of the wrong size
template <class Scalar>
void take_shard(const config& model, int layer, int shard, std::span<const Scalar> whole,
                std::span<Scalar> part) {
  detail::each_run(model, layer, shard, whole.size(), part.size(),
                   [&](std::size_t from, std::size_t to, std::size_t count) {
                     std::ranges::copy(whole.subspan(from, count), part.subspan(to).begin());
                   });
}

//! Copies a shard's part of a layer to its places in the layer in one piece: done for all shards,
//! it is put together again.
//! @throws as above
template <class Scalar>
void put_shard(const config& model, int layer, int shard, std::span<const Scalar> part,
               std::span<Scalar> whole) {
  detail::each_run(model, layer, shard, whole.size(), part.size(),
                   [&](std::size_t to, std::size_t from, std::size_t count) {
                     std::ranges::copy(part.subspan(from, count), whole.subspan(to).begin());
                   });
}

}  // namespace train
