#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "stretto/model/replay_input.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::tool {

//! How a command tells an amount of memory.
using amount_text = std::function<std::string(std::int64_t)>;
std::string plain_amount(std::int64_t amount);

//! fault::over_limit of some job, told of all of its order: the rank that needs most of those above
//! their limits, what it needs, and its limit.
verdict fullest(const replay_input& order, verdict found);
//! `needs 4 on rank 0, whose limit is 3`
std::string needs_in_words(const verdict& fullest, const amount_text& amount = plain_amount);

//! What a rule says of an order; of a limit where it is exceeded first, and what all of it needs.
std::string refusal_of_order(const verdict& found, const replay_input& order,
                             const amount_text& amount = plain_amount);
//! What the amount is that a search finds enough on every rank.
enum class least_limit {
  smallest,  //!< no less is
  enough,    //!< less may be
  unknown,   //!< it speaks of micro-batches that are all alike, and they are not
};
//! @param plain  nothing stands between the jobs that the search has put in order, and none were
//! joined
least_limit least_of(const job_table_view& costs, bool plain);

//! What a schedule says of costs; of limits that leave it no order, which would.
std::string refusal_of_search(const verdict& found, least_limit is,
                              const amount_text& amount = plain_amount);

}  // namespace stretto::tool
