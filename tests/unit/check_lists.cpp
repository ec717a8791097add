// What no other test holds of the rules on lists: pairs, sums and gathers of nobody, what a forward
// that runs again takes for a moment.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>

#include "stretto/check/bounded.hpp"
#include "stretto/check/complete.hpp"
#include "stretto/check/ordered.hpp"
#include "support/sample_lists.hpp"

namespace check_lists {
namespace {

using oracle::lists;
using oracle::packed;
using stretto::fault;
using stretto::job;
using stretto::job_kind;
using stretto::reason;
using stretto::verdict;
namespace check = stretto::check;

verdict completeness(const lists& made) {
  const packed rows(made);
  return check::complete(rows.input());
}

job work(job_kind kind, int microbatch, bool paired = false, int stage = 0) {
  return {stage, microbatch, 0, kind, paired};
}
constexpr auto F = job_kind::forward;
constexpr auto B = job_kind::backward;

TEST_CASE("no pair is of two backwards, leads into another pair, or ends with its list") {
  lists made{.ranks = {{work(F, 0), work(F, 1), work(F, 2), work(B, 0), work(B, 1), work(B, 2)}},
             .where = {.microbatches = 3},
             .table = stretto::job_table(1, 1)};
  REQUIRE(completeness(made).ok());
  lists two = made;
  two.ranks[0][3].paired = true;
  CHECK(completeness(two).why == reason::not_a_pair);
  lists chain = made;
  chain.ranks[0] = {work(F, 0), work(F, 1, true), work(B, 0, true),
                    work(F, 2), work(B, 1),       work(B, 2)};
  CHECK(completeness(chain).why == reason::not_a_pair);
  chain.ranks[0][2].paired = false;
  CHECK(completeness(chain).ok());
  // Behind the last job stands the first of the next rank, in memory.
  lists last = samples::emitted(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 2});
  last.ranks[0] = {work(F, 0), work(F, 1), work(B, 0), work(B, 1, true)};
  last.ranks[1] = {work(F, 0, false, 1), work(F, 1, false, 1), work(B, 0, false, 1),
                   work(B, 1, false, 1)};
  const verdict found = completeness(last);
  CHECK(found.why == reason::not_a_pair);
  CHECK(found.step == 3);
  CHECK_FALSE(found.has_other);
}

TEST_CASE("the halves of a pair do not need each other, in rule ordered itself") {
  // Both of one micro-batch: complete, too, refuses that.
  lists made =
      samples::emitted(stretto::schedule::gpipe{}, {.ranks = 1, .microbatches = 1, .chunks = 2});
  made.ranks[0] = {work(F, 0, false, 0), work(F, 0, false, 1), work(B, 0, true, 1),
                   work(B, 0, false, 0)};
  const packed rows(made);
  CHECK(check::ordered(rows.input()).what == fault::disordered);
  CHECK(check::ordered(rows.input()).step == 3);
}

TEST_CASE("there are no lists of no stages") {
  lists made{.ranks = {{}}, .where = {.ranks = 1, .chunks = 0}, .table = stretto::job_table(1, 1)};
  CHECK(completeness(made).why == reason::chunks_below_one);
}

//! One stage on each of two ranks, a micro-batch, and what is appended.
lists two_ranks() {
  return samples::emitted(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 1});
}
void finish(lists& made) {
  for (auto& row : made.ranks) row.push_back({.kind = job_kind::optimizer});
}

TEST_CASE("each replica of each stage is reduced, and by a reduction") {
  lists whole = samples::both_ways(4, 6);
  for (int rank = 0; rank < 4; ++rank)
    for (const int stage : {rank, 3 - rank})
      whole.ranks[static_cast<std::size_t>(rank)].push_back(
          {.stage = stage, .kind = job_kind::reduce_grad});
  finish(whole);
  REQUIRE(completeness(whole).ok());
  for (std::size_t rank = 0; rank < 4; ++rank)
    for (std::size_t step = 0; step < whole.ranks[rank].size(); ++step) {
      if (whole.ranks[rank][step].kind != job_kind::reduce_grad) continue;
      CAPTURE(rank);
      CAPTURE(step);
      lists mutant = whole;
      const job gone = mutant.ranks[rank][step];
      for (const job_kind kind : {job_kind::unshard, job_kind::reshard}) {
        mutant.ranks[rank][step].kind = kind;
        CHECK(completeness(mutant).why == reason::reduction_missing);
      }
      mutant.ranks[rank].erase(mutant.ranks[rank].begin() + samples::at(step));
      const verdict found = completeness(mutant);
      CHECK(found.why == reason::reduction_missing);
      CHECK(found.rank == static_cast<int>(rank));
      CHECK(found.where.stage == gone.stage);
    }
}

constexpr std::int32_t both[] = {0, 1}, beyond[] = {0, 2}, below[] = {-1, 1}, alone[] = {0};

TEST_CASE("every member joins each of its groups, and none twice in another's stead") {
  using enum job_kind;
  lists whole = two_ranks();
  whole.groups = {{both}, {both}};
  for (auto& row : whole.ranks)
    for (const int group : {0, 1}) row.push_back({.microbatch = group, .kind = all_reduce});
  lists made = whole;
  finish(made);
  REQUIRE(completeness(made).ok());
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (const int group : {0, 1}) {
      CAPTURE(rank);
      CAPTURE(group);
      lists mutant = whole;
      std::erase(mutant.ranks[rank], job{.microbatch = group, .kind = all_reduce});
      lists twice = mutant;
      finish(mutant);
      const verdict missed = completeness(mutant);
      CHECK(missed.why == reason::reduction_missing);
      CHECK(missed.rank == static_cast<int>(rank));
      CHECK(missed.where.microbatch == group);
      twice.ranks[1 - rank].push_back({.microbatch = group, .kind = all_reduce});
      finish(twice);
      const verdict found = completeness(twice);
      CHECK(found.why == reason::duplicate);
      CHECK(found.rank == static_cast<int>(1 - rank));
      CHECK(found.where.microbatch == group);
    }
}

TEST_CASE("a member that is no rank joins nothing") {
  for (const auto& members :
       {std::span<const std::int32_t>(beyond), std::span<const std::int32_t>(below)}) {
    lists made = two_ranks();
    made.groups = {{members}};
    for (const std::int32_t member : members)
      if (member >= 0 && member < 2)
        made.ranks[static_cast<std::size_t>(member)].push_back({.kind = job_kind::all_reduce});
    finish(made);
    CHECK(completeness(made).why == reason::reduction_missing);
  }
}

TEST_CASE("a sum or a gather is of a group that there is, with messages or without") {
  lists made = two_ranks();
  made.ranks[0].push_back({.kind = job_kind::all_gather});
  CHECK(completeness(made).why == reason::out_of_range);
  made = two_ranks();
  made.ranks[0].push_back({.kind = job_kind::all_reduce});
  CHECK(completeness(made).ok());  // it may be one that its lowering will know
  made.messages = true;
  CHECK(completeness(made).why == reason::out_of_range);
  made = two_ranks();
  made.ranks[0].push_back({.stage = -1, .kind = job_kind::reduce_grad});
  CHECK(completeness(made).why == reason::out_of_range);
  const packed rows(made);
  CHECK(check::ordered(rows.input()).why == reason::out_of_range);
}

TEST_CASE("a group's sum is prepared by its own stage") {
  using enum job_kind;
  lists made =
      samples::emitted(stretto::schedule::gpipe{}, {.ranks = 1, .microbatches = 1, .chunks = 2});
  made.groups = {{alone, 0, true}, {alone, 1, true}};
  const auto with = [&](int stage) {
    lists summed = made;
    for (const int group : {0, 1}) {
      summed.ranks[0].push_back(
          {.stage = group == 0 ? 0 : stage, .microbatch = group, .kind = reduce_grad});
      summed.ranks[0].push_back({.stage = group, .microbatch = group, .kind = all_reduce});
    }
    finish(summed);
    return completeness(summed);
  };
  REQUIRE(with(1).ok());
  CHECK(with(0).why == reason::reduction_missing);
}

TEST_CASE("a forward that runs again takes for a moment all that it would keep") {
  // Two are there at once at the second forward, and never again: the first is gone before the
  // second runs again.
  lists made{
      .ranks = {{work(F, 0), work(F, 1), work(B, 0), work(job_kind::recompute, 1), work(B, 1)}},
      .where = {.microbatches = 2},
      .table = stretto::job_table(1, 1, {.memory_forward = 10, .memory_backward_weight = -10})};
  made.table.at(0, 0, job_kind::recompute).change = 10;
  made.table.limit = {20};
  REQUIRE(oracle::highest(made, 0) == 20);
  {
    const packed rows(made);
    CHECK(check::bounded(rows.input()).ok());
  }
  made.table.limit = {19};
  {
    const packed rows(made);
    const verdict found = check::bounded(rows.input());
    CHECK(found.what == fault::over_limit);
    CHECK(found.step == 1);
    CHECK(found.amount == 20);
  }
  // Its peak says otherwise where it has one.
  made.table.at(0, 0, job_kind::forward).peak = 1;
  made.table.limit = {11};
  const packed rows(made);
  CHECK(check::bounded(rows.input()).ok());
}

TEST_CASE("a base above the limit is too much without any job, and a stage below 0 has no costs") {
  lists made{.ranks = {{}}, .where = {}, .table = stretto::job_table(1, 1)};
  made.table.base = {5};
  made.table.limit = {4};
  {
    const packed rows(made);
    const verdict found = check::bounded(rows.input());
    CHECK(found.what == fault::over_limit);
    CHECK(found.rank == 0);
    CHECK(found.step == -1);
    CHECK(found.amount == 5);
    CHECK(found.limit == 4);
  }
  made = samples::emitted(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 1});
  made.ranks[0][0].stage = -1;
  const packed rows(made);
  CHECK(check::bounded(rows.input()).what == fault::incomplete);
}

}  // namespace
}  // namespace check_lists
