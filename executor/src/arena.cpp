#include "stretto/executor/arena.hpp"

#include <cstring>
#include <new>

namespace stretto::executor {
namespace {

constexpr std::align_val_t alignment{64};

bool lives_at(const buffer& each, int instruction) {
  return each.first <= instruction && instruction < each.release;
}

}  // namespace

arena::arena(std::int64_t bytes) : size_(static_cast<std::size_t>(bytes)) {
  if (size_ == 0) return;
  memory_.reset(static_cast<std::byte*>(::operator new(size_, alignment)));
  // Touched here, so that no step pays for the first touch of a page.
  std::memset(memory_.get(), 0, size_);
}

void arena::release::operator()(std::byte* memory) const noexcept {
  ::operator delete(memory, alignment);
}

std::int64_t bytes_in_use(const plan_view& plan, int instruction) {
  std::int64_t sum = 0;
  for (const buffer& each : plan.buffers)
    if (lives_at(each, instruction)) sum += each.bytes;
  return sum;
}

high_water_mark most_in_use(const plan_view& plan) {
  high_water_mark most;
  // The figure rises only where a buffer begins.
  for (const buffer& each : plan.buffers) {
    const high_water_mark here{bytes_in_use(plan, each.first), each.first};
    if (here.bytes > most.bytes ||
        (here.bytes == most.bytes && here.instruction < most.instruction))
      most = here;
  }
  return most;
}

}  // namespace stretto::executor
