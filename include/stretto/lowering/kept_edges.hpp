#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/program_sound.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::lowering {

//! That an order of issue keeps the edges of the graph as it was before a policy cut it, whichever
//! edges the policy has left: on one stream no other rule would miss them.
//! @param whole  what `graph` is a cut of (is_cut_of)
//! @param order  has each of `graph`'s nodes once
//! @param jobs   as of write_sequence
//! @return fault::unsound_program with the op that stands before one that it needs
constexpr verdict keeps_edges(const op_graph& whole, const op_graph& graph,
                              std::span<const std::int32_t> order, std::span<const program> jobs) {
  const auto index = [](std::int64_t at) { return static_cast<std::size_t>(at); };
  // Of each op the first node, and behind it where its pieces stand, by their numbers.
  std::vector<std::int32_t> first = filled<std::int32_t>(whole.nodes.size());
  for (std::size_t op = 1; op < first.size(); ++op)
    first[op] = first[op - 1] + graph.nodes[index(first[op - 1])].pieces;
  std::vector<std::int32_t> op_of = filled<std::int32_t>(graph.nodes.size());
  for (std::size_t op = 0; op < first.size(); ++op)
    for (std::int32_t at = 0; at < graph.nodes[index(first[op])].pieces; ++at)
      op_of[index(first[op] + at)] = static_cast<std::int32_t>(op);
  std::vector<std::int32_t> place = filled<std::int32_t>(graph.nodes.size(), -1);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const op_node& part = graph.nodes[index(order[at])];
    if (part.piece < 0 || part.piece >= part.pieces) continue;  // rule cut says so
    place[index(first[index(op_of[index(order[at])])] + part.piece)] =
        static_cast<std::int32_t>(at);
  }
  for (const op_edge& edge : whole.edges) {
    const std::int32_t before = first[index(edge.before)];
    const std::int32_t after = first[index(edge.after)];
    const op_node& user = graph.nodes[index(after)];
    const int makers = graph.nodes[index(before)].pieces;
    const bool by_rows = follow_by_rows(edge, whole.nodes[index(edge.before)], makers,
                                        whole.nodes[index(edge.after)], user.pieces);
    for (std::int32_t piece = 0; piece < user.pieces; ++piece) {
      // Pieces of an op come in order (rule cut): with the last all are over.
      const std::int32_t needed = before + (by_rows ? piece : makers - 1);
      if (place[index(needed)] <= place[index(after + piece)]) continue;
      const program& job = jobs[index(user.job)];
      return stretto::detail::refuse_op(reason::op_needs_earlier, job, user.op - job.first_op);
    }
  }
  return {};
}

}  // namespace stretto::lowering
