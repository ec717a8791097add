#pragma once

#include <cstdint>

#include "stretto/model/op_graph.hpp"
#include "stretto/model/stream_type.hpp"

namespace stretto {

//! What no order of these ops, and no cutting of them, gets below: every stream's work, and every
//! link's, and what multiprocessors do together, of which communication keeps its own as long as it
//! runs (its time times what it holds is lost to computation). @param multiprocessors see op_times
constexpr std::int64_t op_bound(const op_graph& graph, int multiprocessors) {
  std::int64_t work[max_streams]{};
  std::int64_t carried[max_links + 1]{};
  std::int64_t lost = 0;
  for (const op_node& node : graph.nodes) {
    work[node.stream] += node.time;
    if (node.link > 0) carried[node.link] += node.time;
    if (node.communicates()) lost += node.time * node.holds;
  }
  std::int64_t bound = 0;
  for (const std::int64_t one : work)
    if (one > bound) bound = one;
  for (const std::int64_t one : carried)
    if (one > bound) bound = one;
  if (multiprocessors > 0) {
    const std::int64_t shared = work[0] + (lost + multiprocessors - 1) / multiprocessors;
    if (shared > bound) bound = shared;
  }
  return bound;
}

}  // namespace stretto
