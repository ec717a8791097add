// On which streams a plan has what ranks and their workers do together, and what copies.
#include <doctest/doctest.h>

#include <string_view>

#include "stretto/lowering/streams/all.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace {

//! What is not of a job's own has the stream that each rank says.
struct by_rank : stretto::overlap::serial {
  static constexpr std::string_view name = "by_rank";
  constexpr int count() const { return 3; }
  constexpr stretto::stream_info stream(int) const {
    return stretto::overlap::named_stream("any", 0);
  }
  constexpr int stream_of(stretto::job_kind kind, int rank, int, int) const {
    return kind == stretto::job_kind::all_reduce || is_copy(kind) ? 1 + rank % 2 : 0;
  }
};

}  // namespace

TEST_CASE("sums, gathers and copies are on the streams that the policy names for their rank") {
  const stretto::job_table costs(4, 1);
  stretto::plan_request asked;
  asked.groups = {{.first = 0, .count = 4, .elements = 1}};
  asked.members = {0, 1, 2, 3};
  asked.data_parallel = true;
  asked.gathered = 1;
  asked.offload = stretto::memory::offload_all;
  const stretto::planned made(stretto::schedule::gpipe{}, {.ranks = 4, .microbatches = 4},
                              costs.view(), by_rank{}, asked);
  REQUIRE(made.answer() == stretto::verdict{});
  int apart = 0;
  for (const stretto::plan_view& plan : made.plans())
    for (const stretto::instruction& at : plan.instructions) {
      const bool own = is_collective(at.what.kind) || is_copy(at.what.kind);
      CHECK(at.stream == (own ? 1 + plan.rank % 2 : 0));
      apart += own ? 1 : 0;
    }
  CHECK(apart > 20);
}

TEST_CASE("what a request says of recomputes and copies is of schedules, and refused with lists") {
  const stretto::job_table costs(2, 1);
  const stretto::planned made(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 3},
                              costs.view(), stretto::overlap::separate{});
  REQUIRE(made.answer().ok());
  const stretto::replay_input lists{
      .rows = made.jobs(), .where = made.where(), .microbatches = 3, .costs = costs.view()};
  const auto why = [&](const stretto::plan_request& wanted) {
    const stretto::planned again(lists, stretto::overlap::separate{}, wanted);
    CHECK((again.answer().ok() || again.answer().what == stretto::fault::unsupported));
    return again.answer().why;
  };
  stretto::plan_request asked;
  CHECK(why(asked) == stretto::reason::none);
  asked.recompute = {.period = 1, .count = 1};
  CHECK(why(asked) == stretto::reason::windows_of_lists);
  asked.recompute = {};
  asked.offload = {.which = {.period = 1, .count = 1}};
  CHECK(why(asked) == stretto::reason::windows_of_lists);
}
