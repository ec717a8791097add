#include "guarded_plan.hpp"

#include <algorithm>

namespace stretto::executor {
namespace {

constexpr std::int64_t guard = 64;
//! Behind the last buffer, so that a stage that takes it for larger still writes to the arena, and
//! is told so.
constexpr std::int64_t behind_all = 1 << 16;

}  // namespace

guarded_plan::guarded_plan(const plan_view& plan)
    : buffers_(plan.buffers.begin(), plan.buffers.end()), view_(plan) {
  std::vector<std::int64_t> begins;
  for (const buffer& each : buffers_)
    if (each.role != buffer_role::host && each.bytes > 0) begins.push_back(each.offset);
  std::ranges::sort(begins);
  begins.erase(std::ranges::unique(begins).begin(), begins.end());
  view_.arena_bytes += guard * static_cast<std::int64_t>(begins.size()) + behind_all;
  for (buffer& each : buffers_)
    each.offset += each.role == buffer_role::host
                       ? view_.arena_bytes - plan.arena_bytes
                       : guard * (std::ranges::lower_bound(begins, each.offset) - begins.begin());
  view_.buffers = buffers_;
}

}  // namespace stretto::executor
