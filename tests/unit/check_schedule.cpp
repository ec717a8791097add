// Rules asked together, and of lists that are to be forwards alone.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "stretto/check/all.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/plan/arrange.hpp"
#include "stretto/plan/picture.hpp"
#include "stretto/plan/report.hpp"
#include "support/sample_lists.hpp"

namespace check_schedule {
namespace {

using oracle::lists;
using oracle::packed;
using stretto::fault;
using stretto::job;
using stretto::job_kind;
using stretto::reason;
using stretto::verdict;
namespace check = stretto::check;

verdict schedule(const lists& made) {
  const packed rows(made);
  return check::schedule(rows.input());
}

TEST_CASE("of costs that do not fit, and of too many jobs, check::schedule says just that") {
  using stretto::job_table;
  const stretto::shape sizes{.ranks = 4, .microbatches = 4};
  const lists made = samples::emitted(stretto::schedule::one_f_one_b{}, sizes);
  const packed rows(made);
  const auto said = [&](const job_table& table, const auto& change) {
    stretto::replay_input input = rows.input();
    input.costs = table.view();
    change(input);
    std::vector<stretto::rank_report> ranks(4);
    (void)stretto::lower_bound(input.where, input.costs);  // reads nothing that is not there
    (void)stretto::measure(input, ranks);
    return check::schedule(input);
  };
  const auto as_it_is = [](const stretto::replay_input&) {};
  const job_table sound(4, 1);
  CHECK(said(sound, as_it_is).ok());
  job_table table = sound;
  table.base = {2};
  CHECK(said(table, as_it_is).why == reason::costs_do_not_fit);
  table = sound;
  table.limit = {2, 2};
  CHECK(said(table, as_it_is).why == reason::costs_do_not_fit);
  CHECK(said(job_table(3, 1), as_it_is).why == reason::costs_do_not_fit);
  CHECK(said(job_table(), as_it_is).why == reason::costs_do_not_fit);
  table = sound;
  table.communication = -9;
  CHECK(said(table, as_it_is).why == reason::hop_out_of_range);
  table = sound;
  table.at(2, 0, job_kind::forward).time = -3;
  const verdict found = said(table, as_it_is);
  CHECK(found.why == reason::time_out_of_range);
  CHECK(found.rank == 2);
  CHECK(found.amount == -3);
  CHECK(said(sound, [](auto& input) { input.microbatches = 1 << 30, input.slices = 30000; }).why ==
        reason::shape_too_large);
  std::vector<stretto::rank_report> ranks(4);
  stretto::replay_input more = rows.input();
  more.costs = sound.view();
  more.where.ranks = 5;
  CHECK(stretto::measure(more, ranks).answer.why == reason::ranks_differ);
}

TEST_CASE("what wants a place for every job, or a class of every micro-batch, refuses less") {
  const lists made =
      samples::emitted(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 3});
  const packed rows(made);
  const stretto::job_table table(2, 1);
  stretto::replay_input input = rows.input();
  input.costs = table.view();
  CHECK_THROWS_AS((void)stretto::critical_path(input, {}), std::invalid_argument);
  CHECK_THROWS_AS((void)stretto::draw_simulated(input, {}, {}, true), std::invalid_argument);
  stretto::job_table classes = table;
  classes.add_class();
  classes.classes = {0, 1, 0};
  const auto any = [](const stretto::job_table&) -> std::int64_t { return 1; };
  CHECK_THROWS_AS((void)stretto::arrange(classes, 9, any), std::invalid_argument);
  CHECK_THROWS_AS((void)stretto::arrange(classes, -9, any), std::invalid_argument);
  CHECK(stretto::arrange(classes, 3, any).makespan == 1);
}

TEST_CASE("check::schedule asks each rule of lists, in order") {
  const lists whole =
      samples::emitted(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 3});
  REQUIRE(schedule(whole).ok());
  lists mutant = whole;
  mutant.ranks[1].pop_back();
  CHECK(schedule(mutant).what == fault::incomplete);
  mutant = whole;  // only rule ordered asks when a reduction stands
  mutant.ranks[0].insert(mutant.ranks[0].begin(), {.stage = 0, .kind = job_kind::reduce_grad});
  CHECK(schedule(mutant).what == fault::disordered);
  mutant = whole;
  std::swap(mutant.ranks[1][0], mutant.ranks[1][4]);  // the last micro-batch first
  std::swap(mutant.ranks[1][1], mutant.ranks[1][5]);
  CHECK(schedule(mutant).what == fault::deadlocked);
  mutant = whole;
  mutant.table.limit = {1, 1};
  CHECK(schedule(mutant).what == fault::over_limit);
}

TEST_CASE("check::schedule asks for the rendezvous of lists with messages") {
  lists made = samples::emitted(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 2});
  const packed rows(made);
  const auto input = rows.input();
  stretto::job_lists storage(2, stretto::lowering::with_messages(input.rows.stride));
  auto sink = storage.sink();
  REQUIRE(stretto::lowering::add_messages(input, sink).ok());
  lists with = samples::with_rows(made, storage.rows());
  with.messages = true;
  REQUIRE(schedule(with).ok());
  int swapped = 0;
  for (std::size_t step = 0; step + 1 < with.ranks[1].size(); ++step) {
    if (!is_receive(with.ranks[1][step].kind)) continue;
    for (std::size_t other = step + 1; other < with.ranks[1].size(); ++other) {
      if (with.ranks[1][other].kind != with.ranks[1][step].kind) continue;
      lists mutant = with;  // two of a channel, each before its use still
      std::swap(mutant.ranks[1][step], mutant.ranks[1][other]);
      const packed spoilt(mutant);
      if (!check::ordered(spoilt.input()).ok()) continue;
      CHECK(schedule(mutant).what == fault::rendezvous);
      ++swapped;
    }
  }
  CHECK(swapped > 0);
}

TEST_CASE("of forwards alone each is there, and no backward, wherever it stands") {
  const lists whole =
      samples::emitted(stretto::schedule::inference{}, {.ranks = 2, .microbatches = 2});
  const auto judged = [](const lists& made) {
    const packed rows(made);
    return check::complete(rows.input(), check::lists_of::forwards);
  };
  REQUIRE(judged(whole).ok());
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (std::size_t step = 0; step <= whole.ranks[rank].size(); ++step) {
      CAPTURE(rank);
      CAPTURE(step);
      lists mutant = whole;
      const job more{static_cast<int>(rank), 1, 0, job_kind::backward};
      mutant.ranks[rank].insert(mutant.ranks[rank].begin() + samples::at(step), more);
      const verdict found = judged(mutant);
      CHECK(found.why == reason::backward_of_forwards);
      CHECK(found.rank == static_cast<int>(rank));
      CHECK(found.step == static_cast<int>(step));
      if (step == whole.ranks[rank].size()) continue;
      mutant = whole;
      const job gone = mutant.ranks[rank][step];
      mutant.ranks[rank].erase(mutant.ranks[rank].begin() + samples::at(step));
      CHECK(judged(mutant).why == reason::missing);
      CHECK(judged(mutant).where == gone);
    }
}

}  // namespace
}  // namespace check_schedule
