#pragma once

#include <cstdint>

namespace stretto {

//! The consecutive layers of one stage: first ... first + count - 1, numbered through the model.
struct layer_range {
  std::int32_t first = 0;
  std::int32_t count = 0;

  constexpr bool operator==(const layer_range&) const = default;
};

}  // namespace stretto
