#pragma once

#include <cstddef>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::check {

//! Who waits for whom in lists that are not live: what rule live says of one rank, said of each on
//! the way around. An entry's job waits for one of the next entry's rank that comes behind the job
//! at which that rank stands; what the last one waits for is of an earlier entry's rank, or is in
//! no list.
//! @param from  a rank that stands still
//! @return empty when it does not
constexpr std::vector<verdict> standstill(const replay_input& input, int from) {
  std::vector<verdict> chain;
  replay_observer nobody;
  stretto::detail::replay_engine<replay_observer> engine(input, nobody);
  const verdict ended = engine.run();
  if (ended.ok() || ended.what == fault::incomplete) return chain;
  auto told = filled<char>(static_cast<std::size_t>(input.rows.ranks));
  for (int rank = from;
       rank >= 0 && rank < input.rows.ranks && told[static_cast<std::size_t>(rank)] == 0;) {
    const verdict stands = engine.standing(rank);
    if (stands.ok()) break;
    told[static_cast<std::size_t>(rank)] = 1;
    chain.push_back(stands);
    if (!stands.has_other || stands.other.stage < 0 || stands.other.stage >= input.where.stages())
      break;
    rank = input.where.rank_of(stands.other);
  }
  return chain;
}

}  // namespace stretto::check
