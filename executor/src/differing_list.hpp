#pragma once

#include <string>

#include "stretto/executor/bootstrap.hpp"
#include "stretto/model/rows.hpp"

namespace stretto::executor {

//! Whose schedule it is.
struct list_holder {
  int rank = 0;
  int process = 0;
};

//! Where the lists of two schedules, each of all ranks, part first: "in the list of rank 1, job 5:
//! 1W0 (...) by the schedule of rank 0, 1F3 (...) by that of rank 2". Jobs are compared before
//! messages, which follow from them: of these "entry 5" counts all that the list holds.
//! @return empty where they do not, or either is not known (job_rows without items)
std::string first_difference(const job_rows& one, int rank_of_one, const job_rows& other,
                             int rank_of_other);

//! The same between two processes of a job, of which each knows its own. All processes call it, and
//! all get the same answer. Hashes travel, and some hundred entries.
//! @param mine   of this process; others than the two tell nothing
std::string first_difference(const job_rows& mine, const list_holder& one, const list_holder& other,
                             bootstrap& by, time_point limit);

}  // namespace stretto::executor
