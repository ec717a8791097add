#pragma once

#include "stretto/memory/concept.hpp"

namespace stretto::memory {

//! Releases every buffer as early as it is proven free: activations after the last backward that
//! reads them, sent messages once something received proves that the peer took them, or once they
//! are sent where that is not to come for long (lowering::most_untaken). What a rank holds then
//! grows with the number of micro-batches only where the schedule's forwards run ahead with it.
//! Derive and hide `costs`, `limit` or `bytes` to set them.
struct release_early {
  static constexpr std::string_view name = "release_early";
  static constexpr bool release_sends = true;

  constexpr unit_costs costs() const { return {}; }
  constexpr std::int64_t limit() const { return unlimited; }
  constexpr stage_bytes bytes(int) const { return {}; }
};

}  // namespace stretto::memory
