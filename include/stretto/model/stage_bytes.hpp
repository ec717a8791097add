#pragma once

#include <cstdint>

namespace stretto {

//! Bytes of one micro-batch (slice) at one stage.
struct stage_bytes {
  std::int64_t output = 64;  //!< activations for the next stage; their gradient is as large
  std::int64_t stash = 64;   //!< what the forward saves for the backward

  constexpr bool operator==(const stage_bytes&) const = default;
};

}  // namespace stretto
