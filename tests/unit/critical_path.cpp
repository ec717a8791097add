#include "stretto/plan/critical_path.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/model/job_text.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/measured_path.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/paired_1f1b.hpp"

namespace {

using stretto::critical_job;
using stretto::job;
using stretto::job_kind;
using stretto::job_table;
using stretto::replay_input;

std::vector<stretto::job_time> timed(const replay_input& input) {
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(input.rows.ranks));
  std::vector<stretto::job_time> times(
      static_cast<std::size_t>(input.rows.ranks * input.rows.stride));
  REQUIRE(measure(input, ranks, times).answer.ok());
  return times;
}

//! `0F0 1F0@2`: 1F0 starts 2 behind the end of 0F0; `x3` where three messages follow one another.
std::string told(const replay_input& input, const std::vector<critical_job>& path) {
  std::string text;
  for (const critical_job& one : path) {
    text +=
        (text.empty() ? "" : " ") + std::string(to_text(input.rows.at(one.rank, one.step)).view());
    if (one.waited > 0) text += "@" + std::to_string(one.waited);
    if (one.messages > 1) text += "x" + std::to_string(one.messages);
  }
  return text;
}

template <class Schedule>
std::string path_of(const Schedule& schedule, const stretto::shape& sizes, const job_table& costs) {
  stretto::job_lists lists;
  REQUIRE(emit_jobs(schedule, sizes, {}, costs.view(), lists).ok());
  const replay_input input{.rows = lists.rows(),
                           .where = place(schedule.placed(), sizes),
                           .microbatches = sizes.microbatches,
                           .costs = costs.view()};
  return told(input, critical_path(input, timed(input)));
}

}  // namespace

TEST_CASE("a critical path of 1F1B goes down, along the last rank, and up") {
  const stretto::shape sizes{.ranks = 3, .microbatches = 3};
  CHECK(path_of(stretto::schedule::one_f_one_b{}, sizes, job_table(3, 1)) ==
        "0F0 1F0 2F0 2B0 2F1 2B1 2F2 2B2 1B2 0B2");
  CHECK(path_of(stretto::schedule::one_f_one_b{}, sizes, {3, 1, {.communication = 2}}) ==
        "0F0 1F0@2 2F0@2 2B0 1B0@2 1F2 2F2@2 2B2 1B2@2 0B2@2");
  // A slow rank has the path for itself.
  job_table slow(3, 1);
  for (const job_kind kind : {job_kind::forward, job_kind::backward}) slow.at(1, 0, kind).time = 10;
  CHECK(path_of(stretto::schedule::one_f_one_b{}, sizes, slow) ==
        "0F0 1F0 1F1 1B0 1F2 1B1 1B2 0B2");
}

TEST_CASE("messages that follow one another on a link are all on the path") {
  job_table costs(2, 1, {.communication = 5});
  costs.serial_links = true;
  CHECK(path_of(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 3}, costs) ==
        "0F0 1F2@15x3 1B0 0B2@15x3");
}

TEST_CASE("a pair is one, told by its first half") {
  CHECK(path_of(stretto::schedule::paired_1f1b{}, {.ranks = 2, .microbatches = 3},
                {2, 1, {.communication = 1}}) == "0F0 1F0@1 1F1 1F2 0B1@1 0B2");
  // As measured its halves may overlap, or lie within one another: it is one from first to last.
  const job jobs[] = {{0, 0, 0, job_kind::forward},
                      {0, 1, 0, job_kind::forward, true},
                      {0, 0, 0, job_kind::backward}};
  const std::int32_t count = 3;
  const job_table costs(1, 1);
  const replay_input input{
      .rows = {jobs, &count, 1, 3}, .where = {}, .microbatches = 2, .costs = costs.view()};
  for (const std::vector<stretto::job_time>& measured :
       {std::vector<stretto::job_time>{{0, 2}, {3, 6}, {5, 9}}, {{0, 2}, {4, 8}, {3, 9}}}) {
    const std::vector<critical_job> path = critical_path(input, measured);
    CHECK(told(input, path) == "0F0 0F1@1");
    CHECK(path.back().when == stretto::job_time{3, 9});
    CHECK(path.back().pair);
  }
}

TEST_CASE("halves of a pair that ran one after the other wait each for its own") {
  // 1F1 and 1B0 of rank 1 are a pair.
  const job jobs[] = {{0, 0, 0, job_kind::forward},  {0, 1, 0, job_kind::forward},
                      {0, 0, 0, job_kind::backward}, {0, 1, 0, job_kind::backward},
                      {1, 0, 0, job_kind::forward},  {1, 1, 0, job_kind::forward, true},
                      {1, 0, 0, job_kind::backward}, {1, 1, 0, job_kind::backward}};
  const std::int32_t counts[] = {4, 4};
  const job_table costs(2, 1);
  const replay_input input{.rows = {jobs, counts, 2, 4},
                           .where = {.ranks = 2},
                           .microbatches = 2,
                           .costs = costs.view()};
  // 1F1 is over long before 0F1's end would let a pair begin, had it not; 1B0 begins late by
  // itself.
  std::vector<stretto::job_time> measured{{0, 2},  {2, 5},   {30, 40}, {41, 50},
                                          {3, 10}, {11, 15}, {18, 28}, {28, 36}};
  const std::vector<critical_job> path = critical_path(input, measured);
  CHECK(told(input, path) == "0F0 1F0@1 1F1@1 1B0@3 0B0@2 0B1@1");
  for (const critical_job& one : path) {
    CHECK_FALSE(one.pair);
    CHECK(one.waited >= 0);
  }
  CHECK(shares_of(path) == stretto::path_shares{.jobs = 42, .messages = 3, .lost = 5});
}

TEST_CASE("a receive's lead counts pairs as the list has them, whatever ran when") {
  const job jobs[] = {{0, 0, 0, job_kind::forward},  {0, 1, 0, job_kind::forward, true},
                      {0, 0, 0, job_kind::backward}, {},
                      {1, 0, 0, job_kind::forward},  {1, 0, 0, job_kind::backward}};
  const std::int32_t counts[] = {3, 2};
  const job_table costs(2, 1, {.communication = 1});
  const replay_input input{.rows = {jobs, counts, 2, 4},
                           .where = {.ranks = 2},
                           .microbatches = 2,
                           .costs = costs.view(),
                           .receive_lead = 0};
  // 0B0's receive is posted behind 0F0, not behind the other half of its pair.
  const std::vector<stretto::job_time> measured{{0, 2}, {2, 20}, {21, 25}, {}, {3, 5}, {5, 8}};
  const std::vector<critical_job> path = critical_path(input, measured);
  CHECK(told(input, path) == "0F0 0F1 0B0@1");
  CHECK(path.back().messages == 0);
}

TEST_CASE("behind a pair a receive is posted when both of its halves are done") {
  const job jobs[] = {{0, 0, 0, job_kind::forward},
                      {0, 1, 0, job_kind::forward, true},
                      {0, 0, 0, job_kind::backward},
                      {0, 2, 0, job_kind::forward},
                      {0, 1, 0, job_kind::backward},
                      {1, 0, 0, job_kind::forward},
                      {1, 0, 0, job_kind::backward},
                      {1, 1, 0, job_kind::forward},
                      {1, 1, 0, job_kind::backward},
                      {}};
  const std::int32_t counts[] = {5, 4};
  const job_table costs(2, 1, {.communication = 10});
  const replay_input input{.rows = {jobs, counts, 2, 5},
                           .where = {.ranks = 2},
                           .microbatches = 3,
                           .costs = costs.view(),
                           .receive_lead = 1};
  const std::vector<stretto::job_time> measured{{0, 2},   {2, 4},   {20, 40}, {40, 41}, {50, 60},
                                                {12, 13}, {13, 14}, {14, 15}, {15, 16}, {}};
  const std::vector<critical_job> path = critical_path(input, measured);
  CHECK(told(input, path) == "0F0 1F0@10 1B0 0B0@6 0B1@10");
  CHECK(path.back().messages == 1);
}

TEST_CASE("of a job that is there twice, which no rule lets be, no path goes round") {
  // 0B0 has its gradient of the first 1B0; the second comes behind what follows it.
  const job jobs[] = {{0, 0, 0, job_kind::forward}, {0, 0, 0, job_kind::backward},
                      {0, 1, 0, job_kind::forward}, {},
                      {1, 0, 0, job_kind::forward}, {1, 0, 0, job_kind::backward},
                      {1, 1, 0, job_kind::forward}, {1, 0, 0, job_kind::backward}};
  const std::int32_t counts[] = {3, 4};
  const job_table costs(2, 1);
  const replay_input input{.rows = {jobs, counts, 2, 4},
                           .where = {.ranks = 2},
                           .microbatches = 2,
                           .costs = costs.view()};
  CHECK(critical_path(input, timed(input)).empty());
}

TEST_CASE("who is held up by the others of a group has their jobs on its path") {
  // Rank 1 does nothing itself, comes to a group with rank 0, and sums by itself then.
  const job jobs[] = {{0, 0, 0, job_kind::forward},
                      {0, 0, 0, job_kind::all_reduce},
                      {},
                      {1, 0, 0, job_kind::all_reduce},
                      {3, 1, 0, job_kind::reduce_grad},
                      {3, 1, 0, job_kind::all_reduce}};
  const std::int32_t counts[] = {2, 3};
  const std::int32_t both[] = {0, 1};
  const std::int32_t one[] = {1};
  const stretto::rank_group groups[] = {{.members = both}, {.members = one, .stage = 3}};
  job_table costs(2, 2, {.forward = 10});
  costs.at(1, 1, job_kind::reduce_grad).time = 5;
  const replay_input input{.rows = {jobs, counts, 2, 3},
                           .where = {.ranks = 2, .chunks = 2},
                           .microbatches = 1,
                           .costs = costs.view(),
                           .messages = true,
                           .groups = groups};
  const std::vector<stretto::job_time> times = timed(input);
  REQUIRE(times[4] == stretto::job_time{10, 15});
  CHECK(told(input, critical_path(input, times)) == "0F0 3REDUCE_GRAD1");
}

TEST_CASE("ranks that come together again and again are asked once for each group") {
  // Rank 0 computes; then all come to each of the groups, and the last rank sums by itself. Asked
  // anew for every member of every group they would never be done.
  constexpr int ranks = 24;
  constexpr int together = 12;
  constexpr int stride = 2 + 2 * together;
  std::vector<std::int32_t> all(ranks);
  for (int rank = 0; rank < ranks; ++rank) all[static_cast<std::size_t>(rank)] = rank;
  const std::int32_t last[] = {ranks - 1};
  std::vector<stretto::rank_group> groups(together, {.members = all});
  groups.push_back({.members = last, .stage = ranks - 1});
  job_table costs(ranks, 1, {.forward = 10, .reduce_grad = 5});
  for (const int times : {1, 2}) {
    stretto::job_lists lists(ranks, stride);
    stretto::job_sink out = lists.sink();
    out.push(0, {0, 0, 0, job_kind::forward});
    for (int rank = 0; rank < ranks; ++rank)
      for (int group = 0; group < together; ++group)
        for (int time = 0; time < times; ++time)
          out.push(rank, {0, group, 0, job_kind::all_reduce});
    out.push(ranks - 1, {ranks - 1, together, 0, job_kind::reduce_grad});
    const replay_input input{.rows = lists.rows(),
                             .where = {.ranks = ranks},
                             .microbatches = together + 1,
                             .costs = costs.view(),
                             .messages = true,
                             .groups = groups};
    const std::string path = told(input, critical_path(input, timed(input)));
    // What is there twice breaks the rules: then the path need but end.
    if (times == 1) CHECK(path == "0F0 23REDUCE_GRAD12");
  }
}

TEST_CASE(
    "of a measured step what came last of all that a job waited for is on it, and how long it "
    "waited") {
  const stretto::shape sizes{.ranks = 2, .microbatches = 2};
  const job_table costs(2, 1);
  stretto::job_lists lists;
  REQUIRE(emit_jobs(stretto::schedule::one_f_one_b{}, sizes, {}, costs.view(), lists).ok());
  replay_input input{
      .rows = lists.rows(), .where = {.ranks = 2}, .microbatches = 2, .costs = costs.view()};
  // 0F0 0F1 0B0 0B1, then 1F0 1B0 1F1 1B1. Rank 1 begins each a little late.
  const std::vector<stretto::job_time> measured{{3, 10},  {12, 20}, {43, 60}, {61, 70},
                                                {11, 20}, {22, 40}, {41, 48}, {49, 58}};
  const std::vector<critical_job> path = critical_path(input, measured);
  CHECK(told(input, path) == "0F0@3 1F0@1 1B0@2 0B0@3 0B1@1");
  CHECK(path[1].messages == 1);
  CHECK(path[2].messages == 0);
  CHECK(path[3].messages == 1);
  CHECK(path[4].messages == 0);
  CHECK(shares_of(path) == stretto::path_shares{.jobs = 60, .messages = 4, .lost = 6});
  CHECK(shares_of(path).sum() == 70);
  // A message that takes long came later than what the rank itself had done.
  const job_table slow(2, 1, {.communication = 5});
  input.costs = slow.view();
  CHECK(told(input, critical_path(input, measured)) == "0F0@3 1F0@1 1B0@2 1F1@1 1B1@1 0B1@3");

  // What was not measured stands at 0.
  const stretto::job_time first{3, 10};
  const auto timeline = stretto::measured_timeline(input.rows, [&](const job& work) {
    return work == job{0, 0, 0, job_kind::forward} ? &first : nullptr;
  });
  REQUIRE(timeline.size() == measured.size());
  CHECK(timeline[0] == first);
  CHECK(timeline[4] == stretto::job_time{});

  const std::int32_t none[] = {0, 0};
  input.rows.counts = none;
  CHECK(critical_path(input, measured).empty());
}
