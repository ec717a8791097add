// Numbers of a chain, and of a cut graph, at the edges of what there is.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "stretto/model/program_sound.hpp"

namespace program_numbers {
namespace {

using stretto::job_kind;
using stretto::op_graph;
using stretto::op_node;
using stretto::program_chain;
using stretto::reads;
using stretto::reason;
using stretto::verdict;
using stretto::writes;

program_chain two_ops() {
  program_chain chain;
  const auto one = chain.buffer("one", 64);
  const auto other = chain.buffer("other", 64);
  chain.begin(job_kind::forward, 0);
  chain.add("make", {writes(one)}, {.time = 1});
  chain.add("use", {reads(one), writes(other)}, {.time = 1});
  return chain;
}

TEST_CASE("numbers one below or one beyond what there is are refused, and the last ones are not") {
  const std::pair<reason, std::function<void(program_chain&)>> cases[] = {
      {reason::unknown_buffer, [](auto& of) { of.buffers[1].storage = 2; }},
      {reason::unknown_buffer, [](auto& of) { of.buffers[1].storage = -1; }},
      {reason::unknown_buffer, [](auto& of) { of.uses[0].buffer = 2; }},
      {reason::program_of_no_chunk, [](auto& of) { of.programs[0].chunk = -1; }},
      {reason::ops_elsewhere, [](auto& of) { of.programs[0].first_op = -1; }},
      {reason::ops_elsewhere, [](auto& of) { of.programs[0].first_op = 1; }},
      {reason::ops_elsewhere, [](auto& of) { of.programs[0].op_count = -1; }},
      {reason::op_out_of_range, [](auto& of) { of.ops[1].parts = -1; }},
      {reason::unknown_buffer, [](auto& of) { of.ops[1].first_use = -1; }},
      {reason::unknown_buffer, [](auto& of) { of.ops[1].first_use = -1, of.ops[1].use_count = 0; }},
      {reason::unknown_buffer, [](auto& of) { of.ops[1].first_use = 2; }},
      {reason::unknown_buffer, [](auto& of) { of.ops[1].use_count = -1; }},
  };
  int number = 0;
  for (const auto& [why, spoil] : cases) {
    CAPTURE(number++);
    program_chain chain = two_ops();
    spoil(chain);
    CHECK(stretto::sound_program(chain).why == why);
  }
  program_chain last = two_ops();
  last.ops[0].time = stretto::job_table_view::most_time;
  last.uses[0].buffer = 1;
  CHECK(stretto::sound_program(last).ok());
  last = two_ops();
  last.begin(job_kind::backward, 0);
  for (int op = 0; op < std::numeric_limits<std::int16_t>::max(); ++op) last.add("one", {});
  CHECK(stretto::sound_program(last).ok());
  last.add("one more", {});
  CHECK(stretto::sound_program(last).why == reason::too_many_ops);
}

TEST_CASE("a graph's pieces are as many as each of them says, and its edges join nodes of it") {
  op_node node{};
  node.cut = stretto::pieces_of::result;
  node.op = 0;
  const std::vector<op_node> whole{node};
  op_graph graph;
  node.pieces = 2;
  graph.nodes = {node, node};
  graph.nodes[1].piece = 1;
  REQUIRE(stretto::is_cut_of(graph, whole));
  op_graph other = graph;
  other.nodes[1].pieces = 3;
  CHECK_FALSE(stretto::is_cut_of(other, whole));
  other = graph;
  other.nodes.pop_back();
  CHECK_FALSE(stretto::is_cut_of(other, whole));
  for (const std::int32_t beyond : {-1, 2}) {
    other = graph;
    other.edges = {{0, beyond}};
    CHECK_FALSE(stretto::is_cut_of(other, whole));
    other.edges = {{beyond, 1}};
    CHECK_FALSE(stretto::is_cut_of(other, whole));
  }
  other.edges = {{0, 1}};
  CHECK(stretto::is_cut_of(other, whole));
}

}  // namespace
}  // namespace program_numbers
