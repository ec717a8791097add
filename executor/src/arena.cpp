#include "stretto/executor/arena.hpp"

#include <cstring>
#include <new>
#include <vector>

namespace stretto::executor {
namespace {

constexpr std::align_val_t alignment{64};

bool lives_at(const buffer& each, int instruction) {
  return each.role != buffer_role::host && each.first <= instruction && instruction < each.release;
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
  // By instruction: what begins with it, less what is released before it.
  std::vector<std::int64_t> change(plan.instructions.size() + 1);
  for (const buffer& each : plan.buffers) {
    if (each.role == buffer_role::host) continue;
    change[static_cast<std::size_t>(each.first)] += each.bytes;
    change[static_cast<std::size_t>(each.release)] -= each.bytes;
  }
  high_water_mark most;
  std::int64_t now = 0;
  for (std::size_t at = 0; at < change.size(); ++at) {
    now += change[at];
    if (now > most.bytes) most = {now, static_cast<int>(at)};
  }
  return most;
}

}  // namespace stretto::executor
