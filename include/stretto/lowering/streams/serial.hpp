#pragma once

#include "stretto/lowering/streams/concept.hpp"

namespace stretto::overlap {

//! Everything on one stream: no overlap at all. What the other policies are measured against.
struct serial {
  static constexpr std::string_view name = "serial";

  constexpr int count() const { return 1; }
  constexpr stream_info stream(int) const { return named_stream("compute", 0); }
  constexpr int stream_of(job_kind, int, int, int) const { return 0; }
};

}  // namespace stretto::overlap
