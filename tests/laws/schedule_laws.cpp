#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using laws::for_each_shape;
using laws::same;
using laws::words;
using stretto::fault;
using stretto::placement_kind;
using stretto::reason;
using stretto::shape;
using namespace stretto::schedule;

constexpr auto looped = placement_kind::looped;
constexpr auto wave = placement_kind::wave;

//! The option values under which a schedule is tried at a shape. A schedule without an overload of
//! its own is tried as it is by default.
template <class Schedule>
std::vector<Schedule> variants(const Schedule& plain, const shape&) {
  return {plain};
}

std::vector<gpipe> variants(const gpipe&, const shape&) {
  return {{.placement = looped}, {.placement = wave}, {.placement = placement_kind::bidirectional}};
}

//! The default, the shortest and longest groups that are served, some between, and one beyond each.
std::vector<int> groups_of(const shape& sizes) {
  const int least = std::min(sizes.ranks, sizes.microbatches);
  const int most = sizes.microbatches;
  std::vector<int> groups{
      -1, 0, least - 1, least, least + 1, least + 2, (least + most) / 2, most - 1, most, most + 1};
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

std::vector<interleaved> variants(const interleaved&, const shape& sizes) {
  std::vector<interleaved> all{{.placement = wave}};
  for (int group : groups_of(sizes))
    for (auto remainder : {remainder_kind::even, remainder_kind::first, remainder_kind::last})
      for (auto warmup : {warmup_kind::standard, warmup_kind::half, warmup_kind::all})
        for (auto backwards : {backwards_kind::groups, backwards_kind::early})
          all.push_back({.group = group,
                         .remainder = remainder,
                         .warmup = warmup,
                         .backwards = backwards});
  return all;
}

std::vector<paired_1f1b> variants(const paired_1f1b&, const shape& sizes) {
  std::vector<paired_1f1b> all;
  for (int group : groups_of(sizes))
    for (auto remainder : {remainder_kind::even, remainder_kind::first, remainder_kind::last})
      for (auto backwards : {backwards_kind::groups, backwards_kind::early})
        all.push_back({.group = group, .remainder = remainder, .backwards = backwards});
  return all;
}

std::vector<inference> variants(const inference&, const shape& sizes) {
  std::vector<inference> all;
  for (int group : groups_of(sizes))
    for (auto remainder : {remainder_kind::even, remainder_kind::first, remainder_kind::last})
      all.push_back({.group = group, .remainder = remainder});
  for (auto placement : {wave, placement_kind::bidirectional})
    for (int group : {0, sizes.microbatches})
      all.push_back({.group = group, .placement = placement});
  return all;
}

std::vector<interleaved_zb> variants(const interleaved_zb&, const shape& sizes) {
  std::vector<interleaved_zb> all;
  for (int group : groups_of(sizes))
    for (auto warmup : {warmup_kind::half, warmup_kind::standard})
      for (auto backwards : {backwards_kind::groups, backwards_kind::early})
        all.push_back({.group = group, .warmup = warmup, .backwards = backwards});
  return all;
}

std::vector<kfkb> variants(const kfkb&, const shape& sizes) {
  std::vector<kfkb> all;
  for (int group = -1; group <= sizes.microbatches + 1; group += 1 + group / 5)
    for (auto remainder : {remainder_kind::even, remainder_kind::first, remainder_kind::last})
      all.push_back({.group = group, .remainder = remainder});
  return all;
}

std::vector<grouped> variants(const grouped&, const shape& sizes) {
  std::vector<grouped> all;
  for (int group = -1; group <= sizes.ranks + 1; ++group) all.push_back({.group = group});
  return all;
}

std::vector<zb_auto> variants(const zb_auto&, const shape& sizes) {
  std::vector<zb_auto> all{{}, {.objective = objective_kind::span}, {.variant = zb_auto::variants}};
  all.push_back({.variant = sizes.microbatches % zb_auto::variants});
  return all;
}

std::vector<v_auto> variants(const v_auto&, const shape& sizes) {
  std::vector<v_auto> all{{.variant = (sizes.ranks + 5 * sizes.microbatches) % v_auto::variants},
                          {.variant = v_auto::variants}};
  if (sizes.microbatches <= 8) all.push_back({});  // the search takes its time
  return all;
}

std::vector<zb_h1> variants(const zb_h1&, const shape&) {
  return {{.split = split_kind::full}, {.split = split_kind::partial}};
}

std::vector<zbv_greedy> variants(const zbv_greedy&, const shape&) {
  std::vector<zbv_greedy> all{{}};
  for (int variant = 0; variant <= zbv_greedy::variants; ++variant)
    all.push_back({.variant = variant});
  return all;
}

//! Schedules of two directions want an even number of ranks.
template <class Schedule>
constexpr bool two_ways = std::remove_cvref_t<Schedule>{}.placed() == placement_kind::bidirectional;

struct support_tally {
  long supported = 0;
  long refused = 0;
};

//! The laws of every schedule: what it supports it emits, within its capacity, complete, ordered
//! and live; what it does not support it refuses with a reason.
template <Policy Schedule>
void obeys(const Schedule& schedule, const shape& sizes, support_tally& seen) {
  const auto answer = schedule.supports(sizes);
  if (!answer) {
    ++seen.refused;
    CHECK(answer.what == fault::unsupported);
    CHECK(answer.why != reason::none);
    return;
  }
  ++seen.supported;
  CHECK(answer == stretto::verdict{});
  std::string broken;
  REQUIRE_NOTHROW(broken = laws::broken_law(schedule, sizes));
  REQUIRE(broken == "");
}

}  // namespace

TEST_CASE("the laws themselves: a changed order breaks one") {
  const shape sizes{3, 5, 2};
  const auto where = stretto::place(looped, sizes);
  const auto verdict_after = [&](auto change) {
    auto lists = laws::emitted(interleaved{}, sizes);
    auto sink = lists.sink();
    change(sink);
    return laws::broken_law(sink.rows(), where, sizes, false);
  };
  const auto item = [](stretto::job_sink& sink, int rank, int step) -> stretto::job& {
    return sink.items[rank * sink.stride + step];
  };
  const int last = 2 * sizes.microbatches * sizes.chunks - 1;
  CHECK(verdict_after([](auto&) {}) == "");
  CHECK(verdict_after([](auto& sink) { --sink.counts[1]; }) == "a backward is missing");
  CHECK(verdict_after([&](auto& sink) { item(sink, 1, 2) = item(sink, 1, 1); }) ==
        "rank 1 step 2 1F1: a second time");
  CHECK(verdict_after([&](auto& sink) { item(sink, 1, 0).stage = 2; }) ==
        "rank 1 step 0 2F0: on the wrong rank");
  CHECK(verdict_after([&](auto& sink) { item(sink, 0, 0).microbatch = 5; }) ==
        "rank 0 step 0 0F5: out of range");
  CHECK(verdict_after([&](auto& sink) { item(sink, 0, 0).kind = stretto::job_kind::recompute; }) ==
        "rank 0 step 0 0R0: wrong kind");
  CHECK(verdict_after([&](auto& sink) { std::swap(item(sink, 2, 0), item(sink, 2, last)); }) ==
        "rank 2 step 0 2B4: before its forward");
  // Rank 0's first backward right after its own forward: no list is out of order, yet the ranks
  // after it wait for forwards that now stand behind it.
  CHECK(verdict_after([&](auto& sink) {
          int at = 0;
          while (item(sink, 0, at).kind == stretto::job_kind::forward) ++at;
          const auto is_its_forward = [&](const stretto::job& work) {
            return work.stage == item(sink, 0, at).stage &&
                   work.microbatch == item(sink, 0, at).microbatch;
          };
          for (; !is_its_forward(item(sink, 0, at - 1)); --at)
            std::swap(item(sink, 0, at), item(sink, 0, at - 1));
        }).find("waits for a job that can never run") != std::string::npos);
}

TEST_CASE("every schedule: complete, ordered and live at every shape that it supports") {
  all::for_each([](const auto& plain) {
    support_tally seen;
    for_each_shape(9, 40, 4, [&](const shape& sizes) {
      INFO(std::string(plain.name), " ", words(sizes));
      for (const auto& schedule : variants(plain, sizes)) obeys(schedule, sizes, seen);
    });
    for_each_shape(9, 14, 4, [&](shape sizes) {
      for (sizes.slices = 2; sizes.slices <= 7; ++sizes.slices) {
        INFO(std::string(plain.name), " ", words(sizes));
        for (const auto& schedule : variants(plain, sizes)) obeys(schedule, sizes, seen);
      }
    });
    MESSAGE(std::string(plain.name), ": ", seen.supported, " served, ", seen.refused, " refused");
    CHECK(seen.supported >= (two_ways<decltype(plain)> ? 4 : 9) * 40);
  });
}

namespace {

//! The only number of chunks that a schedule has; 0: any.
template <class Schedule>
constexpr int only_chunks = 0;
template <>
constexpr int only_chunks<one_f_one_b> = 1;
template <>
constexpr int only_chunks<eager_1f1b> = 1;
template <>
constexpr int only_chunks<kfkb> = 1;
template <>
constexpr int only_chunks<seq_1f1b> = 1;
template <>
constexpr int only_chunks<zb_auto> = 1;
template <>
constexpr int only_chunks<zb_h1> = 1;
template <>
constexpr int only_chunks<zb_h1_light> = 1;
template <>
constexpr int only_chunks<zb_h2> = 1;
template <>
constexpr int only_chunks<v_1f1b> = 2;
template <>
constexpr int only_chunks<v_auto> = 2;
template <>
constexpr int only_chunks<v_half> = 2;
template <>
constexpr int only_chunks<v_min> = 2;
template <>
constexpr int only_chunks<zbv> = 2;
template <>
constexpr int only_chunks<chimera> = 1;
template <>
constexpr int only_chunks<dualpipe> = 1;
template <>
constexpr int only_chunks<dualpipe_v> = 2;

//! Whether a schedule cuts micro-batches in slices.
template <class Schedule>
constexpr bool slices = false;
template <>
constexpr bool slices<gpipe> = true;
template <>
constexpr bool slices<looped_bfs> = true;
template <>
constexpr bool slices<seq_1f1b> = true;
template <>
constexpr bool slices<interleaved> = true;
template <>
constexpr bool slices<paired_1f1b> = true;
template <>
constexpr bool slices<zb_h1> = true;
template <>
constexpr bool slices<zb_h2> = true;
template <>
constexpr bool slices<interleaved_zb> = true;
template <>
constexpr bool slices<inference> = true;

//! Chunks with which a schedule is tried where any number would do.
template <class Schedule>
constexpr int some_chunks(int wanted) {
  return only_chunks<Schedule> > 0 ? only_chunks<Schedule> : wanted;
}

}  // namespace

TEST_CASE("every schedule: the default serves all shapes, but for its only number of chunks") {
  all::for_each([]<class Schedule>(const Schedule& plain) {
    for_each_shape(9, 40, 4, [&](const shape& sizes) {
      INFO(std::string(plain.name), " ", words(sizes));
      const auto answer = plain.supports(sizes);
      const int only = only_chunks<Schedule>;
      if (two_ways<Schedule> && sizes.ranks % 2 != 0)
        CHECK(answer.why == reason::ranks_odd);
      else if (only > 0 && sizes.chunks != only)
        CHECK(answer.why == (only == 1 ? reason::chunks_not_one : reason::chunks_not_two));
      else
        CHECK(answer.ok());
    });
  });
}

TEST_CASE("every schedule: nothing below one; slices, or a refusal") {
  all::for_each([]<class Schedule>(const Schedule& plain) {
    INFO(std::string(plain.name));
    constexpr int chunks = some_chunks<Schedule>(1);
    CHECK(plain.supports({0, 4, 1}).why == reason::ranks_below_one);
    CHECK(plain.supports({-3, 4, 1}).why == reason::ranks_below_one);
    CHECK(plain.supports({4, 0, 1}).why == reason::microbatches_below_one);
    CHECK(plain.supports({4, 4, 0}).why == reason::chunks_below_one);
    CHECK(plain.supports({4, 4, 1, 0}).why == reason::slices_below_one);
    CHECK(plain.supports({4, 4, chunks, 2}).why ==
          (slices<Schedule> ? reason::none : reason::slices_not_one));
  });
}

TEST_CASE("options out of their range are refused by name") {
  const shape sizes{4, 8, 2};
  const auto refused_for = [&](auto schedule, int group) {
    schedule.group = group;
    return schedule.supports(sizes).why;
  };
  const auto check = [&](auto schedule) {
    CHECK(refused_for(schedule, -1) == reason::group_below_one);
    CHECK(refused_for(schedule, 3) == reason::group_below_ranks);
    CHECK(refused_for(schedule, 4) == reason::none);
    CHECK(refused_for(schedule, 8) == reason::none);
    CHECK(refused_for(schedule, 9) == reason::group_above_microbatches);
    schedule.placement = placement_kind::table;
    CHECK(schedule.supports(sizes).why == reason::placement_not_served);
  };
  check(interleaved{});
  check(inference{});
  CHECK(inference{.placement = static_cast<placement_kind>(9)}.supports(sizes).why ==
        reason::placement_not_served);
  CHECK(interleaved{.placement = placement_kind::bidirectional}.supports(sizes).why ==
        reason::placement_not_served);
  CHECK(inference{.placement = placement_kind::bidirectional}.supports(sizes).ok());
  CHECK(chimera{}.supports(sizes).why == reason::chunks_not_one);
  CHECK(inference{.placement = placement_kind::bidirectional}.supports({3, 8, 1}).why ==
        reason::ranks_odd);
  CHECK(inference{.group = 4, .placement = wave}.supports(sizes).why ==
        reason::placement_not_served);
  CHECK(refused_for(interleaved_zb{}, -1) == reason::group_below_one);
  CHECK(refused_for(interleaved_zb{}, 3) == reason::group_below_ranks);
  CHECK(refused_for(interleaved_zb{}, 8) == reason::none);
  CHECK(refused_for(interleaved_zb{}, 9) == reason::group_above_microbatches);
  CHECK(refused_for(grouped{}, -1) == reason::group_below_one);
  CHECK(refused_for(grouped{}, 4) == reason::none);
  CHECK(refused_for(grouped{}, 5) == reason::group_above_ranks);
  CHECK(zb_auto{.variant = zb_auto::variants}.supports({4, 8, 1}).why ==
        reason::variant_out_of_range);
  CHECK(zb_auto{.variant = -2}.supports({4, 8, 1}).why == reason::variant_out_of_range);
  CHECK(zbv_greedy{.variant = -2}.supports(sizes).why == reason::variant_out_of_range);
  CHECK(interleaved{.placement = wave}.supports(sizes).why == reason::placement_not_served);
  CHECK(interleaved{.group = 3}.supports({4, 3, 2}).ok());  // m < p: one group of all
  CHECK(zb_h1{.split = split_kind::partial}.supports({4, 8, 1, 2}).why == reason::slices_not_one);
  for (auto placement : {placement_kind::bidirectional, placement_kind::table})
    CHECK(gpipe{.placement = placement}.supports(sizes).why == reason::placement_not_served);
}

TEST_CASE("a group of slices needs as many as there are ranks, and more before a short last one") {
  const shape sizes{.ranks = 8, .microbatches = 5, .chunks = 3, .slices = 4};
  const auto check = [&](auto schedule) {
    schedule.group = 1;
    CHECK(schedule.supports(sizes).why == reason::group_below_ranks);
    schedule.group = 2;
    CHECK(schedule.supports(sizes).ok());
    const auto two = laws::emitted(schedule, sizes);
    schedule.group = 0;
    CHECK(same(laws::emitted(schedule, sizes).rows(), two.rows()));
    return schedule;
  };
  check(interleaved_zb{});
  check(inference{});
  for (auto schedule : {check(interleaved{}), check(interleaved{.warmup = warmup_kind::paired})}) {
    schedule.remainder = remainder_kind::last;
    schedule.group = 2;
    CHECK(schedule.supports(sizes).why == reason::group_starves_short);
    CHECK(schedule.supports({8, 6, 3, 4}).ok());  // none is short
    schedule.group = 3;
    CHECK(schedule.supports(sizes).ok());
    const auto three = laws::emitted(schedule, sizes);
    schedule.group = 0;
    CHECK(same(laws::emitted(schedule, sizes).rows(), three.rows()));
  }
}

namespace {

//! The constant that the compiler made of a schedule against the same function's answer now.
template <class Schedule, Schedule Chosen, shape Sizes>
void same_at_both_times() {
  static constexpr auto constant = [] {
    stretto::fixed_job_lists<Sizes.ranks, Chosen.capacity(Sizes)> lists;
    const stretto::fixed_job_table<Sizes.ranks, stretto::place(Chosen.placed(), Sizes).chunks>
        table;
    auto sink = lists.sink();
    if (!Chosen.emit(Sizes, table.view(), sink)) throw "not emitted";
    return lists;
  }();
  static_assert(constant.rows().total() > 0);
  CHECK(same(constant.rows(), laws::emitted(Chosen, Sizes).rows()));
}

//! What is compared at both times: of a long search one variant.
template <class Schedule>
constexpr Schedule at_both_times{};
template <>
constexpr v_auto at_both_times<v_auto>{.variant = 8};

}  // namespace

TEST_CASE("every schedule: the compile-time orders are the run-time orders") {
  all::for_each([]<class Schedule>(const Schedule&) {
    constexpr int chunks = some_chunks<Schedule>(3);
    constexpr Schedule chosen = at_both_times<Schedule>;
    same_at_both_times<Schedule, chosen, shape{4, 8, chunks}>();
    same_at_both_times<Schedule, chosen, shape{4, 3, chunks}>();
    same_at_both_times<Schedule, chosen, shape{two_ways<Schedule> ? 2 : 3, 7, chunks}>();
    same_at_both_times<Schedule, chosen,
                       shape{two_ways<Schedule> ? 2 : 1, 1, some_chunks<Schedule>(1)}>();
  });
  all::for_each([]<class Schedule>(const Schedule&) {
    if constexpr (slices<Schedule>)
      same_at_both_times<Schedule, Schedule{}, shape{4, 3, some_chunks<Schedule>(2), 3}>();
  });
  same_at_both_times<interleaved, interleaved{.group = 5, .remainder = remainder_kind::last},
                     shape{5, 11, 2}>();
  same_at_both_times<interleaved, interleaved{.warmup = warmup_kind::all}, shape{4, 6, 2}>();
  constexpr interleaved_zb standard{.warmup = warmup_kind::standard};
  same_at_both_times<interleaved_zb, standard, shape{4, 10, 2}>();
  same_at_both_times<interleaved_zb, standard, shape{4, 3, 2, 3}>();
}
