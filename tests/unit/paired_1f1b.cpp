// Pairs in the steady phase: what the warm-up is for, and what they gain.
#include "stretto/schedule/paired_1f1b.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stretto/check/all.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/eager_1f1b.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace {

using stretto::job_kind;
using stretto::shape;

constexpr shape one_chunk{.ranks = 4, .microbatches = 16};

template <class Schedule>
stretto::job_lists emitted(const Schedule& made, const shape& sizes = one_chunk) {
  stretto::job_lists lists(sizes.ranks, made.capacity(sizes));
  stretto::job_sink out = lists.sink();
  REQUIRE(made.emit(sizes, {}, out).ok());
  return lists;
}

// Forwards take 1, backwards 2.
std::int64_t makespan(const stretto::job_lists& lists, int hides, const shape& sizes = one_chunk) {
  const stretto::job_table costs(sizes.ranks, sizes.chunks, {.pair_hides = hides});
  const stretto::placement where{.ranks = sizes.ranks, .chunks = sizes.chunks};
  const stretto::replay_input input{lists.rows(), where, sizes.microbatches, 1, costs.view(),
                                    false,        {}};
  REQUIRE(stretto::check::schedule(input).ok());
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  return stretto::measure(input, ranks).makespan;
}

TEST_CASE("with the warm-up of eager 1F1B pairs cost nothing, with 1F1B's own nearly twice") {
  CHECK(makespan(emitted(stretto::schedule::one_f_one_b{}), 0) == 57);
  CHECK(makespan(emitted(stretto::schedule::paired_1f1b{}), 0) == 57);
  stretto::job_lists naive = emitted(stretto::schedule::one_f_one_b{});
  stretto::job_sink out = naive.sink();
  for (int rank = 0; rank < one_chunk.ranks; ++rank)
    for (int step = one_chunk.ranks - 1 - rank; step + 1 < out.counts[rank]; ++step) {
      stretto::job& work = out.items[rank * out.stride + step];
      const stretto::job& next = out.items[rank * out.stride + step + 1];
      // The last rank's forward is needed by the backward behind it.
      if (work.kind == job_kind::forward && next.kind == job_kind::backward &&
          work.microbatch != next.microbatch)
        work.paired = true;
    }
  CHECK(makespan(naive, 0) > 90);
}

TEST_CASE("the order is eager 1F1B's but for the halves of pairs, and what pairs hide is won") {
  const auto eager = emitted(stretto::schedule::eager_1f1b{});
  const auto paired = emitted(stretto::schedule::paired_1f1b{});
  int pairs = 0;
  for (int rank = 0; rank < one_chunk.ranks; ++rank) {
    REQUIRE(paired.rows().counts[rank] == eager.rows().counts[rank]);
    for (int step = 0; step < paired.rows().counts[rank]; ++step) {
      stretto::job work = paired.rows().at(rank, step);
      if (!std::exchange(work.paired, false)) {
        CHECK(work == eager.rows().at(rank, step));
        continue;
      }
      ++pairs;
      CHECK(work.kind == job_kind::forward);
      CHECK(work == eager.rows().at(rank, step + 1));
      CHECK(paired.rows().at(rank, step + 1) == eager.rows().at(rank, step));
      ++step;
    }
  }
  CHECK(pairs == 16 * 4 - (7 + 5 + 3 + 1));
  // The last rank never waits: 15 pairs, each 1 shorter.
  CHECK(makespan(paired, 100) == 57 - 15);
  CHECK(makespan(paired, 100) < makespan(eager, 0));
}

TEST_CASE("with chunks pairs cost nothing, and the last rank's win what each of them hides") {
  for (const shape& chunked : {shape{4, 16, 2}, shape{4, 13, 2}, shape{3, 9, 3}, shape{8, 32, 4}}) {
    const auto plain = makespan(emitted(stretto::schedule::interleaved{}, chunked), 100, chunked);
    const auto paired = emitted(stretto::schedule::paired_1f1b{}, chunked);
    CHECK(makespan(paired, 0, chunked) == plain);
    // All but its warm-up, the first group through its other chunks and one more.
    const int first = chunked.ranks + chunked.microbatches % chunked.ranks;
    const int pairs = chunked.microbatches * chunked.chunks - (chunked.chunks - 1) * first - 1;
    CHECK(makespan(paired, 100, chunked) == plain - pairs);
  }
}

}  // namespace
