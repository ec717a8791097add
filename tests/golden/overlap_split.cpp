// Backward beside forward on abstract ops: at least as much hidden as in PaddlePaddle's split, and
// an order also where that fails.
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "stretto/lowering/streams/look_ahead.hpp"

namespace {

struct split_entry {
  std::string text;
  std::int64_t cost = 0;
  std::vector<int> backward;
  std::vector<std::int64_t> forward;
  std::vector<std::string> order;
  std::string error;
};

std::vector<split_entry> read_entries() {
  std::ifstream file(STRETTO_GOLDEN_DIR "/overlap_split.txt");
  REQUIRE(file);
  std::vector<split_entry> made;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    if (!(words >> kind) || kind == "#") continue;
    if (kind == "cost") {
      made.emplace_back();
      words >> made.back().cost;
    }
    split_entry& last = made.back();
    last.text += line + "; ";
    if (kind == "error") last.error = line;
    for (std::string word; words >> word;) {
      if (kind == "backward") last.backward.push_back(std::stoi(word));
      // A forward's all-reduces stay on the stream that computes, at no cost.
      if (kind == "forward") last.forward.push_back(std::stoll(word));
      if (kind == "order") last.order.push_back(word);
    }
  }
  return made;
}

//! Both jobs as chains: each op needs the one before it.
stretto::op_graph graph_of(const split_entry& from, std::int64_t backward_op) {
  stretto::op_graph backward;
  for (const int communicates : from.backward) {
    stretto::op_node node;
    node.time = communicates ? from.cost : backward_op;
    node.stream = communicates ? 1 : 0;
    backward.nodes.push_back(node);
  }
  stretto::op_graph forward;
  for (const std::int64_t time : from.forward) {
    stretto::op_node node;
    node.time = time;
    forward.nodes.push_back(node);
  }
  for (stretto::op_graph* chain : {&backward, &forward})
    for (std::int32_t at = 1; at < chain->size(); ++at) chain->edges.push_back({at - 1, at});
  return stretto::side_by_side(backward, forward);
}

std::vector<std::int32_t> order_of(const split_entry& from) {
  std::vector<std::int32_t> made;
  for (const std::string& chunk : from.order) {
    const std::size_t dash = chunk.find('-');
    const int shift = chunk[0] == 'f' ? static_cast<int>(from.backward.size()) : 0;
    const int end = std::stoi(chunk.substr(dash + 1));
    for (int at = std::stoi(chunk.substr(1, dash - 1)); at < end; ++at) made.push_back(shift + at);
  }
  return made;
}

TEST_CASE("no pair takes longer than by the published split, and none fails") {
  const std::vector<split_entry> entries = read_entries();
  REQUIRE(entries.size() == 34);
  int compared = 0;
  int shorter = 0;
  int failed = 0;
  for (const std::int64_t backward_op : {0, 1, 100, 400})
    for (const split_entry& one : entries) {
      INFO(one.text);
      CAPTURE(backward_op);
      const stretto::op_graph graph = graph_of(one, backward_op);
      const stretto::overlap::op_order ours = stretto::overlap::look_ahead(graph);
      std::vector<stretto::op_span> spans(graph.nodes.size());
      REQUIRE(stretto::replay_ops(graph, ours.nodes, 0, spans).ok());
      CHECK(stretto::measure_ops(graph, spans).makespan == ours.makespan);
      // What is hidden grows as the makespan falls: work is the same.
      if (!one.error.empty()) {
        CHECK(one.order.empty());
        ++failed;
        continue;
      }
      REQUIRE(stretto::replay_ops(graph, order_of(one), 0, spans).ok());
      const std::int64_t theirs = stretto::measure_ops(graph, spans).makespan;
      CHECK(ours.makespan <= theirs);
      if (ours.makespan < theirs) ++shorter;
      ++compared;
    }
  MESSAGE(compared, " compared, shorter in ", shorter, "; theirs failed in ", failed);
  CHECK(compared == 4 * 28);
  CHECK(failed == 4 * 6);
}

}  // namespace
