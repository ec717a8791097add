#pragma once

namespace stretto::schedule {

//! One rank's list as 1F1B has it, of units of any kind: micro-batches, their slices, groups of
//! them. `forward(k)` and `backward(k)` append the jobs of the k-th in their own order. At most
//! min(ahead + 1, count) units are alive.
//! @param ahead  forwards before those that have a backward behind them
template <class Forward, class Backward>
constexpr void push_in_turn(int count, int ahead, const Forward& forward,
                            const Backward& backward) {
  const int warmup = ahead < count ? ahead : count;
  // 1. Warm-up: w = min(ahead, count) forwards.
  for (int k = 0; k < warmup; ++k) forward(k);
  // 2. Steady: count - w times a forward and the backward of w units before.
  for (int k = 0; k < count - warmup; ++k) {
    forward(warmup + k);
    backward(k);
  }
  // 3. Cool-down: the w backwards that are left.
  for (int k = count - warmup; k < count; ++k) backward(k);
}

}  // namespace stretto::schedule
