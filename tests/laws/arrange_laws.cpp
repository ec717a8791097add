// The order of micro-batches that differ, against all orders of small steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/plan/arrange.hpp"
#include "stretto/schedule/chimera.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/seq_1f1b.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "stretto/schedule/zb_h1.hpp"

namespace {

using stretto::job_kind;
using stretto::shape;
namespace schedule = stretto::schedule;

//! Three lengths: times and memory times so much.
stretto::job_table drawn(std::mt19937& random, const shape& sizes) {
  stretto::job_table table(sizes.ranks, sizes.chunks,
                           {.communication = static_cast<std::int64_t>(random() % 2)});
  table.slices = sizes.slices;
  for (int more = 1; more < 3; ++more) table.add_class();
  for (int of = 0; of < 3; ++of)
    for (int rank = 0; rank < sizes.ranks; ++rank)
      for (int chunk = 0; chunk < sizes.chunks; ++chunk) {
        const std::int64_t times = 4 - of;
        const auto put = [&](job_kind kind, std::int64_t time, std::int64_t change) {
          table.at(of, rank, chunk, kind) = {times * time, times * change, 0};
        };
        put(job_kind::forward, 2, 1);
        put(job_kind::backward, 4, -1);
        put(job_kind::backward_input, 2, 0);
        put(job_kind::backward_weight, 2, -1);
      }
  for (int cell = 0; cell < sizes.microbatches * sizes.slices; ++cell)
    table.classes.push_back(static_cast<std::int32_t>(random() % 3));
  return table;
}

//! No exchange is tried, and of what is asked for all is looked at.
template <class Schedule>
std::int64_t makespan(const Schedule& made, const shape& sizes, const stretto::job_table& table) {
  return stretto::arrange(made, sizes, table, {}, 0).as_given;
}

template <class Schedule>
std::int64_t shortest(const Schedule& made, const shape& sizes, const stretto::job_table& table) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(sizes.microbatches));
  for (std::size_t at = 0; at < order.size(); ++at) order[at] = static_cast<std::int32_t>(at);
  std::int64_t least = -1;
  do {
    const std::int64_t one = makespan(made, sizes, stretto::arranged(table, order));
    if (one >= 0 && (least < 0 || one < least)) least = one;
  } while (std::ranges::next_permutation(order).found);
  return least;
}

}  // namespace

TEST_CASE("arrange: an order that there is, and none is shorter where all can be tried") {
  std::mt19937 random(20261126);
  int all = 0;
  int optimal = 0;
  int gained = 0;
  int few = 0;
  const auto hold = [&]<class Schedule>(const Schedule& made, int chunks, int slices, int rounds) {
    for (int round = 0; round < rounds; ++round) {
      const shape sizes{.ranks = static_cast<int>(1 + random() % 3),
                        .microbatches = static_cast<int>(2 + random() % 4),
                        .chunks = chunks,
                        .slices = slices};
      if (!made.supports(sizes).ok()) continue;
      INFO(std::string(Schedule::name), " round ", round, " ", laws::words(sizes));
      stretto::job_table table = drawn(random, sizes);
      // A limit under which not every order need be possible.
      if (round % 3 == 2)
        table.limit.assign(static_cast<std::size_t>(sizes.ranks), 4 + random() % 8);
      const stretto::arrangement found = stretto::arrange(made, sizes, table);
      std::vector<std::int32_t> sorted = found.order;
      std::ranges::sort(sorted);
      for (std::size_t at = 0; at < sorted.size(); ++at)
        CHECK(sorted[at] == static_cast<std::int32_t>(at));
      for (std::size_t at = 0; slices == 1 && at < sorted.size(); ++at)
        for (std::size_t before = 0; before < at; ++before)
          if (table.classes[static_cast<std::size_t>(found.order[before])] ==
              table.classes[static_cast<std::size_t>(found.order[at])])
            CHECK(found.order[before] < found.order[at]);
      CHECK(found.as_given == makespan(made, sizes, table));
      CHECK(found.makespan == makespan(made, sizes, stretto::arranged(table, found.order)));
      const std::int64_t least = shortest(made, sizes, table);
      CHECK((found.makespan < 0) == (least < 0));
      if (least < 0) continue;
      CHECK(found.makespan >= least);
      if (found.as_given >= 0) CHECK(found.makespan <= found.as_given);
      ++all;
      optimal += found.makespan == least ? 1 : 0;
      const stretto::arrangement exchanged = stretto::arrange(made, sizes, table, {}, 1);
      CHECK((exchanged.makespan < 0 || exchanged.makespan >= least));
      if (found.as_given >= 0) CHECK(exchanged.makespan <= found.as_given);
      few += exchanged.makespan == least ? 1 : 0;
      gained += found.as_given < 0 || found.makespan < found.as_given ? 1 : 0;
    }
  };
  hold(schedule::one_f_one_b{}, 1, 1, 60);
  hold(schedule::zb_h1{}, 1, 1, 60);
  hold(schedule::interleaved{}, 2, 1, 60);
  hold(schedule::seq_1f1b{}, 1, 2, 40);
  hold(schedule::zb_auto{}, 1, 1, 20);
  MESSAGE(optimal, " of ", all, " are as short as any order; ", gained, " shorter than as given");
  CHECK(optimal == all);  // there are no more orders than tries
  MESSAGE(few, " by exchanges alone");
  CHECK(few * 100 >= all * 80);
  CHECK(gained * 3 >= all);
}

TEST_CASE(
    "arrange: micro-batches that are as long, but slow on different ranks, are put in order") {
  const shape sizes{.ranks = 3, .microbatches = 5};
  stretto::job_table table(3, 1);
  table.classes = {0, 1, 0, 1, 0};
  table.add_class();
  table.at(0, 0, 0, job_kind::forward).time = 9;
  table.at(1, 2, 0, job_kind::forward).time = 9;
  const schedule::one_f_one_b made;
  const stretto::arrangement found = stretto::arrange(made, sizes, table);
  CHECK(found.makespan < found.as_given);
  CHECK(found.makespan == shortest(made, sizes, table));
}

TEST_CASE("arrange: what no schedule serves, or no table fits, has no order") {
  const auto none = [](const auto& made, const shape& sizes, const stretto::job_table& table) {
    const stretto::arrangement found = stretto::arrange(made, sizes, table);
    return found.order.empty() && found.makespan < 0 && found.as_given < 0;
  };
  const schedule::one_f_one_b made;
  const shape sizes{.ranks = 2, .microbatches = 4};
  stretto::job_table table(2, 1);
  CHECK(!none(made, sizes, table));
  CHECK(none(made, {2, 4, 2}, stretto::job_table(2, 2)));
  CHECK(none(made, {2, 4, 1, 0}, table));
  CHECK(none(made, {3, 4}, table));
  CHECK(none(schedule::chimera{}, {3, 4}, stretto::job_table(3, 2)));
  table.classes = {0, 0};
  CHECK(none(made, sizes, table));
  table.classes = {0, 0, 1, 0};
  CHECK(none(made, sizes, table));
}

TEST_CASE("arrange: micro-batches that are alike stay as they are") {
  const stretto::job_table table(3, 1);
  int asked = 0;
  const stretto::arrangement found = stretto::arrange(table, 5, [&](const stretto::job_table&) {
    ++asked;
    return std::int64_t{7};
  });
  CHECK(found.order == std::vector<std::int32_t>{0, 1, 2, 3, 4});
  CHECK(found.makespan == 7);
  CHECK(asked == 1);
}
