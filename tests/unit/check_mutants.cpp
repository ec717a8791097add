// Valid lists, spoilt in every place and in every way: which rule finds it, and whether it points
// at the place. An oracle that knows only the definitions says what is to be found; some mutants
// (two independent jobs swapped) stay valid, and must stay accepted.
#include <doctest/doctest.h>

#include <stdexcept>

#include "stretto/check/complete.hpp"
#include "stretto/check/live.hpp"
#include "stretto/check/ordered.hpp"
#include "stretto/lowering/communication.hpp"
#include "support/sample_lists.hpp"

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

//! How often each answer was right, so that a test cannot pass by never asking.
struct tally {
  int valid = 0;
  int incomplete = 0;
  int disordered = 0;
  int deadlocked = 0;
};

//! All three rules against the oracle. A verdict must also stand where it says that it stands.
void compare(const lists& made, tally& seen) {
  const packed rows(made);
  const verdict complete = check::complete(rows.input());
  REQUIRE(complete.ok() == oracle::complete(made));
  for (const verdict& found : {complete, check::ordered(rows.input()), check::live(rows.input())}) {
    if (found.ok() || found.step < 0) continue;
    const auto& row = made.ranks[static_cast<std::size_t>(found.rank)];
    REQUIRE(found.where == row[static_cast<std::size_t>(found.step)]);
  }
  if (!complete.ok()) {
    ++seen.incomplete;
    CHECK(complete.what == fault::incomplete);
    return;
  }
  const verdict ordered = check::ordered(rows.input());
  const verdict live = check::live(rows.input());
  REQUIRE(ordered.ok() == oracle::ordered(made));
  if (!made.messages) REQUIRE(live.ok() == oracle::live(made));
  if (!ordered.ok()) {
    ++seen.disordered;
    CHECK(ordered.what == fault::disordered);
    CHECK(ordered.why == reason::needs_earlier);
    CHECK(oracle::needs(made, ordered.where, ordered.other));
    CHECK_FALSE(live.ok());
  } else if (!live.ok()) {
    ++seen.deadlocked;
    CHECK(live.what == (made.messages ? fault::rendezvous : fault::deadlocked));
  } else {
    ++seen.valid;
  }
}

template <class Visitor>
void each_job(const lists& made, Visitor&& visit) {
  for (std::size_t rank = 0; rank < made.ranks.size(); ++rank)
    for (std::size_t step = 0; step < made.ranks[rank].size(); ++step) visit(rank, step);
}

lists lowered(const lists& made) {
  const packed rows(made);
  const auto input = rows.input();
  stretto::job_lists storage(input.rows.ranks, stretto::lowering::with_messages(input.rows.stride));
  auto sink = storage.sink();
  REQUIRE(stretto::lowering::add_messages(input, sink).ok());
  lists with = samples::with_rows(made, storage.rows());
  with.messages = true;
  return with;
}

TEST_CASE("the samples are valid") {
  tally seen;
  for (const auto& [name, made] : samples::all()) {
    CAPTURE(name);
    compare(made, seen);
    compare(lowered(made), seen);
  }
  CHECK(seen.valid == 2 * static_cast<int>(samples::all().size()));
}

TEST_CASE("a dropped job is missed, by name and rank") {
  for (const auto& [name, made] : samples::all()) {
    CAPTURE(name);
    each_job(made, [&, &whole = made](std::size_t rank, std::size_t step) {
      lists mutant = whole;
      job gone = mutant.ranks[rank][step];
      mutant.ranks[rank].erase(mutant.ranks[rank].begin() + at(step));
      const packed rows(mutant);
      const verdict found = check::complete(rows.input());
      REQUIRE(found.ok() == (gone.kind == job_kind::recompute));
      if (found.ok()) return;
      gone.paired = false;
      CHECK(found.what == fault::incomplete);
      CHECK(found.rank == static_cast<int>(rank));
      CHECK(found.step == -1);
      CHECK(found.where == gone);
      CHECK(found.why == (gone.kind == job_kind::backward_weight  ? reason::weight_gradient_missing
                          : gone.kind == job_kind::backward_input ? reason::input_gradient_missing
                                                                  : reason::missing));
    });
  }
}

TEST_CASE("a doubled job is found where it stands the second time") {
  for (const auto& [name, made] : samples::all()) {
    CAPTURE(name);
    each_job(made, [&, &whole = made](std::size_t rank, std::size_t step) {
      const job work = whole.ranks[rank][step];
      for (std::size_t to = 0; to <= whole.ranks[rank].size(); ++to) {
        lists mutant = whole;
        mutant.ranks[rank].insert(mutant.ranks[rank].begin() + at(to), work);
        const packed rows(mutant);
        const verdict found = check::complete(rows.input());
        CHECK(found.what == fault::incomplete);
        // Doubled behind its backward, a recompute is late before it is double.
        if (found.why == reason::needs_earlier) continue;
        CHECK(found.why == reason::duplicate);
        CHECK(found.rank == static_cast<int>(rank));
        CHECK(found.step == static_cast<int>(std::max(to, to <= step ? step + 1 : step)));
        CHECK(found.other == work);
        CHECK(found.amount == static_cast<std::int64_t>(std::min(to, step)));
      }
    });
  }
}

TEST_CASE("a job retargeted to any other is found") {
  for (const auto& [name, made] : samples::all()) {
    CAPTURE(name);
    tally seen;
    tally recomputes;  // which may be spoilt by their order, or be as good elsewhere
    each_job(made, [&, &whole = made](std::size_t rank, std::size_t step) {
      const bool again = whole.ranks[rank][step].kind == job_kind::recompute;
      const auto with = [&](auto&& change) {
        lists mutant = whole;
        change(mutant.ranks[rank][step]);
        if (mutant.ranks[rank][step] == whole.ranks[rank][step]) return;
        compare(mutant, again ? recomputes : seen);
      };
      for (int stage = -1; stage <= whole.where.stages(); ++stage)
        with([&](job& work) { work.stage = stage; });
      for (int microbatch = -1; microbatch <= whole.where.microbatches; ++microbatch)
        with([&](job& work) { work.microbatch = microbatch; });
      for (int slice = -1; slice <= whole.slices; ++slice)
        with([&](job& work) { work.slice = static_cast<std::int16_t>(slice); });
      for (const job_kind kind : {job_kind::forward, job_kind::backward, job_kind::backward_input,
                                  job_kind::backward_weight, job_kind::recompute,
                                  job_kind::offload, job_kind::reload})
        with([&](job& work) { work.kind = kind; });
    });
    CHECK(seen.incomplete > 0);
    CHECK(seen.valid + seen.disordered + seen.deadlocked == 0);
  }
}

TEST_CASE("a job moved to another rank is found there") {
  for (const auto& [name, made] : samples::all()) {
    CAPTURE(name);
    each_job(made, [&, &whole = made](std::size_t rank, std::size_t step) {
      for (std::size_t to = 0; to < whole.ranks.size(); ++to) {
        if (to == rank) continue;
        lists mutant = whole;
        mutant.ranks[to].push_back(mutant.ranks[rank][step]);
        mutant.ranks[rank].erase(mutant.ranks[rank].begin() + at(step));
        const packed rows(mutant);
        const verdict found = check::complete(rows.input());
        CHECK(found.why == reason::wrong_rank);
        CHECK(found.rank == static_cast<int>(to));
        CHECK(found.step == static_cast<int>(whole.ranks[to].size()));
      }
    });
  }
}

TEST_CASE("a half added to a whole backward, or a whole to a half, is named as such") {
  using enum job_kind;
  const std::pair<job_kind, job_kind> mixes[] = {{backward, backward_input},
                                                 {backward, backward_weight},
                                                 {backward_input, backward},
                                                 {backward_weight, backward}};
  for (const auto& [name, made] : samples::all()) {
    CAPTURE(name);
    each_job(made, [&, &whole = made](std::size_t rank, std::size_t step) {
      for (const auto& [there, added] : mixes) {
        if (whole.ranks[rank][step].kind != there) continue;
        lists mutant = whole;
        job extra = whole.ranks[rank][step];
        extra.kind = added;
        mutant.ranks[rank].insert(mutant.ranks[rank].begin() + at(step + 1), extra);
        const packed rows(mutant);
        const verdict found = check::complete(rows.input());
        CHECK(found.why == reason::both_whole_and_split);
        CHECK(found.rank == static_cast<int>(rank));
        CHECK(oracle::same_cell(found.where, extra));
        CHECK(oracle::same_cell(found.other, extra));
        CHECK((found.where.kind == backward) != (found.other.kind == backward));
      }
    });
  }
}

TEST_CASE("forward-only lists offload nothing; what is recomputed is not offloaded") {
  auto made = samples::emitted(stretto::schedule::inference{}, {.ranks = 2, .microbatches = 2});
  made.ranks[1].push_back({1, 1, 0, job_kind::offload});
  made.ranks[1].push_back({1, 1, 0, job_kind::reload});
  const packed rows(made);
  CHECK(check::complete(rows.input()).why == reason::missing);
  CHECK(check::complete(rows.input()).where == job{1, 1, 0, job_kind::backward});
  lists both = samples::emitted(stretto::schedule::gpipe{}, {.ranks = 1, .microbatches = 1});
  auto& row = both.ranks[0];
  row = {row[0], job{.kind = job_kind::offload}, job{.kind = job_kind::reload},
         job{.kind = job_kind::recompute}, row[1]};
  const packed twice(both);
  const verdict found = check::complete(twice.input());
  CHECK(found.why == reason::offload_recomputed);
  CHECK(found.where == job{.kind = job_kind::offload});
  CHECK(found.other == job{.kind = job_kind::recompute});
}

TEST_CASE("forward-only lists recompute nothing") {
  auto made = samples::emitted(stretto::schedule::inference{}, {.ranks = 2, .microbatches = 2});
  made.ranks[1].push_back({1, 1, 0, job_kind::recompute});
  const packed rows(made);
  const verdict found = check::complete(rows.input());
  CHECK(found.why == reason::missing);
  CHECK(found.where == job{1, 1, 0, job_kind::backward});
}

//! Every two jobs of a rank swapped.
tally swapped(const lists& whole) {
  tally seen;
  each_job(whole, [&](std::size_t rank, std::size_t step) {
    for (std::size_t other = step + 1; other < whole.ranks[rank].size(); ++other) {
      lists mutant = whole;
      std::swap(mutant.ranks[rank][step], mutant.ranks[rank][other]);
      compare(mutant, seen);
    }
  });
  return seen;
}

TEST_CASE("swapped jobs are found out of order or deadlocked, unless they are independent") {
  tally all;
  for (const auto& [name, made] : samples::all()) {
    CAPTURE(name);
    const tally seen = swapped(made);
    all.valid += seen.valid;
    all.incomplete += seen.incomplete;
    all.disordered += seen.disordered;
    all.deadlocked += seen.deadlocked;
  }
  // Incomplete: a recompute swapped behind its backward.
  CHECK(all.valid > 100);
  CHECK(all.incomplete > 10);
  CHECK(all.disordered > 100);
  CHECK(all.deadlocked > 100);
}

TEST_CASE("a job on no rank, or one more than a list holds, touches nothing and is named") {
  stretto::job_lists made(2, 1);
  stretto::job_sink out = made.sink();
  const job work{1, 7, 0, job_kind::forward};
  for (const int rank : {-1, 2, 1 << 30})
    CHECK_THROWS_WITH_AS(out.push(rank, work), doctest::Contains("there is no rank"),
                         std::length_error);
  out.push(1, work);
  CHECK_THROWS_WITH_AS(
      out.push(1, work),
      "stretto::job_sink: the list of rank 1 is full before the job of stage 1 and "
      "micro-batch 7",
      std::length_error);
  CHECK(made.rows().total() == 1);
}

TEST_CASE("with messages: received before use, sent after it is made") {
  tally all;
  for (const auto& [name, made] : samples::all()) {
    if (made.where.microbatches > 5) continue;
    CAPTURE(name);
    all.disordered += swapped(lowered(made)).disordered;
  }
  CHECK(all.disordered > 100);
}

}  // namespace
