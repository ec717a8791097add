#include "stretto/plan/gradient_sums.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/check/all.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/dualpipe.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/zb_h1.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::job_lists;
using stretto::job_table;
using stretto::job_time;
using stretto::placement_kind;
using stretto::rank_report;
using stretto::replay_input;

constexpr job sum_of(int stage) {
  return {.stage = stage, .kind = job_kind::reduce_grad};
}

struct summed_step {
  stretto::report all;
  std::vector<rank_report> ranks;
  std::vector<job_time> times;
};
summed_step measured(const replay_input& input) {
  summed_step made{
      {},
      std::vector<rank_report>(static_cast<std::size_t>(input.rows.ranks)),
      std::vector<job_time>(static_cast<std::size_t>(input.rows.ranks * input.rows.stride))};
  made.all = measure(input, made.ranks, made.times);
  return made;
}

std::string listed(const stretto::job_rows& rows, int rank) {
  std::string text;
  for (const job& work : rows.row(rank))
    text += (text.empty() ? "" : " ") + std::string(to_text(work).view());
  return text;
}

template <class Schedule>
std::vector<std::string> with_sums(const Schedule& schedule, const stretto::shape& sizes) {
  job_lists plain(sizes.ranks, schedule.capacity(sizes));
  stretto::job_sink sink = plain.sink();
  const stretto::placement where = place(schedule.placed(), sizes);
  const job_table costs(sizes.ranks, where.chunks);
  REQUIRE(schedule.emit(sizes, costs.view(), sink).ok());
  replay_input input{.rows = plain.rows(),
                     .where = where,
                     .microbatches = sizes.microbatches,
                     .costs = costs.view()};
  const job_lists made = stretto::with_gradient_sums(input);
  input.rows = made.rows();
  CHECK(stretto::check::schedule(input).ok());
  CHECK(stretto::check::sharded(input).ok());
  std::vector<std::string> texts;
  for (int rank = 0; rank < sizes.ranks; ++rank) texts.push_back(listed(made.rows(), rank));
  return texts;
}

//! One rank with both stages: the second's gradients are there first.
constexpr std::int64_t makespan_of_two_stages(std::int64_t sum) {
  const std::array<job, 6> jobs{job{0, 0, 0, job_kind::forward},  job{1, 0, 0, job_kind::forward},
                                job{1, 0, 0, job_kind::backward}, sum_of(1),
                                job{0, 0, 0, job_kind::backward}, sum_of(0)};
  const std::int32_t count = 6;
  const stretto::fixed_job_table<1, 2> costs({.reduce_grad = sum});
  std::array<rank_report, 1> ranks{};
  const replay_input input{.rows = {jobs.data(), &count, 1, 6},
                           .where = {.ranks = 1, .chunks = 2},
                           .microbatches = 1,
                           .costs = costs.view()};
  return measure(input, ranks).makespan;
}
static_assert(makespan_of_two_stages(0) == 6);
static_assert(makespan_of_two_stages(2) == 6 + 2);
static_assert(makespan_of_two_stages(5) == 4 + 5 + 5);

TEST_CASE("sums stand right behind the last job that adds to a stage's gradients, or its pair") {
  CHECK(with_sums(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 2}) ==
        std::vector<std::string>{"0F0 0F1 0B0 0B1 0REDUCE_GRAD", "1F0 1B0 1F1 1B1 1REDUCE_GRAD"});
  CHECK(with_sums(stretto::schedule::zb_h1{}, {.ranks = 2, .microbatches = 2})[0] ==
        "0F0 0F1 0I0 0W0 0I1 0W1 0REDUCE_GRAD");
  // Of two directions each rank has a sum of each stage.
  for (const std::string& list :
       with_sums(stretto::schedule::dualpipe{}, {.ranks = 4, .microbatches = 8})) {
    CAPTURE(list);
    std::size_t sums = 0;
    for (std::size_t at = list.find("REDUCE_GRAD"); at != std::string::npos;
         at = list.find("REDUCE_GRAD", at + 1))
      ++sums;
    CHECK(sums == 2);
  }
  // A pair that ends two stages at once is not torn apart.
  const job jobs[] = {{0, 0, 0, job_kind::forward},         {1, 0, 0, job_kind::forward},
                      {1, 0, 0, job_kind::backward_input},  {0, 0, 0, job_kind::backward_input},
                      {1, 0, 0, job_kind::backward_weight}, {0, 0, 0, job_kind::backward_weight}};
  std::vector<job> paired(std::begin(jobs), std::end(jobs));
  paired[4].paired = true;
  const std::int32_t count = 6;
  const job_table costs(1, 2);
  const job_lists made = stretto::with_gradient_sums({.rows = {paired.data(), &count, 1, 6},
                                                      .where = {.ranks = 1, .chunks = 2},
                                                      .microbatches = 1,
                                                      .costs = costs.view()});
  CHECK(listed(made.rows(), 0) == "0F0 1F0 1I0 0I0 1W0 0W0 1REDUCE_GRAD 0REDUCE_GRAD");
}

TEST_CASE("sums run beside the jobs, one after another, and nobody waits for them but the end") {
  const job jobs[] = {{0, 0, 0, job_kind::forward},  {1, 0, 0, job_kind::forward},
                      {1, 0, 0, job_kind::backward}, sum_of(1),
                      {0, 0, 0, job_kind::backward}, sum_of(0)};
  const std::int32_t count = 6;
  for (const std::int64_t time : {0, 1, 3, 10}) {
    CAPTURE(time);
    job_table costs(1, 2);
    costs.at(0, 1, job_kind::reduce_grad).time = time;
    costs.at(0, 0, job_kind::reduce_grad).time = 2;
    const auto made = measured({.rows = {jobs, &count, 1, 6},
                                .where = {.ranks = 1, .chunks = 2},
                                .microbatches = 1,
                                .costs = costs.view()});
    REQUIRE(made.all.answer.ok());
    CHECK(made.times[3] == job_time{4, 4 + time});
    CHECK(made.times[4] == job_time{4, 6});
    const std::int64_t second = std::max<std::int64_t>(6, 4 + time);
    CHECK(made.times[5] == job_time{second, second + 2});
    CHECK(made.all.jobs_end == 6);
    CHECK(made.all.makespan == second + 2);
    CHECK(made.all.span == second + 2);
    CHECK(made.ranks[0] == rank_report{6, second + 2 - 6, 2});
    CHECK(made.all.bubble == stretto::fraction{second + 2 - 6, second + 2});
  }
}

TEST_CASE("what two ranks have of a stage is one sum, which waits for both and for what they sum") {
  // Two replicas of two stages; the second direction's micro-batch runs last on rank 0.
  const job jobs[] = {{0, 0, 0, job_kind::forward},
                      {0, 0, 0, job_kind::backward},
                      sum_of(0),
                      {1, 1, 0, job_kind::forward},
                      {1, 1, 0, job_kind::backward},
                      sum_of(1),
                      {0, 1, 0, job_kind::forward},
                      {1, 0, 0, job_kind::forward},
                      {1, 0, 0, job_kind::backward},
                      sum_of(1),
                      {0, 1, 0, job_kind::backward},
                      sum_of(0)};
  const std::int32_t counts[] = {6, 6};
  job_table costs(2, 2, {.reduce_grad = 4});
  const replay_input input{
      .rows = {jobs, counts, 2, 6},
      .where = {.kind = placement_kind::bidirectional, .ranks = 2, .chunks = 2, .microbatches = 2},
      .microbatches = 2,
      .costs = costs.view()};
  const auto made = measured(input);
  REQUIRE(made.all.answer.ok());
  const auto at = [&](int rank, int step) {
    return made.times[static_cast<std::size_t>(rank * 6 + step)];
  };
  // Stage 1's parts are there at 8 and 5, stage 0's at 7 and 10.
  const std::int64_t one = std::max(at(0, 4).end, at(1, 2).end);
  const std::int64_t zero = std::max(at(0, 1).end, at(1, 4).end);
  REQUIRE(one < zero);
  CHECK(at(0, 5) == job_time{one, one + 4});
  CHECK(at(1, 3) == at(0, 5));
  CHECK(at(0, 2) == job_time{std::max(zero, one + 4), std::max(zero, one + 4) + 4});
  CHECK(at(1, 5) == at(0, 2));
  CHECK(made.all.makespan == at(0, 2).end);
}

TEST_CASE(
    "a sum of two ranks begins with the later part, whichever is looked at first, and takes the "
    "longer time") {
  const job jobs[] = {{0, 0, 0, job_kind::forward},  {1, 1, 0, job_kind::forward},
                      {1, 1, 0, job_kind::backward}, sum_of(1),
                      {0, 0, 0, job_kind::backward}, sum_of(0),
                      {0, 1, 0, job_kind::forward},  {1, 0, 0, job_kind::forward},
                      {1, 0, 0, job_kind::backward}, sum_of(1),
                      {0, 1, 0, job_kind::backward}, sum_of(0)};
  const std::int32_t counts[] = {6, 6};
  for (const int longer : {0, 1}) {
    CAPTURE(longer);
    job_table costs(2, 2, {.reduce_grad = 1});
    costs.at(longer, 0, job_kind::backward).time = 50;
    costs.at(longer, 1, job_kind::backward).time = 50;
    for (const int chunk : {0, 1}) costs.at(longer, chunk, job_kind::reduce_grad).time = 7;
    const auto made = measured({.rows = {jobs, counts, 2, 6},
                                .where = {.kind = placement_kind::bidirectional,
                                          .ranks = 2,
                                          .chunks = 2,
                                          .microbatches = 2},
                                .microbatches = 2,
                                .costs = costs.view()});
    REQUIRE(made.all.answer.ok());
    const auto at = [&](int rank, int step) {
      return made.times[static_cast<std::size_t>(rank * 6 + step)];
    };
    const std::int64_t one = std::max(at(0, 2).end, at(1, 2).end);
    const std::int64_t zero = std::max(at(0, 4).end, at(1, 4).end);
    CHECK(at(0, 3) == job_time{one, one + 7});
    CHECK(at(1, 3) == at(0, 3));
    CHECK(at(0, 5) == job_time{std::max(zero, one + 7), std::max(zero, one + 7) + 7});
    CHECK(at(1, 5) == at(0, 5));
  }
}

TEST_CASE("a sum of a stage that the rank has not, or of no group, is answered") {
  for (const job& wrong : {sum_of(1), sum_of(-1), sum_of(2)}) {
    const job jobs[] = {{0, 0, 0, job_kind::forward},
                        {0, 0, 0, job_kind::backward},
                        wrong,
                        {1, 0, 0, job_kind::forward},
                        {1, 0, 0, job_kind::backward}};
    const std::int32_t counts[] = {3, 2};
    const job_table costs(2, 1, {.reduce_grad = 1});
    const auto made = measured({.rows = {jobs, counts, 2, 3},
                                .where = {.ranks = 2},
                                .microbatches = 1,
                                .costs = costs.view()});
    CHECK(made.all.answer.what == stretto::fault::incomplete);
    CHECK(made.all.answer.why == stretto::reason::out_of_range);
    CHECK(made.all.answer.step == 2);
    CHECK(made.all.answer.where == wrong);
  }
}

TEST_CASE("a sum that the table of costs has no entry for is answered") {
  // A list without jobs, of which nothing else asks the table.
  const job jobs[] = {sum_of(0)};
  const std::int32_t count = 1;
  for (const job_table& costs : {job_table{}, job_table(1, 0), job_table(0, 1)}) {
    const auto made = measured(
        {.rows = {jobs, &count, 1, 1}, .where = {}, .microbatches = 1, .costs = costs.view()});
    CHECK(made.all.answer.what == stretto::fault::incomplete);
    CHECK(made.all.answer.where == sum_of(0));
  }
}

TEST_CASE("a step takes at least the shortest sum behind its last job") {
  job_table costs(2, 2, {.reduce_grad = 5});
  costs.at(1, 0, job_kind::reduce_grad).time = 3;
  CHECK(stretto::least_gradient_sum({.ranks = 2, .chunks = 2}, costs.view()) == 3);
  CHECK(stretto::least_gradient_sum({.ranks = 2, .chunks = 2}, job_table(2, 2).view()) == 0);
}

}  // namespace

TEST_CASE("of one micro-batch none goes the other way, and the sums of both ways are measured") {
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const stretto::shape sizes{.ranks = ranks, .microbatches = 1};
    const job_table costs(ranks, 2, {.reduce_grad = 4});
    const stretto::planned made(stretto::schedule::dualpipe{}, sizes, costs.view(),
                                stretto::overlap::separate{});
    REQUIRE(made.answer().ok());
    replay_input issued = made.issued();
    issued.costs = costs.view();
    const summed_step found = measured(issued);
    CHECK(found.all.answer.ok());
    CHECK(found.all.makespan >= 3 * ranks + 4);
    // Both ranks' sums begin when all jobs are done, one behind the other.
    if (ranks == 2) CHECK(found.all.makespan == 6 + 2 * 4);
  }
}
