#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! A job as a frozen table spells it: `{2, F, 0}` is the text form's 2F0.
struct frozen_job {
  std::int32_t stage;
  job_kind kind;
  std::int32_t microbatch;
  std::int16_t slice = 0;
  bool paired = false;  //!< with the job that follows
};

//! A schedule whose order was computed before and is given as a constant table: what a search that
//! a compiler should not repeat has found, or what came from elsewhere. Nothing in it is taken on
//! trust: `static_assert(stretto::valid<pipeline<Table::made_for, frozen<Table>>>)` proves it like
//! any other. `stretto schedule NAME ... --emit header` writes a `Table`:
//!
//! - `name`, `made_for` (the one shape that it serves), `placement`
//! - `counts`: jobs of each rank; `jobs`: theirs, rank after rank
//! - `forward_only = true`, if it is
//!
//! and, unless they are the default, the costs and the limit that it was made for: as `memory`, the
//! memory policy of its proof.
template <class Table>
struct frozen : Table {
  static_assert(std::size(Table::counts) == static_cast<std::size_t>(Table::made_for.ranks),
                "stretto: a frozen table counts the jobs of each rank");
  static_assert(
      [] {
        std::size_t sum = 0;
        for (const std::int32_t count : Table::counts)
          sum += count < 0 ? std::size(Table::jobs) + 1 : static_cast<std::size_t>(count);
        return sum == std::size(Table::jobs);
      }(),
      "stretto: a frozen table has as many jobs as it counts");

  constexpr placement_kind placed() const { return Table::placement; }
  constexpr verdict supports(const shape& sizes) const {
    if (const verdict sound = positive_or_refuse(sizes); !sound) return sound;
    return sizes == Table::made_for ? verdict{} : refuse(fault::unsupported, reason::shape_frozen);
  }
  constexpr int capacity(const shape&) const {
    std::int32_t most = 0;
    for (const std::int32_t count : Table::counts) most = count > most ? count : most;
    return most;
  }
  constexpr verdict emit(const shape&, const job_table_view&, job_sink& out) const {
    const frozen_job* next = Table::jobs;
    for (int rank = 0; rank < out.ranks; ++rank)
      for (const frozen_job* end = next + Table::counts[rank]; next != end; ++next)
        out.push(rank, {next->stage, next->microbatch, next->slice, next->kind, next->paired});
    return {};
  }
};

}  // namespace stretto::schedule
