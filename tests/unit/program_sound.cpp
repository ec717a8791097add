#include "stretto/model/program_sound.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "stretto/lowering/streams/in_pieces.hpp"
#include "stretto/lowering/streams/serial.hpp"
#include "stretto/memory/liveness.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace {

using stretto::fault;
using stretto::job_kind;
using stretto::op_graph;
using stretto::program_chain;
using stretto::reads;
using stretto::reason;
using stretto::verdict;
using stretto::writes;

//! A forward that sends what it computes to others and back, and its backward.
constexpr program_chain small_chain() {
  program_chain chain;
  const auto kept = chain.buffer("kept", 64);
  const auto local = chain.buffer("local", 128);
  chain.begin(job_kind::forward, 0);
  chain.add("make", {writes(local), writes(kept)}, {.time = 1});
  chain.add("sum", {reads(local), writes(local)}, {.time = 1, .stream = 1, .collective = true});
  chain.add("use", {reads(local)}, {.time = 1});
  chain.begin(job_kind::backward, 0);
  chain.add("back", {reads(kept)}, {.time = 2});
  return chain;
}
static_assert(stretto::sound_program(small_chain()).ok());

struct spoilt_ops {
  std::function<void(program_chain&)> spoil = [](program_chain&) {};
  std::function<void(op_graph&)> cut = [](op_graph&) {};

  program_chain programs(int) const {
    program_chain made = small_chain();
    spoil(made);
    return made;
  }
  std::vector<std::int32_t> order(op_graph& graph) const {
    cut(graph);
    std::vector<std::int32_t> all;
    for (std::int32_t node = 0; node < graph.size(); ++node) all.push_back(node);
    return all;
  }
};

//! Of a step of two ranks.
verdict expanded_answer(const spoilt_ops& ops) {
  const stretto::job_table table(2, 1);
  const stretto::planned base(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 2},
                              table.view(), stretto::overlap::serial{});
  REQUIRE(base.answer().ok());
  const stretto::stream_info streams[] = {{"compute", 0}, {"sums", 0}};
  const stretto::expanded made(base, streams, ops);
  return made.answer();
}

TEST_CASE("a chain whose numbers lead nowhere is refused, with the op or the buffer") {
  REQUIRE(expanded_answer({}).ok());
  const struct {
    const char* what;
    std::function<void(program_chain&)> spoil;
    reason why;
    int step;
    std::int64_t amount;
  } cases[] = {
      {"bytes below 0", [](auto& of) { of.buffers[1].bytes = -128; }, reason::buffer_out_of_range,
       -1, 1},
      {"bytes that overflow", [](auto& of) { of.buffers[0].bytes = std::int64_t{1} << 62; },
       reason::buffer_out_of_range, -1, 0},
      {"bytes that are too many together",
       [](auto& of) {
         for (int more = 0; more < 1 << 14; ++more) of.buffer("more", std::int64_t{1} << 46);
       },
       reason::buffer_out_of_range, -1, 2 + (1 << 14) - 1},
      {"rows below 0", [](auto& of) { of.buffers[1].rows = -1; }, reason::buffer_out_of_range, -1,
       1},
      {"rows beyond counting", [](auto& of) { of.buffers[1].rows = std::int64_t{1} << 62; },
       reason::buffer_out_of_range, -1, 1},
      {"no ops", [](auto& of) { of.begin(job_kind::backward_weight, 0); }, reason::no_ops, -1, -1},
      {"a view of nothing", [](auto& of) { of.view("view", 99); }, reason::unknown_buffer, -1, 2},
      {"bytes of a view's",
       [](auto& of) {
         of.view("view", 0);
         of.buffers[1].storage = 2;
       },
       reason::unknown_buffer, -1, 1},
      {"a buffer too many", [](auto& of) { of.uses[2].buffer = 99; }, reason::unknown_buffer, 1,
       99},
      {"a buffer below 0", [](auto& of) { of.uses[3].buffer = -1; }, reason::unknown_buffer, 1, -1},
      {"uses beyond the last", [](auto& of) { of.ops[2].use_count = 9; }, reason::unknown_buffer, 2,
       -1},
      {"a time below 0", [](auto& of) { of.ops[0].time = -5; }, reason::op_out_of_range, 0, -1},
      {"a time too long", [](auto& of) { of.ops[0].time = std::int64_t{1} << 47; },
       reason::op_out_of_range, 0, -1},
      {"multiprocessors below 0", [](auto& of) { of.ops[1].holds = -3; }, reason::op_out_of_range,
       1, -1},
      {"a stream too many", [](auto& of) { of.ops[1].stream = 8; }, reason::no_such_stream, 1, -1},
      {"a second program",
       [](auto& of) {
         of.begin(job_kind::forward, 0);
         of.add("again", {});
       },
       reason::program_twice, -1, -1},
      {"a message's program", [](auto& of) { of.begin(job_kind::send_forward, 0); },
       reason::program_twice, -1, -1},
      {"ops beyond the last", [](auto& of) { of.programs[1].op_count = 2; }, reason::ops_elsewhere,
       -1, -1},
      {"an op of two programs", [](auto& of) { of.programs[1].first_op = 2; },
       reason::ops_elsewhere, 0, -1},
      {"too many ops",
       [](auto& of) {
         of.begin(job_kind::backward_weight, 0);
         for (int op = 0; op < 40000; ++op) of.add("one", {});
       },
       reason::too_many_ops, 32767, -1},
  };
  for (const auto& one : cases) {
    INFO(one.what);
    program_chain chain = small_chain();
    one.spoil(chain);
    const verdict found = stretto::sound_program(chain);
    CHECK(found.what == fault::unsound_program);
    CHECK(found.why == one.why);
    CHECK(found.step == one.step);
    CHECK(found.amount == one.amount);
    std::vector<stretto::job_cost> costs(chain.programs.size());
    CHECK(stretto::memory::measure_chain(chain, costs) == found);
    const std::string text(to_text(found).view());
    CHECK((text.find("(buffer") != std::string::npos) == (one.amount >= 0));
    verdict expanded = expanded_answer({.spoil = one.spoil});
    CHECK(expanded.rank == 0);
    expanded.rank = -1;
    CHECK(expanded == found);
  }
}

TEST_CASE(
    "there is no op before the first job, and those of a job that is taken out are nobody's") {
  program_chain early;
  CHECK_THROWS_AS(early.add("early", {}), std::logic_error);
  CHECK(early.ops.empty());
  program_chain forward = small_chain();
  forward.programs.pop_back();
  CHECK(stretto::sound_program(forward).ok());
}

TEST_CASE("a graph that a policy has left is of the job's ops") {
  const auto why = [](const std::function<void(op_graph&)>& cut) {
    const verdict found = expanded_answer({.cut = cut});
    CHECK(found.what == fault::unsound_program);
    return found.why;
  };
  CHECK(why([](op_graph& graph) { graph.nodes[0].op = 77; }) == reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.nodes[0].op = -1; }) == reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.nodes[0].job = 1; }) == reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.nodes[1].op = graph.nodes[0].op; }) ==
        reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.nodes.push_back(graph.nodes[0]); }) ==
        reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.nodes.pop_back(), graph.edges.clear(); }) ==
        reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.nodes[1].collective ^= true; }) == reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.nodes[0].pieces = 2; }) == reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.nodes[0].pieces = 0; }) == reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.nodes[0].cut = stretto::pieces_of::rows; }) ==
        reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.edges[0].before = 99; }) == reason::graph_of_others);
  CHECK(why([](op_graph& graph) { graph.edges[0].after = -1; }) == reason::graph_of_others);
}

//! What the ops of a forward make of one another, on one stream or two, in pieces or not.
struct cut_ops {
  std::int64_t rows = 8;    // of what joins them
  std::uint8_t stream = 0;  // of the one in the middle
  std::int16_t pieces = 1;
  bool drops = false;                      // the policy keeps no edge
  std::vector<std::int32_t> of_forward{};  // empty: as overlap::serial's would be

  program_chain programs(int) const {
    program_chain chain;
    const auto joins = chain.buffer("joins", 64, rows);
    const auto result = chain.buffer("result", 64, 8);
    const stretto::op_form form{.time = 4, .cut = stretto::pieces_of::rows};
    stretto::op_form between = form;
    between.stream = stream;
    chain.begin(job_kind::forward, 0);
    chain.add("make", {writes(joins)}, form);
    chain.add("turn", {reads(joins), writes(result)}, between);
    chain.add("use", {reads(result)}, form);
    return chain;
  }
  std::vector<std::int32_t> order(op_graph& graph) const {
    graph = stretto::overlap::cut(graph, std::vector<std::int16_t>(graph.nodes.size(), pieces), {});
    if (drops) graph.edges.clear();
    return of_forward.empty() ? stretto::overlap::program_order(graph) : of_forward;
  }
};

TEST_CASE("an order keeps all edges that there were, whichever a policy leaves") {
  const stretto::job_table table(1, 1);
  const stretto::planned base(stretto::schedule::one_f_one_b{}, {.ranks = 1, .microbatches = 2},
                              table.view(), stretto::overlap::serial{});
  const stretto::stream_info streams[] = {{"compute", 0}, {"other", 0}};
  const auto answer = [&](const cut_ops& ops) {
    return stretto::expanded(base, streams, ops).answer();
  };
  const auto early = [&](const cut_ops& ops, int op) {
    const verdict found = answer(ops);
    INFO(stretto::to_text(found).view());
    CHECK(found.what == fault::unsound_program);
    CHECK(found.why == reason::op_needs_earlier);
    CHECK(found.step == op);
    CHECK(found.where == stretto::job{.kind = job_kind::forward});
  };
  CHECK(answer({}).ok());
  CHECK(answer({.drops = true}).ok());
  early({.drops = true, .of_forward = {1, 0, 2}}, 1);
  early({.drops = true, .of_forward = {0, 2, 1}}, 2);
  early({.of_forward = {0, 2, 1}}, 2);
  // Rows follow one another; without rows all of one op is behind all of the other.
  const std::vector<std::int32_t> by_rows = {0, 2, 4, 1, 3, 5};
  const std::vector<std::int32_t> by_ops = {0, 1, 2, 4, 3, 5};
  for (const bool drops : {false, true}) {
    CAPTURE(drops);
    CHECK(answer({.pieces = 2, .drops = drops, .of_forward = by_rows}).ok());
    CHECK(answer({.pieces = 2, .drops = drops, .of_forward = by_ops}).ok());
    early({.pieces = 2, .drops = drops, .of_forward = {0, 4, 2, 1, 3, 5}}, 2);
    early({.rows = 0, .pieces = 2, .drops = drops, .of_forward = by_rows}, 1);
    CHECK(answer({.rows = 0, .pieces = 2, .drops = drops, .of_forward = by_ops}).ok());
  }
  // On another stream they were refused as a race: pieces that touch all, each beside the others.
  CHECK(answer({.stream = 1, .pieces = 2}).ok());
  CHECK(answer({.rows = 0, .stream = 1, .pieces = 2}).ok());
  CHECK(answer({.rows = 0, .stream = 1, .pieces = 2, .drops = true}).what != fault::none);
}

TEST_CASE("ops are in pieces where they may be, and in no more than they have parts") {
  const auto answer = [](const stretto::op_form& form, std::int16_t pieces) {
    const auto spoil = [&](program_chain& of) { static_cast<stretto::op_form&>(of.ops[0]) = form; };
    return expanded_answer({.spoil = spoil, .cut = [&](op_graph& graph) {
                              if (graph.size() != 3) return;
                              graph.nodes[0].pieces = pieces;
                              graph.nodes.insert(graph.nodes.begin(),
                                                 static_cast<std::size_t>(pieces) - 1,
                                                 graph.nodes[0]);
                              for (std::int16_t at = 0; at < pieces; ++at)
                                graph.nodes[static_cast<std::size_t>(at)].piece = at;
                              graph.edges.clear();
                              for (std::int32_t at = 1; at < graph.size(); ++at)
                                graph.edges.push_back({at - 1, at});
                            }});
  };
  CHECK(answer({.cut = stretto::pieces_of::result}, 4).ok());
  CHECK(answer({.cut = stretto::pieces_of::result, .parts = 4}, 4).ok());
  CHECK(answer({.cut = stretto::pieces_of::result, .parts = 3}, 4).why == reason::graph_of_others);
  CHECK(answer({.cut = stretto::pieces_of::whole}, 2).why == reason::graph_of_others);
}

//! What is said of a forward, and perhaps more, that `fill` writes; its ops are issued as they
//! stand, on the streams 0 to 2.
struct written_ops {
  std::function<void(program_chain&)> fill;
  std::vector<stretto::op_edge> more{};  // that the policy adds to the forward

  program_chain programs(int) const {
    program_chain made;
    fill(made);
    return made;
  }
  std::vector<std::int32_t> order(op_graph& graph) const {
    if (graph.nodes[0].op == 0) graph.edges.insert(graph.edges.end(), more.begin(), more.end());
    return stretto::overlap::program_order(graph);
  }
};
verdict answer_of(const written_ops& ops) {
  const stretto::job_table table(1, 1);
  const stretto::planned base(stretto::schedule::one_f_one_b{}, {.ranks = 1, .microbatches = 2},
                              table.view(), stretto::overlap::serial{});
  const stretto::stream_info streams[] = {{"compute", 0}, {"one", 0}, {"other", 0}};
  return stretto::expanded(base, streams, ops).answer();
}
constexpr stretto::op_form here{.time = 1}, beside{.time = 1, .stream = 1},
    elsewhere{.time = 1, .stream = 2};

TEST_CASE("what is read on two streams is given back by who knows of both") {
  const auto readers = [](const stretto::op_form& second, bool use_first) {
    return answer_of({.fill = [&](program_chain& of) {
      const auto x = of.buffer("x", 64), y = of.buffer("y", 64), z = of.buffer("z", 64);
      of.begin(job_kind::forward, 0);
      of.add("make", {writes(x)}, here);
      if (use_first) of.add("use", {reads(x), writes(z)}, second);
      of.add("sum", {reads(x), writes(y)}, beside);
      if (!use_first) of.add("use", {reads(x), writes(z)}, second);
      of.add("end", {reads(y), reads(z)}, here);
    }});
  };
  for (const bool use_first : {false, true}) {
    CHECK(readers(here, use_first).ok());
    CHECK(readers(elsewhere, use_first).ok());
  }
}

TEST_CASE(
    "what only reads on another stream is over before the job, if anything of it asks for that") {
  const auto send = [](std::vector<stretto::op_edge> more, bool freed) {
    return answer_of({.fill =
                          [&](program_chain& of) {
                            const auto x = of.buffer("x", 64);
                            of.begin(job_kind::forward, 0);
                            of.add("make", {writes(x)}, here);
                            of.add("send", {reads(x)}, beside);
                            of.add("end", {stretto::shape_of(x)}, here);
                            if (freed) of.add("free", {stretto::frees(x)}, here);
                          },
                      .more = std::move(more)});
  };
  CHECK(send({{1, 2}}, false).ok());
  CHECK(send({}, true).ok());
  CHECK(send({}, false).why == reason::needed_by_nothing);
  // An edge of the policy's that implies one of the data.
  CHECK(answer_of({.fill =
                       [](program_chain& of) {
                         const auto x = of.buffer("x", 64);
                         of.begin(job_kind::forward, 0);
                         of.add("make", {writes(x)}, here);
                         of.add("sum", {reads(x), writes(x)}, beside);
                         of.add("send", {reads(x)}, elsewhere);
                         of.add("use", {reads(x)}, here);
                         of.add("end", {reads(x)}, here);
                       },
                   .more = {{2, 3}}})
            .ok());
  const verdict barrier = answer_of({.fill =
                                         [](program_chain& of) {
                                           const auto x = of.buffer("x", 64);
                                           of.begin(job_kind::forward, 0);
                                           of.add("make", {writes(x)}, here);
                                           of.add("barrier", {}, beside);
                                           of.add("end", {reads(x)}, here);
                                         },
                                     .more = {{0, 1}, {1, 2}}});
  CHECK(barrier.why == reason::needs_nothing);
  CHECK(barrier.step == 1);
}

TEST_CASE("ops on other streams read parameters, and know shapes, that are no job's own") {
  enum class how { shape, freed, read, written };
  const auto touched = [](how by) {
    return answer_of({.fill = [&](program_chain& of) {
      const auto weights = of.parameter("weights", 64);
      const auto x = of.buffer("x", 64), y = of.buffer("y", 64), kept = of.buffer("kept", 64);
      of.begin(job_kind::forward, 0);
      of.add("make", {writes(x), writes(kept)}, here);
      of.add("sum",
             {reads(x), writes(y),
              by == how::shape   ? stretto::shape_of(kept)
              : by == how::freed ? stretto::frees(weights)
                                 : reads(weights)},
             beside);
      of.add("use", {reads(y)}, here);
      of.begin(job_kind::backward, 0);
      of.add("back", {reads(kept)}, here);
      if (by == how::written) of.add("update", {writes(weights)}, here);
    }});
  };
  CHECK(touched(how::shape).ok());
  CHECK(touched(how::freed).ok());
  CHECK(touched(how::read).ok());
  CHECK(touched(how::written).why == reason::outlives_its_job);
  // Nor is a job's own what no other touches, but is always there.
  CHECK(answer_of({.fill = [](program_chain& of) {
          const auto gradient = of.parameter("gradient", 64);
          const auto x = of.buffer("x", 64);
          of.begin(job_kind::backward, 0);
          of.add("back", {writes(x)}, here);
          of.add("sum", {reads(x), writes(gradient)}, beside);
          of.add("end", {reads(gradient)}, here);
        }}).why == reason::outlives_its_job);
}

TEST_CASE("what no op has written is not read, whoever would read it first") {
  enum class how { sent, summed, in_place, used, made };
  const auto read = [](how by) {
    return answer_of({.fill = [&](program_chain& of) {
      const auto x = of.buffer("x", 64), y = of.buffer("y", 64), z = of.buffer("z", 64);
      of.begin(job_kind::forward, 0);
      if (by == how::used) of.add("peek", {reads(y)}, here);
      if (by == how::made) of.add("fill", {writes(y), reads(y)}, here);
      of.add("make", {writes(x)}, here);
      if (by == how::sent) of.add("send", {reads(x), reads(y)}, beside);
      else if (by == how::summed) of.add("sum", {reads(x), reads(y), writes(z)}, beside);
      else if (by == how::in_place) of.add("sum", {reads(x), reads(y), writes(y)}, beside);
      else of.add("sum", {reads(x), writes(y)}, beside);
      of.add("use", {reads(y), reads(x), writes(x), reads(z), writes(z)}, here);
    }});
  };
  CHECK(stretto::to_text(read(how::made)).view() == "ok");
  const struct {
    how by;
    int op;
  } cases[] = {{how::sent, 1}, {how::summed, 1}, {how::in_place, 1}, {how::used, 0}};
  for (const auto& one : cases) {
    const verdict found = read(one.by);
    CAPTURE(one.op);
    INFO(stretto::to_text(found).view());
    CHECK(found.what == fault::unsound_program);
    CHECK(found.why == reason::read_unwritten);
    CHECK(found.step == one.op);
    CHECK(found.amount == 1);  // y
    CHECK(found.where == stretto::job{.kind = job_kind::forward});
  }
}

TEST_CASE("a piece that computes has rows of its own of what goes to another stream") {
  const auto answer = [](std::int64_t rows, std::int64_t bytes, std::uint8_t stream) {
    const stretto::op_form by_rows{.time = 4, .cut = stretto::pieces_of::rows};
    stretto::op_form between{.time = 4};
    between.stream = stream;
    return expanded_answer({.spoil =
                                [&](program_chain& of) {
                                  of = {};
                                  const auto joins = of.buffer("joins", bytes, rows);
                                  const auto result = of.buffer("result", 64, 8);
                                  of.begin(job_kind::forward, 0);
                                  of.add("make", {writes(joins)}, by_rows);
                                  of.add("turn", {reads(joins), writes(result)}, between);
                                  of.add("use", {reads(result)}, here);
                                },
                            .cut =
                                [](op_graph& graph) {
                                  const std::vector<std::int16_t> pieces = {4, 1, 1};
                                  graph = stretto::overlap::cut(graph, pieces, {});
                                }});
  };
  CHECK(answer(4, 64, 1).ok());
  CHECK(answer(0, 64, 1).ok());  // each piece touches all
  const struct {
    std::int64_t rows, bytes;
  } cases[] = {{3, 60}, {8, 60}};
  for (const auto& one : cases) {
    const verdict found = answer(one.rows, one.bytes, 1);
    INFO(stretto::to_text(found).view());
    CHECK(found.why == reason::no_whole_rows);
    CHECK(found.step == 0);
    CHECK(found.amount == 0);
    // What stays on the stream that computes is the stage's to lay out.
    CHECK(answer(one.rows, one.bytes, 0).ok());
  }
}

TEST_CASE("a piece touches all of what a view sees in other rows") {
  const auto turned = [](std::int64_t rows) {
    return answer_of({.fill = [&](program_chain& of) {
      const auto x = of.buffer("x", 64, 8), y = of.buffer("y", 64, 8);
      const auto view = of.view("x, turned", x);
      of.buffers[static_cast<std::size_t>(view)].rows = rows;
      const stretto::op_form by_rows{.time = 1, .cut = stretto::pieces_of::rows};
      of.begin(job_kind::forward, 0);
      of.add("make", {writes(x)}, by_rows);
      of.add("use", {reads(view), writes(y)}, by_rows);
      // As pieces would say it.
      CHECK(of.rows_of_storages()[0] == (rows == 8 ? 8 : 0));
      CHECK(stretto::graph_of(of, of.programs).edges[0].whole == (rows != 8));
    }});
  };
  CHECK(turned(8).ok());
  CHECK(turned(0).ok());
  CHECK(turned(4).ok());
}

TEST_CASE("programs of chunks that there are not, for some that there are, are refused") {
  // Who serves schedules of more chunks, too.
  CHECK(expanded_answer({.spoil = [](program_chain& of) {
          const auto other = of.buffer("kept by another", 64);
          of.begin(job_kind::forward, 1);
          of.add("make", {writes(other)});
          of.begin(job_kind::backward, 1);
          of.add("back", {reads(other)});
        }}).ok());
  const verdict found =
      expanded_answer({.spoil = [](program_chain& of) { of.programs[0].chunk = 3; }});
  CHECK(found.what == fault::unsound_program);
  CHECK(found.why == reason::program_of_no_chunk);
  CHECK(expanded_answer({.spoil = [](program_chain& of) { of.programs[0].chunk = -1; }}).why ==
        reason::program_of_no_chunk);
  // Nor has it jobs of this kind: 1F1B splits no backward.
  CHECK(expanded_answer({.spoil = [](program_chain& of) {
          of.programs.erase(of.programs.begin());
          of.programs[0].kind = job_kind::backward_weight;
        }}).why == reason::program_of_no_job);
  CHECK(found.rank == 0);
  CHECK(found.where == stretto::job{.stage = 3, .kind = job_kind::forward});
}

//! The ops in an order of the caller's.
struct ordered_ops {
  std::vector<std::int32_t> of_forward;

  program_chain programs(int) const { return small_chain(); }
  std::vector<std::int32_t> order(const op_graph& graph) const {
    return graph.size() == 3 ? of_forward : std::vector<std::int32_t>{0};
  }
};

TEST_CASE("an order that has not each op once is refused with the op") {
  const stretto::job_table table(1, 1);
  const stretto::planned base(stretto::schedule::one_f_one_b{}, {.ranks = 1, .microbatches = 2},
                              table.view(), stretto::overlap::serial{});
  const stretto::stream_info streams[] = {{"compute", 0}, {"sums", 0}};
  const auto answer = [&](std::vector<std::int32_t> order) {
    return stretto::expanded(base, streams, ordered_ops{std::move(order)}).answer();
  };
  CHECK(answer({0, 1, 2}).ok());
  const struct {
    std::vector<std::int32_t> order;
    int op;
  } cases[] = {{{0, 1}, 2},     {{1, 2}, 0},      {{0, 1, 1}, 1}, {{0, 1, 2, 2}, 2},
               {{0, 1, 3}, -1}, {{0, -1, 2}, -1}, {{}, 0}};
  for (const auto& one : cases) {
    const verdict found = answer(one.order);
    CHECK(found.what == fault::unsound_program);
    CHECK(found.why == reason::ops_misordered);
    CHECK(found.step == one.op);
    CHECK(found.where == stretto::job{.kind = job_kind::forward});
  }
}

TEST_CASE("an op that is not cut has one piece, which is the first") {
  const verdict found = expanded_answer({.cut = [](op_graph& graph) { graph.nodes[0].piece = 7; }});
  CHECK(found.what == fault::miscut);
  CHECK(found.why == reason::piece_missing);
}

}  // namespace
