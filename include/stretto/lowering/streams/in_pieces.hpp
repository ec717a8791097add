#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/lowering/streams/look_ahead.hpp"
#include "stretto/model/op_graph.hpp"

namespace stretto::overlap {

//! What a cut costs: every piece beyond an op's first takes so much longer.
struct piece_costs {
  std::int64_t compute = 0;
  std::int64_t communicate = 0;
};

//! Cuts ops into equal pieces, which run in order. Where both ends of an edge are cut by rows into
//! the same number, and so is what joins them, a piece needs only its own rows; else it needs all.
//! @param pieces  by node; what may not be cut has one, and what has fewer parts that many
constexpr op_graph cut(const op_graph& graph, std::span<const std::int16_t> pieces,
                       const piece_costs& costs) {
  op_graph made;
  std::vector<std::int32_t> first = filled<std::int32_t>(graph.nodes.size());
  const auto count_of = [&](std::size_t node) {
    const bool whole = graph.nodes[node].cut == pieces_of::whole || graph.nodes[node].pieces > 1;
    if (whole || pieces[node] < 1) return std::int16_t{1};
    const std::int32_t most = graph.nodes[node].parts;
    return most > 0 && pieces[node] > most ? static_cast<std::int16_t>(most) : pieces[node];
  };
  for (std::size_t at = 0; at < graph.nodes.size(); ++at) {
    const op_node& node = graph.nodes[at];
    const std::int16_t count = count_of(at);
    first[at] = static_cast<std::int32_t>(made.nodes.size());
    const std::int64_t more = node.communicates() ? costs.communicate : costs.compute;
    // What a launch takes is in the whole op's time once already.
    const std::int64_t shared = node.time > more ? node.time - more : 0;
    for (std::int16_t piece = 0; piece < count; ++piece) {
      op_node part = node;
      if (count > 1) {
        part.time = shared * (piece + 1) / count - shared * piece / count + (node.time - shared);
        part.piece = piece;
        part.pieces = count;
      }
      if (piece > 0) {
        const auto here = static_cast<std::int32_t>(made.nodes.size());
        made.edges.push_back({here - 1, here});
      }
      made.nodes.push_back(part);
    }
  }
  for (const op_edge& edge : graph.edges) {
    const auto before = static_cast<std::size_t>(edge.before);
    const auto after = static_cast<std::size_t>(edge.after);
    const std::int16_t makers = count_of(before);
    const std::int16_t users = count_of(after);
    const bool by_rows =
        follow_by_rows(edge, graph.nodes[before], makers, graph.nodes[after], users);
    // Pieces run in order: the last of them comes after all.
    for (std::int16_t piece = 0; piece < users; ++piece)
      if (by_rows || piece == 0)
        made.edges.push_back(
            {first[before] + (by_rows ? piece : makers - 1), first[after] + piece, edge.whole});
  }
  return made;
}

//! A graph whose ops may be cut, and the order in which its pieces are issued.
struct cut_order {
  op_graph graph;
  op_order order;
};

namespace detail {

//! Which ops are cut together: those of one name in one job, and what hangs on them by rows.
struct cut_choice {
  std::int32_t op = 0;  // a node of the kind
  int reach = 0;        // 0: itself; 1: and what it needs; 2: and what waits for it
};

constexpr void mark(const op_graph& graph, const program_chain& chain, const cut_choice& choice,
                    std::int16_t count, std::vector<std::int16_t>& pieces) {
  const op_node& kind = graph.nodes[static_cast<std::size_t>(choice.op)];
  const auto name_of = [&](const op_node& node) {
    return chain.ops[static_cast<std::size_t>(node.op)].name;
  };
  std::vector<char> marked = filled<char>(graph.nodes.size());
  for (std::size_t at = 0; at < graph.nodes.size(); ++at)
    if (graph.nodes[at].job == kind.job && name_of(graph.nodes[at]) == name_of(kind))
      marked[at] = 1, pieces[at] = count;
  for (const op_edge& edge : graph.edges) {
    const auto before = static_cast<std::size_t>(edge.before);
    const auto after = static_cast<std::size_t>(edge.after);
    if (choice.reach > 0 && marked[after] == 1 && graph.nodes[before].cut == pieces_of::rows)
      pieces[before] = count;
    if (choice.reach > 1 && marked[before] == 1 && graph.nodes[after].cut == pieces_of::rows)
      pieces[after] = count;
  }
}

//! Cuts further, as long as that shortens the whole by a thousandth.
//! @param best    an order of ops that are cut in so many `pieces` already
//! @param counts  of pieces that are tried
constexpr cut_order cut_further(const op_graph& graph, const program_chain& chain,
                                const piece_costs& costs, const look_ahead_options& with,
                                cut_order best, std::vector<std::int16_t> pieces,
                                std::span<const std::int16_t> counts) {
  while (true) {
    std::vector<std::int16_t> chosen = pieces;
    cut_order found = best;
    for (std::int32_t op = 0; op < graph.size(); ++op) {
      const op_node& kind = graph.nodes[static_cast<std::size_t>(op)];
      bool seen = kind.cut == pieces_of::whole;
      for (std::int32_t earlier = 0; earlier < op && !seen; ++earlier) {
        const op_node& other = graph.nodes[static_cast<std::size_t>(earlier)];
        seen = other.job == kind.job && chain.ops[static_cast<std::size_t>(other.op)].name ==
                                            chain.ops[static_cast<std::size_t>(kind.op)].name;
      }
      if (seen) continue;
      for (int reach = 0; reach <= (kind.communicates() ? 2 : 0); ++reach)
        for (const std::int16_t count : counts) {
          std::vector<std::int16_t> tried = pieces;
          mark(graph, chain, {op, reach}, count, tried);
          if (tried == pieces) continue;
          cut_order made{cut(graph, viewed(tried), costs), {}};
          made.order = look_ahead_below(made.graph, with, found.order.makespan);
          if (made.order.nodes.empty()) continue;
          found = made;
          chosen = tried;
        }
    }
    if (found.order.makespan >= best.order.makespan - best.order.makespan / 1000) return best;
    best = found;
    pieces = chosen;
  }
}

}  // namespace detail

//! Cuts all that may be cut into so many pieces, and looks ahead.
constexpr cut_order in_equal_pieces(const op_graph& graph, std::int16_t pieces,
                                    const piece_costs& costs, const look_ahead_options& with = {}) {
  const std::vector<std::int16_t> equal = filled<std::int16_t>(graph.nodes.size(), pieces);
  cut_order made{cut(graph, viewed(equal), costs), {}};
  made.order = look_ahead(made.graph, with);
  return made;
}

//! Cuts ops where that lets more communication lie behind computation, by what the pieces would
//! take: kind by kind of op, alone, or with what makes its input and what takes its result so that
//! their rows follow one another, into 2, 4 or 8 pieces, the best first, as long as one shortens
//! the whole by a thousandth. Where all in two or four pieces are shorter than that, from these on,
//! some of which are then made whole again. Never longer than without, nor than all in as many.
//! @param chain  that the graph's ops are of
constexpr cut_order in_pieces(const op_graph& graph, const program_chain& chain,
                              const piece_costs& costs, const look_ahead_options& with = {}) {
  constexpr std::int16_t counts[] = {1, 2, 4, 8};
  cut_order best = detail::cut_further(graph, chain, costs, with, {graph, look_ahead(graph, with)},
                                       filled<std::int16_t>(graph.nodes.size(), 1),
                                       std::span(counts).subspan(1));
  for (const std::int16_t start : {std::int16_t{2}, std::int16_t{4}}) {
    const cut_order equal = in_equal_pieces(graph, start, costs, with);
    if (equal.order.nodes.empty() || equal.order.makespan >= best.order.makespan) continue;
    best = detail::cut_further(graph, chain, costs, with, equal,
                               filled<std::int16_t>(graph.nodes.size(), start), counts);
  }
  return best;
}

}  // namespace stretto::overlap
