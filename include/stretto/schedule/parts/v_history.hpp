#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_orders.hpp"

namespace stretto::schedule {

//! How far a replay has come on a rank.
struct v_rank_state {
  std::int64_t time[v_streams];
  std::int64_t change[v_streams];
  std::int64_t need[v_streams];  // above the level at the job's start
  std::int64_t level;            // of memory
  std::int64_t most;             // memory that has been in use at once
  std::int64_t limit;
  std::int64_t clock;
  std::int64_t start;  // of its first job
  const v_placed* order;
  std::int32_t steps;
  std::int32_t cursor;   // in its order
  std::int32_t oldest;   // in its order: where to look for the next backward for the weights
  std::int32_t pending;  // backwards for the weights that could run
  std::int32_t due;      // less those that have run: that must before the next forward
  std::int32_t done[v_streams];
  bool queued;
};

//! A job as it ran: when its input was there (0: needs none), start, end.
struct v_moment {
  std::int64_t input = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int32_t microbatch = 0;
};

//! Where a stream's input comes from: itself on the rank before; where it begins, the stream that
//! ends there. Not of the first stream on rank 0, which needs none.
struct v_source {
  constexpr v_source(int to_stream, int to_rank, int ranks) : stream(to_stream), rank(to_rank) {
    const bool down = stream == v_down || stream == v_back_down;
    const int there = down ? rank - 1 : rank + 1;
    turns = there < 0 || there == ranks;
    if (turns)
      --stream;
    else
      rank = there;
  }

  int stream;
  int rank;
  bool turns;  // on its own rank
};

//! When the forwards and backwards for the input of a V's order ran, and marks on the way from
//! which the replay of a changed order can go on. Of two versions: the order that is kept, and the
//! one replayed last, which tells as much of itself as differs, behind the mark that it went on
//! from.
class v_history {
 public:
  constexpr v_history(const shape& sizes, const v_orders& slots)
      : p_(sizes.ranks),
        m_(sizes.microbatches),
        stride_(slots.stride()),
        moments_(2 * stride_ * p_),
        places_(2 * std::int64_t{v_weight_upper} * p_ * m_),
        states_(2 * std::int64_t{most_marks} * p_),
        versions_(most_marks) {
    std::int64_t jobs = 0;
    for (int rank = 0; rank < p_; ++rank) jobs += slots.count(rank);
    apart_ = jobs / most_marks + 1;
  }
  constexpr ~v_history() = default;  // nvcc needs it written

  //! Of the order replayed last.
  constexpr const v_moment& moment(int rank, int at) const {
    const bool kept = at < mark(from_)[rank].cursor;
    return moments_[((kept ? 0 : p_) + rank) * stride_ + at];
  }
  //! @return the place of a job in its rank's order
  constexpr int place(int stream, int rank, int microbatch) const {
    const bool kept = microbatch < mark(from_)[rank].done[stream];
    return places_[place_of(kept ? 0 : 1, stream, rank, microbatch)];
  }

  //! Marks of the order that is kept; the first is the start.
  constexpr int marks() const { return kept_; }
  constexpr const v_rank_state* mark(int number) const {
    return states_.data() + state_of(number, versions_[number]);
  }

  //! A replay goes on from a mark of the order that is kept.
  constexpr void go_on(int from) {
    from_ = from;
    made_ = from + 1;
  }
  constexpr void tell(int rank, int at, int stream, const v_moment& of) {
    moments_[(p_ + rank) * stride_ + at] = of;
    places_[place_of(1, stream, rank, of.microbatch)] = at;
  }
  //! How many jobs further from here the next mark is due.
  constexpr std::int64_t until_next(const v_rank_state* ranks) const {
    std::int64_t jobs = 0;
    for (int rank = 0; rank < p_; ++rank) jobs += ranks[rank].cursor;
    return apart_ - jobs % apart_;
  }
  constexpr void set_start(const v_rank_state* ranks) { write(0, 0, ranks); }
  constexpr void set_mark(const v_rank_state* ranks) {
    write(made_, versions_[made_] ^ 1, ranks);
    ++made_;
  }

  //! The order replayed last is the one that is kept.
  constexpr void keep(const v_orders& slots) {
    for (int rank = 0; rank < p_; ++rank)
      for (int at = mark(from_)[rank].cursor; at < slots.count(rank); ++at) {
        const int stream = slots.order(rank)[at].stream();
        if (stream >= v_weight_upper) continue;
        const v_moment& of = moments_[(p_ + rank) * stride_ + at];
        moments_[rank * stride_ + at] = of;
        places_[place_of(0, stream, rank, of.microbatch)] = at;
      }
    for (int number = from_ + 1; number < made_; ++number) versions_[number] ^= 1;
    kept_ = made_;
  }

 private:
  static constexpr int most_marks = 16;

  constexpr std::int64_t place_of(int version, int stream, int rank, int microbatch) const {
    return ((std::int64_t{version} * v_weight_upper + stream) * p_ + rank) * m_ + microbatch;
  }
  constexpr std::int64_t state_of(int number, int version) const {
    return (std::int64_t{2} * number + version) * p_;
  }
  constexpr void write(int number, int version, const v_rank_state* ranks) {
    v_rank_state* const to = states_.data() + state_of(number, version);
    for (int rank = 0; rank < p_; ++rank) to[rank] = ranks[rank];
  }

  int p_, m_;
  std::int64_t stride_;  // of a rank's moments
  std::int64_t apart_;   // jobs from one mark to the next
  scratch<v_moment> moments_;
  scratch<std::int32_t> places_;
  scratch<v_rank_state> states_;
  scratch<std::int32_t> versions_;  // of each mark: which is kept
  int from_ = 0;
  int made_ = 1;
  int kept_ = 1;
};

}  // namespace stretto::schedule
