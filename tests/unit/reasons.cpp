// Reasons that a verdict seldom gives, each from the least that is wrong in its way.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "stretto/check/complete.hpp"
#include "stretto/check/issued.hpp"
#include "stretto/check/rendezvous.hpp"
#include "stretto/lowering/sequence_writer.hpp"
#include "stretto/lowering/streams/in_pieces.hpp"
#include "stretto/lowering/streams/input_gradient_first.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/sample_lists.hpp"
#include "support/spoilt_plan.hpp"

namespace {

using oracle::lists;
using oracle::packed;
using stretto::fault;
using stretto::job;
using stretto::job_kind;
using stretto::reason;
using stretto::verdict;

using two_by_three = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                                       stretto::schedule::one_f_one_b>;

TEST_CASE("a pair that lacks its second half, or has one of its own micro-batch, is none") {
  lists made = samples::paired(1, 3);
  const auto answer = [&] {
    const packed rows(made);
    return stretto::check::complete(rows.input());
  };
  REQUIRE(answer().ok());
  std::vector<job>& row = made.ranks[0];
  row.back().paired = true;
  CHECK(answer().why == reason::not_a_pair);
  CHECK(answer().step == static_cast<int>(row.size()) - 1);
  made = samples::emitted(stretto::schedule::one_f_one_b{}, {.ranks = 1, .microbatches = 1});
  made.ranks[0][0].paired = true;
  CHECK(answer().what == fault::incomplete);
  CHECK(answer().why == reason::not_a_pair);
  CHECK(answer().other == made.ranks[0][1]);
}

TEST_CASE("lists of more or fewer ranks than the placement are told so, whatever is in them") {
  const lists made =
      samples::emitted(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 3});
  const packed rows(made);
  stretto::replay_input input = rows.input();
  REQUIRE(stretto::check::complete(input).ok());
  for (const int ranks : {1, 3}) {
    input.where.ranks = ranks;
    CHECK(stretto::check::complete(input).what == fault::incomplete);
    CHECK(stretto::check::complete(input).why == reason::ranks_differ);
  }
}

TEST_CASE("a send whose receive is in no list waits for a partner that never comes") {
  const job forward{0, 0, 0, job_kind::forward};
  const job send{0, 0, 0, job_kind::send_forward};
  stretto::job_lists rows(2, 2);
  stretto::job_sink out = rows.sink();
  out.push(0, forward);
  out.push(0, send);
  const stretto::job_table table(2, 1);
  const verdict found =
      stretto::check::rendezvous({rows.rows(), {.ranks = 2}, 1, 1, table.view(), true, {}});
  CHECK(found.what == fault::rendezvous);
  CHECK(found.why == reason::message_unmatched);
  CHECK(found.rank == 0);
  CHECK(found.where == send);
  CHECK(found.other == stretto::matching_receive(send));
}

TEST_CASE("an order that names a rank which there is not is none of these lists") {
  const stretto::job_table table(2, 1);
  const stretto::planned made(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 3},
                              table.view(), stretto::overlap::separate{});
  REQUIRE(made.answer().ok());
  const stretto::lowering::order_view whole = made.order();
  std::vector<std::int32_t> turns(whole.ranks, whole.ranks + whole.count);
  const stretto::replay_input compute{made.jobs(), made.where(), 3, 1, table.view(), false, {}};
  stretto::replay_input issued = made.issued();
  issued.costs = table.view();
  const auto answer = [&] {
    stretto::replay_observer nobody;
    return stretto::check::issued(compute, issued, {turns.data(), whole.count, whole.has_late},
                                  nobody);
  };
  CHECK(answer().ok());
  for (const std::int32_t rank : {2, 1 << 30, stretto::lowering::order_sink::late(2)}) {
    turns[1] = rank;
    CHECK(answer().what == fault::rendezvous);
    CHECK(answer().why == reason::never_replayed);
  }
}

//! Rank 0's first buffer is given back while its last reader is still to run.
struct released_too_early {
  constexpr void operator()(auto&, auto& buffers) const { buffers[0].release = 1; }
};
//! It begins a mebibyte behind all memory.
struct beyond_the_arena {
  constexpr void operator()(auto&, auto& buffers) const { buffers[0].offset = 1 << 20; }
};

TEST_CASE("a buffer is used while it is the step's own, and in the rank's memory") {
  constexpr verdict early = support::spoilt<two_by_three, released_too_early>::checked;
  CHECK(early.what == fault::race);
  CHECK(early.why == reason::not_released);
  constexpr verdict beyond = support::spoilt<two_by_three, beyond_the_arena>::checked;
  CHECK(beyond.what == fault::race);
  CHECK(beyond.why == reason::outside_arena);
  CHECK(beyond.rank == 0);
}

TEST_CASE("pieces of an op are whole rows: no more than there are, of equal bytes") {
  const auto answer = [](std::int64_t bytes, std::int64_t rows, std::int16_t pieces) {
    stretto::program_chain chain;
    const auto x = chain.buffer("x", bytes);
    const auto y = chain.buffer("y", bytes, rows);
    chain.begin(job_kind::forward, 0);
    chain.add("product", {stretto::reads(x), stretto::writes(y)},
              {.cut = stretto::pieces_of::rows});
    chain.add("sum", {stretto::reads(y), stretto::writes(y)},
              {.stream = stretto::overlap::separate::stream_count,
               .cut = stretto::pieces_of::rows,
               .collective = true});
    chain.add("residual", {stretto::reads(y)}, {.cut = stretto::pieces_of::rows});
    const std::span first = std::span(chain.programs).first(1);
    stretto::op_graph graph = stretto::graph_of(chain, first);
    graph = stretto::overlap::cut(graph, std::vector<std::int16_t>(graph.nodes.size(), pieces), {});
    stretto::lowering::op_sequence made;
    return stretto::lowering::write_sequence(chain, graph, stretto::overlap::program_order(graph),
                                             first, made);
  };
  CHECK(answer(640, 10, 5).ok());
  CHECK(answer(640, 10, 11).why == reason::no_whole_rows);
  CHECK(answer(641, 10, 5).why == reason::no_whole_rows);
}

}  // namespace
