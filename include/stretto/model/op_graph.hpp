#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/program.hpp"

namespace stretto {

//! An op of a job, or a piece of one, as overlap policies order it.
struct op_node : op_form {
  std::int32_t op = -1;  //!< in the chain
  std::int32_t job = 0;  //!< which of the graph's jobs
  std::int16_t piece = 0;
  std::int16_t pieces = 1;

  constexpr bool operator==(const op_node&) const = default;
  //! Not on the stream where stages compute.
  constexpr bool communicates() const { return stream != 0; }
};

//! Which node must end before which begins.
struct op_edge {
  std::int32_t before = 0;
  std::int32_t after = 0;
  //! Pieces of both, cut by rows, do not follow one another row by row: something that both touch
  //! is not of rows.
  bool whole = false;

  constexpr bool operator==(const op_edge&) const = default;
};

//! Whether of two ops in so many pieces each piece of the one needs only its own rows of the other;
//! else it needs all.
constexpr bool follow_by_rows(const op_edge& edge, const op_node& before, int makers,
                              const op_node& after, int users) {
  return !edge.whole && makers == users && before.cut == pieces_of::rows &&
         after.cut == pieces_of::rows;
}

//! The ops of one job, or of jobs that run as one, and which must end before which begin. Nodes
//! stand in the order of their programs. Works in constant expressions.
struct op_graph {
  std::vector<op_node> nodes;
  std::vector<op_edge> edges;

  constexpr ~op_graph() = default;  // nvcc does not find it constexpr by itself
  constexpr int size() const { return static_cast<int>(nodes.size()); }
};

//! For each node those at the other end of its edges.
class op_neighbours {
 public:
  //! @param needs  true: what must end before it; false: what waits for it
  constexpr op_neighbours(const op_graph& graph, bool needs)
      : first_(filled<std::int32_t>(graph.nodes.size() + 1)),
        at_(filled<std::int32_t>(graph.edges.size())) {
    for (const op_edge& edge : graph.edges) ++first_[index(needs ? edge.after : edge.before) + 1];
    for (std::size_t node = 1; node < first_.size(); ++node) first_[node] += first_[node - 1];
    std::vector<std::int32_t> filled(first_);
    for (const op_edge& edge : graph.edges)
      at_[index(filled[index(needs ? edge.after : edge.before)]++)] =
          needs ? edge.before : edge.after;
  }
  constexpr ~op_neighbours() = default;  // nvcc does not find it constexpr by itself
  constexpr std::span<const std::int32_t> of(int node) const {
    const std::int32_t first = first_[index(node)];
    return {at_.data() + first, index(first_[index(node) + 1] - first)};
  }

 private:
  static constexpr std::size_t index(std::int32_t at) { return static_cast<std::size_t>(at); }
  std::vector<std::int32_t> first_;
  std::vector<std::int32_t> at_;
};

//! The graph of consecutive programs of one micro-batch, such as both halves of a backward. An op
//! comes after whoever wrote what it touches, and what it writes after whoever touched it: as the
//! order of the programs has it, whatever the order of issue will be.
constexpr op_graph graph_of(const program_chain& chain, std::span<const program> jobs) {
  op_graph made;
  const std::size_t storages = chain.buffers.size();
  const std::vector<std::int64_t> rows = chain.rows_of_storages();
  std::vector<std::int32_t> writer = filled<std::int32_t>(storages, -1);
  std::vector<std::vector<std::int32_t>> readers = filled<std::vector<std::int32_t>>(storages);
  std::int32_t job_number = 0;
  for (const program& job : jobs) {
    for (std::int32_t at = 0; at < job.op_count; ++at) {
      const std::int32_t number = job.first_op + at;
      const op& one = chain.ops[static_cast<std::size_t>(number)];
      const auto node = static_cast<std::int32_t>(made.nodes.size());
      made.nodes.push_back({one, number, job_number, 0, 1});
      const std::size_t first = made.edges.size();
      bool whole = false;
      const auto after = [&](std::int32_t before) {
        if (before < 0 || before == node) return;
        for (std::size_t edge = first; edge < made.edges.size(); ++edge)
          if (made.edges[edge].before == before) {
            made.edges[edge].whole = made.edges[edge].whole || whole;
            return;
          }
        made.edges.push_back({before, node, whole});
      };
      for (const op_use& use : chain.uses_of(one)) {
        if (use.how == touch::shape_only) continue;
        const auto storage = static_cast<std::size_t>(chain.storage_of(use.buffer));
        whole = rows[storage] == 0;
        after(writer[storage]);
        if (use.how == touch::reads) {
          readers[storage].push_back(node);
          continue;
        }
        for (const std::int32_t reader : readers[storage]) after(reader);
        readers[storage].clear();
        writer[storage] = node;
      }
    }
    ++job_number;
  }
  return made;
}

//! Jobs of different micro-batches, which have nothing in common but the streams.
constexpr op_graph side_by_side(const op_graph& one, const op_graph& other) {
  op_graph made = one;
  std::int32_t jobs = 0;
  for (const op_node& node : one.nodes)
    if (node.job >= jobs) jobs = node.job + 1;
  const auto shift = static_cast<std::int32_t>(one.nodes.size());
  for (op_node node : other.nodes) {
    node.job += jobs;
    made.nodes.push_back(node);
  }
  for (const op_edge& edge : other.edges)
    made.edges.push_back({edge.before + shift, edge.after + shift, edge.whole});
  return made;
}

}  // namespace stretto
