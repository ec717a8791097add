#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "stretto/model/op_graph.hpp"
#include "stretto/model/op_replay.hpp"

//! Graphs of ops put together by hand, and when they run.
namespace op_graphs {

using stretto::op_graph;
using stretto::op_node;
using stretto::op_span;
using stretto::pieces_of;

constexpr op_node computes(std::int64_t time, pieces_of cut = pieces_of::whole) {
  op_node node;
  node.time = time;
  node.cut = cut;
  return node;
}
constexpr op_node sums(std::int64_t time, int holds = 0, pieces_of cut = pieces_of::whole) {
  op_node node = computes(time, cut);
  node.stream = 1;
  node.holds = static_cast<std::int16_t>(holds);
  return node;
}

// The backward of two column-parallel layers: input gradient, its sum, weight gradient.
constexpr op_graph two_layers() {
  op_graph made;
  made.nodes = {computes(4), computes(4), sums(6), computes(1), computes(4), computes(4), sums(6)};
  made.edges = {{0, 2}, {0, 1}, {2, 3}, {3, 4}, {4, 5}, {4, 6}};
  return made;
}

inline std::vector<op_span> replayed(const op_graph& graph, const std::vector<std::int32_t>& order,
                              int multiprocessors = 0) {
  std::vector<op_span> spans(graph.nodes.size());
  REQUIRE(stretto::replay_ops(graph, order, multiprocessors, spans).ok());
  return spans;
}
inline std::int64_t makespan(const op_graph& graph, const std::vector<std::int32_t>& order,
                      int multiprocessors = 0) {
  return stretto::measure_ops(graph, replayed(graph, order, multiprocessors)).makespan;
}

}  // namespace op_graphs
