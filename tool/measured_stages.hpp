#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layer_costs.hpp"
#include "measured_trace.hpp"

namespace stretto::tool {

//! What the stages of a measured pipeline take: medians over all jobs of its steps, in nanoseconds.
struct measured_stages {
  int ranks = 0;
  std::int64_t workers = 1;  //!< of each, of whom one's jobs are counted
  int slices = 1;
  std::vector<layer_entry> stages{};  //!< in pipeline order, each as a layer
  //! Messages, from when both their ranks are at them; 0: there is none. Between nodes there are
  //! some if it says how many ranks these have.
  suggested_hops hops{};
  bool within_nodes = false;  //!< there are some within
  bool guessed_halves = false;  //!< some stage's backwards are whole: its halves are taken as equal
  //! What else the trace has that takes time, and `stages` does not tell of: "R, ALL_REDUCE".
  std::string left_out{};

  //! @param node_ranks  of a node, in their order; 0: all are of one
  //! @throws bad_input for a stage without a forward, or with half of a backward
  explicit measured_stages(const measured_trace& trace, int node_ranks = 0);
};

}  // namespace stretto::tool
