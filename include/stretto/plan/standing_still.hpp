#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stretto/check/standstill.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

namespace detail {

constexpr bool is_listed(const job_rows& rows, const job& work) {
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (job one : rows.row(rank)) {
      one.paired = work.paired;
      if (one == work) return true;
    }
  return false;
}

}  // namespace detail

//! What follows a verdict on lists that are not live: `; rank 1 stands at 1F0, which waits for
//! 0F0`, and so on, all the way around or for eight ranks; of these and of what stands before a job
//! that it needs, whether that is in no list. Empty for any other verdict.
inline std::string standing_still(const replay_input& lists, const verdict& found) {
  constexpr std::size_t most = 8;
  const bool stands = found.what == fault::deadlocked || found.what == fault::rendezvous;
  if (!stands && found.what != fault::disordered) return {};
  std::string text;
  if (found.has_other && !detail::is_listed(lists.rows, found.other))
    text = ", which is in no list";
  if (!stands) return text;
  const std::vector<verdict> chain = check::standstill(lists, found.rank);
  for (std::size_t at = 1; at < chain.size() && at <= most; ++at) {
    const verdict& next = chain[at];
    text += "; rank " + std::to_string(next.rank) + " stands at ";
    text += to_text(next.where).view();
    if (!next.has_other) continue;
    text += ", which waits for ";
    text += to_text(next.other).view();
    if (!detail::is_listed(lists.rows, next.other)) text += ", which is in no list";
  }
  if (chain.size() > most + 1) text += "; and so on, " + std::to_string(chain.size()) + " ranks";
  return text;
}

}  // namespace stretto
