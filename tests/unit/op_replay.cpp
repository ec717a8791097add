// When ops run that are issued in an order: by hand, and by what each instant finds beside it.
#include "stretto/model/op_replay.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "stretto/lowering/streams/input_gradient_first.hpp"
#include "stretto/model/op_bound.hpp"
#include "stretto/model/op_graph.hpp"
#include "unit/op_graphs.hpp"

namespace {

using op_graphs::computes;
using op_graphs::makespan;
using op_graphs::replayed;
using op_graphs::sums;
using op_graphs::two_layers;
using stretto::op_graph;
using stretto::op_node;
using stretto::op_span;
namespace overlap = stretto::overlap;

TEST_CASE("streams run side by side, each in the order of issue") {
  const op_graph graph = two_layers();
  const auto spans = replayed(graph, overlap::program_order(graph));
  CHECK(spans ==
        std::vector<op_span>{{0, 4}, {4, 8}, {4, 10}, {10, 11}, {11, 15}, {15, 19}, {15, 21}});
  const auto report = stretto::measure_ops(graph, spans);
  CHECK(report.makespan == 21);
  CHECK(report.computes == 17);
  CHECK(report.communicates == 12);
  CHECK(report.hidden() == doctest::Approx(8.0 / 12));
  CHECK(makespan(overlap::on_one_stream(graph), overlap::program_order(graph)) == 29);
}

TEST_CASE("communication that holds multiprocessors slows what begins beside it") {
  op_graph graph;
  graph.nodes = {computes(10), sums(5, 20), computes(8)};
  graph.edges = {{0, 1}};
  // The sum is there before the second product, which has 80 of 100 for all of its time.
  CHECK(replayed(graph, {0, 1, 2}, 100) == std::vector<op_span>{{0, 10}, {10, 15}, {10, 20}});
  // The second product took them all: the sum waits for its end.
  CHECK(replayed(graph, {0, 2, 1}, 100) == std::vector<op_span>{{0, 10}, {18, 23}, {10, 18}});
  CHECK(replayed(graph, {0, 2, 1}, 0) == std::vector<op_span>{{0, 10}, {10, 15}, {10, 18}});
  // What was issued behind communication begins no sooner, whatever it could do meanwhile.
  op_graph late;
  late.nodes = {computes(10), sums(5, 20), sums(5, 20), computes(8)};
  late.edges = {{0, 1}};
  CHECK(replayed(late, {0, 1, 2, 3}, 100) ==
        std::vector<op_span>{{0, 10}, {10, 15}, {15, 20}, {15, 25}});
}

TEST_CASE("a link carries one message at a time, whatever streams they are on") {
  op_graph graph;
  graph.nodes = {sums(5), sums(7), sums(3)};
  graph.nodes[1].stream = 2, graph.nodes[2].stream = 3;
  graph.nodes[0].link = graph.nodes[1].link = 1, graph.nodes[2].link = 2;
  CHECK(replayed(graph, {0, 1, 2}) == std::vector<op_span>{{0, 5}, {5, 12}, {0, 3}});
  CHECK(replayed(graph, {1, 0, 2}) == std::vector<op_span>{{7, 12}, {0, 7}, {0, 3}});
  CHECK(stretto::op_bound(graph, 0) == 12);
  graph.nodes[1].link = 0;
  CHECK(stretto::op_bound(graph, 0) == 7);
  graph.nodes[1].link = stretto::max_links + 1;
  std::vector<op_span> spans(3);
  const std::vector<std::int32_t> order{0, 1, 2};
  CHECK(stretto::replay_ops(graph, order, 0, spans).why == stretto::reason::op_out_of_range);
}

TEST_CASE("beside what computes there is no more communication than it left multiprocessors for") {
  // The second message on the first stream waits for the product; what comes then on the other one
  // must not lie beside it all the same.
  op_graph known;
  known.nodes = {sums(50, 8), computes(100), sums(50, 8), sums(50, 8)};
  known.nodes[3].stream = 6;
  const std::vector<op_span> there = replayed(known, {0, 1, 2, 3}, 132);
  CHECK(there[3].start >= 50);
  std::mt19937 numbers(21);
  const auto below = [&](int end) {
    return static_cast<int>(numbers() % static_cast<unsigned>(end));
  };
  constexpr int most = 40;
  int beside = 0;
  for (int round = 0; round < 3000; ++round) {
    op_graph graph;
    const int count = 2 + below(12);
    std::vector<std::int32_t> order;
    for (int at = 0; at < count; ++at) {
      op_node node = below(2) == 0 ? computes(1 + below(60)) : sums(1 + below(40), below(13));
      if (node.stream != 0) {
        node.stream = static_cast<std::uint8_t>(1 + below(3));
        node.link = static_cast<std::uint8_t>(below(3));
      }
      graph.nodes.push_back(node);
      if (at > 0 && below(4) == 0) graph.edges.push_back({below(at), at});
      order.push_back(at);
    }
    const std::vector<op_span> spans = replayed(graph, order, most);
    for (int one = 0; one < count; ++one) {
      const op_node& node = graph.nodes[static_cast<std::size_t>(one)];
      const op_span& mine = spans[static_cast<std::size_t>(one)];
      // What each instant at which something begins finds beside it.
      for (int begins = 0; begins < count; ++begins) {
        const std::int64_t now =
            std::max(mine.start, spans[static_cast<std::size_t>(begins)].start);
        if (now >= mine.end) continue;
        int held = 0;
        for (int other = 0; other < count; ++other) {
          const op_node& another = graph.nodes[static_cast<std::size_t>(other)];
          const op_span& its = spans[static_cast<std::size_t>(other)];
          if (other == one || now < its.start || now >= its.end) continue;
          REQUIRE((node.link == 0 || another.link != node.link));
          if (another.communicates()) held += another.holds;
        }
        if (node.communicates() || held == 0) continue;
        // It took as long as what it had of them makes it.
        REQUIRE(mine.end - mine.start >= (node.time * most + most - held - 1) / (most - held));
        ++beside;
      }
    }
    std::int64_t makespan = 0;
    for (const op_span& one : spans) makespan = std::max(makespan, one.end);
    REQUIRE(makespan >= stretto::op_bound(graph, most));
  }
  CHECK(beside > 1000);
}

TEST_CASE("an order that is none is refused, by its place") {
  const op_graph graph = two_layers();
  std::vector<op_span> spans(graph.nodes.size());
  const auto answer = [&](std::vector<std::int32_t> order) {
    return stretto::replay_ops(graph, order, 0, spans);
  };
  CHECK(answer({0, 1, 3, 2, 4, 5, 6}).why == stretto::reason::op_needs_earlier);
  CHECK(answer({0, 1, 3, 2, 4, 5, 6}).step == 2);
  CHECK(answer({0, 1, 2, 2, 4, 5, 6}).why == stretto::reason::duplicate);
  CHECK(answer({0, 1, 2, 3, 4, 5}).why == stretto::reason::missing);
  CHECK(answer({0, 1, 2, 3, 4, 5, 7}).why == stretto::reason::out_of_range);
  CHECK(answer({-1}).why == stretto::reason::out_of_range);
  CHECK(stretto::replay_ops(graph, overlap::program_order(graph), 0, std::span(spans).first(3))
            .what == stretto::fault::capacity);
}

}  // namespace
