// Lists as PyTorch lowers them, spoilt in every place: which mutants rule `sharded` finds, by an
// oracle that shares no code with it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "stretto/base/reason_text.hpp"
#include "stretto/check/complete.hpp"
#include "stretto/check/ordered.hpp"
#include "stretto/check/sharded.hpp"
#include "support/sharded_lists.hpp"

namespace {

using oracle::lists;
using oracle::packed;
using samples::at;
using stretto::fault;
using stretto::job;
using stretto::job_kind;
using stretto::reason;
using stretto::verdict;
namespace check = stretto::check;

bool reduces(const lists& made) {
  for (const auto& row : made.ranks)
    for (const job& work : row)
      if (work.kind == job_kind::reduce_grad) return true;
  return false;
}

//! The rules that such lists must keep, all but those between ranks.
verdict verdict_on(const lists& made) {
  const packed rows(made);
  if (const verdict found = check::complete(rows.input()); !found.ok()) return found;
  if (const verdict found = check::ordered(rows.input()); !found.ok()) return found;
  return check::sharded(rows.input());
}

using tally = std::map<reason, int>;

void compare(const lists& made, tally& seen) {
  const verdict found = verdict_on(made);
  ++seen[found.why];
  REQUIRE(found.ok() == oracle::sharded(made));
  if (found.ok()) return;
  const auto& row = made.ranks[static_cast<std::size_t>(found.rank)];
  const job& there = row[static_cast<std::size_t>(found.step)];
  if (found.why != reason::missing) {
    CHECK(found.where == there);
    CHECK((oracle::of_parameters(there) || found.why == reason::not_gathered));
  } else {
    CHECK(found.where == job{.stage = there.stage, .kind = job_kind::reduce_grad});
    CHECK(oracle::makes_gradients(there));
    for (auto later = row.begin() + at(static_cast<std::size_t>(found.step) + 1);
         later != row.end(); ++later)
      CHECK((later->stage != there.stage || !oracle::makes_gradients(*later)));
  }
  // A reduction ahead of a backward is found by rule `ordered`.
  const bool early = found.why == reason::needs_earlier;
  CHECK(found.what == (early ? fault::disordered : fault::missharded));
}

template <class Visitor>
void each_job(const lists& made, Visitor&& visit) {
  for (std::size_t rank = 0; rank < made.ranks.size(); ++rank)
    for (std::size_t step = 0; step < made.ranks[rank].size(); ++step) visit(rank, step);
}

TEST_CASE("a job of parameters that is dropped, moved, doubled, put or made another is found") {
  tally seen;
  for (const auto& [name, made] : samples::lowered_for_pytorch()) {
    CAPTURE(name);
    REQUIRE(verdict_on(made).ok());
    each_job(made, [&, &whole = made](std::size_t rank, std::size_t step) {
      std::set<int> stages;
      for (const job& work : whole.ranks[rank]) stages.insert(work.stage);
      const job_kind kinds[] = {job_kind::unshard, job_kind::reshard, job_kind::reduce_grad};
      const auto with = [&](auto&& change) {
        lists mutant = whole;
        change(mutant.ranks[rank]);
        compare(mutant, seen);
      };
      for (const int stage : stages)
        for (const job_kind kind : kinds) {
          // A pair is one node: nothing can be put between its halves.
          if (step > 0 && whole.ranks[rank][step - 1].paired) continue;
          with([&](auto& row) {
            row.insert(row.begin() + at(step), {.stage = stage, .kind = kind});
          });
        }
      const job work = whole.ranks[rank][step];
      if (!oracle::of_parameters(work)) return;
      with([&](auto& row) { row.erase(row.begin() + at(step)); });
      with([&](auto& row) { row.push_back(work); });
      for (const int stage : stages)
        for (const job_kind kind : kinds)
          with([&](auto& row) { row[step] = {.stage = stage, .kind = kind}; });
      for (std::size_t to = 0; to + 1 < whole.ranks[rank].size(); ++to)
        with([&](auto& row) {
          row.erase(row.begin() + at(step));
          if (to > 0 && row[to - 1].paired) return;
          row.insert(row.begin() + at(to), work);
        });
    });
  }
  for (const reason each :
       {reason::none, reason::not_gathered, reason::gathered_twice, reason::never_dropped,
        reason::missing, reason::duplicate, reason::nothing_to_reduce, reason::needs_earlier}) {
    CAPTURE(describe(each));
    CHECK(seen[each] > 10);
  }
  CHECK(seen.size() == 8);
}

TEST_CASE("a job of parameters that takes the place of any other is found, unless it is as good") {
  tally seen;
  for (const auto& [name, made] : samples::lowered_for_pytorch()) {
    CAPTURE(name);
    each_job(made, [&, &whole = made](std::size_t rank, std::size_t step) {
      if (!oracle::of_parameters(whole.ranks[rank][step])) return;
      for (std::size_t other = 0; other < whole.ranks[rank].size(); ++other) {
        lists mutant = whole;
        std::swap(mutant.ranks[rank][step], mutant.ranks[rank][other]);
        // Where the other job breaks the order, that is found instead.
        lists rest = mutant;
        for (auto& row : rest.ranks) std::erase_if(row, oracle::of_parameters);
        if (verdict_on(rest).ok()) compare(mutant, seen);
      }
    });
  }
  CHECK(seen[reason::none] > 100);
  CHECK(seen[reason::not_gathered] > 100);
  CHECK(seen[reason::needs_earlier] > 10);
}

TEST_CASE("lists may say nothing of weights, or of gradients, but then none of them does") {
  const std::set<job_kind> weights{job_kind::unshard, job_kind::reshard};
  const std::set<job_kind> gradients{job_kind::reduce_grad};
  for (const auto& [name, whole] : samples::lowered_for_pytorch()) {
    CAPTURE(name);
    CHECK(verdict_on(samples::without(whole, weights)).ok());
    CHECK(verdict_on(samples::without(whole, gradients)).ok());
    const bool trains = reduces(whole);
    for (std::size_t rank = 0; rank < whole.ranks.size() && whole.ranks.size() > 1; ++rank) {
      CHECK(verdict_on(samples::without(whole, weights, rank)).why == reason::not_gathered);
      const verdict found = verdict_on(samples::without(whole, gradients, rank));
      CHECK(found.why == (trains ? reason::missing : reason::none));
      CHECK(found.rank == (trains ? static_cast<int>(rank) : -1));
    }
  }
}

TEST_CASE("weights are left gathered by all ranks or none, and where nothing is reduced alone") {
  for (const auto& [name, whole] : samples::lowered_for_pytorch()) {
    CAPTURE(name);
    if (name.ends_with("older")) continue;
    lists left = whole;
    for (auto& row : left.ranks) row.pop_back();
    CHECK(verdict_on(left).why == (reduces(whole) ? reason::never_dropped : reason::none));
    left = samples::older(whole);
    for (std::size_t rank = 0; rank < left.ranks.size() && left.ranks.size() > 1; ++rank) {
      lists but_one = left;
      but_one.ranks[rank].push_back(whole.ranks[rank].back());
      const verdict found = verdict_on(but_one);
      CHECK(found.why == reason::never_dropped);
      CHECK(found.rank == (rank == 0 ? 1 : 0));
    }
  }
}

TEST_CASE("how many stages are gathered at once, and no more than are allowed") {
  int three = 0;
  for (const auto& [name, whole] : samples::lowered_for_pytorch()) {
    CAPTURE(name);
    const packed rows(whole);
    const auto input = rows.input();
    int top = 0;
    for (int rank = 0; rank < input.rows.ranks; ++rank) {
      std::set<int> there;
      std::size_t most = 0;
      for (const job& work : input.rows.row(rank)) {
        if (work.kind == job_kind::unshard) there.insert(work.stage);
        if (work.kind == job_kind::reshard) there.erase(work.stage);
        most = std::max(most, there.size());
      }
      CHECK(check::most_gathered(input.rows, rank) == static_cast<int>(most));
      top = std::max(top, static_cast<int>(most));
    }
    three += top == 3;
    CHECK(check::sharded(input, top).ok());
    const verdict found = check::sharded(input, top - 1);
    CHECK(found.why == reason::too_many_gathered);
    CHECK(found.where.kind == job_kind::unshard);
    CHECK(found.amount == top);
    CHECK(found.limit == top - 1);
    const lists bare = samples::without(whole, {job_kind::unshard, job_kind::reshard});
    const packed none(bare);
    CHECK(check::most_gathered(none.input().rows, 0) == 0);
  }
  CHECK(three > 0);
}

TEST_CASE("a stage out of range is named, and touches nothing") {
  for (const int stage : {-1, 1, 1 << 30})
    for (const job_kind kind : {job_kind::unshard, job_kind::reshard, job_kind::reduce_grad}) {
      stretto::job_lists made(1, 1);
      made.sink().push(0, {.stage = stage, .kind = kind});
      const verdict found =
          check::sharded({.rows = made.rows(), .where = {.ranks = 1}, .costs = {}});
      CHECK(found.what == fault::incomplete);
      CHECK(found.why == reason::out_of_range);
    }
}

}  // namespace
