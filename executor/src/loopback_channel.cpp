#include "loopback_channel.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "stretto/executor/describe.hpp"

namespace stretto::executor {
namespace {

//! An arena without bytes has no address, which std::memcpy must not see even then.
void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

loopback_channel::loopback_channel(int from, int to, int capacity, std::int64_t largest, int spins,
                                   const std::atomic<bool>& stop)
    : from_(from),
      to_(to),
      buffered_(capacity > 0),
      largest_(largest),
      spins_(spins),
      stop_(stop),
      slots_(static_cast<std::size_t>(std::max(1, capacity))) {
  if (!buffered_) return;
  for (slot& each : slots_)
    each.own = std::make_unique<std::byte[]>(static_cast<std::size_t>(largest));
}

void loopback_channel::send(const operation& what, std::int64_t step, std::int64_t number) {
  const auto may_post = [&] {
    return (posted_.load(std::memory_order_acquire) == number &&
            number - taken_.load(std::memory_order_acquire) <
                static_cast<std::int64_t>(slots_.size())) ||
           stopped();
  };
  changed_.wait(spins_, may_post);
  if (stopped()) return;
  slot& mine = slot_of(number);
  mine.head = head_of(what, step);
  mine.data = what.data;
  if (buffered_) {
    if (what.bytes > largest_)
      throw transport_error("channel " + std::to_string(from_) + " -> " + std::to_string(to_) +
                            ": send " + describe(what.what) + " of " + std::to_string(what.bytes) +
                            " bytes exceeds the largest " + "message of the plan, " +
                            std::to_string(largest_) + " bytes");
    copy_bytes(mine.own.get(), what.data, what.bytes);
    mine.data = mine.own.get();
  }
  posted_.store(number + 1, std::memory_order_release);
  changed_.notify();
  if (buffered_) return;
  const auto was_taken = [&] {
    return taken_.load(std::memory_order_acquire) > number || stopped();
  };
  changed_.wait(spins_, was_taken);
}

void loopback_channel::receive(const operation& what, std::int64_t step, std::int64_t number) {
  const auto may_take = [&] {
    return (taken_.load(std::memory_order_acquire) == number &&
            posted_.load(std::memory_order_acquire) > number) ||
           stopped();
  };
  changed_.wait(spins_, may_take);
  if (stopped()) return;
  const slot& sent = slot_of(number);
  must_meet(from_, to_, sent.head, head_of(what, step));
  copy_bytes(what.data, sent.data, what.bytes);
  taken_.store(number + 1, std::memory_order_release);
  changed_.notify();
}

}  // namespace stretto::executor
