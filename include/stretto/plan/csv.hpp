#pragma once

#include <limits>
#include <string>

#include "stretto/check/all.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/plan/csv_read.hpp"
#include "stretto/plan/csv_schedule.hpp"

namespace stretto {

//! Holds an imported schedule against the rules, and its memory against the limits in `costs`.
//! @param most_gathered  of how many stages at once a rank may hold the weights
//! @return ok, or the first broken rule with its row and cell
inline csv_fault verify(const imported_schedule& schedule, const job_table_view& costs,
                        int most_gathered = std::numeric_limits<int>::max()) {
  const replay_input input = schedule.input(costs);
  verdict found = check::schedule(input);
  if (found.ok()) found = check::sharded(input, most_gathered);
  return schedule.locate(found);
}

namespace detail {

//! The first gather or reduction of lists that should have messages and have none, which no reader
//! takes for compute_comms.
inline verdict beside_no_messages(const job_rows& rows, const placement& where) {
  bool needed = false;
  for (int stage = 0; stage + 1 < where.stages(); ++stage)
    needed = needed || where.rank_of(stage, 0) != where.rank_of(stage + 1, 0);
  verdict first;
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (int step = 0; step < rows.counts[rank]; ++step) {
      const job& work = rows.at(rank, step);
      if (is_message(work.kind)) return {};
      const bool beside = is_gather(work.kind) || work.kind == job_kind::reduce_grad;
      if (needed && beside && first.ok())
        first = refuse(fault::rendezvous, reason::unexpected_communication, rank, step, work);
    }
  return first;
}

}  // namespace detail

//! Appends a schedule in PyTorch's CSV: one row per rank, CRLF. Compute-only lists give
//! compute_only, lists with messages compute_comms; what PyTorch runs as it stands,
//! with_pytorch_comms makes (csv_comms.hpp).
//! @param cells  what they may say: with csv_cells::all, what PyTorch's do not say no other program
//!               reads
//! @return ok, or fault::unsupported: `no_form` with the job that no cell can say (of PyTorch's a
//!         slice, a recompute, an offload; of any a collective), `placement_not_served` for a
//!         bidirectional placement in PyTorch's, whose stages lie on two ranks; fault::incomplete,
//!         `not_a_pair`, for the first half of a pair without a second; fault::rendezvous,
//!         `unexpected_communication`, for gathers and reductions of lists whose ranks live on one
//!         another's messages and have none. `out` is then as it was.
inline verdict write_csv(const job_rows& rows, const placement& where, std::string& out,
                         csv_cells cells = csv_cells::pytorch) {
  if (cells == csv_cells::pytorch && where.kind == placement_kind::bidirectional && where.ranks > 1)
    return refuse(fault::unsupported, reason::placement_not_served);
  if (const verdict found = detail::beside_no_messages(rows, where); !found.ok()) return found;
  std::string text;
  for (int rank = 0; rank < rows.ranks; ++rank) {
    for (int step = 0; step < rows.counts[rank]; ++step) {
      const job& work = rows.at(rank, step);
      const bool pair = work.paired;
      if (pair && (step + 1 == rows.counts[rank] || rows.at(rank, step + 1).paired))
        return refuse(fault::incomplete, reason::not_a_pair, rank, step, work);
      for (int half = 0; half <= (pair ? 1 : 0); ++half)
        if (!has_form(rows.at(rank, step + half), cells))
          return refuse(fault::unsupported, reason::no_form, rank, step + half,
                        rows.at(rank, step + half));
      if (step > 0) text += ',';
      if (pair)
        text += to_text(work, rows.at(rank, ++step)).view();
      else
        text += to_text(work).view();
    }
    text += "\r\n";
  }
  out += text;
  return {};
}

}  // namespace stretto
