// What no plan can be written from is refused by name: sizes, groups, costs, lists, placements.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/assignment/even.hpp"
#include "stretto/assignment/table.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/memory/keep.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/by_name.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "support/two_products.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::plan_request;
using stretto::planned;
using stretto::schedule::one_f_one_b;
using stretto::shape;

constexpr shape four_by_two{.ranks = 2, .microbatches = 4};

std::string text(const stretto::verdict& answer) {
  return std::string(stretto::to_text(answer).view());
}

std::string refusal(const std::function<void(plan_request&)>& change,
                    const stretto::unit_costs& costs = {}) {
  plan_request wanted;
  change(wanted);
  const stretto::job_table table(2, 1, costs);
  return text(planned(one_f_one_b{}, four_by_two, table.view(), stretto::overlap::separate{},
                      std::move(wanted))
                  .answer());
}

std::string refusal(const stretto::group_info& info) {
  return refusal([&](plan_request& wanted) {
    wanted.groups = {info};
    wanted.members = {0, 1, 2};
  });
}

//! Of one rank, one micro-batch unless more are said.
std::string refusal(const std::vector<job>& list, bool trains = true, int slices = 1) {
  stretto::job_lists lists(1, static_cast<int>(list.size()));
  stretto::job_sink out = lists.sink();
  for (const job& work : list) out.push(0, work);
  const stretto::job_table table(1, 1);
  plan_request wanted;
  wanted.train = trains;
  return text(planned({lists.rows(), {.ranks = 1}, 1, slices, table.view(), false, {}},
                      stretto::overlap::separate{}, std::move(wanted))
                  .answer());
}

struct bottomless : stretto::memory::release_early {
  constexpr std::int64_t limit() const { return std::numeric_limits<std::int64_t>::min(); }
};
//! Serves every shape, as it says.
struct careless : stretto::schedule::one_f_one_b {
  constexpr stretto::verdict supports(const stretto::shape&) const { return {}; }
};
static_assert(stretto::pipeline<stretto::shape{.ranks = -1}, careless>::supported.why ==
              stretto::reason::ranks_below_one);
static_assert(stretto::pipeline<stretto::shape{.ranks = 2, .slices = 0}, careless>::supported.why ==
              stretto::reason::slices_below_one);
struct huge_layers : stretto::memory::release_early {
  constexpr stretto::layer_bytes layer_bytes(int) const {
    return {.stash = std::int64_t{1} << 62, .gradients = 1};
  }
};
struct tied_embeddings {
  static constexpr stretto::group_info infos[] = {{.first = 0, .count = 2, .elements = 3}};
  static constexpr std::int32_t members[] = {0, 1};
};

TEST_CASE("lists of sizes that there cannot be are refused before there is room for them") {
  const stretto::job_table table(2, 1);
  const planned made(one_f_one_b{}, {.ranks = 2, .microbatches = 3}, table.view(),
                     stretto::overlap::separate{});
  const auto answer = [](const stretto::replay_input& of) {
    return planned(of, stretto::overlap::separate{}).answer();
  };
  const stretto::replay_input sound{
      .rows = made.jobs(), .where = made.where(), .microbatches = 3, .costs = table.view()};
  REQUIRE(answer(sound).ok());
  for (const int ranks : {-1, 0, 1, 3, std::numeric_limits<int>::max()}) {
    CAPTURE(ranks);
    stretto::replay_input other = sound;
    other.rows.ranks = ranks;
    CHECK(answer(other).what == stretto::fault::incomplete);
    CHECK(answer(other).why == stretto::reason::ranks_differ);
  }
  stretto::replay_input large = sound;
  large.microbatches = std::numeric_limits<int>::max();
  CHECK(answer(large).why == stretto::reason::shape_too_large);
  large.microbatches = 3;
  large.slices = std::numeric_limits<int>::max();
  CHECK(answer(large).why == stretto::reason::shape_too_large);
  for (const std::int32_t count : {-1, sound.rows.stride + 1}) {
    const std::int32_t counts[] = {sound.rows.counts[0], count};
    stretto::replay_input off = sound;
    off.rows.counts = counts;
    const stretto::verdict found = answer(off);
    CHECK(found.what == stretto::fault::incomplete);
    CHECK(found.why == stretto::reason::list_out_of_range);
    CHECK(found.rank == 1);
    CHECK(found.amount == count);
    CHECK(found.limit == sound.rows.stride);
  }
}

//! Bytes of layers.
struct by_layers : stretto::memory::keep {
  constexpr stretto::layer_bytes layer_bytes(int layer) const { return {.stash = 8 * layer}; }
};

TEST_CASE("a request for layers of another number of stages makes no plan") {
  const std::vector<stretto::layer_range> ranges = {{1, 1}, {2, 2}, {4, 1}};
  const std::span<const stretto::layer_range> all(ranges);
  CHECK(stretto::request_of(by_layers{}, 3, all).stages.size() == 3);
  CHECK(stretto::request_of(by_layers{}, 3, all).stages[1].stash == 8 * (2 + 3));
  CHECK(stretto::request_of(by_layers{}, 3).stages.empty());
  CHECK(stretto::request_of(stretto::memory::keep{}, 3).stages.size() == 3);
  const stretto::job_table table(2, 1);
  for (const auto& [stages, layers] :
       {std::pair{2, std::size_t{3}}, std::pair{2, std::size_t{1}}, std::pair{2, std::size_t{0}},
        std::pair{-1, std::size_t{0}}}) {
    CAPTURE(stages);
    const stretto::planned made(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 3},
                                table.view(), stretto::overlap::separate{},
                                stretto::request_of(by_layers{}, stages, all.first(layers)));
    CHECK(made.answer().what == stretto::fault::misassigned);
    CHECK(made.answer().why == stretto::reason::sizes_not_per_stage);
    CHECK(made.answer().amount == 0);
  }
}

}  // namespace

TEST_CASE("bytes are those of every stage or of all, and no negative ones") {
  const auto with = [](std::vector<stretto::stage_bytes> stages) {
    return refusal([&](plan_request& wanted) { wanted.stages = std::move(stages); });
  };
  CHECK(with({{}}) == "ok");
  CHECK(with({{}, {}}) == "ok");
  CHECK(with({}) ==
        "misassigned: there must be one entry of bytes for all stages, or one for each; request_of "
        "makes none where a memory policy's layers are not told, or not those of all stages "
        "(entries: 0, must be 2)");
  CHECK(with({{}, {}, {}}).ends_with("(entries: 3, must be 2)"));
  const std::pair<std::int64_t stretto::stage_bytes::*, std::string> sizes[] = {
      {&stretto::stage_bytes::output, "of a stage's output"},
      {&stretto::stage_bytes::stash, "of a stage's stash"},
      {&stretto::stage_bytes::gradients, "of a stage's gradients"},
      {&stretto::stage_bytes::kept, "that a stage has kept for W"},
      {&stretto::stage_bytes::left, "that I of a stage leaves for W"}};
  for (const std::int64_t size : {std::int64_t{-1}, (std::int64_t{1} << 40) + 1})
    for (const auto& [member, what] : sizes) {
      stretto::stage_bytes second;
      second.*member = size;
      CHECK(with({{}, second}) == "unsupported, job 1F0: bytes " + what +
                                      " are a number from 0 to 2^40 (" + std::to_string(size) +
                                      ", at most 1099511627776)");
    }
}

TEST_CASE("what a forward has that runs again is of some bytes, or as much as others have") {
  for (const std::int64_t size : {std::int64_t{-2}, (std::int64_t{1} << 40) + 1})
    CHECK(refusal([&](plan_request& wanted) { wanted.stages = {{.passing = size}}; }) ==
          "unsupported, job 0F0: bytes of the stash of a forward that runs again are a number from "
          "0 to 2^40, or -1 (" + std::to_string(size) + ", at most 1099511627776)");
  for (const std::int64_t size : {-1, 0, 1000})
    CHECK(refusal([&](plan_request& wanted) { wanted.stages = {{.passing = size}}; }) == "ok");
}

TEST_CASE("what the compiler says of bytes it says of each of them, and of nothing else") {
  using enum stretto::reason;
  std::vector<stretto::reason> told;
  for (int at = 0; at <= static_cast<int>(weights_out_of_range) + 20; ++at)
    if (const auto why = static_cast<stretto::reason>(at); stretto::detail::speaks_of_bytes(why))
      told.push_back(why);
  CHECK(told == std::vector{output_out_of_range, stash_out_of_range, gradients_out_of_range,
                            kept_out_of_range, left_out_of_range, passing_out_of_range,
                            weights_out_of_range});
}

TEST_CASE("gradients that replicas sum are whole floats") {
  const auto odd = [](plan_request& wanted) {
    wanted.stages = {{.gradients = 64}, {.gradients = 66}};
  };
  CHECK(refusal(odd) == "ok");
  CHECK(refusal([&](plan_request& wanted) {
          odd(wanted);
          wanted.train = wanted.data_parallel = true;
        }) ==
        "unsupported, job 1F0: gradients that replicas sum are whole floats, of 4 bytes each");
}

TEST_CASE("bytes of layers whose sum would leave 64 bits are too many") {
  const stretto::layer_range layers[] = {{0, 4}, {4, 1}};
  const plan_request made = stretto::request_of(huge_layers{}, 2, layers);
  CHECK(made.stages[0].stash == std::numeric_limits<std::int64_t>::max());
  CHECK(made.stages[0].gradients == 4);
  CHECK(made.stages[1].stash == std::int64_t{1} << 62);
  CHECK(
      refusal([&](plan_request& wanted) {
        wanted.stages = made.stages;
      }).starts_with("unsupported, job 0F0: bytes of a stage's stash are a number from 0 to 2^40"));
}

TEST_CASE("sizes below one and beyond all counting are refused, whatever a schedule says") {
  const stretto::job_table table(2, 1);
  const auto why = [&](const stretto::shape& sizes) {
    return planned(careless{}, sizes, table.view(), stretto::overlap::separate{}).answer().why;
  };
  CHECK(why({.ranks = 2, .microbatches = 2}) == stretto::reason::none);
  CHECK(why({.ranks = -1, .microbatches = 2}) == stretto::reason::ranks_below_one);
  CHECK(why({.ranks = 2, .microbatches = 0}) == stretto::reason::microbatches_below_one);
  CHECK(why({.ranks = 2, .microbatches = 2, .chunks = 0}) == stretto::reason::chunks_below_one);
  CHECK(why({.ranks = 2, .microbatches = 2, .slices = 0}) == stretto::reason::slices_below_one);
  CHECK(why({.ranks = std::numeric_limits<int>::max(), .microbatches = 2}) ==
        stretto::reason::shape_too_large);
}

TEST_CASE("groups have members, and these are ranks") {
  CHECK(refusal({.first = 0, .count = 2, .elements = 3}) == "ok");
  for (const stretto::group_info& info :
       {stretto::group_info{.first = 0, .count = 0, .elements = 3},
        {.first = -1, .count = 2, .elements = 3},
        {.first = 2, .count = 2, .elements = 3},
        {.first = 0, .count = 2, .elements = -4},
        {.first = 0, .count = 2, .elements = std::int64_t{1} << 62},
        {.first = 0, .count = 2, .elements = 3, .data_parallel = true}})
    CHECK(refusal(info).ends_with(
        "a group has members, each of them another rank, elements, from 0 to 2^40, and a "
        "stage that there is, or -1; those of "
        "data-parallel replicas are not given, but asked for"));
  CHECK(refusal({.first = 1, .count = 2, .elements = 3}).starts_with("unsupported on rank 2, "));
  for (const std::vector<std::int32_t>& twice : {std::vector{1, 1}, std::vector{1, 0, 1}})
    CHECK(refusal([&](plan_request& wanted) {
            wanted.groups = {{.first = 0, .count = static_cast<int>(twice.size()), .elements = 3}};
            wanted.members = twice;
          }).starts_with("unsupported on rank 1, "));
}

TEST_CASE("times of which a step's sum would leave 64 bits do not fit") {
  CHECK(refusal([](plan_request&) {}, {.forward = std::int64_t{1} << 46}) == "ok");
  CHECK(refusal([](plan_request&) {}, {.forward = (std::int64_t{1} << 46) + 1})
            .ends_with("(70368744177665, at most 70368744177664)"));
  CHECK(refusal([](plan_request&) {}, {.communication = std::int64_t{1} << 62})
            .ends_with("(4611686018427387904, at most 70368744177664)"));
}

TEST_CASE("nor does memory, either way") {
  const std::int64_t most = std::int64_t{1} << 46;
  const auto with = [](std::int64_t taken, std::int64_t given) {
    return refusal([](plan_request&) {},
                   {.memory_forward = taken, .memory_backward_weight = given});
  };
  CHECK(with(most, -most) == "ok");
  CHECK(with(std::int64_t{1} << 62, -1).ends_with("(4611686018427387904, at most 70368744177664)"));
  CHECK(with(1, -most - 1).ends_with("(-70368744177665, at most 70368744177664)"));
}

TEST_CASE("plans are written from compute jobs and copies alone") {
  const job forward{0, 0, 0, job_kind::forward};
  const job backward{0, 0, 0, job_kind::backward};
  CHECK(refusal({forward, backward}) == "ok");
  for (const job_kind kind :
       {job_kind::send_forward, job_kind::receive_forward, job_kind::send_backward,
        job_kind::receive_backward, job_kind::reduce_grad, job_kind::all_reduce, job_kind::unshard,
        job_kind::reshard, job_kind::optimizer, job_kind::end_step}) {
    const std::string found = refusal({forward, {0, 0, 0, kind}, backward});
    CHECK(found.starts_with("rule complete broken on rank 0, step 1, job "));
    CHECK(found.ends_with(
        "a compute-only list holds no communication, nor the optimizer or the step's end"));
  }
}

TEST_CASE("lists of slices recompute nothing and copy nothing") {
  const auto of = [](std::vector<job> more) {
    std::vector<job> list{{0, 0, 0, job_kind::forward}, {0, 0, 1, job_kind::forward}};
    list.insert(list.end(), more.begin(), more.end());
    list.push_back({0, 0, 1, job_kind::backward});
    list.push_back({0, 0, 0, job_kind::backward});
    return refusal(list, true, 2);
  };
  CHECK(of({}) == "ok");
  CHECK(of({{0, 0, 1, job_kind::recompute}}) ==
        "unsupported on rank 0, step 2, job 0R0.1: a slice cannot be recomputed: later ones "
        "of its micro-batch read what it keeps");
  CHECK(
      of({{0, 0, 1, job_kind::offload}, {0, 0, 1, job_kind::reload}}) ==
      "unsupported on rank 0, step 2, job 0OFFLOAD0.1: a slice cannot be offloaded: later ones of "
      "its micro-batch read what it keeps");
}

TEST_CASE("a pair whose backward stands ahead is a plan of jobs, but none of ops") {
  const std::vector<job> list{{0, 0, 0, job_kind::forward},
                              {0, 0, 0, job_kind::backward, true},
                              {0, 1, 0, job_kind::forward},
                              {0, 1, 0, job_kind::backward}};
  stretto::job_lists lists(1, 4);
  stretto::job_sink out = lists.sink();
  for (const job& work : list) out.push(0, work);
  const stretto::job_table table(1, 1);
  const planned base({lists.rows(), {.ranks = 1, .microbatches = 2}, 2, 1, table.view(), false, {}},
                     stretto::overlap::separate{}, {});
  REQUIRE(text(base.answer()) == "ok");
  const support::two_products<support::op_order::look_ahead> ops;
  const auto streams = ops.streams();
  const stretto::expanded refused(base, streams, ops);
  CHECK(refused.answer().why == stretto::reason::backward_ahead);
  CHECK(
      text(refused.answer()) ==
      "unsupported on rank 0, step 1, job 0B0: a pair is expanded into ops with its forward ahead "
      "in the list");
}

TEST_CASE("each rank of a table sums the gradients of the stages that it has") {
  // Stages 0, 1, 3 on rank 0, stage 2 on rank 1.
  const std::vector<std::int32_t> ranks{0, 0, 1, 0};
  const stretto::placement where{.kind = stretto::placement_kind::table,
                                 .ranks = 2,
                                 .chunks = 3,
                                 .table = ranks.data(),
                                 .table_stages = 4};
  stretto::job_lists lists(2, 6);
  stretto::job_sink out = lists.sink();
  for (const int stage : {0, 1, 2, 3})
    out.push(ranks[static_cast<std::size_t>(stage)], {stage, 0, 0, job_kind::forward});
  for (const int stage : {3, 2, 1, 0})
    out.push(ranks[static_cast<std::size_t>(stage)], {stage, 0, 0, job_kind::backward});
  const stretto::job_table table(2, 3);
  plan_request wanted;
  wanted.data_parallel = true;
  const planned made({lists.rows(), where, 1, 1, table.view(), false, {}},
                     stretto::overlap::separate{}, wanted);
  REQUIRE(text(made.answer()) == "ok");
  for (const auto& [rank, sums] : {std::pair{0, 3}, {1, 1}}) {
    int seen = 0;
    for (const auto& at : made.plans()[static_cast<std::size_t>(rank)].instructions)
      seen += at.what.kind == job_kind::all_reduce;
    CHECK(seen == sums);
  }
}

TEST_CASE("limits far below 0 are refused, and copies that no limit has room for fit none") {
  const shape sizes{.ranks = 2, .microbatches = 4};
  constexpr std::int64_t much = std::int64_t{1} << 40;
  stretto::job_table table(
      2, 1, {.memory_forward = much, .memory_backward_weight = -much, .memory_offload = much});
  plan_request wanted;
  wanted.offload = {{1, 1}, std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};
  const auto answer = [&](std::int64_t limit) {
    table.limit.assign(2, limit);
    return planned(stretto::schedule::zb_auto{}, sizes, table.view(), stretto::overlap::separate{},
                   wanted)
        .answer();
  };
  CHECK(answer(std::numeric_limits<std::int64_t>::min()).why ==
        stretto::reason::limit_out_of_range);
  CHECK(answer(-stretto::job_table_view::most_memory - 1).why ==
        stretto::reason::limit_out_of_range);
  const stretto::verdict refused = answer(5);
  CHECK(refused.what == stretto::fault::over_limit);
  CHECK(refused.limit == 5);
  CHECK(refused.amount > std::int64_t{1} << 61);
  CHECK(stretto::pipeline<four_by_two, one_f_one_b, stretto::assignment::unassigned,
                          bottomless>::checked.why == stretto::reason::limit_out_of_range);
}

TEST_CASE("a groups policy may have plain arrays") {
  static_assert(stretto::groups_policy<tied_embeddings>);
  using step = stretto::pipeline<four_by_two, one_f_one_b, stretto::assignment::unassigned,
                                 stretto::memory::release_early, stretto::overlap::separate,
                                 tied_embeddings>;
  static_assert(stretto::valid<step>);
  CHECK(step::plans()[1].groups.size() == 1);
}

TEST_CASE("a schedule lays its stages itself, which a table is no way to, at either time") {
  struct by_table : one_f_one_b {
    constexpr stretto::placement_kind placed() const { return stretto::placement_kind::table; }
  };
  constexpr stretto::verdict none =
      stretto::refuse(stretto::fault::unsupported, stretto::reason::placement_not_served);
  static_assert(stretto::pipeline<four_by_two, by_table>::checked == none);
  const stretto::job_table table(2, 1);
  CHECK(planned(by_table{}, four_by_two, table.view(), stretto::overlap::separate{}).answer() ==
        none);
}

TEST_CASE("what a schedule emits beyond its capacity, or on no rank, is told as at compile time") {
  struct generous : one_f_one_b {
    int rank = 0;
    int less = 0;
    job more{0, 2, 0, job_kind::backward};
    constexpr int capacity(const shape& sizes) const {
      return one_f_one_b::capacity(sizes) - less;
    }
    constexpr stretto::verdict emit(const shape& sizes, const stretto::job_table_view& costs,
                                    stretto::job_sink& out) const {
      const stretto::verdict made = one_f_one_b::emit(sizes, costs, out);
      if (less == 0) out.push(rank, more);
      return made;
    }
  };
  const stretto::job_table table(2, 1);
  for (const stretto::memory::recompute_window window :
       {stretto::memory::recompute_window{}, {1, 1}})
    for (const int rank : {0, 2}) {
      generous schedule;
      schedule.rank = rank;
      plan_request wanted;
      wanted.recompute = window;
      const planned made(schedule, four_by_two, table.view(), stretto::overlap::separate{}, wanted);
      CHECK(made.answer().why == (rank == 0 ? stretto::reason::duplicate
                                            : stretto::reason::wrong_rank));
      CHECK(made.answer().rank == rank);
      CHECK(made.answer().where == job{0, 2, 0, job_kind::backward});
      CHECK(made.answer().has_other == (rank == 0));
      if (rank == 0)
        CHECK(made.jobs().at(0, static_cast<int>(made.answer().amount)) == made.answer().where);
      // What stands nowhere yet is no second one.
      schedule.rank = 0;
      schedule.more.stage = 2;
      const planned beside(schedule, four_by_two, table.view(), stretto::overlap::separate{},
                           wanted);
      CHECK(beside.answer().why == stretto::reason::above_capacity);
      schedule.less = 1;
      const planned fuller(schedule, four_by_two, table.view(), stretto::overlap::separate{},
                           wanted);
      CHECK(fuller.answer().why == stretto::reason::above_capacity);
    }
}

TEST_CASE("what takes the place of a job and computes nothing is told, not that there is no room") {
  struct updating : one_f_one_b {
    constexpr stretto::verdict emit(const shape& sizes, const stretto::job_table_view& costs,
                                    stretto::job_sink& out) const {
      out.push(0, {0, 0, 0, job_kind::optimizer});
      return one_f_one_b::emit(sizes, costs, out);
    }
  };
  const stretto::job_table table(2, 1);
  const planned made(updating{}, four_by_two, table.view(), stretto::overlap::separate{});
  CHECK(made.answer() == stretto::refuse(stretto::fault::incomplete,
                                         stretto::reason::unexpected_communication, 0, 0,
                                         {0, 0, 0, job_kind::optimizer}));
  static_assert(stretto::pipeline<four_by_two, updating>::checked.why ==
                stretto::reason::unexpected_communication);
}

TEST_CASE("a step that trains has backwards, and one of forwards alone has no optimizer") {
  const job forward{0, 0, 0, job_kind::forward};
  CHECK(refusal({forward}) == "rule complete broken on rank 0, job 0B0: the job is missing");
  CHECK(refusal({forward}, false) == "ok");
  const stretto::job_table table(2, 1);
  const planned made(stretto::schedule::inference{}, four_by_two, table.view(),
                     stretto::overlap::separate{});
  REQUIRE(made.answer().ok());
  for (int rank = 0; rank < 2; ++rank)
    for (const job& work : made.lists().row(rank)) CHECK(work.kind != job_kind::optimizer);
}

TEST_CASE("a table of stages names ranks, each as often as it has chunks") {
  const std::int32_t stages[] = {0, 1, 1};
  const stretto::job_table table(2, 1);
  stretto::job_lists lists(2, 4);
  const auto found = [&](const stretto::placement& where) {
    const planned made({lists.rows(), where, 1, 1, table.view(), false, {}},
                       stretto::overlap::separate{});
    return text(made.answer());
  };
  stretto::placement where{.kind = stretto::placement_kind::table, .ranks = 2};
  CHECK(found(where) == "unsupported: it is not made for this placement");  // no table
  where.table = stages;
  where.table_stages = 3;
  const std::string unsound =
      "unsupported: a table of stages names a rank for each, one that there is, and none for more "
      "stages than it has chunks";
  CHECK(found(where) == unsound);  // rank 1 twice
  for (const std::int32_t no_rank : {-1, 2}) {
    const std::int32_t beyond[] = {0, no_rank};
    where.table = beyond;
    where.table_stages = 2;
    CHECK(found(where) == unsound);
  }
  where.table = stages;
  where.table_stages = 2;
  CHECK(found(where) == "rule complete broken on rank 0, job 0F0: the job is missing");
  CHECK(found({.kind = stretto::placement_kind::bidirectional, .ranks = 2}) ==
        "unsupported: of two directions a rank has as many chunks in one as in the other");
  CHECK(found({.ranks = 2, .chunks = std::numeric_limits<int>::max()}).find("unsupported: ") == 0);
}

TEST_CASE("what is no message, sum or copy runs where stages compute; copies share a stream") {
  struct elsewhere : stretto::overlap::separate {
    job_kind kind;
    constexpr int stream_of(job_kind of, int rank, int peer, int ranks) const {
      return of == kind && rank == 1 ? 1 : separate::stream_of(of, rank, peer, ranks);
    }
  };
  const stretto::job_table table(2, 1);
  for (const job_kind kind :
       {job_kind::forward, job_kind::backward, job_kind::backward_input, job_kind::backward_weight,
        job_kind::recompute, job_kind::reduce_grad, job_kind::optimizer, job_kind::end_step}) {
    elsewhere policy;
    policy.kind = kind;
    const planned made(one_f_one_b{}, four_by_two, table.view(), policy);
    CHECK(made.answer().why == stretto::reason::not_with_computation);
    CHECK(made.answer().rank == 1);
    CHECK(made.answer().where.kind == kind);
    CHECK(text(made.answer()).ends_with("compute, on stream 0 (1, at most 0)"));
  }
  for (const job_kind kind : {job_kind::offload, job_kind::reload}) {
    elsewhere policy;
    policy.kind = kind;
    const planned made(one_f_one_b{}, four_by_two, table.view(), policy);
    CHECK(made.answer() == refuse(stretto::fault::unsupported,
                                  stretto::reason::copies_on_two_streams, 1, -1,
                                  {.stage = 1, .kind = job_kind::reload}));
  }
}

TEST_CASE("an assignment of no layer is one, and fits no stage") {
  using stretto::assignment::table;
  CHECK(stretto::pipeline<four_by_two, one_f_one_b>::supported.ok());
  CHECK_FALSE(stretto::pipeline<four_by_two, one_f_one_b, table<3, -3>>::supported.ok());
  CHECK_FALSE(stretto::pipeline<four_by_two, one_f_one_b, table<0, 0, 0>>::supported.ok());
  CHECK_FALSE(
      stretto::pipeline<four_by_two, one_f_one_b, stretto::assignment::even<0>>::supported.ok());
}

TEST_CASE("replicas that nothing sums share no plans") {
  const stretto::job_table table(2, 1);
  const auto shared_of = [&](bool sums, bool trains) {
    plan_request wanted;
    wanted.data_parallel = sums;
    const planned made = [&]() -> planned {
      if (trains)
        return {one_f_one_b{}, four_by_two, table.view(), stretto::overlap::separate{}, wanted};
      return {stretto::schedule::inference{}, four_by_two, table.view(),
              stretto::overlap::separate{}, wanted};
    }();
    const stretto::shared workers(made.plans(), 2, 2);
    CHECK(workers.answer().ok() == (workers.plans().size() == 8));
    return workers.answer().why;
  };
  CHECK(shared_of(true, true) == stretto::reason::none);
  CHECK(shared_of(false, true) == stretto::reason::replicas_not_summed);
  CHECK(shared_of(false, false) == stretto::reason::none);
  const planned alone(one_f_one_b{}, four_by_two, table.view(), stretto::overlap::separate{});
  for (const auto& [shards, replicas] : {std::pair{0, 1}, {1, 0}, {-1, -1}}) {
    const stretto::shared nobody(alone.plans(), shards, replicas);
    CHECK(nobody.answer().why == stretto::reason::workers_below_one);
    CHECK(nobody.plans().empty());
  }
  CHECK(stretto::shared({}, 1).answer().why == stretto::reason::no_plans);
  const stretto::shared three(alone.plans(), 3);
  CHECK(three.answer().ok());
  // Whose workers would be told by ranks that there are not.
  const stretto::shared six(three.plans(), 2);
  CHECK(six.answer().why == stretto::reason::shared_already);
  CHECK(six.plans().empty());
  for (const auto& [shards, replicas] :
       {std::pair{65536, 65536}, {1 << 30, 1}, {(1 << 23) + 1, 1}}) {
    const stretto::shared many(alone.plans(), shards, replicas);
    CHECK(many.answer().why == stretto::reason::too_many_workers);
    CHECK(many.plans().empty());
  }
}

TEST_CASE("of a window of chunks that is none it is told what is wrong with it") {
  const stretto::job_table table(2, 1);
  const auto said = [&](const plan_request& wanted) {
    return text(
        planned(one_f_one_b{}, four_by_two, table.view(), stretto::overlap::separate{}, wanted)
            .answer());
  };
  const std::string chunks = "chunks from 0 on of which the first is not behind the last";
  plan_request wanted;
  wanted.recompute = {1, 1, 1, 0};
  CHECK(said(wanted).find(chunks) != std::string::npos);
  wanted = {};
  wanted.offload = {{1, 1, -1, 0}};
  CHECK(said(wanted).find(chunks) != std::string::npos);
}

TEST_CASE("a shape that is none is refused by name, whatever table was made for it") {
  constexpr int most = std::numeric_limits<int>::max();
  using stretto::reason;
  for (const auto& [sizes, why] :
       {std::pair{stretto::shape{.ranks = -1, .microbatches = 4}, reason::ranks_below_one},
        {{.ranks = 4, .microbatches = 4, .chunks = -2}, reason::chunks_below_one},
        {{.ranks = 0, .microbatches = 4}, reason::ranks_below_one},
        {{.ranks = most, .microbatches = 4}, reason::shape_too_large},
        {{.ranks = 65536, .microbatches = 8, .chunks = 65536}, reason::shape_too_large},
        {{.ranks = 2, .microbatches = 4, .chunks = most}, reason::shape_too_large}})
    for (const std::string_view name : {"interleaved", "bitpipe", "zbv"}) {
      const auto schedule = stretto::schedule::by_name(name);
      REQUIRE(schedule);
      const int chunks = place(schedule->placed(), sizes).chunks;
      const stretto::job_table table(sizes.ranks, chunks, {.memory_weights = 1});
      CHECK(table.entries.empty());
      CHECK(table.base.empty());
      const planned none(*schedule, sizes, table.view(), stretto::overlap::separate{});
      CAPTURE(name);
      CHECK(none.answer().what == stretto::fault::unsupported);
      CHECK(none.answer().why == why);
      CHECK(none.plans().empty());
    }
}

TEST_CASE("replicas sum no gradients that nobody reads") {
  const stretto::job_table table(2, 1);
  plan_request wanted;
  wanted.data_parallel = true;
  wanted.train = false;
  const planned untrained(one_f_one_b{}, four_by_two, table.view(), stretto::overlap::separate{},
                          wanted);
  CHECK(untrained.answer().why == stretto::reason::summed_for_nobody);
  CHECK(untrained.plans().empty());
  CHECK(untrained.issued().rows.ranks == 0);
  const planned forwards(stretto::schedule::inference{}, four_by_two, table.view(),
                         stretto::overlap::separate{}, wanted);
  CHECK(forwards.answer().ok());
  wanted.data_parallel = false;
  CHECK(planned(one_f_one_b{}, four_by_two, table.view(), stretto::overlap::separate{}, wanted)
            .answer()
            .ok());
  // Nor are there ops of plans that there are not.
  const stretto::expanded none(untrained, {}, support::two_products<support::op_order::program>{});
  CHECK(none.answer().why == stretto::reason::no_plans);
  CHECK(none.plans().empty());
}

TEST_CASE("a rank of a table that has no stage takes part in a user's sum, of no stage's") {
  const std::int32_t table[] = {0, 2};
  stretto::job_lists lists(3, 2);
  stretto::job_sink out = lists.sink();
  for (const int stage : {0, 1}) {
    out.push(table[stage], {stage, 0, 0, stretto::job_kind::forward});
    out.push(table[stage], {stage, 0, 0, stretto::job_kind::backward});
  }
  const stretto::job_table costs(3, 1);
  const stretto::replay_input in{.rows = lists.rows(),
                                 .where = {.kind = stretto::placement_kind::table,
                                           .ranks = 3,
                                           .chunks = 1,
                                           .microbatches = 1,
                                           .table = table,
                                           .table_stages = 2},
                                 .microbatches = 1,
                                 .slices = 1,
                                 .costs = costs.view()};
  stretto::plan_request asked;
  asked.groups = {{.first = 0, .count = 3, .elements = 1}};
  asked.members = {0, 1, 2};
  const stretto::planned made(in, stretto::overlap::separate{}, asked);
  REQUIRE(made.answer() == stretto::verdict{});
  for (const stretto::plan_view& plan : made.plans())
    CHECK(std::ranges::count(plan.instructions, stretto::action::all_reduce,
                             &stretto::instruction::act) == 1);
  // A stage that there is not is no group's.
  for (const int stage : {-2, 2, 7}) {
    asked.groups[0].stage = stage;
    CHECK(stretto::planned(in, stretto::overlap::separate{}, asked).answer().why ==
          stretto::reason::group_unsound);
  }
}
