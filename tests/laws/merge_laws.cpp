// Split backwards made whole again: valid, no longer than split ones, and as short as can be.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/check/all.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/by_name.hpp"
#include "stretto/schedule/merged.hpp"
#include "stretto/schedule/options.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::shape;
using namespace stretto::schedule;

struct made_step {
  stretto::verdict answer;  // of the schedule, then of the rules
  stretto::job_lists lists;
  std::int64_t makespan = 0;
  std::int64_t peak = 0;  // most of any rank
  int whole = 0;          // backwards
};

stretto::replay_input input_of(const stretto::job_rows& rows, const any& schedule,
                               const shape& sizes, const stretto::job_table& table) {
  return {.rows = rows,
          .where = stretto::place(schedule.placed(), sizes),
          .microbatches = sizes.microbatches,
          .slices = sizes.slices,
          .costs = table.view()};
}

made_step make(const any& schedule, const shape& sizes, const stretto::job_table& table) {
  made_step made;
  made.lists = stretto::job_lists(sizes.ranks, schedule.capacity(sizes));
  stretto::job_sink out = made.lists.sink();
  made.answer = schedule.emit(sizes, table.view(), out);
  if (!made.answer.ok()) return made;
  const auto input = input_of(made.lists.rows(), schedule, sizes, table);
  made.answer = stretto::check::schedule(input, stretto::check::lists_of::training);
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  made.makespan = stretto::measure(input, ranks).makespan;
  for (const auto& rank : ranks) made.peak = std::max(made.peak, rank.peak);
  for (int rank = 0; rank < sizes.ranks; ++rank)
    for (const job& work : made.lists.rows().row(rank))
      made.whole += work.kind == job_kind::backward;
  return made;
}

any told(std::string_view name, merge_kind merge) {
  options with;
  with.merge = merge;
  return *by_name(name, with,
                  [](const auto&, const auto&) { FAIL("an option of every schedule"); });
}

std::string row_of(const stretto::job_rows& rows, int rank) {
  std::string text;
  for (const job& work : rows.row(rank))
    text += (text.empty() ? "" : " ") + std::string(stretto::to_text(work).view());
  return text;
}

//! Halves of each rank's jobs, whole ones as the two that they are: who runs where is not changed.
std::vector<int> halves(const stretto::job_rows& rows, const shape& sizes, int stages) {
  std::vector<int> count(static_cast<std::size_t>(stages * sizes.microbatches * rows.ranks));
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (const job& work : rows.row(rank))
      count[static_cast<std::size_t>((rank * stages + work.stage) * sizes.microbatches +
                                     work.microbatch)] +=
          work.kind == job_kind::forward           ? 1
          : work.kind == job_kind::backward_input  ? 10
          : work.kind == job_kind::backward_weight ? 100
                                                   : 110;
  return count;
}

}  // namespace

const std::set<std::string_view> searches{"zb_auto", "zbv_greedy", "v_auto"};

TEST_CASE("whole again: valid, within the limits, no longer than split, nor than adjacent ones") {
  std::mt19937 random(31);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % most) + 1; };
  int shorter = 0;
  int as_long = 0;
  int joined = 0;
  for (int round = 0; round < 120; ++round) {
    stretto::unit_costs costs{up_to(12), up_to(12), up_to(12), up_to(4) - 1};
    if (round % 3 != 0) costs.whole_saves = up_to(static_cast<unsigned>(costs.backward_weight));
    if (round % 5 == 0) costs.memory_backward_weight = -1 - (costs.memory_backward_input = 1);
    costs.pair_hides = round % 2 == 0 ? 0 : 30;
    const int ranks = up_to(6);
    const int microbatches = 2 * up_to(8);
    for (const any& schedule : catalogue())
      for (int chunks = 1; chunks <= 3; ++chunks) {
        const shape sizes{ranks, microbatches, chunks};
        if (!schedule.supports(sizes).ok() || schedule.forward_only) continue;
        const auto where = stretto::place(schedule.placed(), sizes);
        stretto::job_table table(ranks, where.chunks, costs);
        if (round % 4 == 1)
          table.limit.assign(static_cast<std::size_t>(ranks), 2 * ranks * where.chunks);
        INFO("round ", round, " ", std::string(schedule.name), " ", laws::words(sizes));
        const made_step split = make(schedule, sizes, table);
        const made_step adjacent = make(told(schedule.name, merge_kind::adjacent), sizes, table);
        const made_step shortest = make(told(schedule.name, merge_kind::shortest), sizes, table);
        CHECK(shortest.answer.what == split.answer.what);
        if (!split.answer.ok()) continue;
        CHECK(shortest.makespan <= split.makespan);
        if (adjacent.answer.ok()) CHECK(shortest.makespan <= adjacent.makespan);
        CHECK(shortest.makespan >= stretto::lower_bound(where, table.view()).flush);
        if (!searches.contains(schedule.name)) CHECK(shortest.whole >= split.whole);
        CHECK(halves(shortest.lists.rows(), sizes, where.stages()) ==
              halves(split.lists.rows(), sizes, where.stages()));
        shorter += shortest.makespan < split.makespan;
        as_long += shortest.makespan == split.makespan;
        joined += shortest.whole - split.whole;
      }
  }
  MESSAGE(shorter, " shorter, ", as_long, " as long, ", joined, " joined");
  CHECK(shorter > 500);
  CHECK(joined > 10'000);
}

TEST_CASE("whole again: beside every choice of halves that stand side by side") {
  std::mt19937 random(32);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % most) + 1; };
  int all = 0;
  int shortest_of_all = 0;
  for (int round = 0; round < 400; ++round) {
    const shape sizes{up_to(3), up_to(3), 1};
    stretto::unit_costs costs{up_to(9), up_to(9), up_to(9), up_to(3) - 1};
    costs.whole_saves = up_to(static_cast<unsigned>(costs.backward_weight));
    for (const char* name : {"zb_h1", "zb_h2", "interleaved_zb", "zbv"}) {
      shape cut = sizes;
      if (std::string(name) == "zbv") cut.chunks = 2;
      const any schedule = *by_name(name);
      const stretto::job_table table(cut.ranks, cut.chunks, costs);
      const made_step split = make(schedule, cut, table);
      REQUIRE(split.answer.ok());
      // Every choice of them, by its bits.
      std::vector<std::pair<int, int>> pairs;
      const stretto::job_rows rows = split.lists.rows();
      for (int rank = 0; rank < rows.ranks; ++rank)
        for (int step = 0; step + 1 < rows.counts[rank]; ++step) {
          job weight = rows.at(rank, step);
          if (weight.kind != job_kind::backward_input) continue;
          weight.kind = job_kind::backward_weight;
          if (rows.at(rank, step + 1) == weight) pairs.emplace_back(rank, step);
        }
      if (pairs.size() > 8) continue;
      std::int64_t least = split.makespan;
      for (std::uint32_t chosen = 0; chosen < 1U << pairs.size(); ++chosen) {
        stretto::job_lists lists(rows.ranks, rows.stride);
        stretto::job_sink out = lists.sink();
        for (int rank = 0; rank < rows.ranks; ++rank)
          for (int step = 0; step < rows.counts[rank]; ++step) {
            job work = rows.at(rank, step);
            for (std::size_t at = 0; at < pairs.size(); ++at)
              if ((chosen >> at & 1) != 0 && pairs[at] == std::pair(rank, step)) {
                work.kind = job_kind::backward;
                ++step;
                break;
              }
            out.push(rank, work);
          }
        std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(rows.ranks));
        least = std::min(
            least, stretto::measure(input_of(lists.rows(), schedule, cut, table), ranks).makespan);
      }
      const made_step ours = make(told(name, merge_kind::shortest), cut, table);
      ++all;
      shortest_of_all += ours.makespan <= least;
    }
  }
  MESSAGE(shortest_of_all, " of ", all, " are no longer than any choice");
  CHECK(all > 1000);
  CHECK(100 * shortest_of_all >= 98 * all);
}

TEST_CASE("what is joined, by hand: halves that nobody waits for, with their own weights") {
  const shape sizes{2, 3, 1};
  const stretto::job_table plain(2, 1);
  // Rank 0 has nobody before it. Rank 1's first gradient is waited for; its second is not, as rank
  // 0 runs a forward meanwhile.
  const made_step split = make(*by_name("zb_h1"), sizes, plain);
  CHECK(row_of(split.lists.rows(), 0) == "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2");
  CHECK(row_of(split.lists.rows(), 1) == "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2");
  const made_step adjacent = make(told("zb_h1", merge_kind::adjacent), sizes, plain);
  CHECK(row_of(adjacent.lists.rows(), 0) == "0F0 0F1 0B0 0F2 0B1 0B2");
  CHECK(row_of(adjacent.lists.rows(), 1) == row_of(split.lists.rows(), 1));
  const made_step shortest = make(told("zb_h1", merge_kind::shortest), sizes, plain);
  CHECK(row_of(shortest.lists.rows(), 0) == "0F0 0F1 0B0 0F2 0B1 0B2");
  CHECK(row_of(shortest.lists.rows(), 1) == "1F0 1I0 1F1 1B1 1F2 1I2 1W0 1W2");
  CHECK(shortest.makespan == split.makespan);
  // Weights of another length do not change places.
  stretto::job_table uneven = plain;
  CHECK(make(told("zbv", merge_kind::none), {2, 3, 2}, stretto::job_table(2, 2)).whole == 0);
  uneven.at(1, 0, job_kind::backward) = {5, -1,
                                         0};  // a whole one that takes longer than its halves
  CHECK(make(told("zb_h1", merge_kind::shortest), sizes, uneven).makespan ==
        make(*by_name("zb_h1"), sizes, uneven).makespan);
  CHECK(row_of(make(told("zb_h1", merge_kind::shortest), sizes, uneven).lists.rows(), 1) ==
        row_of(split.lists.rows(), 1));
}

TEST_CASE("weights of stages that take differently long do not change places") {
  const shape sizes{2, 6, 2};
  stretto::job_table table(2, 2);
  for (int rank = 0; rank < 2; ++rank) {
    table.at(rank, 0, job_kind::backward_weight).time = 2;
    table.at(rank, 0, job_kind::backward).time = 3;
  }
  const made_step made = make(told("zbv", merge_kind::shortest), sizes, table);
  REQUIRE(made.answer.ok());
  CHECK(made.makespan <= make(*by_name("zbv"), sizes, table).makespan);
}

namespace {

//! Of one rank, where a first half gives back what a whole backward still holds while it needs more
//! for a while; with the limit that only halves keep to.
stretto::job_table early_giver() {
  stretto::job_table table(1, 1);
  table.at(0, 0, job_kind::forward) = {1, 10, 0};
  table.at(0, 0, job_kind::backward_input) = {1, -6, 0};
  table.at(0, 0, job_kind::backward_weight) = {1, -4, 3};
  table.at(0, 0, job_kind::backward) = {2, -10, 3};
  table.limit = {12};
  return table;
}

}  // namespace

TEST_CASE("a limit that halves keep to, and whole backwards would not, keeps them split") {
  const shape sizes{1, 2, 1};
  stretto::job_table table = early_giver();
  table.at(0, 0, job_kind::backward).time = 1;
  const auto halves_of = [&] { return make(told("zb_h1", merge_kind::shortest), sizes, table); };
  CHECK(halves_of().answer.ok());
  CHECK(row_of(halves_of().lists.rows(), 0) == "0F0 0I0 0W0 0F1 0I1 0W1");
  table.limit = {13};
  CHECK(row_of(halves_of().lists.rows(), 0) == "0F0 0B0 0F1 0B1");
  CHECK(make(told("zb_h1", merge_kind::adjacent), sizes, table).makespan == 4);
}

namespace {

//! A schedule of one's own, whatever its lists are worth.
struct as_listed : zb_h1 {
  static constexpr std::string_view name = "as_listed";
  std::vector<std::vector<job>> rows;

  int capacity(const shape&) const { return 16; }
  stretto::verdict emit(const shape&, const stretto::job_table_view&,
                        stretto::job_sink& out) const {
    for (std::size_t rank = 0; rank < rows.size(); ++rank)
      for (const job& work : rows[rank]) out.push(static_cast<int>(rank), work);
    return {};
  }
};

}  // namespace

TEST_CASE("lists that are not complete stay what they are: refused, by the same rule") {
  constexpr job_kind f = job_kind::forward, b = job_kind::backward, i = job_kind::backward_input,
                     w = job_kind::backward_weight;
  const auto one = [](job_kind kind, int microbatch, bool paired = false) {
    return job{0, microbatch, 0, kind, paired};
  };
  const std::vector<std::vector<std::vector<job>>> spoilt{
      {{one(f, 0), one(f, 1), one(b, 0), one(i, 1), one(w, 0), one(w, 1)}},
      {{one(f, 0), one(f, 1), one(i, 1), one(w, 1), one(i, 0), one(w, 1)}},
      {{one(f, 0), one(f, 1), one(i, 0), one(i, 1), one(w, 0), one(w, 0)}},
      {{one(f, 0), one(f, 1), one(i, 0), one(w, 0), one(i, 1)}},
      {{one(f, 0), one(f, 1), one(i, 0), one(w, 0), one(w, 1)}},
      {{one(f, 0), one(i, 0), one(w, 0, true), one(f, 1), one(i, 1), one(w, 1)}},
      {{one(f, 0), one(f, 1), one(i, 0), one(w, 0), one(i, 1), one(w, 1, true)}},
      {{}, {one(f, 0), one(f, 1), one(i, 0), one(w, 0), one(i, 1), one(w, 1)}}};
  for (const auto& rows : spoilt)
    for (const merge_kind how : {merge_kind::adjacent, merge_kind::shortest}) {
      as_listed schedule;
      schedule.rows = rows;
      const shape sizes{.ranks = static_cast<int>(rows.size()), .microbatches = 2};
      const stretto::job_table table(sizes.ranks, 1);
      const made_step split = make(any(schedule), sizes, table);
      const made_step whole = make(any(merged<as_listed>(schedule, how)), sizes, table);
      CAPTURE(row_of(whole.lists.rows(), sizes.ranks - 1));
      CHECK(split.answer.what != stretto::fault::none);
      CHECK(whole.answer.what == split.answer.what);
    }
}

TEST_CASE("by the span the span is never longer, and with what is put between no step") {
  std::mt19937 random(34);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % most) + 1; };
  int shorter = 0;
  for (int round = 0; round < 60; ++round) {
    stretto::unit_costs costs{up_to(9), up_to(9), up_to(9), up_to(4) - 1};
    costs.whole_saves = up_to(static_cast<unsigned>(costs.backward_weight));
    costs.offload = up_to(5);
    stretto::memory::windows put;
    if (round % 3 == 0) put.recompute = {up_to(2), 1};
    if (round % 3 == 1) put.offload = {{up_to(2), 1}, up_to(3) - 1, up_to(3) - 1};
    for (const char* name : {"zb_h1", "zb_h1_light", "zb_h2", "interleaved_zb", "grouped", "zbv",
                             "v_half", "dualpipe"}) {
      const any split = *by_name(name);
      shape sizes{2 * up_to(2), 2 * up_to(4), 2};
      if (!split.supports(sizes).ok()) sizes.chunks = 1;
      const stretto::job_table table(sizes.ranks, stretto::place(split.placed(), sizes).chunks,
                                     costs);
      options with;
      with.merge = merge_kind::shortest;
      if (!put.any()) with.objective = objective_kind::span;
      const any whole = *by_name(name, with, [](const auto&, const auto&) { FAIL("it has both"); });
      const auto length = [&](const any& schedule) {
        stretto::job_lists lists;
        REQUIRE(stretto::emit_jobs(schedule, sizes, put, table.view(), lists).ok());
        std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
        const auto found = stretto::measure(input_of(lists.rows(), schedule, sizes, table), ranks);
        return put.any() ? found.makespan : found.span;
      };
      INFO("round ", round, " ", name, " ", laws::words(sizes));
      if (!split.supports(sizes).ok()) continue;
      const std::int64_t before = length(split);
      const std::int64_t now = length(whole);
      CHECK(now <= before);
      shorter += now < before;
    }
  }
  CHECK(shorter > 100);
}

TEST_CASE("with copies halves stay, where whole backwards would have made the step longer") {
  const shape sizes{3, 6, 1};
  const stretto::job_table table(3, 1,
                                 {.forward = 4,
                                  .backward_input = 2,
                                  .backward_weight = 2,
                                  .communication = 1,
                                  .memory_forward = 3,
                                  .memory_backward_weight = -3,
                                  .offload = 3,
                                  .memory_offload = 2});
  const stretto::memory::windows put{.offload = {{1, 1}, 1, 0}};
  const auto length = [&](const auto& schedule) {
    stretto::job_lists lists;
    REQUIRE(stretto::emit_jobs(schedule, sizes, put, table.view(), lists).ok());
    std::vector<stretto::rank_report> ranks(3);
    return stretto::measure(input_of(lists.rows(), any(schedule), sizes, table), ranks).makespan;
  };
  CHECK(length(zb_h1_light{}) == 74);
  CHECK(length(merged<zb_h1_light>{}) == 74);
  CHECK(length(told("zb_h1_light", merge_kind::shortest)) == 74);
  // The order without copies would not have done: its jobs are fewer, and copies count in jobs.
  stretto::job_lists whole(3, merged<zb_h1_light>{}.capacity(sizes));
  stretto::job_sink out = whole.sink();
  REQUIRE(merged<zb_h1_light>{}.emit(sizes, table.view(), out).ok());
  stretto::job_lists with(3, 4 * out.stride);
  stretto::job_sink copied = with.sink();
  REQUIRE(stretto::memory::insert_offloads(put.offload, {}, out.rows(),
                                           stretto::place(stretto::placement_kind::looped, sizes),
                                           1, copied)
              .ok());
  std::vector<stretto::rank_report> ranks(3);
  CHECK(
      stretto::measure(input_of(copied.rows(), any(zb_h1_light{}), sizes, table), ranks).makespan ==
      75);
}

TEST_CASE(
    "adjacent halves of a search are joined whatever they keep, and what that needs is told") {
  const stretto::job_table table = early_giver();
  const made_step found =
      make(any(merged<zb_auto>(zb_auto{}, merge_kind::adjacent)), {1, 2, 1}, table);
  CHECK(found.answer.what == stretto::fault::over_limit);
  CHECK(found.answer.amount == 13);
  CHECK(make(any(merged<zb_auto>(zb_auto{})), {1, 2, 1}, table).answer.ok());
}

TEST_CASE("a search is made whole order by order, and names its limits as before") {
  std::mt19937 random(33);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % most) + 1; };
  int gains = 0;
  for (int round = 0; round < 150; ++round) {
    const shape sizes{up_to(5), up_to(10), 1};
    stretto::unit_costs costs{up_to(12), up_to(12), up_to(12), up_to(4) - 1};
    costs.whole_saves = up_to(static_cast<unsigned>(costs.backward_weight));
    stretto::job_table table(sizes.ranks, 1, costs);
    if (round % 2 == 0) table.limit.assign(static_cast<std::size_t>(sizes.ranks), up_to(6));
    INFO("round ", round, " ", laws::words(sizes));
    const made_step found = make(merged<zb_auto>{}, sizes, table);
    REQUIRE(found.answer.ok());
    // The best order of halves, made whole afterwards, is one of those that were tried.
    const made_step after = make(merged<any>(any(zb_auto{})), sizes, table);
    CHECK(found.makespan <= after.makespan);
    gains += found.makespan < after.makespan;
    for (const char* form : {"gpipe", "1f1b", "eager_1f1b", "zb_h1", "zb_h2"}) {
      const made_step theirs = make(told(form, merge_kind::shortest), sizes, table);
      if (theirs.answer.ok()) CHECK(found.makespan <= theirs.makespan);
    }
  }
  CHECK(gains > 5);
  stretto::job_table tight(3, 1);
  tight.limit.assign(3, 0);
  const shape sizes{3, 4, 1};
  const made_step one = make(zb_auto{}, sizes, tight);
  CHECK(one.answer.what == stretto::fault::over_limit);
  CHECK(make(merged<zb_auto>{}, sizes, tight).answer == one.answer);
}
