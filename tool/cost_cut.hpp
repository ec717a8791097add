#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"

namespace stretto::tool {

//! How a rank's share of the model is cut, when not as the options say.
struct cost_cut {
  int given = 0;   //!< chunks that the options speak of; 0: those of the placement
  int slices = 1;  //!< jobs that a stage has of a kind and micro-batch
  int joined = 1;  //!< slices that a job takes together, one after another
  // What every number comes multiplied by, so that none is rounded: times, and memory.
  std::int64_t times = 1;
  std::int64_t amounts = 1;
};

//! What two jobs take, one after the other.
void add_behind(job_cost& sum, const job_cost& one);

//! Every number in a finer unit.
void refine(job_table& table, const cost_cut& cut);
//! Messages of jobs that take several slices together: where links carry one at a time, hops are
//! long by what they carry, which is so many times as much.
void join_messages(job_table& table, const cost_cut& cut);

//! The same rank's work in the chunks of a placement, by jobs of so many slices.
job_table cut_anew(const job_table& given, const placement& where, const cost_cut& cut);

}  // namespace stretto::tool
