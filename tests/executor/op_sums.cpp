// Sums over the shards of a rank's stages as ops of a job: on whatever stream they run, in however
// many pieces beside ops in others; and what cannot be summed.
#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/lowering/streams/in_pieces.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

using namespace stretto;

namespace {

constexpr std::uint8_t sums_stream = 7;

std::vector<stream_info> streams() {
  std::vector<stream_info> made;
  for (int stream = 0; stream < 7; ++stream) made.push_back(overlap::separate{}.stream(stream));
  made.push_back(overlap::named_stream("sums", -1));
  return made;
}

const planned& base() {
  static const job_table costs(1, 1);
  static const planned made(schedule::one_f_one_b{}, {.ranks = 1, .microbatches = 1}, costs.view(),
                            overlap::separate{});
  return made;
}

//! A forward that makes six rows, sums them over the shards, and reads them.
struct summed_rows {
  int product_parts = 1, sum_parts = 1;
  bool in_pieces = false;
  bool on_one_stream = false;
  std::int64_t bytes = 96;
  bool apart = false;  // into another buffer
  int sum_at = 1;      // of three ops
  int rows_of = 6;
  pieces_of cut = pieces_of::rows;  // of the sum

  program_chain programs(int) const {
    program_chain made;
    const auto rows = made.buffer("rows", bytes, rows_of), other = made.buffer("other", bytes, 6);
    made.begin(job_kind::forward, 0);
    const auto sum = [&] {
      made.add(
          "sum", {reads(rows), writes(apart ? other : rows)},
          {.time = 4, .stream = sums_stream, .cut = cut, .collective = true, .parts = sum_parts});
    };
    if (sum_at == 0) sum();
    made.add("product", {writes(rows)},
             {.time = 4, .cut = pieces_of::rows, .parts = product_parts});
    if (sum_at == 1) sum();
    made.add("end", {reads(apart ? other : rows)}, {.time = 1});
    if (sum_at == 2) sum();
    return made;
  }
  std::vector<std::int32_t> order(op_graph& graph) const {
    if (on_one_stream) graph = overlap::on_one_stream(graph);
    if (!in_pieces) return overlap::program_order(graph);
    const overlap::cut_order found = overlap::in_equal_pieces(
        graph, static_cast<std::int16_t>(std::max(product_parts, sum_parts)), {});
    graph = found.graph;
    return found.order.nodes;
  }
};

//! What every shard finds in the end, where each has put its number and one more into each row.
void expect_sums(const summed_rows& ops) {
  CAPTURE(ops.product_parts);
  CAPTURE(ops.sum_parts);
  CAPTURE(ops.on_one_stream);
  const expanded made(base(), streams(), ops);
  REQUIRE(made.answer() == verdict{});
  const shared both(made.plans(), 2);
  REQUIRE(both.answer() == verdict{});
  int wrong = 0, seen = 0;
  std::mutex mutex;
  executor::callback_stage stage(
      {.forward =
           [&](const executor::context& at) {
             const std::span<float> rows = at.view<float>(buffer_role::workspace);
             const std::lock_guard lock(mutex);
             if (at.op == 0) {
               for (std::size_t k = 0; k < rows.size(); ++k)
                 if (k / 4 % static_cast<std::size_t>(at.pieces) ==
                     static_cast<std::size_t>(at.piece))
                   rows[k] = static_cast<float>(10 * at.rank + 1) + static_cast<float>(k);
             } else {
               ++seen;
               for (std::size_t k = 0; k < rows.size(); ++k)
                 wrong += rows[k] == 12 + 2 * static_cast<float>(k) ? 0 : 1;
               wrong += rows.size() == 24 ? 0 : 1;
             }
           },
       .backward = [](const executor::context&) {},
       .optimizer = [](const executor::context&) {}});
  executor::stage* const stages[] = {&stage, &stage};
  executor::options with;
  with.checked = ops.product_parts == 1;  // pieces here write rows in turn, not their own
  executor::engine engine(both, stages, std::move(with));
  engine.step();
  CHECK(seen == 2);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("of workers that share a rank, an error names rank and worker") {
  const job_table costs(2, 1);
  const planned base(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 2}, costs.view(),
                     overlap::separate{});
  const shared both(base.plans(), 2);
  REQUIRE(both.answer() == verdict{});
  executor::callback_stage stage({.forward =
                                      [](const executor::context& at) {
                                        if (at.rank == 3) throw std::runtime_error("no more");
                                      },
                                  .backward = [](const executor::context&) {},
                                  .optimizer = [](const executor::context&) {}});
  executor::stage* const stages[] = {&stage, &stage, &stage, &stage};
  executor::engine engine(both.plans(), stages);
  try {
    engine.step();
    FAIL("it must throw");
  } catch (const executor::execution_error& failed) {
    const std::string text = failed.what();
    CHECK(text.starts_with("step 0, rank 1 worker 1, instruction "));
    CHECK(text.ends_with("1F0 (stage 1, forward, micro-batch 0): no more"));
    CHECK(failed.rank() == 3);
    CHECK(failed.flight_record().find("\nrank 0 worker 1: ") != std::string::npos);
    // The gradient that never comes; activations may all have.
    CHECK(failed.flight_record().find(" from rank 1 worker 1, ") != std::string::npos);
  }
  executor::stage* const fewer[] = {&stage, &stage, nullptr, &stage};
  CHECK_THROWS_WITH_AS(executor::engine(both.plans(), fewer), "rank 1 worker 0 has no stage",
                       executor::plan_error);
}

TEST_CASE("a sum is over its own buffer, on a stream of its own or on the one that computes") {
  for (const bool on_one : {false, true}) expect_sums({.on_one_stream = on_one});
}

TEST_CASE(
    "ops in unequal numbers of pieces wait for all that they need, and for no more than that") {
  for (int product = 1; product <= 6; ++product)
    for (int sum = 1; sum <= 6; ++sum) {
      CAPTURE(product);
      CAPTURE(sum);
      const expanded made(
          base(), streams(),
          summed_rows{.product_parts = product, .sum_parts = sum, .in_pieces = true});
      CHECK(made.answer() == verdict{});
    }
}

TEST_CASE("a sum in pieces is of rows: each would sum all again") {
  const auto answer = [](int rows, pieces_of cut, int pieces) {
    const expanded made(base(), streams(),
                        summed_rows{.product_parts = pieces,
                                    .sum_parts = pieces,
                                    .in_pieces = true,
                                    .rows_of = rows,
                                    .cut = cut});
    return made.answer();
  };
  for (const pieces_of cut : {pieces_of::rows, pieces_of::result})
    for (const int rows : {0, 6}) {
      CHECK(answer(rows, cut, 1) == verdict{});
      const verdict found = answer(rows, cut, 2);
      if (rows > 0 && cut == pieces_of::rows) {
        CHECK(found == verdict{});
        continue;
      }
      CHECK(found.what == fault::unsound_program);
      CHECK(found.why == reason::no_whole_rows);
      CHECK(found.step == 1);    // the op
      CHECK(found.amount == 0);  // and its buffer
    }
}

TEST_CASE("a sum that is the first of a job's ops, or the last, is refused") {
  for (const bool on_one : {false, true})
    for (const int at : {0, 2}) {
      const expanded made(base(), streams(), summed_rows{.on_one_stream = on_one, .sum_at = at});
      CHECK(made.answer().what == fault::unsound_program);
      CHECK(made.answer().why == (at == 0 ? reason::needs_nothing : reason::needed_by_nothing));
    }
}

TEST_CASE("what no all-reduce can do is refused before plans are shared") {
  for (const bool on_one : {false, true}) {
    const expanded apart(base(), streams(), summed_rows{.on_one_stream = on_one, .apart = true});
    REQUIRE(apart.answer() == verdict{});
    const shared both(apart.plans(), 2);
    CHECK(both.plans().empty());
    CHECK(std::string(to_text(both.answer()).view()) ==
          "unsound_program on rank 0, step 1, job 0F0: an op that sums over its shards reads and "
          "writes one buffer, and of that whole elements of 4 bytes");
  }
  // Rows of 3 bytes, in two pieces.
  const expanded odd(base(), streams(),
                     summed_rows{.sum_parts = 2, .in_pieces = true, .bytes = 18});
  REQUIRE(odd.answer() == verdict{});
  CHECK(shared(odd.plans(), 2).answer().why == reason::summed_apart);
}
