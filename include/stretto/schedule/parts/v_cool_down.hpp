#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_orders.hpp"

namespace stretto::schedule {

//! Lays the end of a V's order anew. When no forward comes any more, the memory that a backward
//! gives back is of no use, and what counts is that they end soon: those of the second chunk go
//! down the V as they can, and behind them the last ones of the first chunk, two slots from one to
//! the next on every rank, so that none waits on its way up. These are half of what is kept then.
//! So v_auto of Qi et al. 2024 ends.
class v_cool_down {
 public:
  constexpr v_cool_down(const shape& sizes, v_orders& to)
      : p_(sizes.ranks),
        m_(sizes.microbatches),
        ups_(least((to.most() + 1) / 2, m_)),
        downs_(least(to.most() - ups_, m_)),
        to_(to),
        stay_(to.stride()) {
    int at = to.count(0) - 1;
    while (to.order(0)[at].stream() != v_up) --at;
    last_forward_ = to.order(0)[at].start();
    for (int rank = 0; rank < p_; ++rank) lay(rank);
  }
  constexpr ~v_cool_down() = default;  // nvcc needs it written

 private:
  static constexpr int least(int one, int other) { return one < other ? one : other; }

  //! The slots of the backwards of both chunks that so many follow.
  constexpr std::int32_t up_at(int rank, int follow) const {
    return last_forward_ - rank + 2 * (p_ - follow);
  }
  constexpr std::int32_t down_at(int rank, int follow) const {
    return last_forward_ + 1 + rank - 2 * follow;
  }

  constexpr void lay(int rank) {
    v_placed* const order = to_.order(rank);
    int ups = ups_;
    int downs = least(downs_, rank + 1);
    int back_up = 0;
    int back_down = 0;
    int staying = 0;
    for (int at = 0; at < to_.count(rank); ++at) {
      const int stream = order[at].stream();
      if (stream == v_back_up && ++back_up > m_ - ups) continue;
      if (stream == v_back_down && ++back_down > m_ - downs) continue;
      stay_[staying++] = order[at];
    }
    int count = 0;
    int pending = 0;  // backwards for the weights, of which the oldest runs first
    int oldest = 0;
    for (int at = 0; at < staying || ups > 0 || downs > 0;) {
      v_placed next{std::numeric_limits<std::int32_t>::max()};
      int* of = nullptr;  // those laid anew that it is one of
      if (at < staying) next = stay_[at];
      if (ups > 0 && up_at(rank, ups - 1) < next.start()) {
        next = {8 * up_at(rank, ups - 1) + v_back_up};
        of = &ups;
      }
      if (downs > 0 && down_at(rank, downs - 1) < next.start()) {
        next = {8 * down_at(rank, downs - 1) + v_back_down};
        of = &downs;
      }
      if (of != nullptr)
        --*of;
      else
        ++at;
      if (next.stream() >= v_weight_upper) {
        if (pending == 0) continue;  // its other half has moved behind it: it may run anywhere then
        --pending;
        while (order[oldest].stream() < v_back_down || order[oldest].stream() >= v_weight_upper)
          ++oldest;
        next = {8 * next.start() + order[oldest++].stream() + (v_weight_upper - v_back_down)};
      } else if (next.stream() >= v_back_down) {
        ++pending;
      }
      order[count++] = next;
    }
    to_.count(rank) = count;
  }

  int p_, m_;
  int ups_, downs_;  // backwards of the first and the second chunk that are laid anew, at most
  v_orders& to_;
  scratch<v_placed> stay_;         // of a rank, the others
  std::int32_t last_forward_ = 0;  // the slot of rank 0's
};

}  // namespace stretto::schedule
