#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stretto/lowering/streams/look_ahead.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/plan/report.hpp"

namespace stretto::tool {

//! One way to run the ops of a job, or of two.
struct ordered_ops {
  std::string name;
  op_graph graph;  // cut, where it is
  std::vector<std::int32_t> order;
  std::int64_t makespan = 0;
};

//! The ops of a job, or of two, all the ways to run them, and what they have in common.
struct ordered_job {
  std::string name;
  std::int64_t computes = 0;
  std::int64_t communicates = 0;
  std::int64_t bound = 0;
  std::vector<ordered_ops> ways;

  op_report report(std::int64_t makespan) const { return {makespan, computes, communicates}; }
  double ceiling() const { return report(bound).hidden(); }
  const ordered_ops& best() const;  //!< the first of the shortest
};

//! All orders of ops that overlap policies have, but those with more collectives under way than are
//! asked for.
//! @param chain  whose ops the graph is of
//! @param apart  of two jobs, what they take one after the other, each at its best; null for one
//! @throws bad_input (--outstanding) where an op needs the results of more collectives than that
ordered_job ways_of(const std::string& name, const op_graph& graph, const program_chain& chain,
                    const machine& on, const overlap::look_ahead_options& with,
                    const std::int64_t* apart = nullptr);

}  // namespace stretto::tool
