#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/stream_type.hpp"

namespace stretto {

//! What no order of these ops, and no cutting of them, gets below: every stream's work, and what
//! multiprocessors do together, of which communication keeps its own as long as it runs (its time
//! times what it holds is lost to computation). @param multiprocessors see op_times
constexpr std::int64_t op_bound(const op_graph& graph, int multiprocessors) {
  std::int64_t work[max_streams]{};
  std::int64_t lost = 0;
  for (const op_node& node : graph.nodes) {
    work[node.stream] += node.time;
    if (node.communicates()) lost += node.time * node.holds;
  }
  std::int64_t bound = 0;
  for (const std::int64_t one : work)
    if (one > bound) bound = one;
  if (multiprocessors > 0) {
    const std::int64_t shared = work[0] + (lost + multiprocessors - 1) / multiprocessors;
    if (shared > bound) bound = shared;
  }
  return bound;
}

//! The longest way through the ops as they are: no order of whole ops is shorter.
constexpr std::int64_t op_critical_path(const op_graph& graph) {
  std::vector<std::int64_t> end = filled<std::int64_t>(graph.nodes.size());
  std::int64_t longest = 0;
  const op_neighbours needs(graph, true);
  for (std::int32_t node = 0; node < graph.size(); ++node) {
    std::int64_t start = 0;
    for (const std::int32_t need : needs.of(node))
      if (end[static_cast<std::size_t>(need)] > start) start = end[static_cast<std::size_t>(need)];
    const auto at = static_cast<std::size_t>(node);
    end[at] = start + graph.nodes[at].time;
    if (end[at] > longest) longest = end[at];
  }
  return longest;
}

}  // namespace stretto
