#pragma once

#include <cstdint>

#include "stretto/model/rows.hpp"

namespace stretto::schedule {

//! One rank's list of DualPipe and DualPipeV while it is written. The rank holds two stages, 0 and
//! 1 here, each with micro-batches of its own; what does not exist (of a step written for more
//! micro-batches than there are) is left out, and a pair then holds the other half alone.
struct dual_rank {
  struct half {
    int stage = 0;
    int first = 0;     //!< micro-batch
    int count = 0;     //!< of micro-batches
    int forwards = 0;  //!< written so far, like the next two
    int inputs = 0;
    int weights = 0;
  };

  job_sink& out;
  int rank;
  half halves[2]{};
  bool forward_only = false;  //!< leave the backwards out

  constexpr void push(int which, int& next, job_kind kind, bool paired = false) {
    const half& of = halves[which];
    const int index = next++;
    if (index >= of.count || (forward_only && kind != job_kind::forward)) return;
    out.push(rank, {of.stage, of.first + index, 0, kind, paired});
  }
  constexpr void forward(int which) { push(which, halves[which].forwards, job_kind::forward); }
  constexpr void input(int which) { push(which, halves[which].inputs, job_kind::backward_input); }
  constexpr void weight(int which) {
    push(which, halves[which].weights, job_kind::backward_weight);
  }
  constexpr void backward(int which) {
    push(which, halves[which].inputs, job_kind::backward);
    ++halves[which].weights;
  }
  //! A forward of one stage overlapped with a whole backward of the other.
  constexpr void pair(int ahead, int back) {
    const bool both = halves[back].inputs < halves[back].count && !forward_only;
    push(ahead, halves[ahead].forwards, job_kind::forward, both);
    backward(back);
  }
};

//! The eight steps that DualPipe and DualPipeV have in common (DeepSeek-AI's dualpipe.py and
//! dualpipev.py).
//! @param outer  ranks between this one and the middle, where the two ways meet
//! @param inner  ranks between this one and the end of the pipeline
//! @param steady double pairs of the steady phase
constexpr void dual_order(dual_rank& list, int outer, int inner, int steady) {
  // Beyond so many turns of a phase, what it writes is of no micro-batch that exists.
  const int most = 2 * (list.halves[0].count + list.halves[1].count);
  const auto turns = [most](int count) { return count < most ? count : most; };
  const int first = turns(2 * outer);
  const int far = turns(outer);
  const int near = turns(inner + 1);
  const int both = turns(steady);
  const int back = turns(2 * (inner + 1));
  // 1. Forwards, until the first reaches the middle.
  for (int k = 0; k < first; ++k) list.forward(0);
  // 2. Both forwards in turn, until the first gradient comes.
  for (int k = 0; k < near; ++k) {
    list.forward(0);
    list.forward(1);
  }
  // 3. The nearer stage returns its gradients, the weights fill the wait.
  for (int k = 0; k < far; ++k) {
    list.input(1);
    list.weight(1);
    list.forward(1);
  }
  // 4. Steady: each forward beside a backward of the other stage.
  for (int k = 0; k < both; ++k) {
    if (k == 0 && outer == 0) {  // the peer in the middle needs this forward first
      list.forward(0);
      list.backward(1);
    } else {
      list.pair(0, 1);
    }
    list.pair(1, 0);
  }
  // 5. The last forwards.
  for (int k = 0; k < far; ++k) {
    list.backward(1);
    list.pair(1, 0);
  }
  // 6. Backwards; half-way they begin to leave the weights for later.
  const int whole = (inner + 1) / 2 * 2 + (inner % 2 == 0 ? 1 : 0);
  for (int k = 0; k < back; ++k) {
    const int which = k % 2 == 0 ? 1 : 0;
    if (k < whole) {
      list.backward(which);
    } else {
      list.input(which);
    }
  }
  // 7. and 8. The weights in the order of their inputs, which alternated, then came from 0 alone.
  int left = 0;
  const auto next_weight = [&] {
    const bool alternating = left <= inner;
    list.weight(alternating && (whole + left) % 2 == 0 ? 1 : 0);
    ++left;
  };
  for (int k = 0; k < far; ++k) {
    next_weight();
    list.input(0);
  }
  for (int k = 0; k < near; ++k) next_weight();
}

//! The rank's part when the two stages belong to two replicas in opposite directions; half of the
//! micro-batches, and the odd one, go in direction 0. At least p micro-batches a direction are
//! counted with.
constexpr void dual_order_two_ways(dual_rank& list, int ranks, int microbatches) {
  const int ahead = (microbatches + 1) / 2;
  const int full = ahead > ranks ? ahead : ranks;
  const int rank = list.rank;
  const bool front = rank < ranks / 2;
  const int inner = front ? rank : ranks - 1 - rank;
  // Each half of the ranks begins with the direction that enters at its own end.
  list.halves[front ? 0 : 1] = {rank, 0, ahead};
  list.halves[front ? 1 : 0] = {ranks - 1 - rank, ahead, microbatches - ahead};
  dual_order(list, ranks / 2 - 1 - inner, inner, full - ranks + inner + 1);
}

}  // namespace stretto::schedule
