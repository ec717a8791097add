#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/op_graph.hpp"

namespace stretto::overlap {

//! The most communication that an order of issue has under way at once: issued, and its results
//! still awaited by something that is not. What nothing waits for does not count.
//! @param order  of all nodes, each behind what it needs
constexpr int most_under_way(const op_graph& graph, std::span<const std::int32_t> order) {
  const op_neighbours needs(graph, true);
  const op_neighbours waiting(graph, false);
  std::vector<std::int32_t> awaited = filled<std::int32_t>(graph.nodes.size());
  int now = 0;
  int most = 0;
  for (const std::int32_t node : order) {
    for (const std::int32_t need : needs.of(node))
      if (--awaited[static_cast<std::size_t>(need)] == 0 &&
          graph.nodes[static_cast<std::size_t>(need)].communicates())
        --now;
    awaited[static_cast<std::size_t>(node)] = static_cast<std::int32_t>(waiting.of(node).size());
    if (graph.nodes[static_cast<std::size_t>(node)].communicates() && !waiting.of(node).empty())
      if (++now > most) most = now;
  }
  return most;
}

}  // namespace stretto::overlap
