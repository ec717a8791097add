#include "stretto/plan/report.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "stretto/check/all.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace {

using stretto::fault;
using stretto::job;
using stretto::job_cost;
using stretto::job_kind;
using stretto::job_lists;
using stretto::job_table;
using stretto::job_time;
using stretto::measure;
using stretto::rank_report;
using stretto::reason;
using stretto::replay_input;

struct measured {
  stretto::report all;
  std::vector<rank_report> ranks;
  std::vector<job_time> times;
  int stride;

  job_time at(int rank, int step) const {
    return times[static_cast<std::size_t>(rank * stride + step)];
  }
};

measured run(const replay_input& input) {
  measured made{{},
                std::vector<rank_report>(static_cast<std::size_t>(input.rows.ranks)),
                std::vector<job_time>(
                    static_cast<std::size_t>(input.rows.ranks * input.rows.stride), {-7, -7}),
                input.rows.stride};
  made.all = measure(input, made.ranks, made.times);
  return made;
}

template <class Schedule>
measured run(const Schedule& schedule, const stretto::shape& sizes, const job_table& costs) {
  job_lists lists(sizes.ranks, schedule.capacity(sizes));
  auto sink = lists.sink();
  REQUIRE(schedule.emit(sizes, costs.view(), sink).ok());
  return run({.rows = lists.rows(),
              .where = place(schedule.placed(), sizes),
              .microbatches = sizes.microbatches,
              .costs = costs.view()});
}

// Fill and drain at compile time: (m + p - 1) * (F + B), with B = I + W = 2.
constexpr std::int64_t gpipe_makespan() {
  constexpr stretto::shape sizes{.ranks = 3, .microbatches = 4};
  constexpr stretto::schedule::gpipe schedule;
  stretto::fixed_job_table<3, 1> costs;
  stretto::fixed_job_lists<3, schedule.capacity(sizes)> lists;
  auto sink = lists.sink();
  if (!schedule.emit(sizes, costs.view(), sink).ok()) return -1;
  std::array<rank_report, 3> ranks;
  return measure({.rows = lists.rows(),
                  .where = place(schedule.placed(), sizes),
                  .microbatches = 4,
                  .costs = costs.view()},
                 ranks)
      .makespan;
}
static_assert(gpipe_makespan() == (4 + 3 - 1) * 3);

TEST_CASE("fill and drain, and 1F1B, take (m + p - 1) (F + B) and idle (p - 1) (F + B)") {
  for (int ranks = 1; ranks <= 6; ++ranks)
    for (int microbatches = 1; microbatches <= 9; ++microbatches) {
      const stretto::shape sizes{.ranks = ranks, .microbatches = microbatches};
      const job_table costs(ranks, 1, {.forward = 2, .backward_input = 3, .backward_weight = 1});
      const auto filled = run(stretto::schedule::gpipe{}, sizes, costs);
      const auto alternating = run(stretto::schedule::one_f_one_b{}, sizes, costs);
      for (const auto* made : {&filled, &alternating}) {
        REQUIRE(made->all.answer.ok());
        CHECK(made->all.makespan == (microbatches + ranks - 1) * 6);
        CHECK(made->all.span == made->all.makespan);  // rank 0's is the first job and the last
        CHECK(made->all.bubble ==
              stretto::fraction{(ranks - 1) * 6, (microbatches + ranks - 1) * 6});
        for (const auto& rank : made->ranks) {
          CHECK(rank.busy == microbatches * 6);
          CHECK(rank.idle == (ranks - 1) * 6);
        }
      }
      for (int rank = 0; rank < ranks; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        CHECK(filled.ranks[at].peak == microbatches);
        CHECK(alternating.ranks[at].peak == std::min(microbatches, ranks - rank));
      }
    }
}

TEST_CASE("a span is one rank's, from its own first job") {
  const stretto::shape sizes{.ranks = 3, .microbatches = 2};
  const auto forwards = run(stretto::schedule::inference{}, sizes, job_table(3, 1));
  CHECK(forwards.all.makespan == 4);
  CHECK(forwards.all.span == 2);
}

TEST_CASE("a hop between ranks is charged once per message, none within a rank") {
  const auto made = run(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 1},
                        job_table(2, 1, {.communication = 5}));
  CHECK(made.at(0, 0) == job_time{0, 1});
  CHECK(made.at(1, 0) == job_time{6, 7});
  CHECK(made.at(1, 1) == job_time{7, 9});
  CHECK(made.at(0, 1) == job_time{14, 16});
  CHECK(made.all.bubble == stretto::fraction{13, 16});
  CHECK(made.all.bubble.value() == doctest::Approx(13.0 / 16));

  // A wave hands over on the last rank: forward 0, 1, 1, 0 with two hops.
  const auto wave =
      run(stretto::schedule::gpipe{stretto::placement_kind::wave},
          {.ranks = 2, .microbatches = 1, .chunks = 2}, job_table(2, 2, {.communication = 5}));
  CHECK(wave.at(1, 1) == job_time{7, 8});
  CHECK(wave.all.makespan == 4 + 8 + 4 * 5);
}

TEST_CASE(
    "memory: a forward takes at its start, other jobs give at their end, peaks within count") {
  const job jobs[] = {{0, 0, 0, job_kind::forward},         {0, 1, 0, job_kind::forward},
                      {0, 0, 0, job_kind::backward_input},  {0, 1, 0, job_kind::backward_input},
                      {0, 0, 0, job_kind::backward_weight}, {0, 1, 0, job_kind::backward_weight}};
  const std::int32_t count = 6;
  job_table costs(1, 1);
  costs.at(0, 0, job_kind::forward) = {1, 5, 7};
  costs.at(0, 0, job_kind::backward_input) = {1, -2, 3};
  costs.at(0, 0, job_kind::backward_weight) = {1, -3, 1};
  const auto peak = [&] {
    return run({.rows = {jobs, &count, 1, 6},
                .where = {},
                .microbatches = 2,
                .costs = costs.view()})
        .ranks[0]
        .peak;
  };
  CHECK(peak() == 13);  // 10 after two forwards, 3 more inside the first I
  costs.base = {100};
  CHECK(peak() == 113);
  costs.at(0, 0, job_kind::backward_input) = {1, -2, 0};
  CHECK(peak() == 112);  // 5 after the first forward, 7 inside the second
  costs.at(0, 0, job_kind::forward) = {1, 5, 0};
  CHECK(peak() == 110);
  costs.at(0, 0, job_kind::backward_input) = {1, 4, 0};
  CHECK(peak() == 119);  // a growing I counts from its end: 118, and 1 more inside W
}

TEST_CASE("a pair runs once: for as long as is not hidden, with both halves' memory at once") {
  const job jobs[] = {{0, 0, 0, job_kind::forward},
                      {0, 1, 0, job_kind::forward, true},
                      {0, 0, 0, job_kind::backward},
                      {0, 1, 0, job_kind::backward}};
  const std::int32_t count = 4;
  job_table costs(1, 1);
  costs.at(0, 0, job_kind::forward) = {3, 2, 3};
  costs.at(0, 0, job_kind::backward) = {5, -2, 4};
  for (const auto& [hides, time] : {std::pair{0, 8}, {50, 7}, {100, 5}}) {
    costs.pair_hides = hides;
    const auto made =
        run({.rows = {jobs, &count, 1, 4}, .where = {}, .microbatches = 2, .costs = costs.view()});
    REQUIRE(made.all.answer.ok());
    CHECK(made.at(0, 1) == job_time{3, 3 + time});
    CHECK(made.at(0, 2) == job_time{3, 3 + time});
    CHECK(made.all.makespan == 3 + time + 5);
    CHECK(made.ranks[0] == rank_report{3 + time + 5, 0, 2 + 3 + 4});
  }
}

TEST_CASE("what costs nothing stands in the timeline where the job before it ended") {
  const job jobs[] = {{0, 0, 0, job_kind::unshard},         {0, 0, 0, job_kind::forward},
                      {0, 0, 0, job_kind::send_forward},    {0, 0, 0, job_kind::receive_backward},
                      {0, 0, 0, job_kind::backward},        {0, 0, 0, job_kind::reduce_grad},
                      {1, 0, 0, job_kind::receive_forward}, {1, 0, 0, job_kind::forward},
                      {1, 0, 0, job_kind::backward},        {1, 0, 0, job_kind::send_backward}};
  const std::int32_t counts[] = {6, 4};
  const job_table costs(2, 1, {.communication = 1});
  for (const bool messages : {false, true}) {
    // Rows of different length in one array: rank 1 starts at 6.
    const auto made = run({.rows = {jobs, counts, 2, 6},
                           .where = {.ranks = 2},
                           .microbatches = 1,
                           .costs = costs.view(),
                           .messages = messages});
    REQUIRE(made.all.answer.ok());
    CHECK(made.all.makespan == 1 + 1 + 3 + 1 + 2);
    CHECK(made.at(0, 0) == job_time{0, 0});
    CHECK(made.at(0, 2) == job_time{1, 1});
    CHECK(made.at(0, 4) == job_time{6, 8});
    CHECK(made.at(0, 5) == job_time{8, 8});
    CHECK(made.at(1, 0) == job_time{0, 0});
    CHECK(made.at(1, 3) == job_time{5, 5});
    CHECK(made.ranks[0] == rank_report{3, 5, 1});
  }
}

TEST_CASE("storage that is too small, and lists that hang, are answered, not run over") {
  const job jobs[] = {{0, 0, 0, job_kind::backward}};
  const std::int32_t count = 1;
  const job_table costs(1, 1);
  const replay_input input{
      .rows = {jobs, &count, 1, 1}, .where = {}, .microbatches = 1, .costs = costs.view()};
  CHECK(measure(input, {}).answer.what == fault::capacity);
  CHECK(run(input).all.answer.what == fault::deadlocked);
  const job elsewhere[] = {{1, 0, 0, job_kind::forward}};  // chunk 1, of which the table has none
  CHECK(run({.rows = {elsewhere, &count, 1, 1},
             .where = {.chunks = 2},
             .microbatches = 1,
             .costs = costs.view()})
            .all.answer.why == reason::out_of_range);
  std::array<rank_report, 1> one;
  const std::int32_t none = 0;
  const auto empty = measure(
      {.rows = {jobs, &none, 1, 1}, .where = {}, .microbatches = 1, .costs = costs.view()}, one);
  CHECK(empty.answer.ok());
  CHECK(empty.bubble == stretto::fraction{0, 1});
}

}  // namespace

TEST_CASE("of lists that no plan would take, none is replayed beyond its end or the placement") {
  // A copy is of no pair, whatever it says, and what stands behind it is not looked at.
  for (const int jobs_behind : {0, 1}) {
    const job jobs[] = {{0, 0, 0, job_kind::forward},
                        {0, 0, 0, job_kind::backward},
                        {0, 0, 0, job_kind::offload, true},
                        {0, 1, -32768, job_kind::backward}};
    const std::int32_t count = 3 + jobs_behind;
    const std::vector<job> list(jobs, jobs + count);
    const job_table costs(1, 1);
    const stretto::verdict found = stretto::replay({.rows = {list.data(), &count, 1, count},
                                                    .where = {.microbatches = 2},
                                                    .microbatches = 2,
                                                    .costs = costs.view()});
    CHECK(found.what == fault::deadlocked);
    CHECK(found.step == 2);
  }
  // Half a pair that ends its list, and what it waited for was on a rank that wakes nobody: behind
  // it there is nothing to look at.
  const job halves[] = {{0, 0, 1, job_kind::forward, true}, {0, 0, 0, job_kind::forward}};
  const std::int32_t ones[] = {1, 1};
  const job_table two(2, 1);
  const stretto::verdict half = stretto::replay({.rows = {halves, ones, 2, 1},
                                                 .where = {.ranks = 2},
                                                 .microbatches = 1,
                                                 .slices = 2,
                                                 .costs = two.view()});
  CHECK(half.what == fault::deadlocked);
  CHECK(half.rank == 0);
  CHECK(half.other == job{0, 0, 0, job_kind::forward});
  // Nor does such a verdict name a stage that there is not.
  const job last[] = {{1, 0, 0, job_kind::backward}, {1, 0, 0, job_kind::forward}};
  const std::int32_t on_the_other[] = {1, 1};
  const stretto::verdict waits = stretto::replay({.rows = {last, on_the_other, 2, 1},
                                                  .where = {.ranks = 2},
                                                  .microbatches = 1,
                                                  .costs = two.view()});
  CHECK(waits.ok() == false);
  CHECK(waits.other == job{1, 0, 0, job_kind::forward});
  const job one{0, 0, 0, job_kind::forward};
  const std::int32_t count = 1;
  const auto replayed = [&](const stretto::placement& where, int microbatches, int slices) {
    const job_table costs(1, 2);
    return stretto::replay({.rows = {&one, &count, 1, 1},
                            .where = where,
                            .microbatches = microbatches,
                            .slices = slices,
                            .costs = costs.view()})
        .why;
  };
  CHECK(replayed({}, 1, 1) == reason::none);
  CHECK(replayed({}, 1'000'000'000, 1'000'000'000) == reason::out_of_range);
  CHECK(replayed({stretto::placement_kind::bidirectional, 1, 2, 1}, 1, 1) == reason::none);
  CHECK(replayed({stretto::placement_kind::bidirectional, 1, 1, 1}, 1, 1) == reason::out_of_range);
}

TEST_CASE("of a job table that lacks ranks, chunks or all, nothing is replayed") {
  const stretto::shape sizes{.ranks = 3, .microbatches = 2, .chunks = 2};
  const stretto::schedule::gpipe made;
  stretto::job_lists lists(sizes.ranks, made.capacity(sizes));
  stretto::job_sink out = lists.sink();
  const stretto::job_table whole(3, 2);
  const stretto::job_table ranks(2, 2);
  const stretto::job_table chunks(3, 1);
  const stretto::job_table none;
  REQUIRE(made.emit(sizes, whole.view(), out).ok());
  stretto::job_table short_of_entries(3, 2);
  short_of_entries.entries.pop_back();
  stretto::job_table no_such_class(3, 2);
  no_such_class.add_class();
  no_such_class.classes = {1, 2};
  for (const stretto::job_table* const table : std::initializer_list<const stretto::job_table*>{
           &whole, &ranks, &chunks, &none, &short_of_entries, &no_such_class}) {
    const stretto::replay_input input{.rows = lists.rows(),
                                      .where = place(made.placed(), sizes),
                                      .microbatches = sizes.microbatches,
                                      .costs = table->view()};
    const bool served = table == &whole;
    stretto::replay_observer nobody;
    CHECK(stretto::replay(input, nobody).ok() == served);
    CHECK(stretto::check::live(input).ok() == served);
    CHECK(stretto::check::schedule(input).ok() == served);
    CHECK(stretto::check::bounded(input).ok() == served);
    std::vector<stretto::rank_report> reports(3);
    CHECK(stretto::measure(input, reports).answer.ok() == served);
    if (!served) CHECK(stretto::check::live(input).why == stretto::reason::out_of_range);
  }
}
