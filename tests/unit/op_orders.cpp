// Orders of ops on streams, against every order there is; pieces.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "stretto/lowering/streams/in_pieces.hpp"
#include "stretto/lowering/streams/input_gradient_first.hpp"
#include "stretto/lowering/streams/look_ahead.hpp"
#include "stretto/model/op_bound.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/op_replay.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "unit/op_graphs.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using op_graphs::computes;
using op_graphs::makespan;
using op_graphs::sums;
using op_graphs::two_layers;
using stretto::op_graph;
using stretto::op_node;
using stretto::op_span;
using stretto::pieces_of;
using transformer_chains::chain_of;
namespace overlap = stretto::overlap;

TEST_CASE("the input's gradient comes first, its sum at once, weights behind") {
  op_graph graph;  // the program has the weights' gradient first, the sum last
  graph.nodes = {computes(1), computes(4), computes(4), sums(4), computes(1)};
  graph.edges = {{0, 1}, {0, 2}, {2, 3}, {3, 4}};
  CHECK(overlap::input_gradient_first(graph) == std::vector<std::int32_t>{0, 2, 3, 1, 4});
  CHECK(makespan(graph, overlap::program_order(graph)) == 14);
  CHECK(makespan(graph, overlap::input_gradient_first(graph)) == 10);
  // What is held back serves a later sum where the first is hidden without it.
  const op_graph two = two_layers();
  const auto order = overlap::input_gradient_first(two);
  CHECK(order == std::vector<std::int32_t>{0, 2, 1, 3, 4, 6, 5});
}

TEST_CASE("of what is held back no more is issued behind a sum than that takes") {
  op_graph graph;  // two weights' gradients, then a sum and another one
  graph.nodes = {computes(1), computes(4), computes(4), sums(4), computes(1), sums(4), computes(1)};
  graph.edges = {{0, 1}, {0, 2}, {0, 3}, {3, 4}, {4, 5}, {5, 6}};
  CHECK(overlap::input_gradient_first(graph) == std::vector<std::int32_t>{0, 3, 1, 4, 5, 2, 6});
}

TEST_CASE("ops come after those that write what they touch, and before those that overwrite it") {
  using stretto::reads;
  using stretto::writes;
  stretto::program_chain chain;
  const auto a = chain.buffer("a", 1);
  const auto b = chain.buffer("b", 1, 1);
  const auto in_place = chain.view("a in place", a);
  chain.begin(stretto::job_kind::forward, 0);
  chain.add("make", {writes(a)});
  chain.add("read", {reads(a), writes(b)});
  chain.add("read too", {reads(a)});
  chain.add("overwrite", {writes(in_place)});
  chain.add("shape", {stretto::shape_of(a), reads(b)});
  chain.begin(stretto::job_kind::backward, 0);
  chain.add("back", {reads(a), reads(b)});
  const op_graph graph = stretto::graph_of(chain, chain.programs);
  // Of `b`, which is of rows, none is whole.
  const std::vector<stretto::op_edge> edges{{0, 1, true}, {0, 2, true}, {0, 3, true}, {1, 3, true},
                                            {2, 3, true}, {1, 4},       {3, 5, true}, {1, 5}};
  CHECK(graph.edges == edges);
  CHECK(graph.nodes[5].job == 1);
}

//! The shortest of all orders.
std::int64_t shortest(const op_graph& graph, int multiprocessors) {
  const stretto::op_neighbours needs(graph, true);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int32_t> order;
  std::vector<char> issued(graph.nodes.size());
  const auto extend = [&](auto&& self) -> void {
    if (order.size() == graph.nodes.size())
      best = std::min(best, makespan(graph, order, multiprocessors));
    for (std::int32_t node = 0; node < graph.size(); ++node) {
      if (issued[static_cast<std::size_t>(node)]) continue;
      const auto of = needs.of(node);
      if (!std::all_of(of.begin(), of.end(),
                       [&](std::int32_t need) { return issued[static_cast<std::size_t>(need)]; }))
        continue;
      issued[static_cast<std::size_t>(node)] = 1;
      order.push_back(node);
      self(self);
      order.pop_back();
      issued[static_cast<std::size_t>(node)] = 0;
    }
  };
  extend(extend);
  return best;
}

op_graph random_graph(std::mt19937& numbers, int nodes, bool holds, bool links = false) {
  const auto pick = [&](int most) {
    return static_cast<int>(numbers() % static_cast<unsigned>(most));
  };
  op_graph made;
  for (int at = 0; at < nodes; ++at) {
    made.nodes.push_back(pick(3) == 0 ? sums(1 + pick(9), holds ? 10 : 0) : computes(1 + pick(9)));
    if (pick(4) == 0) made.nodes.back().stream = static_cast<std::uint8_t>(2 * pick(2));
    if (made.nodes.back().communicates() && links)
      made.nodes.back().link = static_cast<std::uint8_t>(pick(3));
    for (int before = 0; before < at; ++before)
      if (pick(4) == 0) made.edges.push_back({before, at});
  }
  return made;
}

TEST_CASE("where all orders can be kept the result is the shortest there is") {
  std::mt19937 numbers(7);
  for (int round = 0; round < 300; ++round) {
    const op_graph graph = random_graph(numbers, 2 + round % 6, false, round % 2 == 1);
    const overlap::op_order found = overlap::look_ahead(graph, {.width = 100000});
    CHECK(found.optimal);
    CHECK(makespan(graph, found.nodes) == found.makespan);
    CHECK(found.makespan == shortest(graph, 0));
    CHECK(stretto::op_bound(graph, 0) <= found.makespan);
    // Asked for something shorter than that there is none, and for no longer one the same.
    const auto below = [&](std::int64_t time) {
      return overlap::detail::look_ahead_below(graph, {.width = 100000}, time);
    };
    CHECK(below(found.makespan).nodes.empty());
    CHECK(below(found.makespan + 1).makespan == found.makespan);
  }
}

TEST_CASE("who asks for a shorter order gets one, or none") {
  std::mt19937 numbers(10);
  int shorter = 0, none = 0;
  for (int round = 0; round < 300; ++round) {
    const bool holds = round % 2 == 1;
    const overlap::look_ahead_options with{.multiprocessors = holds ? 40 : 0, .width = 2};
    const op_graph graph = random_graph(numbers, 25, holds);
    const std::int64_t plain = makespan(graph, overlap::program_order(graph), with.multiprocessors);
    const overlap::op_order found = overlap::detail::look_ahead_below(graph, with, plain);
    ++(found.nodes.empty() ? none : shorter);
    if (found.nodes.empty()) continue;
    CHECK(found.makespan < plain);
    CHECK(makespan(graph, found.nodes, with.multiprocessors) == found.makespan);
  }
  CHECK(shorter > 200);
  CHECK(none > 5);
}

TEST_CASE("who asks for an order that is no longer has it found again, as a rule") {
  // What ranks orders that have been begun may be more than they become: it must not end them.
  std::mt19937 numbers(11);
  const overlap::look_ahead_options with{.multiprocessors = 40, .width = 100000};
  int none = 0;
  for (int round = 0; round < 400; ++round) {
    const op_graph graph = random_graph(numbers, 4 + round % 4, true);
    const auto search = [&](std::int64_t below) {
      return overlap::detail::look_ahead_search(graph, with, below).run();
    };
    const std::int64_t found = search(std::numeric_limits<std::int64_t>::max()).makespan;
    none += search(found + 1).nodes.empty();
  }
  CHECK(none < 4);
}

TEST_CASE("no order is longer than the plain ones, nor shorter than the bound") {
  std::mt19937 numbers(8);
  int optimal = 0;
  for (int round = 0; round < 300; ++round) {
    const bool holds = round % 2 == 1;
    const int multiprocessors = holds ? 40 : 0;
    const int nodes = round % 3 == 0 ? 6 : 25;
    const op_graph graph = random_graph(numbers, nodes, holds, round % 4 > 1);
    const overlap::op_order found =
        overlap::look_ahead(graph, {.multiprocessors = multiprocessors});
    CHECK(makespan(graph, found.nodes, multiprocessors) == found.makespan);
    CHECK(found.makespan <= makespan(graph, overlap::program_order(graph), multiprocessors));
    CHECK(found.makespan <= makespan(graph, overlap::input_gradient_first(graph), multiprocessors));
    CHECK(found.makespan >= stretto::op_bound(graph, multiprocessors));
    if (holds) CHECK(!found.optimal);
    if (nodes == 6) {
      const std::int64_t least = shortest(graph, multiprocessors);
      CHECK(found.makespan >= least);
      CHECK(stretto::op_bound(graph, multiprocessors) <= least);
      optimal += found.makespan == least;
    }
  }
  CHECK(optimal >= 90);  // of 100
}

TEST_CASE(
    "collectives under way are bounded when asked, and plain orders that keep it not longer") {
  std::mt19937 numbers(9);
  int plain = 0;
  int beyond = 0;
  for (int round = 0; round < 100; ++round) {
    const op_graph graph = random_graph(numbers, 20, false);
    const stretto::op_neighbours waiting(graph, false);
    const stretto::op_neighbours needs(graph, true);
    const auto under_way = [&](const std::vector<std::int32_t>& order) {
      std::vector<int> awaited(graph.nodes.size());
      int now = 0;
      int most = 0;
      for (const std::int32_t node : order) {
        for (const std::int32_t need : needs.of(node))
          if (graph.nodes[static_cast<std::size_t>(need)].communicates() &&
              --awaited[static_cast<std::size_t>(need)] == 0)
            --now;
        awaited[static_cast<std::size_t>(node)] = static_cast<int>(waiting.of(node).size());
        if (graph.nodes[static_cast<std::size_t>(node)].communicates() && !waiting.of(node).empty())
          most = std::max(most, ++now);
      }
      return most;
    };
    for (const int most : {1, 2, 3, 1000}) {
      const overlap::op_order found = overlap::look_ahead(graph, {.outstanding = most, .width = 2});
      const bool any = !found.nodes.empty();  // else an op waits for more than that
      if (any) CHECK(under_way(found.nodes) <= most);
      if (any) CHECK(overlap::most_under_way(graph, found.nodes) == under_way(found.nodes));
      for (const auto& order :
           {overlap::program_order(graph), overlap::input_gradient_first(graph)}) {
        if (under_way(order) > most) {
          ++beyond;
          continue;
        }
        CHECK(any);
        CHECK(found.makespan <= makespan(graph, order, 0));
        ++plain;
      }
    }
  }
  CHECK(plain > 100);
  CHECK(beyond > 100);
  CHECK(overlap::look_ahead(two_layers(), {.outstanding = -1}).nodes.empty());
  CHECK(overlap::look_ahead(two_layers(), {.width = 0}).nodes.empty());
}

TEST_CASE("pieces follow their rows, and do the whole work") {
  op_graph graph;
  graph.nodes = {computes(12, pieces_of::rows), sums(8, 0, pieces_of::rows),
                 computes(5, pieces_of::rows), computes(9, pieces_of::result), computes(7)};
  graph.edges = {{0, 1}, {1, 2}, {0, 3}, {2, 4}};
  const std::vector<std::int16_t> pieces{2, 2, 1, 3, 5};
  const op_graph made = overlap::cut(graph, pieces, {});
  REQUIRE(made.size() == 2 + 2 + 1 + 3 + 1);
  const auto edge = [&](int before, int after) {
    return std::count(made.edges.begin(), made.edges.end(), stretto::op_edge{before, after}) == 1;
  };
  CHECK(edge(0, 1));  // in order
  CHECK(edge(0, 2));  // by rows
  CHECK(edge(1, 3));
  CHECK(!edge(0, 3));
  CHECK(edge(3, 4));  // all rows
  CHECK(edge(1, 5));  // by result: all of what it reads, and the others follow
  CHECK(edge(5, 6));
  CHECK(edge(4, 8));
  std::int64_t work = 0;
  for (const op_node& node : made.nodes) work += node.time;
  CHECK(work == 12 + 8 + 5 + 9 + 7);
  CHECK(made.nodes[3].piece == 1);
  CHECK(made.nodes[3].pieces == 2);
  // A sum of half the rows lies behind the product of the other half.
  CHECK(makespan(graph, {0, 1, 2, 3, 4}) == 41);
  CHECK(makespan(made, {0, 2, 1, 3, 4, 5, 6, 7, 8}) == 16 + 5 + 9 + 7);
  // Every further piece costs: 2 of 12 are a launch.
  const op_graph dear = overlap::cut(graph, pieces, {.compute = 2, .communicate = 3});
  CHECK(dear.nodes[0].time + dear.nodes[1].time == 12 + 2);
  CHECK(dear.nodes[2].time + dear.nodes[3].time == 8 + 3);
  CHECK(dear.nodes[8].time == 7);
}

TEST_CASE("pieces need all pieces of an op, also by rows, where something between them has none") {
  op_graph graph;
  graph.nodes = {computes(12, pieces_of::rows), sums(8, 0, pieces_of::rows),
                 computes(5, pieces_of::rows)};
  graph.edges = {{0, 1, true}, {1, 2}};
  const std::vector<std::int16_t> pieces{2, 2, 2};
  const op_graph made = overlap::cut(graph, pieces, {});
  const std::vector<stretto::op_edge> edges{{0, 1}, {2, 3}, {4, 5}, {1, 2, true}, {2, 4}, {3, 5}};
  CHECK(made.edges == edges);
  // By two buffers, one of which has no rows, in either order.
  for (const bool first : {true, false}) {
    stretto::program_chain chain;
    const auto one = chain.buffer("one", 64, first ? 8 : 0);
    const auto other = chain.buffer("other", 64, first ? 0 : 8);
    chain.begin(stretto::job_kind::forward, 0);
    chain.add("make", {stretto::writes(one), stretto::writes(other)});
    chain.add("use", {stretto::reads(one), stretto::reads(other)});
    CHECK(stretto::graph_of(chain, chain.programs).edges ==
          std::vector<stretto::op_edge>{{0, 1, true}});
  }
  const op_graph both = stretto::side_by_side(graph, graph);
  CHECK(both.edges == std::vector<stretto::op_edge>{{0, 1, true}, {1, 2}, {3, 4, true}, {4, 5}});
}

constexpr stretto::transformer wide{.hidden = 4096,
                                    .heads = 32,
                                    .sequence = 2048,
                                    .tensor_parallel = 8,
                                    .bytes = stretto::mixed_precision};

TEST_CASE("tensor parallelism adds two sums a layer and direction, and no copies") {
  for (const bool split : {false, true})
    for (const int layers : {1, 3}) {
      stretto::transformer alone = wide;
      alone.tensor_parallel = 1;
      const auto whole = chain_of(alone, layers, split);
      const auto shared = chain_of(wide, layers, split);
      std::vector<std::string_view> names;
      std::vector<std::string_view> computing;
      int collectives = 0;
      for (const stretto::op& one : whole.ops) names.push_back(one.name);
      for (const stretto::op& one : shared.ops) {
        if (one.stream == 0)
          computing.push_back(one.name);
        else
          ++collectives;
      }
      CHECK(computing == names);
      CHECK(collectives == 4 * layers);
      CHECK(std::all_of(whole.ops.begin(), whole.ops.end(),
                        [](const stretto::op& one) { return one.stream == 0; }));
    }
}

TEST_CASE("a layer's products and sums take what a roofline says") {
  const stretto::machine one{.name = "one", .flops = 1000, .memory = 1 << 20, .link = 10};
  const auto chain = chain_of(wide, 1, false, one);
  std::int64_t products = 0;
  std::int64_t sums_time = 0;
  for (const stretto::op& each : chain.ops) (each.stream == 0 ? products : sums_time) += each.time;
  // 72 s b h^2 (1 + s / 6 h) flops a layer, forward and backward (Narayanan et al. 2021), of which
  // each rank does its share; norms and the like are next to nothing here.
  const double flops = 72.0 * 2048 * 4096 * 4096 * (1 + 2048 / (6.0 * 4096)) / 8;
  CHECK(static_cast<double>(products) == doctest::Approx(flops / 1000).epsilon(0.02));
  // Four ring all-reduces of s b h halves.
  CHECK(static_cast<double>(sums_time) ==
        doctest::Approx(4 * 2.0 * 7 / 8 * 2048 * 4096 * 2 / 10).epsilon(0.001));
  CHECK(stretto::find_machine("h200")->name == "h200");
  CHECK(stretto::find_machine("none") == nullptr);
}

constexpr std::int64_t two_sizes[] = {10, 40};
constexpr std::int64_t three_sizes[] = {4, 8, 32};
constexpr std::int64_t measured_times[] = {20, 30, 100, 75, 120, 400};
constexpr stretto::measured_kernel on_a_grid{"kernel", {two_sizes, three_sizes}, measured_times};

TEST_CASE(
    "measured kernels are exact at the grid, linear in between, never less for a larger size") {
  static_assert(on_a_grid.time({10, 8}) == 30 && on_a_grid.time({40, 32}) == 400);
  for (std::size_t row = 0; row < std::size(two_sizes); ++row)
    for (std::size_t column = 0; column < std::size(three_sizes); ++column)
      CHECK(on_a_grid.time({two_sizes[row], three_sizes[column]}) ==
            measured_times[row * std::size(three_sizes) + column]);
  CHECK(on_a_grid.time({20, 4}) == 20 + (75 - 20) / 3);
  CHECK(on_a_grid.time({10, 20}) == (30 + 100) / 2);
  CHECK(on_a_grid.time({1, 1}) == 20);             // as at the first point
  CHECK(on_a_grid.time({120, 64}) == 6 * 400);     // at the rate of the last
  CHECK(on_a_grid.time({80, 4}) == 2 * 75);
  for (std::int64_t rows = 1; rows < 100; rows += 3)
    for (std::int64_t columns = 1; columns < 80; ++columns) {
      CHECK(on_a_grid.time({rows, columns}) <= on_a_grid.time({rows + 3, columns}));
      CHECK(on_a_grid.time({rows, columns}) <= on_a_grid.time({rows, columns + 1}));
    }
}

TEST_CASE("a machine takes measured times first, and its roofline for what was not measured") {
  const stretto::measured_kernel kernels[] = {on_a_grid};
  stretto::machine on{.name = "one", .flops = 10, .memory = 2, .link = 1, .latency = 5};
  const stretto::op_work product{.flops = 1000, .product = {10, 8}, .products = 3};
  CHECK(on.time(product) == 100);
  on.kernels = kernels;
  CHECK(on.time(product) == 100);  // no kernel of that name
  stretto::measured_kernel known[] = {on_a_grid, on_a_grid};
  known[0].name = "product";
  known[1].name = "sum";
  on.kernels = known;
  CHECK(on.time(product) == 3 * 30);
  CHECK(on.time(stretto::op_work{.message = 40}) == 75 + 5);
  CHECK(on.time(stretto::op_work{.bytes = 60}) == 30);
  CHECK(on.kernel_time({"product", {40, 8}, 2}) == 240);
  CHECK(on.kernel_time({"none", {40, 8}}) == 0);
}

TEST_CASE("pieces are never longer than whole ops, and hide most of what can be hidden") {
  const stretto::machine& on = *stretto::find_machine("h200");
  const auto chain = chain_of(wide, 1, false, on);
  const auto job = [&](std::size_t at) {
    return stretto::graph_of(chain, std::span(chain.programs).subspan(at, 1));
  };
  const op_graph pair = stretto::side_by_side(job(1), job(0));
  const overlap::piece_costs costs{on.launch, on.launch + on.latency};
  for (const int multiprocessors : {0, 132}) {
    const overlap::look_ahead_options with{.multiprocessors = multiprocessors};
    const auto whole = overlap::look_ahead(pair, with);
    const auto cut = overlap::in_pieces(pair, chain, costs, with);
    CHECK(cut.order.makespan <= whole.makespan);
    CHECK(makespan(cut.graph, cut.order.nodes, multiprocessors) == cut.order.makespan);
    stretto::op_report report;
    for (const op_node& node : pair.nodes)
      (node.communicates() ? report.communicates : report.computes) += node.time;
    report.makespan = cut.order.makespan;
    const double hidden = report.hidden();
    report.makespan = stretto::op_bound(pair, multiprocessors);
    CHECK(hidden >= 0.95 * report.hidden());
  }
}

TEST_CASE("ops in pieces take no longer than whole, or than all in as many") {
  stretto::machine on = *stretto::find_machine("h100");
  on.network = 50;
  // DeepSeek-V3's, where cutting whole ops one kind after the other leads to a longer order.
  stretto::transformer experts = transformer_chains::deepseek_v3;
  experts.dense_layers = 0;
  experts.experts.parallel = 64;
  experts.experts.nodes = 4;
  for (const stretto::transformer& model : {wide, experts}) {
    const auto chain = chain_of(model, 1, false, on);
    const overlap::piece_costs costs{on.launch, on.launch + on.latency};
    const overlap::look_ahead_options with{.multiprocessors = on.multiprocessors};
    for (std::size_t job = 0; job < 2; ++job) {
      const op_graph graph = stretto::graph_of(chain, std::span(chain.programs).subspan(job, 1));
      const std::int64_t takes = overlap::in_pieces(graph, chain, costs, with).order.makespan;
      CHECK(takes <= overlap::look_ahead(graph, with).makespan);
      for (const std::int16_t count : {std::int16_t{2}, std::int16_t{4}})
        CHECK(takes <= overlap::in_equal_pieces(graph, count, costs, with).order.makespan);
    }
  }
}

// The same at compile time.
constexpr std::int64_t ordered = overlap::look_ahead(two_layers(), {.width = 1000}).makespan;
static_assert(ordered == 21);
static_assert(overlap::look_ahead(two_layers(), {.width = 1000}).optimal);
constexpr auto layer_at_compile_time = [] {
  const stretto::machine& on = *stretto::find_machine("h200");
  const std::int32_t layers[] = {1, 1, 1};
  const auto chain =
      stretto::transformer_chain(wide, {.ranks = 3, .chunks = 1}, 1,
                                 stretto::transformer_parts(layers), false, on);
  const op_graph backward = stretto::graph_of(chain, std::span(chain.programs).subspan(1, 1));
  const overlap::op_order order = overlap::look_ahead(backward, {.width = 2});
  return order.makespan;
}();

TEST_CASE("both times give the same order") {
  const auto chain = chain_of(wide, 1, false, *stretto::find_machine("h200"));
  const op_graph backward = stretto::graph_of(chain, std::span(chain.programs).subspan(1, 1));
  CHECK(overlap::look_ahead(backward, {.width = 2}).makespan == layer_at_compile_time);
}

}  // namespace
