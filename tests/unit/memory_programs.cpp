#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "stretto/memory/estimate.hpp"
#include "stretto/memory/recompute.hpp"
#include "stretto/model/transformer/chain.hpp"

namespace {

using stretto::fault;
using stretto::frees;
using stretto::job_cost;
using stretto::job_kind;
using stretto::program_chain;
using stretto::reads;
using stretto::reason;
using stretto::shape_of;
using stretto::touch;
using stretto::writes;
namespace memory = stretto::memory;

std::vector<job_cost> measured_chain(const program_chain& chain) {
  std::vector<job_cost> made(chain.programs.size());
  const auto answer = memory::measure_chain(chain, made);
  REQUIRE(answer.ok());
  return made;
}

// A chunk is a product and a GELU: x -> y -> z. The weights' half reads what the other half kept.
constexpr program_chain small_chain(int chunks) {
  program_chain chain;
  std::vector<std::int32_t> x;
  std::vector<std::int32_t> y;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    x.push_back(chain.buffer("x", 400));
    y.push_back(chain.buffer("y", 1600));
    const auto w = chain.parameter("w", 12345);
    const auto z = chain.buffer("z", 400);
    chain.begin(job_kind::forward, chunk);
    chain.add("receive", {writes(x.back())}, {.time = 1});
    chain.add("product", {reads(x.back()), reads(w), writes(y.back())}, {.time = 4});
    chain.add("gelu", {reads(y.back()), writes(z)}, {.time = 2});
    chain.add("send", {reads(z)}, {.time = 1});
  }
  for (int chunk = chunks - 1; chunk >= 0; --chunk) {
    const auto here = static_cast<std::size_t>(chunk);
    const auto dz = chain.buffer("dz", 400);
    const auto dy = chain.buffer("dy", 1600);
    const auto dx = chain.buffer("dx", 400);
    const auto dw = chain.parameter("dw", 12345);
    chain.begin(job_kind::backward_input, chunk);
    chain.add("receive", {writes(dz)});
    chain.add("gelu back", {reads(y[here]), reads(dz), writes(dy)});
    chain.add("product back", {reads(dy), writes(dx)});
    chain.add("send", {reads(dx)});
    chain.begin(job_kind::backward_weight, chunk);
    chain.add("product weights", {reads(x[here]), reads(dy), writes(dw)});
  }
  return chain;
}

// At compile time, too.
static_assert([] {
  std::array<job_cost, 6> made{};
  return memory::measure_chain(small_chain(2), made).ok() && made[1] == job_cost{8, 2000, 2400} &&
         made[4] == job_cost{0, 0, 2000};
}());

TEST_CASE("a buffer lives until the last job of the whole chain that reads it") {
  // Paddle's PipelineMemoryEstimator, which looks back one program only, has 0 for the second
  // forward of two, 1600 for the first chunk's backward, and frees x in a backward that keeps it.
  for (int chunks = 1; chunks <= 3; ++chunks) {
    const auto made = measured_chain(small_chain(chunks));
    REQUIRE(made.size() == static_cast<std::size_t>(3 * chunks));
    for (int chunk = 0; chunk < chunks; ++chunk) {
      CHECK(made[static_cast<std::size_t>(chunk)] == job_cost{8, 2000, 2400});
      CHECK(made[static_cast<std::size_t>(chunks + 2 * chunk)] == job_cost{0, 0, 2000});
      CHECK(made[static_cast<std::size_t>(chunks + 2 * chunk + 1)] == job_cost{0, -2000, 0});
    }
  }
}

TEST_CASE("what works in place has no bytes of its own") {
  program_chain chain;
  const auto x = chain.buffer("x", 100);
  const auto y = chain.view("y", x);
  const auto z = chain.view("z", y);
  chain.begin(job_kind::forward, 0);
  chain.add("receive", {writes(x)});
  chain.add("scale", {reads(x), writes(y)});
  chain.begin(job_kind::backward, 0);
  chain.add("scale back", {reads(z)});
  const auto made = measured_chain(chain);
  CHECK(made[0] == job_cost{0, 100, 100});
  CHECK(made[1] == job_cost{0, -100, 0});
}

TEST_CASE("a shape keeps nothing alive; what is freed is gone") {
  program_chain chain;
  const auto x = chain.buffer("x", 100);
  const auto y = chain.buffer("y", 10);
  chain.begin(job_kind::forward, 0);
  chain.add("receive", {writes(x)});
  chain.add("sum", {reads(x), writes(y)});
  chain.begin(job_kind::backward, 0);
  chain.add("sum back", {shape_of(x), reads(y)});
  CHECK(measured_chain(chain)[0].change == 10);
  program_chain held = chain;
  held.add("drop", {frees(x)});
  CHECK(measured_chain(held)[0].change == 110);
  CHECK(measured_chain(held)[1].change == -110);

  std::vector<job_cost> made(2);
  program_chain early = chain;
  early.add("drop", {frees(y)});
  early.add("again", {reads(y)});
  auto answer = memory::measure_chain(early, made);
  CHECK(answer.what == fault::unsound_program);
  CHECK(answer.why == reason::used_after_free);
  CHECK(answer.where.kind == job_kind::backward);
  CHECK(answer.step == 2);
  CHECK(answer.amount == y);
  program_chain unwritten = chain;
  const auto nothing = unwritten.buffer("nothing", 1);
  unwritten.add("again", {reads(nothing)});
  answer = memory::measure_chain(unwritten, made);
  CHECK(answer.why == reason::read_unwritten);
  CHECK(answer.amount == nothing);
  CHECK(memory::explain(answer, unwritten) ==
        "op \"again\" of B, chunk 0: an op reads a buffer that nothing has written: \"nothing\"");
  unwritten = chain;
  unwritten.add("again", {reads(99)});
  CHECK(memory::measure_chain(unwritten, made).why == reason::unknown_buffer);
  CHECK(memory::measure_chain(chain, std::span(made).first(1)).what == fault::capacity);
}

// The same by brute force: at every op, the buffers that have been written and are still to be
// touched.
TEST_CASE("any chain, against a count at every op") {
  std::mt19937 random(7);
  const auto pick = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  for (int round = 0; round < 2000; ++round) {
    program_chain chain;
    std::vector<std::int32_t> there;
    for (int job = 0; job < 4; ++job) {
      chain.begin(static_cast<job_kind>(job % 2), job / 2);
      for (int at = pick(6); at >= 0; --at) {
        std::vector<stretto::op_use> touched;
        for (int reading = pick(3); reading > 0 && !there.empty(); --reading)
          touched.push_back({there[static_cast<std::size_t>(pick(static_cast<int>(there.size())))],
                             pick(4) == 0 ? touch::shape_only : touch::reads});
        const auto made =
            !there.empty() && pick(4) == 0
                ? chain.view("view",
                             there[static_cast<std::size_t>(pick(static_cast<int>(there.size())))])
                : chain.buffer("own", 1 + pick(50));
        touched.push_back(writes(made));
        there.push_back(made);
        chain.add("op", touched, {.time = pick(3)});
      }
    }
    const auto made = measured_chain(chain);
    std::size_t now = 0;
    std::int64_t before = 0;
    for (std::size_t job = 0; job < chain.programs.size(); ++job) {
      std::int64_t most = 0;
      std::int64_t after = before;
      std::int64_t time = 0;
      for (const auto& one : chain.ops_of(chain.programs[job])) {
        std::map<std::int32_t, std::pair<bool, bool>> life;  // written up to here, touched after
        std::map<std::int32_t, bool> here;
        for (std::size_t at = 0; at < chain.ops.size(); ++at)
          for (const auto& use : chain.uses_of(chain.ops[at])) {
            if (use.how == touch::shape_only) continue;
            auto& found = life[chain.storage_of(use.buffer)];
            found.first = found.first || (at <= now && use.how == touch::writes);
            found.second = found.second || at > now;
            if (at == now) here[chain.storage_of(use.buffer)] = true;
          }
        std::int64_t during = 0;
        after = 0;
        for (const auto& [storage, found] : life) {
          const std::int64_t bytes = chain.buffers[static_cast<std::size_t>(storage)].bytes;
          if (found.first && (found.second || here[storage])) during += bytes;
          if (found.first && found.second) after += bytes;
        }
        most = std::max(most, during - before);
        time += one.time;
        ++now;
      }
      CHECK(made[job] == job_cost{time, after - before, most});
      before = after;
    }
  }
}

TEST_CASE("a rank's chain leaves nothing behind and has every job") {
  for (const auto kind : {stretto::placement_kind::looped, stretto::placement_kind::wave})
    for (int ranks = 1; ranks <= 3; ++ranks)
      for (int chunks = 1; chunks <= 3; ++chunks)
        for (const bool split : {false, true}) {
          const stretto::placement where{.kind = kind, .ranks = ranks, .chunks = chunks};
          std::vector<std::int32_t> layers;
          for (int stage = 0; stage < where.stages(); ++stage) layers.push_back(1 + stage % 3);
          stretto::job_table table(ranks, chunks);
          for (int rank = 0; rank < ranks; ++rank) {
            const program_chain chain = stretto::transformer_chain(
                {.hidden = 64, .heads = 4, .sequence = 32}, where, rank,
                stretto::transformer_parts(layers), split);
            REQUIRE(chain.programs.size() == static_cast<std::size_t>((split ? 3 : 2) * chunks));
            std::int64_t sum = 0;
            for (const job_cost& one : measured_chain(chain)) {
              sum += one.change;
              CHECK(one.peak >= one.change);
            }
            CHECK(sum == 0);
            CHECK(memory::estimate(chain, rank, table).ok());
            CHECK(table.at(rank, 0, job_kind::forward).time == 1);
            CHECK(table.at(rank, 0, job_kind::forward).change > 0);
          }
        }
}

TEST_CASE("recompute keeps what comes from outside, and runs again what is needed") {
  const program_chain plain = small_chain(2);
  const program_chain again = memory::recompute(plain, memory::recompute_full{});
  std::vector<job_kind> kinds;
  for (const auto& job : again.programs) kinds.push_back(job.kind);
  CHECK(kinds == std::vector{job_kind::forward, job_kind::forward, job_kind::recompute,
                             job_kind::backward_input, job_kind::backward_weight,
                             job_kind::recompute, job_kind::backward_input,
                             job_kind::backward_weight});
  const auto made = measured_chain(again);
  CHECK(made[0] == job_cost{8, 400, 2400});
  CHECK(made[2] == job_cost{4, 1600, 1600});  // the product; nothing needs the GELU again
  CHECK(made[3] == job_cost{0, 0, 2000});
  CHECK(made[4] == job_cost{0, -2000, 0});
  CHECK(memory::recompute(plain, [](const stretto::op&) { return false; }).programs ==
        plain.programs);
}

TEST_CASE("a table from a chain with recomputes has forwards that keep everything") {
  const program_chain plain = small_chain(2);
  stretto::job_table table(1, 2);
  stretto::job_table again(1, 2);
  REQUIRE(memory::estimate(plain, 0, table).ok());
  REQUIRE(memory::estimate(memory::recompute(plain, memory::recompute_full{}), 0, again).ok());
  for (int chunk = 0; chunk < 2; ++chunk) {
    CHECK(again.at(0, chunk, job_kind::forward).change == 2000);
    CHECK(again.at(0, chunk, job_kind::recompute).change == 1600);
    for (const job_kind kind :
         {job_kind::forward, job_kind::backward_input, job_kind::backward_weight})
      CHECK(again.at(0, chunk, kind).change == table.at(0, chunk, kind).change);
  }
}

TEST_CASE("an op that would find other bytes does not run again") {
  program_chain chain;
  const auto x = chain.buffer("x", 100);
  const auto y = chain.buffer("y", 100);
  chain.begin(job_kind::forward, 0);
  chain.add("receive", {writes(x)});
  chain.add("copy", {reads(x), writes(y)});
  chain.add("receive", {writes(x)});  // another value in the place of the first
  chain.begin(job_kind::backward, 0);
  chain.add("back", {reads(x), reads(y)});
  const program_chain again = memory::recompute(chain, memory::recompute_full{});
  CHECK(again.programs == chain.programs);
  CHECK(measured_chain(again)[0].change == 200);
}

}  // namespace
