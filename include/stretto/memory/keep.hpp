#pragma once

#include "stretto/memory/concept.hpp"

namespace stretto::memory {

//! Keeps every sent message to the end of the step, as systems do that wait for their sends there:
//! one message more for every micro-batch. For comparison. Derive as from release_early.
struct keep {
  static constexpr std::string_view name = "keep";
  static constexpr bool release_sends = false;

  constexpr unit_costs costs() const { return {}; }
  constexpr std::int64_t limit() const { return unlimited; }
  constexpr stage_bytes bytes(int) const { return {}; }
};

}  // namespace stretto::memory
