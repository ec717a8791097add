// Memory limits: exact at the peak, refused one unit below it, whatever the changes and peaks.
#include <doctest/doctest.h>

#include <random>
#include <string>

#include "stretto/check/bounded.hpp"
#include "stretto/model/verdict_text.hpp"
#include "support/sample_lists.hpp"

namespace {

using oracle::lists;
using oracle::packed;
using stretto::fault;
using stretto::job_kind;
using stretto::verdict;
namespace check = stretto::check;

TEST_CASE("a limit of the peak holds, and one below it does not, on each rank") {
  std::mt19937 random(7);
  const auto upto = [&](int last) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(last + 1));
  };
  for (int round = 0; round < 40; ++round)
    for (auto& [name, made] : samples::all()) {
      CAPTURE(name);
      CAPTURE(round);
      for (auto& cost : made.table.entries) cost = {1, upto(8) - 4, upto(6)};
      // In the end there is no less than at first.
      for (int rank = 0; rank < made.table.ranks; ++rank)
        for (int chunk = 0; chunk < made.table.chunks; ++chunk) {
          const auto change = [&](stretto::job_kind kind) -> std::int64_t& {
            return made.table.at(rank, chunk, kind).change;
          };
          const std::int64_t kept = change(stretto::job_kind::forward) = upto(8);
          change(stretto::job_kind::backward) = upto(3) - kept;
          change(stretto::job_kind::backward_weight) =
              upto(3) - kept - change(stretto::job_kind::backward_input);
          change(stretto::job_kind::reload) = upto(3) - change(stretto::job_kind::offload);
        }
      for (std::size_t rank = 0; rank < made.ranks.size(); ++rank)
        made.table.base.push_back(upto(9));
      std::vector<std::int64_t> highest;
      for (std::size_t rank = 0; rank < made.ranks.size(); ++rank)
        highest.push_back(oracle::highest(made, rank));
      made.table.limit = highest;
      const packed rows(made);
      REQUIRE(check::bounded(rows.input()).ok());
      for (std::size_t rank = 0; rank < made.ranks.size(); ++rank) {
        made.table.limit = highest;
        --made.table.limit[rank];
        const verdict found = check::bounded(rows.input());
        REQUIRE(found.what == fault::over_limit);
        CHECK(found.rank == static_cast<int>(rank));
        CHECK(found.amount == highest[rank]);
        CHECK(found.limit == highest[rank] - 1);
        if (found.step < 0) {
          CHECK(made.table.base[rank] == highest[rank]);
          continue;
        }
        // The first job that needs so much: without it and what follows, the rank would do.
        CHECK(found.where == made.ranks[rank][static_cast<std::size_t>(found.step)]);
        CHECK(oracle::highest(made, rank, static_cast<std::size_t>(found.step)) < highest[rank]);
      }
    }
}

TEST_CASE("1F1B keeps min(m, p - r) micro-batches, gpipe m") {
  const stretto::shape sizes{.ranks = 4, .microbatches = 9};
  auto made = samples::emitted(stretto::schedule::one_f_one_b{}, sizes);
  made.table.limit = {4, 3, 2, 1};
  const packed rows(made);
  CHECK(check::bounded(rows.input()).ok());
  auto filled = samples::emitted(stretto::schedule::gpipe{}, sizes);
  filled.table.limit = {9, 9, 9, 8};
  const packed filled_rows(filled);
  const verdict found = check::bounded(filled_rows.input());
  CHECK(found.rank == 3);
  CHECK(found.where.kind == job_kind::forward);
  CHECK(found.where.microbatch == 8);
  CHECK(found.step == 8);
}

TEST_CASE("both halves of a pair count at once") {
  // A forward takes 5, a backward gives 5 back at its end: alternating they never pass 10, paired
  // the new forward is there before the old one is gone.
  lists made{
      .ranks = {{{0, 0, 0, job_kind::forward},
                 {0, 1, 0, job_kind::forward, true},
                 {0, 0, 0, job_kind::backward},
                 {0, 1, 0, job_kind::backward}}},
      .where = {.microbatches = 2},
      .table = stretto::job_table(1, 1, {.memory_forward = 5, .memory_backward_weight = -5})};
  made.table.at(0, 0, job_kind::backward).peak = 2;
  made.table.limit = {11};
  const packed rows(made);
  const verdict found = check::bounded(rows.input());
  CHECK(found.what == fault::over_limit);
  CHECK(found.step == 1);
  CHECK(found.amount == 12);
  made.table.limit = {12};
  CHECK(check::bounded(rows.input()).ok());
}

TEST_CASE("no limit is held by memory that there is not") {
  auto made = samples::emitted(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 3});
  made.table = stretto::job_table(2, 1, {.memory_backward_weight = -10});
  made.table.base = {4, 4};
  made.table.limit = {7, 7};
  const packed rows(made);
  const verdict found = check::bounded(rows.input());
  CHECK(
      std::string(stretto::to_text(found).view()) ==
      "unsupported on rank 0: the rank's jobs give back more memory than they take: what a forward "
      "keeps, its backward gives back, once (left in the end: -23, at first: 4)");
  // What stays is there, and no less.
  made.table = stretto::job_table(2, 1, {.memory_forward = 10});
  CHECK(check::bounded(rows.input()).ok());
}

TEST_CASE("a job that the table has no entry for is refused") {
  auto made =
      samples::emitted(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 1, .chunks = 2});
  made.table = stretto::job_table(2, 1);
  const packed rows(made);
  CHECK(check::bounded(rows.input()).what == fault::incomplete);
  made.table = stretto::job_table(2, 2);
  made.ranks[1][0].stage = 4;
  const packed outside(made);
  CHECK(check::bounded(outside.input()).what == fault::incomplete);
}

}  // namespace
