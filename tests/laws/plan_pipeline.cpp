// What stretto::pipeline computes at compile time is, entry by entry, what stretto::planned
// computes at run time: instructions, waits, uses, releases, buffers, streams, groups, digests.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "stretto/assignment/all.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/memory/all.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using stretto::shape;
namespace schedule = stretto::schedule;
namespace memory = stretto::memory;
namespace overlap = stretto::overlap;

//! First and last of three ranks share the embedding; all share the gradients' norm.
struct tie_and_norm {
  static constexpr std::array<stretto::group_info, 2> infos{{{0, 2, 100, false}, {2, 3, 1, true}}};
  static constexpr std::array<std::int32_t, 5> members{0, 2, 0, 1, 2};
};

//! Stages of different sizes, and jobs of different lengths.
struct uneven_memory : memory::release_early {
  constexpr stretto::unit_costs costs() const {
    return {.forward = 2, .backward_input = 3, .communication = 1};
  }
  constexpr stretto::stage_bytes bytes(int stage) const {
    return {.output = 100 + 10 * stage, .stash = 1000, .kept = stage % 2 == 0 ? 2000 : 0};
  }
};

//! Layers that save the more, the later they come, and send the same.
struct by_layers : memory::release_early {
  constexpr stretto::stage_bytes bytes(int) const { return {100, 5000, 900}; }
  constexpr stretto::layer_bytes layer_bytes(int at) const { return {1000 + 10 * at, 40}; }
};
//! And keep a third of it for the weights.
struct by_halves : by_layers {
  constexpr stretto::layer_bytes layer_bytes(int at) const {
    return {.stash = 700 + 10 * at, .gradients = 40, .kept = 300};
  }
};
//! What the largest stage needs, for every stage.
struct by_largest : memory::release_early {
  constexpr stretto::stage_bytes bytes(int) const { return {100, 3030, 120}; }
};
using five_and_three = stretto::assignment::round_robin<5, 3>;

template <class T>
bool same(std::span<const T> one, std::span<const T> other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end());
}

template <shape Shape, class Schedule, class Memory, class Overlap, class Groups,
          class Assignment = stretto::assignment::unassigned>
void compare() {
  using step = stretto::pipeline<Shape, Schedule, Assignment, Memory, Overlap, Groups>;
  static_assert(stretto::valid<step>);
  stretto::plan_request request = stretto::request_of(Memory{}, step::where.stages(), step::layers);
  request.groups.assign(Groups::infos.begin(), Groups::infos.end());
  request.members.assign(Groups::members.begin(), Groups::members.end());
  request.train = !step::forward_only;
  request.data_parallel = requires { requires Groups::reduces; };
  if constexpr (requires { Groups::gathered; }) request.gathered = Groups::gathered;
  const stretto::job_table table(Shape.ranks, step::where.chunks, Memory{}.costs());
  const stretto::planned made(Schedule{}, Shape, table.view(), Overlap{}, request);
  REQUIRE(made.answer() == stretto::verdict{});

  for (int rank = 0; rank < Shape.ranks; ++rank) {
    INFO(Schedule::name, " rank ", rank);
    CHECK(same(step::jobs().row(rank), made.jobs().row(rank)));
    CHECK(same(step::lists().row(rank), made.lists().row(rank)));
  }
  REQUIRE(step::plans().size() == made.plans().size());
  for (std::size_t rank = 0; rank < made.plans().size(); ++rank) {
    INFO(Schedule::name, " rank ", rank);
    const stretto::plan_view& one = step::plans()[rank];
    const stretto::plan_view& other = made.plans()[rank];
    CHECK(one.rank == other.rank);
    CHECK(one.ranks == other.ranks);
    CHECK(one.stages == other.stages);
    CHECK(one.microbatches == other.microbatches);
    CHECK(one.slices == other.slices);
    CHECK(one.events == other.events);
    CHECK(one.arena_bytes == other.arena_bytes);
    CHECK(one.digest == other.digest);
    CHECK(one.digest == step::plans()[0].digest);
    // What the digest is of.
    for (const stretto::job_rows& lists : {one.lists, other.lists}) {
      REQUIRE(lists.ranks == step::lists().ranks);
      for (int each = 0; each < lists.ranks; ++each)
        CHECK(same(lists.row(each), step::lists().row(each)));
    }
    CHECK(one.instructions.size() == static_cast<std::size_t>(step::lists().counts[rank]));
    CHECK(same(one.instructions, other.instructions));
    CHECK(same(one.waits, other.waits));
    CHECK(same(one.uses, other.uses));
    CHECK(same(one.released, other.released));
    CHECK(same(one.buffers, other.buffers));
    CHECK(same(one.streams, other.streams));
    CHECK(same(one.groups, other.groups));
    CHECK(same(one.members, other.members));
  }
}

//! Of a long search one variant.
struct one_variant : schedule::v_auto {
  constexpr one_variant() { variant = 8; }
};

//! Few shapes: every one costs the compiler a second.
template <class Schedule>
void compare_shapes() {
  using stretto::no_groups;
  constexpr bool chunked = Schedule{}.supports({.ranks = 3, .microbatches = 5, .chunks = 2}).ok();
  constexpr bool even = Schedule{}.placed() == stretto::placement_kind::bidirectional;
  constexpr shape wide{.ranks = even ? 4 : 3, .microbatches = 5, .chunks = chunked ? 2 : 1};
  compare<wide, Schedule, uneven_memory, overlap::separate, tie_and_norm>();
  constexpr bool single = Schedule{}.supports({.ranks = 2, .microbatches = 3}).ok();
  constexpr shape narrow{.ranks = 2, .microbatches = 3, .chunks = single ? 1 : 2};
  compare<narrow, Schedule, memory::keep, overlap::serial, no_groups>();
}

}  // namespace

TEST_CASE("a pipeline is what planned makes at run time, entry by entry") {
  schedule::all::for_each([](auto made) {
    using made_type = decltype(made);
    using one_type = std::conditional_t<std::is_same_v<made_type, schedule::v_auto>, one_variant,
                                        made_type>;
    compare_shapes<one_type>();
  });
  compare<shape{.ranks = 4, .microbatches = 9}, schedule::one_f_one_b, memory::release_early,
          overlap::separate, stretto::no_groups>();
  compare<shape{.ranks = 1, .microbatches = 2}, schedule::one_f_one_b, memory::release_early,
          overlap::separate, stretto::no_groups>();
  compare<shape{.ranks = 2, .microbatches = 4, .chunks = 2}, schedule::interleaved, by_layers,
          overlap::separate, stretto::no_groups, five_and_three>();
  compare<shape{.ranks = 2, .microbatches = 4, .chunks = 2}, schedule::zbv, by_halves,
          overlap::serial, stretto::no_groups, five_and_three>();
  compare<shape{.ranks = 3, .microbatches = 5, .chunks = 2}, schedule::zbv, uneven_memory,
          overlap::separate, stretto::with_data_parallel<tie_and_norm>>();
  compare<shape{.ranks = 4, .microbatches = 8}, schedule::dualpipe, uneven_memory, overlap::serial,
          stretto::with_data_parallel<>>();
  compare<shape{.ranks = 3, .microbatches = 5, .chunks = 2}, schedule::zbv, uneven_memory,
          overlap::with_receive_lead<overlap::separate, 1>,
          stretto::with_data_parallel<tie_and_norm>>();
  compare<shape{.ranks = 3, .microbatches = 5, .chunks = 2}, schedule::zbv, uneven_memory,
          overlap::separate, stretto::with_sharded_weights<1, tie_and_norm>>();
  compare<shape{.ranks = 4, .microbatches = 8}, schedule::dualpipe, uneven_memory, overlap::serial,
          stretto::with_sharded_weights<2>>();
  compare<shape{.ranks = 3, .microbatches = 4, .chunks = 2}, schedule::inference, uneven_memory,
          overlap::separate, stretto::with_sharded_weights<1>>();
  compare<shape{.ranks = 2, .microbatches = 4}, schedule::inference, uneven_memory, overlap::serial,
          stretto::with_data_parallel<>>();
}

TEST_CASE("a digest tells plans apart that cannot run together") {
  const stretto::job_table table(3, 1);
  const auto digest = [&](int microbatches, const stretto::plan_request& request) {
    const stretto::planned made(schedule::one_f_one_b{},
                                {.ranks = 3, .microbatches = microbatches}, table.view(),
                                overlap::separate{}, request);
    return made.plans()[0].digest;
  };
  stretto::plan_request larger;
  larger.stages = {{128, 64}};
  stretto::plan_request joined;
  joined.groups = {{0, 3, 1, true}};
  joined.members = {0, 1, 2};
  stretto::plan_request narrower = joined;
  narrower.groups[0].wide = false;
  stretto::plan_request forward_only;
  forward_only.train = false;
  stretto::plan_request replicas;
  replicas.data_parallel = true;
  std::vector<std::uint64_t> all = {digest(4, {}),       digest(5, {}),
                                    digest(4, larger),   digest(4, joined),
                                    digest(4, narrower), digest(4, forward_only),
                                    digest(4, replicas)};
  CHECK(all[0] == digest(4, {}));
  // The same jobs on the same ranks: in another order, at other times, and received later.
  const auto of = [&](const auto& schedule, const stretto::job_table_view& costs,
                      const auto& overlap) {
    const stretto::planned made(schedule, {.ranks = 3, .microbatches = 4}, costs, overlap);
    REQUIRE(made.answer().ok());
    return made.plans()[0].digest;
  };
  stretto::job_table slow(3, 1);
  for (const int rank : {0, 1, 2}) slow.at(rank, 0, stretto::job_kind::backward).time = 7;
  const schedule::one_f_one_b schedule;
  CHECK(all[0] == of(schedule, table.view(), overlap::separate{}));
  all.push_back(of(schedule::gpipe{}, table.view(), overlap::separate{}));
  all.push_back(of(schedule, slow.view(), overlap::separate{}));
  all.push_back(of(schedule, table.view(), overlap::with_receive_lead<>{}));
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

TEST_CASE("layers of a pipeline are what its assignment deals") {
  using step = stretto::pipeline<shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                                 schedule::interleaved, stretto::assignment::round_robin<5, 3>>;
  static_assert(stretto::valid<step>);
  std::vector<int> counts;
  for (const auto& range : step::layers) counts.push_back(range.count);
  CHECK(counts == std::vector<int>{3, 2, 2, 1});
  CHECK(step::layers.back().first + step::layers.back().count == 8);
}

TEST_CASE("what a stage saves follows the layers that its assignment deals it") {
  constexpr shape sizes{.ranks = 2, .microbatches = 4, .chunks = 2};
  using step = stretto::pipeline<sizes, schedule::interleaved, five_and_three, by_layers>;
  using even = stretto::pipeline<sizes, schedule::interleaved, five_and_three, by_largest>;
  static_assert(stretto::valid<step> && stretto::valid<even>);
  // Layers 0 to 2, 3 and 4, 5 and 6, 7.
  const std::vector<std::int64_t> saved{3030, 2070, 2110, 1070};
  for (const stretto::plan_view& plan : step::plans())
    for (const stretto::buffer& held : plan.buffers) {
      INFO("rank ", plan.rank, ", stage ", held.stage);
      if (held.role == stretto::buffer_role::stash)
        CHECK(held.bytes == saved[static_cast<std::size_t>(held.stage)]);
      else
        CHECK(held.bytes == 100);
    }
  // The rank with the fewer layers no longer takes what the other does.
  CHECK(step::plans()[1].arena_bytes < even::plans()[1].arena_bytes);
  CHECK(step::plans()[1].arena_bytes < step::plans()[0].arena_bytes);
}

TEST_CASE("a stash goes with the backward for the input where what the other reads is kept apart") {
  constexpr shape sizes{.ranks = 2, .microbatches = 4, .chunks = 2};
  using step = stretto::pipeline<sizes, schedule::zbv, five_and_three, by_halves>;
  static_assert(stretto::valid<step>);
  using stretto::buffer_role;
  using stretto::job_kind;
  for (const stretto::plan_view& plan : step::plans()) {
    int halves = 0;
    for (const stretto::buffer& held : plan.buffers) {
      if (!stretto::is_saved(held.role)) continue;
      INFO("rank ", plan.rank, ", stage ", held.stage, ", micro-batch ", held.microbatch);
      const bool kept = held.role == buffer_role::kept;
      const stretto::layer_range& of = step::layers[static_cast<std::size_t>(held.stage)];
      if (kept) CHECK(held.bytes == 300 * of.count);
      CHECK(plan.instructions[static_cast<std::size_t>(held.first)].what.kind == job_kind::forward);
      const stretto::job& last = plan.instructions[static_cast<std::size_t>(held.release) - 1].what;
      CHECK(last.stage == held.stage);
      CHECK(last.microbatch == held.microbatch);
      if (last.kind == job_kind::backward) continue;
      CHECK(last.kind == (kept ? job_kind::backward_weight : job_kind::backward_input));
      ++halves;
    }
    CHECK(halves > 0);
    for (const stretto::instruction& at : plan.instructions) {
      if (at.what.kind != job_kind::backward_weight) continue;
      for (const stretto::buffer_use& use : plan.uses_of(at)) CHECK(use.role != buffer_role::stash);
    }
  }
}

TEST_CASE("replicas sum the gradients of their layers, and a stage may be without any") {
  constexpr shape two_way{.ranks = 4, .microbatches = 8};
  using step =
      stretto::pipeline<two_way, schedule::chimera, stretto::assignment::even<6>, by_layers>;
  static_assert(stretto::valid<step>);
  for (const stretto::group_info& sum : step::plans()[0].groups)
    CHECK(sum.elements == step::layers[static_cast<std::size_t>(sum.stage)].count * 10);

  const std::vector<stretto::layer_range> layers{{0, 2}, {2, 0}, {2, 1}};
  const stretto::plan_request request = stretto::request_of(by_layers{}, 3, layers);
  CHECK(request.stages[1] == stretto::stage_bytes{100, 0, 0, 0, 0});
  const stretto::job_table table(3, 1);
  const stretto::planned made(schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 6},
                              table.view(), overlap::separate{}, request);
  REQUIRE(made.answer() == stretto::verdict{});
  for (const stretto::buffer& held : made.plans()[1].buffers)
    CHECK(held.bytes == (held.role == stretto::buffer_role::stash ? 0 : 100));
}

TEST_CASE("empty buffers keep their events, which are no race and not spare") {
  stretto::plan_request request;
  request.stages = {{0, 0, 0}};
  schedule::all::for_each([&](const auto& made) {
    for (const int chunks : {1, 2}) {
      const shape sizes{.ranks = 4, .microbatches = 8, .chunks = chunks};
      if (!made.supports(sizes).ok()) continue;
      INFO(made.name, ", chunks ", chunks);
      const stretto::job_table table(4, place(made.placed(), sizes).chunks);
      request.train = !schedule::forward_only(made);
      const stretto::planned plans(made, sizes, table.view(), overlap::separate{}, request);
      CHECK(plans.answer() == stretto::verdict{});
      CHECK(plans.plans()[0].arena_bytes == 0);
    }
  });
}

TEST_CASE("costs of another shape are refused, not read") {
  const shape sizes{.ranks = 3, .microbatches = 6};
  const auto answer = [&](const stretto::job_table_view& costs) {
    return stretto::planned(schedule::one_f_one_b{}, sizes, costs, overlap::separate{})
        .answer()
        .why;
  };
  stretto::job_table table(3, 1);
  CHECK(answer(table.view()) == stretto::reason::none);
  CHECK(answer({}) == stretto::reason::costs_do_not_fit);
  CHECK(answer(stretto::job_table(3, 2).view()) == stretto::reason::costs_do_not_fit);
  CHECK(answer(stretto::job_table(2, 1).view()) == stretto::reason::costs_do_not_fit);
  table.limit = {5, 5};
  CHECK(answer(table.view()) == stretto::reason::costs_do_not_fit);
}

TEST_CASE("of costs that make no sense the first is named, with what it is and may be") {
  const auto said = [](auto spoil) {
    stretto::job_table table(3, 2);
    spoil(table);
    const stretto::planned made(schedule::interleaved{},
                                {.ranks = 3, .microbatches = 6, .chunks = 2}, table.view(),
                                overlap::separate{});
    return std::string(stretto::to_text(made.answer()).view());
  };
  constexpr std::int64_t most = stretto::job_table_view::most_memory;
  using table = stretto::job_table;
  CHECK(said([](table& of) { of.at(2, 1, stretto::job_kind::backward_input).time = -3; }) ==
        "unsupported on rank 2, job 5I0: a job's time is a number from 0 to 2^46, with many jobs "
        "of a kind 2^60 over their number (-3, at most 70368744177664)");
  for (const auto member : {&stretto::job_cost::change, &stretto::job_cost::peak})
    CHECK(said([&](table& of) { of.at(1, 0, stretto::job_kind::forward).*member = -most - 1; }) ==
          "unsupported on rank 1, job 1F0: what a job changes memory by, and its peak, are numbers "
          "of at most 2^46 either way (-70368744177665, at most 70368744177664)");
  CHECK(
      said([](table& of) {
        of.base = {0, 1, -1};
      }) ==
      "unsupported on rank 2: what a rank has in memory before its first job is a number from 0 to "
      "2^46 (-1, at most 70368744177664)");
  CHECK(said([&](table& of) {
          of.limit = {0, -most - 1, 0};
        }).starts_with("unsupported on rank 1: a limit of memory is a number from -2^46 on"));
  CHECK(said([](table& of) {
          of.communication = -1;
        }).starts_with("unsupported: a message's time is a number from 0 to 2^46"));
  CHECK(said([](table& of) {
          of.between_nodes = -1;
        }).starts_with("unsupported: a message's time is a number from 0 to 2^46"));
  CHECK(
      said([](table& of) { of.node_ranks = -2; }) ==
      "unsupported: a node has a number of ranks from 1 on, or 0 where all are of one (-2, at most "
      "2147483647)");
  CHECK(said([](table& of) { of.pair_hides = 101; }) ==
        "unsupported: a pair hides 0 to 100 percent of its shorter half (101, at most 100)");
  // In the second class of micro-batches, too.
  CHECK(said([](table& of) {
          of.classes = {0, 1, 0, 0, 0, 0};
          of.add_class();
          of.entries.back().time = -4;
        }).starts_with("unsupported on rank 2, job 5UNSHARD"));
}

TEST_CASE("times are as long as sums over all jobs stay in 64 bits") {
  constexpr std::int64_t most = stretto::job_table_view::most_time;
  const auto fits = [](std::int64_t time, int jobs) {
    const stretto::job_table table(1, 1, {.forward = time});
    return stretto::costs_fit(table.view(), {.ranks = 1, .microbatches = jobs}, jobs, 1).ok();
  };
  CHECK(fits(most, 1 << 14));
  CHECK(!fits(most + 1, 1));
  CHECK(!fits(most, 1 << 15));
  CHECK(fits(std::int64_t{1} << 36, 1 << 24));
  CHECK(!fits((std::int64_t{1} << 36) + 1, 1 << 24));
  // As the shape has jobs: of 2^17, whose sum would leave 64 bits.
  const stretto::job_table table(1, 1, {.forward = most, .communication = most});
  CHECK(stretto::planned(schedule::gpipe{}, {.ranks = 1, .microbatches = 1 << 17}, table.view(),
                         overlap::separate{})
            .answer()
            .why == stretto::reason::time_out_of_range);
}

namespace {

struct refunding : memory::release_early {
  constexpr stretto::unit_costs costs() const { return {.forward = -1}; }
};

//! `separate`, but for one kind of instruction of one rank, which is on `Stream`.
template <stretto::job_kind Kind, int Rank, int Stream, int Count = 7>
struct misdirected : overlap::separate {
  constexpr int count() const { return Count; }
  constexpr int stream_of(stretto::job_kind kind, int rank, int peer, int ranks) const {
    return kind == Kind && rank == Rank ? Stream : separate::stream_of(kind, rank, peer, ranks);
  }
};

template <class Schedule, class Overlap>
stretto::verdict streams_of() {
  constexpr shape sizes{.ranks = 4, .microbatches = 8};
  const stretto::job_table table(4, place(Schedule{}.placed(), sizes).chunks);
  const stretto::planned made(Schedule{}, sizes, table.view(), Overlap{});
  using step = stretto::pipeline<sizes, Schedule, stretto::assignment::unassigned,
                                 memory::release_early, Overlap>;
  CHECK(made.answer() == step::checked);
  return made.answer();
}

}  // namespace

TEST_CASE("negative costs are refused at compile time, too") {
  using step = stretto::pipeline<shape{.ranks = 3, .microbatches = 6}, schedule::one_f_one_b,
                                 stretto::assignment::unassigned, refunding>;
  static_assert(step::checked.what == stretto::fault::unsupported &&
                step::checked.why == stretto::reason::time_out_of_range &&
                step::checked.rank == 0 && step::checked.amount == -1);
}

TEST_CASE("an overlap policy that names a stream which there is not is refused, with the job") {
  using stretto::job_kind;
  const auto refused = [](job_kind kind, int rank, int stage, int stream, int microbatch = 0) {
    stretto::verdict answer =
        refuse(stretto::fault::unsupported, stretto::reason::no_stream_for_job, rank, -1,
               {.stage = stage, .microbatch = microbatch, .kind = kind});
    answer.amount = stream;
    answer.limit = 6;  // the last that there is
    return answer;
  };
  using one_way = schedule::one_f_one_b;
  CHECK(streams_of<one_way, misdirected<job_kind::end_step, 3, 0>>().ok());
  CHECK(streams_of<one_way, misdirected<job_kind::optimizer, 3, 7>>() ==
        refused(job_kind::optimizer, 3, 3, 7));
  CHECK(streams_of<one_way, misdirected<job_kind::all_reduce, 0, -1>>() ==
        refused(job_kind::all_reduce, 0, 0, -1));
  CHECK(streams_of<one_way, misdirected<job_kind::send_forward, 1, 7>>() ==
        refused(job_kind::send_forward, 1, 1, 7));
  CHECK(streams_of<one_way, misdirected<job_kind::receive_forward, 3, -2>>() ==
        refused(job_kind::receive_forward, 3, 3, -2));
  CHECK(streams_of<one_way, misdirected<job_kind::send_backward, 2, 1 << 30>>() ==
        refused(job_kind::send_backward, 2, 2, 1 << 30));
  CHECK(streams_of<one_way, misdirected<job_kind::receive_backward, 0, 7>>() ==
        refused(job_kind::receive_backward, 0, 0, 7));
  // Of the first rank only what goes the other way is sent backward.
  CHECK(streams_of<schedule::dualpipe, misdirected<job_kind::send_backward, 0, 7>>() ==
        refused(job_kind::send_backward, 0, 3, 7, 7));
  for (const int count : {0, 9}) {
    const stretto::verdict answer =
        count == 0 ? streams_of<one_way, misdirected<job_kind::forward, 0, 0, 0>>()
                   : streams_of<one_way, misdirected<job_kind::forward, 0, 0, 9>>();
    CHECK(answer.why == stretto::reason::too_many_streams_or_none);
    CHECK(answer.amount == count);
  }
}
