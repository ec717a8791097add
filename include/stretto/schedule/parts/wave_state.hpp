#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/wave_rules.hpp"
#include "stretto/schedule/parts/zbv_order.hpp"

namespace stretto::schedule {

//! Kinds of jobs in a pass over a wave, as an index.
inline constexpr int wave_forward = 0;
inline constexpr int wave_input = 1;
inline constexpr int wave_weight = 2;

//! A chunk of a rank in a pass; arrays are for F, I, W. Times in a pass are kept plus one, so that
//! zero, what scratch memory holds at first, means "not yet".
struct wave_cell {
  std::int64_t time[3];
  std::int64_t ready[2];   //!< when the next job's input is there
  std::int32_t target[2];  //!< whose input it makes: 2 * cell + kind; -1: nobody's
  std::int32_t open[2];    //!< jobs that the rules let run before another cell moves
  std::int32_t stage;
  std::int32_t rank;
};

//! A rank in a pass.
struct wave_rank {
  std::int64_t free;   //!< the end of its last job
  std::int64_t start;  //!< of its first
  std::int64_t idle;   //!< between the two
  std::int32_t head;   //!< of its pending backwards for the weights
  std::int32_t tail;
  std::int32_t cursor;  //!< in its fixed order
  std::int8_t last;     //!< the last kind beside weights, plus one
  bool limited;         //!< its memory is
  bool busiest;
};

//! What a pass over a wave of chunks begins with.
class wave_state {
 public:
  constexpr wave_state(const shape& sizes, const job_table_view& table, const wave_rules& rules)
      : p(sizes.ranks),
        m(sizes.microbatches),
        v(sizes.chunks),
        cell_room_(std::int64_t{p} * v),
        rank_room_(p),
        done_room_(std::int64_t{3} * p * v),
        arrival_room_(std::int64_t{2} * p * v * (m + 1)),
        pending_room_(std::int64_t{p} * v * m),
        order_room_(rules.fixed ? std::int64_t{4} * p * m : 0),
        cells(cell_room_.data()),
        ranks(rank_room_.data()),
        done(done_room_.data()),
        arrivals(arrival_room_.data()),
        pending(pending_room_.data()),
        order(order_room_.data()) {
    for (int rank = 0; rank < p; ++rank) {
      ranks[rank].limited = table.limit_of(rank) != unlimited;
      for (int chunk = 0; chunk < v; ++chunk) lay(rank, chunk, table, rules);
      if (rules.fixed) lay_order(rank);
    }
    if (rules.spare_busiest) mark_busiest();
    cells[0].ready[wave_forward] = 1;
    for (int i = 0; i < m; ++i) arrivals[i] = 1;
  }
  constexpr ~wave_state() = default;  // nvcc needs it written

  //! Opens the next job of a rank's fixed order.
  constexpr void open_next(int rank) {
    if (ranks[rank].cursor == 4 * m) return;
    const int job = order[std::int64_t{4} * m * rank + ranks[rank].cursor++];
    cells[rank * v + job % 2].open[job / 2] = 1;
  }

  int p, m, v;

 private:
  scratch<wave_cell> cell_room_;
  scratch<wave_rank> rank_room_;
  scratch<std::int32_t> done_room_;
  scratch<std::int64_t> arrival_room_;
  scratch<std::int32_t> pending_room_;
  scratch<std::int8_t> order_room_;

 public:
  wave_cell* cells;  //!< (rank, chunk)
  wave_rank* ranks;
  std::int32_t* done;  //!< jobs of each (rank, chunk, kind)
  //! (rank, chunk, F or I, micro-batch): when its input is there; one more of each, never there.
  std::int64_t* arrivals;
  std::int32_t* pending;  //!< per rank: chunks of the backwards for the weights, oldest first
  std::int8_t* order;     //!< per rank, fixed: 2 * kind + chunk

 private:
  constexpr void lay(int rank, int chunk, const job_table_view& table, const wave_rules& rules) {
    const placement where{.kind = placement_kind::wave, .ranks = p, .chunks = v};
    const int here = rank * v + chunk;
    const int stage = where.stage_of(rank, chunk);
    wave_cell& one = cells[here];
    one.time[wave_forward] = table.at(rank, chunk, job_kind::forward).time;
    one.time[wave_input] = table.at(rank, chunk, job_kind::backward_input).time;
    one.time[wave_weight] = table.at(rank, chunk, job_kind::backward_weight).time;
    one.rank = rank;
    one.stage = stage;
    const auto cell_of = [&](int other) { return where.rank_of(other, 0) * v + other / p; };
    one.target[wave_input] = stage == 0 ? -1 : 2 * cell_of(stage - 1) + wave_input;
    // The last stage's gradient comes of its own forward.
    one.target[wave_forward] =
        stage + 1 == p * v ? 2 * here + wave_input : 2 * cell_of(stage + 1) + wave_forward;
    if (rules.fixed) return;
    const int hops = chunk % 2 == 0 ? 2 * (p - 1 - rank) + 1 : 2 * rank + 1;
    const int share = chunk + 1 < v ? rules.window : rules.last_window;
    one.open[wave_forward] = share == 0 ? m : (share * hops + 11) / 12 + rules.extra;
    one.open[wave_input] = 1;
  }

  constexpr void lay_order(int rank) {
    int visited[2][2] = {};
    std::int8_t* to = order + std::int64_t{4} * m * rank;
    zbv_order(p, rank, m, [&](int chunk, job_kind kind) {
      if (kind == job_kind::backward_weight) return;
      const int which = kind == job_kind::forward ? wave_forward : wave_input;
      if (visited[which][chunk]++ < m) *to++ = static_cast<std::int8_t>(2 * which + chunk);
    });
    open_next(rank);
  }

  constexpr void mark_busiest() {
    scratch<std::int64_t> work(p);
    std::int64_t most = 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int rank = 0; rank < p; ++rank) {
      for (int chunk = 0; chunk < v; ++chunk)
        for (std::int64_t time : cells[rank * v + chunk].time) work[rank] += time;
      if (work[rank] > most) most = work[rank];
      if (work[rank] < least) least = work[rank];
    }
    for (int rank = 0; rank < p; ++rank) ranks[rank].busiest = most > least && work[rank] == most;
  }
};

}  // namespace stretto::schedule
