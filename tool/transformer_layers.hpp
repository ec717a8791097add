#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "layer_costs.hpp"
#include "recomputation.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/transformer.hpp"
#include "transformer_options.hpp"

namespace stretto::tool {

//! The layers of a transformer on a device, in the order in which they are dealt: the embedding
//! with the first of them or before it, the head with the last or behind it, or its pieces, behind
//! it.
struct transformer_layers {
  const transformer_options& of_model;  //!< settled
  int layers = 1;           //!< of attention and feed-forward
  bool ends_apart = false;  //!< embedding and head are layers of their own
  machine on;
  recomputation recompute{};

  //! How many there are.
  int dealt() const;
  //! KiB that the first and the last of them both count, and a rank with both has once.
  //! @param alone  of weights alone, as forwards need them
  std::int64_t shared_ends(bool alone) const;
  //! What a sum of its gradients takes, ns, of two ranks that have it; 0: there is none.
  std::int64_t reduce_ends() const;
  //! What they take, ns and KiB, those that take the same together.
  //! @param slices  a model of each
  //! @throws bad_input for sizes that make a buffer larger than any may be
  std::vector<layer_entry> kinds(std::span<const transformer> slices) const;
};

}  // namespace stretto::tool
