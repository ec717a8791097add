// What leaves the numbers that hold it is refused before anything is sized or summed by it: jobs of
// a shape, room that a schedule asks for, costs.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "stretto/assignment/even.hpp"
#include "stretto/model/measured.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::planned;
using stretto::reason;
using stretto::schedule::one_f_one_b;
using stretto::shape;

constexpr shape fitting{.ranks = 2, .microbatches = 4};

}  // namespace

TEST_CASE("no schedule serves a shape with more jobs than can be counted") {
  for (const stretto::schedule::any& schedule : support::schedules()) {
    CAPTURE(std::string(schedule.name));
    int served = 0;
    for (const int chunks : {1, 2}) {
      if (!schedule.supports({.ranks = 2, .microbatches = 4, .chunks = chunks}).ok()) continue;
      ++served;
      for (const int microbatches : {1 << 23, 1 << 30, (1 << 30) + 1, 0x7fffffff})
        CHECK(schedule.supports({.ranks = 4, .microbatches = microbatches, .chunks = chunks}).why ==
              reason::shape_too_large);
      const shape largest{.ranks = 2, .microbatches = (1 << 23) / chunks, .chunks = chunks};
      CHECK(schedule.supports(largest).ok());
      CHECK(schedule.capacity(largest) > 0);
    }
    CHECK(served > 0);
  }
}

TEST_CASE("each size counts, and slices, which a job numbers in 16 bits, are fewer") {
  const auto why = [](const shape& sizes) { return stretto::positive(sizes); };
  const int half = 1 << 12;
  CHECK(why({half, half, 1, 1}) == reason::none);
  CHECK(why({half, half, 2, 1}) == reason::shape_too_large);
  CHECK(why({half, half, 1, 2}) == reason::shape_too_large);
  CHECK(why({half + 1, half, 1, 1}) == reason::shape_too_large);
  CHECK(why({0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fff}) == reason::shape_too_large);
  CHECK(why({1, 1, 1, 32767}) == reason::none);
  CHECK(why({1, 1, 1, 32768}) == reason::shape_too_large);
  CHECK(why({0, 0x7fffffff, 1, 1}) == reason::ranks_below_one);
}

TEST_CASE("a schedule that asks for no room that lists can need is refused at either time") {
  struct roomy : one_f_one_b {
    int room = -1;
    constexpr int capacity(const shape&) const { return room; }
  };
  constexpr stretto::verdict none =
      stretto::refuse(stretto::fault::unsupported, reason::capacity_out_of_range);
  static_assert(stretto::pipeline<fitting, roomy>::checked == none);
  const stretto::job_table table(2, 1);
  constexpr int most = 8 * 4;
  for (const int room : {std::numeric_limits<int>::min(), -1, 0, 2 * 4, most, most + 1,
                         std::numeric_limits<int>::max()}) {
    roomy schedule;
    schedule.room = room;
    const auto found =
        planned(schedule, fitting, table.view(), stretto::overlap::separate{}).answer();
    CAPTURE(room);
    CHECK((found == none) == (room < 0 || room > most));
    CHECK(found.ok() == (room >= 2 * 4 && room <= most));
  }
}

namespace {

enum class spoilt { doubled_first, doubled_last, misplaced, out_of_range, too_many };

//! 1F1B, which has place for its own jobs alone, with one more on rank 1.
struct one_more : one_f_one_b {
  spoilt how{};
  stretto::verdict emit(const shape& sizes, const stretto::job_table_view& costs,
                        stretto::job_sink& out) const {
    if (how == spoilt::doubled_first) out.push(1, {.stage = 1, .microbatch = 2});
    if (how == spoilt::misplaced) out.push(1, {.stage = 0, .microbatch = 1});
    if (how == spoilt::out_of_range) out.push(1, {.stage = 1, .microbatch = 9});
    const stretto::verdict made = one_f_one_b::emit(sizes, costs, out);
    if (how == spoilt::doubled_last) out.push(1, {.stage = 1, .microbatch = 3});
    return made;
  }
  int capacity(const shape& sizes) const {
    return one_f_one_b::capacity(sizes) - (how == spoilt::too_many ? 1 : 0);
  }
};

}  // namespace

TEST_CASE("where lists have no place for a job, one that stands there by mistake is told of") {
  const stretto::job_table table(2, 1);
  const auto found = [&](spoilt how) {
    one_more schedule;
    schedule.how = how;
    return planned(schedule, {2, 4, 1}, table.view(), stretto::overlap::separate{}).answer();
  };
  using stretto::fault;
  using stretto::job;
  const auto told = [](const stretto::verdict& answer, fault what, reason why, const job& where) {
    CHECK(answer.what == what);
    CHECK(answer.why == why);
    CHECK(answer.rank == 1);
    CHECK(answer.where == where);
  };
  told(found(spoilt::doubled_first), fault::incomplete, reason::duplicate, {1, 2});
  told(found(spoilt::doubled_last), fault::incomplete, reason::duplicate, {1, 3});
  told(found(spoilt::misplaced), fault::incomplete, reason::wrong_rank, {0, 1});
  told(found(spoilt::out_of_range), fault::incomplete, reason::out_of_range, {1, 9});
  // Nothing is wrong with the jobs: of the last, a backward, there is no place for.
  const stretto::verdict few = found(spoilt::too_many);
  CHECK(few.what == fault::capacity);
  CHECK(few.why == reason::above_capacity);
}

namespace {

constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();

//! What leaves 64 bits as soon as two of it are added, a chunk is counted or a copy is taken back.
constexpr stretto::unit_costs beyond[] = {
    {.backward_input = highest, .backward_weight = highest},
    {.backward_input = highest / 2 + 1, .backward_weight = highest / 2 + 1},
    {.memory_backward_input = lowest, .memory_backward_weight = -1},
    {.memory_backward_input = lowest / 2 - 1, .memory_backward_weight = lowest / 2},
    {.memory_offload = lowest},
    {.memory_weights = highest / 2 + 1},
    {.memory_weights = lowest / 2 - 1},
};
template <int Which>
struct beyond_all : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const { return beyond[Which]; }
};
//! The same of layers, of which the last seems to take back what the others add.
template <int Which>
struct beyond_by_layer : stretto::memory::release_early {
  constexpr stretto::unit_costs layer(int number) const {
    return number < 3 ? beyond[Which] : stretto::unit_costs{.memory_weights = -highest};
  }
};
constexpr bool is_of_costs(const stretto::verdict& found) {
  return found.what == stretto::fault::unsupported &&
         (found.why == reason::time_out_of_range || found.why == reason::memory_out_of_range ||
          found.why == reason::base_out_of_range);
}
template <int Which>
constexpr bool is_refused =
    is_of_costs(stretto::pipeline<shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                                  stretto::schedule::interleaved, stretto::assignment::unassigned,
                                  beyond_all<Which>>::checked) &&
    is_of_costs(stretto::pipeline<shape{.ranks = 1, .microbatches = 4}, one_f_one_b,
                                  stretto::assignment::even<4>, beyond_by_layer<Which>>::checked);

}  // namespace

TEST_CASE("costs whose sums leave 64 bits are refused at either time") {
  static_assert(is_refused<0> && is_refused<1> && is_refused<2> && is_refused<3> &&
                is_refused<4> && is_refused<5> && is_refused<6>);
  for (const stretto::unit_costs& costs : beyond) {
    const stretto::job_table table(2, 2, costs);
    CHECK(is_of_costs(planned(stretto::schedule::interleaved{},
                              {.ranks = 2, .microbatches = 4, .chunks = 2}, table.view(),
                              stretto::overlap::separate{})
                          .answer()));
  }
}

namespace {

constexpr std::int32_t last = std::numeric_limits<std::int32_t>::max();

//! What rendezvous says of one job, at compile time, when an overflow is an error.
constexpr stretto::verdict met(const stretto::job& work) {
  stretto::fixed_job_lists<1, 1> lists;
  lists.sink().push(0, work);
  const stretto::fixed_job_table<1, 1> costs;
  const stretto::replay_input input{.rows = lists.rows(), .where = {}, .costs = costs.view()};
  return stretto::check::rendezvous(input);
}

}  // namespace

TEST_CASE("of a job of the highest stage or micro-batch nothing is computed that is not a number") {
  using enum stretto::job_kind;
  static_assert(met({.stage = last, .kind = send_forward}).why == reason::out_of_range);
  static_assert(met({.stage = last, .kind = receive_backward}).why == reason::out_of_range);
  using stretto::placement_kind;
  constexpr stretto::placement ways{.kind = placement_kind::bidirectional, .microbatches = 5};
  static_assert(ways.direction(last) == 1 && ways.direction(3) == 1 && ways.direction(2) == 0);
}

TEST_CASE("a kernel's time far beyond what was measured is a number that no op may take") {
  static constexpr std::int64_t size[] = {1}, time[] = {10'000'000'000};
  static constexpr stretto::measured_kernel slow{"product", {size, size, size}, time};
  static_assert(slow.time({1, 1, 1}) == 10'000'000'000);
  static_assert(slow.time({1 << 20, 1 << 20, 1 << 20}) > std::int64_t{1} << 46);
}
