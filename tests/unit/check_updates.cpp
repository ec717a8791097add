// What stands once a step: optimizer, reductions, the step's end; and shapes that mean nothing.
#include <doctest/doctest.h>

#include "stretto/check/complete.hpp"
#include "stretto/check/ordered.hpp"
#include "support/sample_lists.hpp"

namespace {

using oracle::lists;
using oracle::packed;
using stretto::fault;
using stretto::job;
using stretto::job_kind;
using stretto::reason;
using stretto::verdict;
namespace check = stretto::check;

constexpr std::int32_t tied[] = {0, 2};

//! 1F1B on three ranks, the first and the last of which share a parameter.
lists updated() {
  lists made = samples::emitted(stretto::schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 4});
  made.groups = {{tied}};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    auto& row = made.ranks[rank];
    row.push_back({.stage = static_cast<int>(rank), .kind = job_kind::reduce_grad});
    if (rank != 1) row.push_back({.kind = job_kind::all_reduce});
    row.push_back({.kind = job_kind::optimizer});
    row.push_back({.kind = job_kind::end_step});
  }
  return made;
}

verdict completeness_of(const lists& made) {
  const packed rows(made);
  return check::complete(rows.input());
}
verdict order_of(const lists& made) {
  const packed rows(made);
  return check::ordered(rows.input());
}
job take(lists& made, std::size_t rank, job_kind kind) {
  auto& row = made.ranks[rank];
  const auto found =
      std::find_if(row.begin(), row.end(), [&](const job& work) { return work.kind == kind; });
  const job gone = *found;
  row.erase(found);
  return gone;
}

TEST_CASE("a step with updates is accepted") {
  CHECK(completeness_of(updated()).ok());
  CHECK(order_of(updated()).ok());
}

TEST_CASE("nothing but the step's end follows the optimizer") {
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const lists whole = updated();
    const auto update = whole.ranks[rank].size() - 2;
    for (std::size_t to = 0; to < update; ++to) {
      lists mutant = whole;
      const job moved = take(mutant, rank, job_kind::optimizer);
      mutant.ranks[rank].insert(mutant.ranks[rank].begin() + static_cast<std::ptrdiff_t>(to),
                                moved);
      const verdict found = completeness_of(mutant);
      CHECK(found.what == fault::incomplete);
      CHECK(found.why == reason::optimizer_not_last);
      CHECK(found.rank == static_cast<int>(rank));
      CHECK(found.step == static_cast<int>(to));
      CHECK(found.other == mutant.ranks[rank][to + 1]);
    }
  }
}

TEST_CASE("every rank updates once") {
  for (std::size_t rank = 0; rank < 3; ++rank) {
    lists mutant = updated();
    take(mutant, rank, job_kind::optimizer);
    CHECK(completeness_of(mutant).why == reason::missing);
    CHECK(completeness_of(mutant).where.kind == job_kind::optimizer);
    CHECK(completeness_of(mutant).rank == static_cast<int>(rank));
    mutant = updated();
    mutant.ranks[rank].insert(mutant.ranks[rank].end() - 1, {.kind = job_kind::optimizer});
    CHECK(completeness_of(mutant).why == reason::duplicate);
  }
}

TEST_CASE("every member of a group reduces, and nobody else") {
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
    lists mutant = updated();
    take(mutant, rank, job_kind::all_reduce);
    const verdict found = completeness_of(mutant);
    CHECK(found.why == reason::reduction_missing);
    CHECK(found.rank == static_cast<int>(rank));
  }
  lists mutant = updated();
  auto& row = mutant.ranks[1];
  row.insert(row.end() - 2, {.kind = job_kind::all_reduce});
  CHECK(completeness_of(mutant).why == reason::wrong_rank);
  CHECK(completeness_of(mutant).rank == 1);
  mutant = updated();
  mutant.ranks[0][mutant.ranks[0].size() - 3].microbatch = 1;
  CHECK(completeness_of(mutant).why == reason::out_of_range);
}

TEST_CASE("what is summed twice is no sum") {
  for (const job_kind kind : {job_kind::reduce_grad, job_kind::all_reduce}) {
    // On all members alike, so that each finds its partners.
    lists mutant = updated();
    for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
      auto& row = mutant.ranks[rank];
      const job again =
          *std::find_if(row.begin(), row.end(), [&](const job& work) { return work.kind == kind; });
      row.insert(row.end() - 2, again);
    }
    const verdict found = completeness_of(mutant);
    CHECK(found.why == reason::duplicate);
    CHECK(found.rank == 0);
    CHECK(found.where.kind == kind);
    CHECK(found.other == found.where);
    CHECK(found.amount == found.step - (kind == job_kind::reduce_grad ? 2 : 1));
  }
  // A list may sum for two groups, or for two stages.
  lists both = updated();
  both.groups.push_back(both.groups.front());
  for (const std::size_t rank : {std::size_t{0}, std::size_t{2}}) {
    auto& row = both.ranks[rank];
    for (const job_kind kind : {job_kind::reduce_grad, job_kind::all_reduce})
      row.insert(row.end() - 2, {.stage = static_cast<int>(rank), .microbatch = 1, .kind = kind});
  }
  CHECK(completeness_of(both).ok());
}

TEST_CASE("a reduction is its stage's rank's, and comes after the gradients") {
  lists mutant = updated();
  job moved = take(mutant, 2, job_kind::reduce_grad);
  mutant.ranks[2].insert(mutant.ranks[2].begin() + 3, moved);
  CHECK(completeness_of(mutant).ok());
  CHECK(order_of(mutant).what == fault::disordered);
  CHECK(order_of(mutant).rank == 2);
  CHECK(order_of(mutant).step == 3);
  mutant = updated();
  moved = take(mutant, 2, job_kind::reduce_grad);
  mutant.ranks[0].insert(mutant.ranks[0].begin(), moved);
  CHECK(completeness_of(mutant).why == reason::wrong_rank);
  mutant.ranks[0][0].stage = 3;
  CHECK(completeness_of(mutant).why == reason::out_of_range);
  CHECK(order_of(mutant).why == reason::out_of_range);
}

TEST_CASE("replicas on two ranks reduce before they update") {
  lists made = samples::both_ways(4, 6);
  const auto finish = [&] {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      for (const int stage : {static_cast<int>(rank), 3 - static_cast<int>(rank)})
        made.ranks[rank].push_back({.stage = stage, .kind = job_kind::reduce_grad});
      made.ranks[rank].push_back({.kind = job_kind::optimizer});
    }
  };
  finish();
  REQUIRE(completeness_of(made).ok());
  take(made, 1, job_kind::reduce_grad);
  const verdict found = completeness_of(made);
  CHECK(found.why == reason::reduction_missing);
  CHECK(found.rank == 1);
  CHECK(found.where.stage == 1);
}

//! 1F1B on two ranks, each with data-parallel replicas.
constexpr std::int32_t first_rank[] = {0}, second_rank[] = {1};
lists summed() {
  lists made = samples::emitted(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 4});
  made.groups = {{first_rank, 0, true}, {second_rank, 1, true}};
  for (int rank = 0; rank < 2; ++rank) {
    auto& row = made.ranks[static_cast<std::size_t>(rank)];
    row.push_back({.stage = rank, .microbatch = rank, .kind = job_kind::reduce_grad});
    row.push_back({.stage = rank, .microbatch = rank, .kind = job_kind::all_reduce});
    row.push_back({.stage = rank, .kind = job_kind::optimizer});
  }
  return made;
}

TEST_CASE("every stage's gradients are summed over data-parallel replicas before the optimizer") {
  REQUIRE(completeness_of(summed()).ok());
  REQUIRE(order_of(summed()).ok());
  for (int rank = 0; rank < 2; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    for (const job_kind kind : {job_kind::reduce_grad, job_kind::all_reduce}) {
      lists mutant = summed();
      const job gone = take(mutant, at, kind);
      verdict found = completeness_of(mutant);
      CHECK(found.what == fault::incomplete);
      CHECK(found.why == reason::reduction_missing);
      CHECK(found.rank == rank);
      CHECK(found.where.kind == kind);
      CHECK(found.where.microbatch == rank);
      mutant.ranks[at].push_back(gone);  // behind the optimizer
      found = completeness_of(mutant);
      CHECK(found.why == reason::optimizer_not_last);
      CHECK(found.rank == rank);
      CHECK(found.other == gone);
    }
    lists mutant = summed();
    mutant.ranks[at][mutant.ranks[at].size() - 3].stage = 1 - rank;  // another's
    CHECK(completeness_of(mutant).why == reason::wrong_rank);
    mutant = summed();
    mutant.ranks[at][mutant.ranks[at].size() - 3].microbatch = 1 - rank;
    CHECK(completeness_of(mutant).why == reason::reduction_missing);
    mutant = summed();
    const job moved = take(mutant, at, job_kind::reduce_grad);
    mutant.ranks[at].insert(mutant.ranks[at].begin() + 4, moved);
    const verdict found = order_of(mutant);
    CHECK(found.what == fault::disordered);
    CHECK(found.step == 4);
    CHECK(found.where == moved);
  }
}

TEST_CASE("the step's end is one, and last") {
  lists mutant = updated();
  std::swap(*(mutant.ranks[1].end() - 1), *(mutant.ranks[1].end() - 2));
  CHECK(order_of(mutant).what == fault::disordered);
  CHECK(order_of(mutant).where.kind == job_kind::end_step);
  mutant = updated();
  mutant.ranks[1].push_back({.kind = job_kind::end_step});
  CHECK(completeness_of(mutant).why == reason::duplicate);
}

TEST_CASE("what is saved on the host is brought back before the backward") {
  lists made = samples::emitted(stretto::schedule::gpipe{}, {.ranks = 1, .microbatches = 1});
  const job away{.kind = job_kind::offload};
  const job back{.kind = job_kind::reload};
  auto& row = made.ranks[0];
  row = {row[0], away, back, row[1]};
  CHECK(completeness_of(made).ok());
  CHECK(order_of(made).ok());
  for (const auto& [one, other] : {std::pair{0, 1}, std::pair{1, 2}, std::pair{2, 3}}) {
    lists mutant = made;
    std::swap(mutant.ranks[0][static_cast<std::size_t>(one)],
              mutant.ranks[0][static_cast<std::size_t>(other)]);
    CHECK(order_of(mutant).what == fault::disordered);
  }
}

TEST_CASE("shapes that mean nothing are refused") {
  const lists made = samples::emitted(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 2});
  const packed rows(made);
  auto input = rows.input();
  input.microbatches = 0;
  CHECK(check::complete(input).why == reason::microbatches_below_one);
  input = rows.input();
  input.slices = 0;
  CHECK(check::complete(input).why == reason::slices_below_one);
  input = rows.input();
  input.where = {.kind = stretto::placement_kind::table, .ranks = 2};
  CHECK(check::complete(input).what == fault::incomplete);
  input = rows.input();
  input.rows.ranks = 0;
  CHECK(check::complete(input).why == reason::ranks_below_one);
}

}  // namespace
