#pragma once

#include "stretto/memory/estimate.hpp"
#include "stretto/memory/keep.hpp"
#include "stretto/memory/liveness.hpp"
#include "stretto/memory/offload_window.hpp"
#include "stretto/memory/recompute.hpp"
#include "stretto/memory/recompute_window.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/memory/windows.hpp"

namespace stretto::memory {

//! Calls `visit` with every memory policy.
template <class Visitor>
constexpr void for_each(Visitor&& visit) {
  visit(release_early{});
  visit(keep{});
}

}  // namespace stretto::memory
