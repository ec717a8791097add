// Sums over data-parallel replicas in plans: where they stand, who takes part, and what a list is
// refused for in which they stand elsewhere.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "stretto/lowering/streams/all.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/schedules.hpp"
#include "unit/issued_lists.hpp"

namespace {

using stretto::action;
using stretto::job;
using stretto::job_kind;
using stretto::shape;

stretto::plan_request request() {
  stretto::plan_request made;
  made.data_parallel = true;
  made.stages = {{.output = 64, .stash = 128, .gradients = 400}};
  made.groups = {{.first = 0, .count = 4, .elements = 3, .wide = true, .shared = true}};
  made.members = {0, 1, 2, 3};
  return made;
}

bool is_gradient(const job& work, int stage) {
  return work.stage == stage &&
         (work.kind == job_kind::backward || work.kind == job_kind::backward_input ||
          work.kind == job_kind::backward_weight);
}

}  // namespace

TEST_CASE("every schedule's sums stand behind the last gradient of their stage and its message") {
  int shapes = 0, early = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    if (schedule.forward_only) continue;
    for (const int chunks : {1, 2}) {
      const shape sizes{.ranks = 4, .microbatches = 8, .chunks = chunks};
      if (!schedule.supports(sizes).ok()) continue;
      CAPTURE(schedule.name);
      CAPTURE(chunks);
      ++shapes;
      const stretto::job_table table(4, place(schedule.placed(), sizes).chunks);
      const stretto::planned made(schedule, sizes, table.view(), stretto::overlap::separate{},
                                  request());
      REQUIRE(made.answer() == stretto::verdict{});
      for (int rank = 0; rank < 4; ++rank) {
        const auto list = made.lists().row(rank);
        int sums = 0;
        for (std::size_t at = 0; at < list.size(); ++at) {
          const job& work = list[at];
          if (work.kind != job_kind::reduce_grad || !made.issued().is_data_parallel(rank, work))
            continue;
          ++sums;
          CHECK(list[at + 1].kind == job_kind::all_reduce);
          CHECK(list[at + 1].microbatch == work.microbatch);
          std::size_t last = at;
          while (!is_gradient(list[last], work.stage)) --last;
          for (std::size_t between = last + 1; between < at; ++between) {
            const job& other = list[between];
            CHECK((is_send(other.kind) || other.kind == job_kind::reduce_grad ||
                   other.kind == job_kind::all_reduce || list[between - 1].paired));
          }
          const bool later = std::any_of(list.begin() + static_cast<std::ptrdiff_t>(at),
                                         list.end(), [&](const job& other) {
            CHECK(!is_gradient(other, work.stage));
            return is_compute(other.kind);
          });
          early += later ? 1 : 0;
          const stretto::instruction& sum =
              made.plans()[static_cast<std::size_t>(rank)].instructions[at + 1];
          CHECK(sum.act == action::all_reduce);
          CHECK(sum.stream == stretto::overlap::separate::data_parallel);
        }
        CHECK(sums == made.where().chunks);
      }
    }
  }
  CHECK(shapes > 20);
  CHECK(early > shapes);  // with two stages a rank, one of them ends before the other
}

TEST_CASE("a sum whose last gradient is the first half of a pair stands behind the pair") {
  const stretto::placement where =
      place(stretto::placement_kind::bidirectional, {.ranks = 2, .microbatches = 2});
  const std::vector<std::vector<job>> lists{
      {{0, 0, 0, job_kind::forward, false},
       {0, 0, 0, job_kind::backward, true},
       {1, 1, 0, job_kind::forward, false},
       {1, 1, 0, job_kind::backward, false}},
      {{1, 0, 0, job_kind::forward, false},
       {1, 0, 0, job_kind::backward, false},
       {0, 1, 0, job_kind::forward, false},
       {0, 1, 0, job_kind::backward, false}}};
  stretto::job_lists compute(2, 4);
  auto sink = compute.sink();
  for (int rank = 0; rank < 2; ++rank)
    for (const job& work : lists[static_cast<std::size_t>(rank)]) sink.push(rank, work);
  const stretto::job_table table(2, 2);
  stretto::plan_request asked;
  asked.data_parallel = true;
  const stretto::planned made({compute.rows(), where, 2, 1, table.view(), false, {}},
                              stretto::overlap::separate{}, asked);
  REQUIRE(made.answer() == stretto::verdict{});
  const auto list = made.lists().row(0);
  const auto sum = std::find_if(list.begin(), list.end(), [](const job& work) {
    return work.kind == job_kind::reduce_grad && work.stage == 0;
  });
  REQUIRE(sum != list.end());
  CHECK((sum - 1)->kind == job_kind::forward);
  CHECK(std::none_of(sum, list.end(),
                     [](const job& work) { return work.kind == job_kind::forward; }));
}

TEST_CASE("a list in which a sum stands elsewhere, or not at all, is refused by name") {
  const shape sizes{.ranks = 4, .microbatches = 8, .chunks = 2};
  const stretto::job_table table(4, 2);
  const stretto::planned made(stretto::schedule::interleaved{}, sizes, table.view(),
                              stretto::overlap::separate{}, request());
  REQUIRE(made.answer().ok());
  CHECK(unit::judged(made, made.lists()).ok());
  const auto spoilt = [&](auto&& spoil) {
    stretto::job_lists copy(4, made.lists().stride);
    auto sink = copy.sink();
    for (int rank = 0; rank < 4; ++rank) {
      std::vector<job> row(made.lists().row(rank).begin(), made.lists().row(rank).end());
      if (rank == 2) spoil(row);
      for (const job& work : row) sink.push(rank, work);
    }
    return unit::judged(made, copy.rows());
  };
  const auto sum_in = [](std::vector<job>& row) {
    return std::find_if(row.begin(), row.end(),
                        [](const job& work) { return work.kind == job_kind::reduce_grad; });
  };
  auto found = spoilt([&](auto& row) { row.erase(sum_in(row), sum_in(row) + 2); });
  CHECK(found.what == stretto::fault::incomplete);
  CHECK(found.why == stretto::reason::reduction_missing);
  CHECK(found.rank == 2);
  CHECK(found.where.kind == job_kind::reduce_grad);
  found = spoilt([&](auto& row) {  // before the gradients
    const std::vector<job> sum(sum_in(row), sum_in(row) + 2);
    row.erase(sum_in(row), sum_in(row) + 2);
    row.insert(row.begin(), sum.begin(), sum.end());
  });
  CHECK(found.what == stretto::fault::disordered);
  CHECK(found.rank == 2);
  CHECK(found.where.kind == job_kind::reduce_grad);
  found = spoilt([&](auto& row) {  // behind the optimizer
    const std::vector<job> sum(sum_in(row), sum_in(row) + 2);
    row.erase(sum_in(row), sum_in(row) + 2);
    row.insert(row.end() - 1, sum.begin(), sum.end());
  });
  CHECK(found.why == stretto::reason::optimizer_not_last);
  CHECK(found.rank == 2);
}

TEST_CASE("workers: shards of replicas, each sum among those whose it is") {
  const shape sizes{.ranks = 4, .microbatches = 4, .chunks = 1};
  const stretto::job_table table(4, 1);
  const stretto::planned made(stretto::schedule::one_f_one_b{}, sizes, table.view(),
                              stretto::overlap::separate{}, request());
  REQUIRE(made.answer().ok());
  const stretto::shared workers(made.plans(), 2, 3);
  REQUIRE(workers.plans().size() == 24);
  for (const stretto::plan_view& plan : workers.plans()) {
    const int rank = plan.rank / 6, replica = plan.rank / 2 % 3, shard = plan.rank % 2;
    CAPTURE(plan.rank);
    int sums = 0, norms = 0;
    for (const stretto::instruction& at : plan.instructions) {
      if (at.act == action::send) CHECK(at.peer % 6 == 2 * replica + shard);
      if (at.act != action::all_reduce) continue;
      const stretto::group_info& group = plan.groups[static_cast<std::size_t>(at.peer)];
      const auto members = plan.members_of(group);
      if (group.wide) {
        ++norms;
        CHECK(members.size() == 24);
        continue;
      }
      ++sums;
      CHECK(group.elements == 100);
      const std::vector<std::int32_t> wanted{6 * rank + shard, 6 * rank + 2 + shard,
                                             6 * rank + 4 + shard};
      CHECK(std::equal(members.begin(), members.end(), wanted.begin(), wanted.end()));
    }
    CHECK(sums == 1);
    CHECK(norms == 1);
  }
}
