#include "stretto/schedule/frozen.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string_view>

#include "stretto/check/all.hpp"
#include "stretto/plan/pipeline.hpp"

namespace {

using stretto::fault;
using stretto::job_kind;
using stretto::reason;
using stretto::shape;

struct two_by_two {
  static constexpr std::string_view name = "by_hand";
  static constexpr shape made_for{2, 2, 1, 1};
  static constexpr stretto::placement_kind placement = stretto::placement_kind::looped;
  static constexpr job_kind F = job_kind::forward;
  static constexpr job_kind B = job_kind::backward;
  static constexpr job_kind I = job_kind::backward_input;
  static constexpr job_kind W = job_kind::backward_weight;
  static constexpr std::int32_t counts[2] = {4, 6};
  static constexpr stretto::schedule::frozen_job jobs[10] = {
      {0, F, 0}, {0, F, 1}, {0, B, 0}, {0, B, 1},                        // rank 0
      {1, F, 0}, {1, I, 0}, {1, F, 1}, {1, I, 1}, {1, W, 0}, {1, W, 1},  // rank 1
  };
};
struct forwards : two_by_two {
  static constexpr bool forward_only = true;
  static constexpr std::int32_t counts[2] = {2, 2};
  static constexpr stretto::schedule::frozen_job jobs[4] = {
      {0, F, 0}, {0, F, 1}, {1, F, 0}, {1, F, 1}};
};
//! What a table can hold beside: slices and pairs.
struct all_fields : two_by_two {
  static constexpr shape made_for{1, 2, 1, 2};
  static constexpr std::int32_t counts[1] = {2};
  static constexpr stretto::schedule::frozen_job jobs[2] = {{0, F, 1, 1, true}, {0, B, 0, 1}};
};

template <class Table>
using frozen_step = stretto::pipeline<Table::made_for, stretto::schedule::frozen<Table>>;

static_assert(stretto::schedule::Policy<stretto::schedule::frozen<two_by_two>>);
static_assert(stretto::valid<frozen_step<two_by_two>>);
static_assert(stretto::valid<frozen_step<forwards>>);
static_assert(frozen_step<forwards>::forward_only);

TEST_CASE("a frozen table is emitted as it stands") {
  const auto rows = frozen_step<two_by_two>::jobs();
  REQUIRE(rows.ranks == 2);
  CHECK(rows.row(0).size() == 4);
  CHECK(rows.row(1).size() == 6);
  CHECK(rows.at(0, 3) == stretto::job{0, 1, 0, job_kind::backward});
  CHECK(rows.at(1, 4) == stretto::job{1, 0, 0, job_kind::backward_weight});

  const stretto::schedule::frozen<all_fields> rich;
  stretto::job_lists lists(1, rich.capacity(all_fields::made_for));
  auto sink = lists.sink();
  CHECK(rich.emit(all_fields::made_for, stretto::job_table(1, 1).view(), sink).ok());
  CHECK(lists.rows().at(0, 0) == stretto::job{0, 1, 1, job_kind::forward, true});
  CHECK(lists.rows().at(0, 1) == stretto::job{0, 0, 1, job_kind::backward, false});
}

TEST_CASE("a frozen table serves the shape that it was made for alone") {
  const stretto::schedule::frozen<two_by_two> policy;
  CHECK(policy.supports({.ranks = 2, .microbatches = 2}).ok());
  for (const shape& other :
       {shape{2, 3, 1, 1}, shape{3, 2, 1, 1}, shape{2, 2, 2, 1}, shape{2, 2, 1, 2}}) {
    CHECK(policy.supports(other).what == fault::unsupported);
    CHECK(policy.supports(other).why == reason::shape_frozen);
  }
  CHECK(policy.supports({.ranks = 0}).why == reason::ranks_below_one);
}

}  // namespace
