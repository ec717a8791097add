#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/op_graph.hpp"

namespace stretto::overlap {

//! The order of the programs themselves.
constexpr std::vector<std::int32_t> program_order(const op_graph& graph) {
  std::vector<std::int32_t> order;
  for (std::int32_t node = 0; node < graph.size(); ++node) order.push_back(node);
  return order;
}

//! Everything on the stream that computes: no overlap at all. Keeps what it costs.
constexpr op_graph on_one_stream(op_graph graph) {
  for (op_node& node : graph.nodes) node.stream = 0, node.holds = 0;
  return graph;
}

//! The gradient of a product's input, at once its sum over the ranks, and behind that, while it is
//! under way, the gradients of weights: every communication comes right behind the last op that it
//! needs, and computation that nothing in the job waits for is held back until an op would have to
//! wait for communication, and then is issued as long as that takes. (Megatron-LM and Paddle do so
//! for one linear layer at a time.) In a forward, where nothing can be held back, the order of the
//! program with communication issued at once.
constexpr std::vector<std::int32_t> input_gradient_first(const op_graph& graph) {
  const op_neighbours needs(graph, true);
  const op_neighbours waiting(graph, false);
  const int nodes = graph.size();
  const auto at = [&](std::int32_t node) -> const op_node& {
    return graph.nodes[static_cast<std::size_t>(node)];
  };
  std::vector<std::int32_t> order;
  order.reserve(graph.nodes.size());
  std::vector<char> issued = filled<char>(graph.nodes.size());
  std::vector<std::int32_t> held;  // computation that nobody waits for
  // Computation issued behind each collective.
  std::vector<std::int64_t> behind = filled<std::int64_t>(graph.nodes.size());
  std::vector<std::int32_t> under_way;
  const auto ready = [&](std::int32_t node) {
    for (const std::int32_t need : needs.of(node))
      if (issued[static_cast<std::size_t>(need)] == 0) return false;
    return true;
  };
  const auto issue = [&](auto&& self, std::int32_t node) -> void {
    issued[static_cast<std::size_t>(node)] = 1;
    order.push_back(node);
    if (at(node).communicates())
      under_way.push_back(node);
    else
      for (const std::int32_t other : under_way)
        behind[static_cast<std::size_t>(other)] += at(node).time;
    for (const std::int32_t next : waiting.of(node))
      if (at(next).communicates() && issued[static_cast<std::size_t>(next)] == 0 && ready(next))
        self(self, next);
  };
  const auto issue_held = [&](std::int32_t behind_of) {
    for (std::size_t one = 0; one < held.size();) {
      if (behind_of >= 0 && behind[static_cast<std::size_t>(behind_of)] >= at(behind_of).time)
        return;
      const std::int32_t node = held[one];
      if (!ready(node)) {
        ++one;
        continue;
      }
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(one));
      issue(issue, node);
    }
  };
  for (std::int32_t node = 0; node < nodes; ++node) {
    if (issued[static_cast<std::size_t>(node)] != 0) continue;
    if (!at(node).communicates() && waiting.of(node).empty() && !needs.of(node).empty()) {
      held.push_back(node);
      continue;
    }
    for (const std::int32_t need : needs.of(node))
      if (at(need).communicates()) issue_held(need);
    issue(issue, node);
  }
  issue_held(-1);
  return order;
}

}  // namespace stretto::overlap
