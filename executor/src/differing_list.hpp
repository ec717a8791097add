#pragma once

#include <string>

#include "stretto/executor/bootstrap.hpp"
#include "stretto/model/rows.hpp"

namespace stretto::executor {

//! Where the lists of two schedules, each of all ranks, part first: "in the list of rank 1, entry
//! 5: 1W0 (...), there 1F3 (...)".
//! @return empty where they do not, or either is not known (job_rows without items)
std::string first_difference(const job_rows& mine, const job_rows& theirs);

//! The same between two processes of a job, of which each knows its own. All processes call it, and
//! all get the same answer. Hashes travel, and some hundred entries.
//! @param mine   of this process; others than the two tell nothing
std::string first_difference(const job_rows& mine, int one, int other, bootstrap& by,
                             time_point limit);

}  // namespace stretto::executor
