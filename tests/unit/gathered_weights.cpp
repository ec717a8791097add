#include "stretto/plan/gathered_weights.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/check/all.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/plan/report.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::job_table;
using stretto::job_time;
using stretto::replay_input;

constexpr job gather(int stage) {
  return {.stage = stage, .kind = job_kind::unshard};
}
constexpr job drop(int stage) {
  return {.stage = stage, .kind = job_kind::reshard};
}

// One rank with two stages, of which one at a time has its weights.
constexpr std::array<job, 10> one_by_one{gather(0),
                                         job{0, 0, 0, job_kind::forward},
                                         drop(0),
                                         gather(1),
                                         job{1, 0, 0, job_kind::forward},
                                         job{1, 0, 0, job_kind::backward},
                                         drop(1),
                                         gather(0),
                                         job{0, 0, 0, job_kind::backward},
                                         drop(0)};

//! The same at compile time.
constexpr stretto::report measured(std::int64_t time, std::int64_t memory, std::int64_t* peak) {
  const std::int32_t count = 10;
  const stretto::fixed_job_table<1, 2> costs({.unshard = time, .memory_unshard = memory});
  std::array<stretto::rank_report, 1> ranks{};
  const stretto::report all = measure({.rows = {one_by_one.data(), &count, 1, 10},
                                       .where = {.ranks = 1, .chunks = 2},
                                       .microbatches = 1,
                                       .costs = costs.view()},
                                      ranks);
  *peak = ranks[0].peak;
  return all;
}
constexpr std::int64_t makespan_of(std::int64_t time) {
  std::int64_t peak = 0;
  return measured(time, 0, &peak).makespan;
}
constexpr std::int64_t peak_of(std::int64_t memory) {
  std::int64_t peak = 0;
  (void)measured(1, memory, &peak);
  return peak;
}
static_assert(makespan_of(0) == 6);
static_assert(makespan_of(5) == 6 + 3 * 5);
static_assert(peak_of(0) == 2);
static_assert(peak_of(7) == 2 + 7);

std::string row_text(const stretto::job_rows& rows, int rank) {
  std::string text;
  for (const job& work : rows.row(rank))
    text += (text.empty() ? "" : " ") + std::string(to_text(work).view());
  return text;
}

std::string gathered(const std::vector<job>& jobs, int chunks, int most) {
  const auto count = static_cast<std::int32_t>(jobs.size());
  const job_table costs(1, chunks);
  const stretto::job_lists made =
      stretto::with_gathered_weights({.rows = {jobs.data(), &count, 1, count},
                                      .where = {.ranks = 1, .chunks = chunks},
                                      .microbatches = 1,
                                      .costs = costs.view()},
                                     most);
  return row_text(made.rows(), 0);
}

}  // namespace

TEST_CASE("weights are gathered for what comes next, and dropped to make room") {
  const std::vector<job> jobs{{0, 0, 0, job_kind::forward},  {1, 0, 0, job_kind::forward},
                              {2, 0, 0, job_kind::forward},  {2, 0, 0, job_kind::backward},
                              {1, 0, 0, job_kind::backward}, {0, 0, 0, job_kind::backward}};
  CHECK(gathered(jobs, 3, 1) ==
        "0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 1RESHARD 2UNSHARD 2F0 2B0 2RESHARD 1UNSHARD 1B0 "
        "1RESHARD 0UNSHARD 0B0 0RESHARD");
  CHECK(gathered(jobs, 3, 2) ==
        "0UNSHARD 1UNSHARD 0F0 0RESHARD 2UNSHARD 1F0 2F0 2B0 2RESHARD 0UNSHARD 1B0 1RESHARD "
        "0B0 0RESHARD");
  CHECK(gathered(jobs, 3, 3) ==
        "0UNSHARD 1UNSHARD 2UNSHARD 0F0 1F0 2F0 2B0 2RESHARD 1B0 1RESHARD 0B0 0RESHARD");
  CHECK(gathered({}, 3, 3).empty());
  // The halves of a pair run together.
  std::vector<job> paired{{0, 0, 0, job_kind::forward},
                          {1, 0, 0, job_kind::forward, true},
                          {0, 0, 0, job_kind::backward},
                          {1, 0, 0, job_kind::backward}};
  CHECK(gathered(paired, 2, 2) == "0UNSHARD 1UNSHARD 0F0 1F0 0B0 0RESHARD 1B0 1RESHARD");
  // So may both leave at once, the lowest first,
  CHECK(gathered({{1, 0, 0, job_kind::forward, true}, {0, 0, 0, job_kind::backward}}, 2, 2) ==
        "1UNSHARD 0UNSHARD 1F0 0B0 0RESHARD 1RESHARD");
  // and of these one that comes back next stays.
  paired = {{0, 0, 0, job_kind::forward, true},
            {1, 0, 0, job_kind::backward},
            {2, 0, 0, job_kind::forward},
            {0, 0, 0, job_kind::backward}};
  CHECK(gathered(paired, 3, 2) ==
        "0UNSHARD 1UNSHARD 0F0 1B0 1RESHARD 2UNSHARD 2F0 2RESHARD 0B0 0RESHARD");
  // Messages and copies need none.
  CHECK(gathered({{0, 0, 0, job_kind::receive_forward},
                  {0, 0, 0, job_kind::forward},
                  {0, 0, 0, job_kind::offload},
                  {0, 0, 0, job_kind::send_forward}},
                 1, 1) == "0RECV_F0 0UNSHARD 0F0 0OFFLOAD0 0SEND_F0 0RESHARD");
}

TEST_CASE("gathers run beside the jobs, one after another; jobs of their stage wait for them") {
  const job jobs[] = {gather(0),
                      gather(1),
                      {0, 0, 0, job_kind::forward},
                      {1, 0, 0, job_kind::forward},
                      {1, 0, 0, job_kind::backward},
                      {0, 0, 0, job_kind::backward},
                      drop(0),
                      drop(1)};
  const std::int32_t count = 8;
  job_table costs(1, 2, {.forward = 2, .memory_forward = 3, .memory_backward_weight = -3});
  costs.at(0, 0, job_kind::unshard) = {4, 10, 0};
  costs.at(0, 1, job_kind::unshard) = {5, 20, 0};
  std::vector<stretto::rank_report> ranks(1);
  std::vector<job_time> times(8);
  const auto all = stretto::measure({.rows = {jobs, &count, 1, 8},
                                     .where = {.ranks = 1, .chunks = 2},
                                     .microbatches = 1,
                                     .costs = costs.view()},
                                    ranks, times);
  REQUIRE(all.answer.ok());
  CHECK(times[0] == job_time{0, 4});
  CHECK(times[1] == job_time{4, 9});
  CHECK(times[2] == job_time{4, 6});
  CHECK(times[3] == job_time{9, 11});
  CHECK(all.makespan == 15);
  CHECK(all.jobs_end == 15);
  CHECK(ranks[0] == stretto::rank_report{8, 7, 10 + 20 + 3 + 3});
  // From the first job on: what comes before it is no part of the rank's span.
  CHECK(all.span == 11);
}

TEST_CASE("what takes no time behind a gather stands where the jobs are, not where that ends") {
  const job jobs[] = {
      gather(0), {0, 0, 0, job_kind::receive_backward}, {0, 0, 0, job_kind::forward}, drop(0)};
  const std::int32_t count = 4;
  const job_table costs(1, 1, {.unshard = 9});
  std::vector<stretto::rank_report> ranks(1);
  std::vector<job_time> times(4);
  REQUIRE(stretto::measure(
              {.rows = {jobs, &count, 1, 4}, .where = {}, .microbatches = 1, .costs = costs.view()},
              ranks, times)
              .answer.ok());
  CHECK(times[0] == job_time{0, 9});
  CHECK(times[1] == job_time{0, 0});
  CHECK(times[2] == job_time{9, 10});
  CHECK(times[3] == job_time{10, 10});
}

TEST_CASE("what is gathered counts against a rank's limit") {
  const std::int32_t count = 10;
  job_table costs(1, 2, {.unshard = 1, .memory_unshard = 7});
  const replay_input input{.rows = {one_by_one.data(), &count, 1, 10},
                           .where = {.ranks = 1, .chunks = 2},
                           .microbatches = 1,
                           .costs = costs.view()};
  costs.limit = {9};
  replay_input limited = input;
  limited.costs = costs.view();
  CHECK(stretto::check::bounded(limited).ok());
  costs.limit = {8};
  limited.costs = costs.view();
  const stretto::verdict found = stretto::check::bounded(limited);
  CHECK(found.what == stretto::fault::over_limit);
  CHECK(found.amount == 9);
  CHECK(found.step == 4);  // the second forward, on the second stage's weights
}

TEST_CASE("a gather, or drop, of a stage that the rank has not is answered") {
  for (const job& wrong : {gather(1), gather(-1), gather(2), drop(1)}) {
    const job jobs[] = {wrong, {0, 0, 0, job_kind::forward}, {1, 0, 0, job_kind::forward}};
    const std::int32_t counts[] = {2, 1};
    job all[4] = {jobs[0], jobs[1], jobs[2]};
    const job_table costs(2, 1, {.unshard = 1});
    std::vector<stretto::rank_report> ranks(2);
    const auto told = stretto::measure({.rows = {all, counts, 2, 2},
                                        .where = {.ranks = 2},
                                        .microbatches = 1,
                                        .costs = costs.view()},
                                       ranks);
    CHECK(told.answer.what == stretto::fault::incomplete);
    CHECK(told.answer.why == stretto::reason::out_of_range);
    CHECK(told.answer.step == 0);
    CHECK(told.answer.where == wrong);
  }
}

TEST_CASE("a receive lead and a gather: a job waits for the later") {
  // Stage 1's message comes as late as its receive is posted, its weights as late as they come.
  const job jobs[] = {
      gather(0), {0, 0, 0, job_kind::forward}, {0, 1, 0, job_kind::forward}, drop(0),
      gather(1), {1, 0, 0, job_kind::forward}, {1, 1, 0, job_kind::forward}, drop(1)};
  const std::int32_t counts[] = {4, 4};
  for (const std::int64_t time : {1, 20}) {
    job_table costs(2, 1, {.forward = 2, .communication = 6});
    costs.at(1, 0, job_kind::unshard).time = time;
    std::vector<stretto::rank_report> ranks(2);
    std::vector<job_time> times(8);
    const auto all = stretto::measure({.rows = {jobs, counts, 2, 4},
                                       .where = {.ranks = 2},
                                       .microbatches = 2,
                                       .costs = costs.view(),
                                       .receive_lead = 0},
                                      ranks, times);
    REQUIRE(all.answer.ok());
    CHECK(times[5].start == std::max<std::int64_t>(2 + 6, time));
    CHECK(times[6].start == times[5].end + 6);  // posted behind the first
  }
}
