// Hops within nodes and between them, and links that carry one message at a time: replays and
// bounds against an oracle of this file's own, and what schedules make of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "laws/any_order.hpp"
#include "laws/order_laws.hpp"
#include "stretto/check/all.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/model/costs_fit.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/plan/receive_waits.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/merged.hpp"
#include "stretto/schedule/parts/half_merge.hpp"
#include "stretto/schedule/v_auto.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "stretto/schedule/zbv_greedy.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::shape;
namespace schedule = stretto::schedule;

//! Costs of their own on every rank and chunk, and links as chance has them.
stretto::job_table drawn(std::mt19937& random, const stretto::placement& where) {
  stretto::job_table table = laws::any_costs(random, where);
  table.node_ranks = static_cast<int>(random() % static_cast<unsigned>(where.ranks + 2));
  table.between_nodes = static_cast<std::int64_t>(random() % 30);
  table.serial_links = random() % 2 == 0;
  return table;
}

//! The end of the step: rank by rank, again and again, until all have run.
std::int64_t oracle(const stretto::job_rows& rows, const stretto::placement& where,
                    const shape& sizes, const stretto::job_table& table) {
  const auto hop = [&](int from, int to) {
    if (from == to) return std::int64_t{0};
    int node_of_one = 0;
    int node_of_other = 0;
    for (int rank = 1; rank < where.ranks && table.node_ranks > 0; ++rank) {
      const int turns = rank % table.node_ranks == 0 ? 1 : 0;
      if (rank <= from) node_of_one += turns;
      if (rank <= to) node_of_other += turns;
    }
    return node_of_one == node_of_other ? table.communication : table.between_nodes;
  };
  const int stages = where.stages();
  // When what a stage reads is on its rank: a forward's input, a backward's gradient.
  std::map<std::tuple<int, int, int, bool>, std::int64_t> there;
  std::map<std::tuple<int, int, int>, std::int64_t> made;
  std::map<std::pair<int, int>, std::int64_t> free;  // each link, from rank to rank
  const auto rank_count = static_cast<std::size_t>(where.ranks);
  std::vector<int> next(rank_count);
  std::vector<std::int64_t> clock(rank_count);
  for (bool ran = true; ran;) {
    ran = false;
    for (int rank = 0; rank < where.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      while (next[at] < rows.counts[rank]) {
        const int jobs = rows.at(rank, next[at]).paired ? 2 : 1;
        std::int64_t start = clock[at];
        bool ready = true;
        std::vector<std::int64_t> times;
        for (int one = 0; one < jobs; ++one) {
          const job& work = rows.at(rank, next[at] + one);
          times.push_back(
              table.view().at(rank, where.chunk_of(work.stage, work.microbatch), work.kind).time);
          if (work.kind == job_kind::backward_weight) continue;
          const bool ahead = work.kind == job_kind::forward;
          if (ahead ? work.stage == 0 : work.stage + 1 == stages) continue;
          const auto input = there.find({work.stage, work.microbatch, work.slice, ahead});
          ready = ready && input != there.end();
          if (ready) start = std::max(start, input->second);
        }
        if (!ready) break;
        std::int64_t time = times[0];
        if (jobs == 2)
          time += times[1] - std::min(times[0], times[1]) * table.pair_hides / 100;
        clock[at] = start + time;
        for (int one = 0; one < jobs; ++one) {
          const job& work = rows.at(rank, next[at] + one);
          if (work.kind == job_kind::backward_weight) continue;
          const bool ahead = work.kind == job_kind::forward;
          const int to = work.stage + (ahead ? 1 : -1);
          if (to < 0 || to >= stages) continue;
          const int peer = where.rank_of(to, work.microbatch);
          std::int64_t leaves = clock[at];
          if (table.serial_links && peer != rank)
            leaves = std::max(leaves, free[{rank, peer}]);
          const std::int64_t arrives = leaves + hop(rank, peer);
          if (peer != rank) free[{rank, peer}] = arrives;
          there[{to, work.microbatch, work.slice, ahead}] = arrives;
        }
        next[at] += jobs;
        ran = true;
      }
    }
  }
  for (int rank = 0; rank < sizes.ranks; ++rank)
    REQUIRE(next[static_cast<std::size_t>(rank)] == rows.counts[rank]);
  return *std::ranges::max_element(clock);
}

stretto::replay_input input_of(const stretto::job_rows& rows, const stretto::placement& where,
                               const shape& sizes, const stretto::job_table& table) {
  return {.rows = rows,
          .where = where,
          .microbatches = sizes.microbatches,
          .slices = sizes.slices,
          .costs = table.view()};
}

stretto::report measured(const stretto::replay_input& input) {
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(input.rows.ranks));
  return stretto::measure(input, ranks);
}

template <class Schedule>
stretto::job_lists emitted(const Schedule& made, const shape& sizes,
                           const stretto::job_table& table) {
  stretto::job_lists lists;
  REQUIRE(stretto::emit_jobs(made, sizes, {}, table.view(), lists) == stretto::verdict{});
  return lists;
}

shape drawn_shape(std::mt19937& random) {
  return {.ranks = 1 + static_cast<int>(random() % 6),
          .microbatches = 1 + static_cast<int>(random() % 10),
          .chunks = 1 + static_cast<int>(random() % 3),
          .slices = random() % 4 == 0 ? 2 : 1};
}

}  // namespace

TEST_CASE("links: replays, with messages and without, go by nodes, and by what is on its way") {
  std::mt19937 random(20261130);
  int queued = 0;
  for (int round = 0; round < 250; ++round) {
    const shape sizes = drawn_shape(random);
    for (const schedule::any& made : support::schedules()) {
      if (!made.supports(sizes).ok()) continue;
      INFO("round ", round, ", ", std::string(made.name), " ", laws::words(sizes));
      const stretto::placement where = place(made.placed(), sizes);
      stretto::job_table table = drawn(random, where);
      const stretto::job_lists lists = emitted(made, sizes, table);
      stretto::replay_input input = input_of(lists.rows(), where, sizes, table);
      const stretto::report ours = measured(input);
      CHECK(ours.makespan == oracle(lists.rows(), where, sizes, table));

      stretto::job_lists issued(sizes.ranks,
                                stretto::lowering::with_messages(lists.rows().stride));
      stretto::job_sink sink = issued.sink();
      REQUIRE(stretto::lowering::add_messages(input, sink).ok());
      stretto::replay_input with_messages = input;
      with_messages.rows = issued.rows();
      with_messages.messages = true;
      CHECK(measured(with_messages).makespan == ours.makespan);

      if (!schedule::forward_only(made)) {
        const stretto::step_bound bound =
            stretto::lower_bound(where, table.view(), stretto::nothing_put_in{}, sizes.slices);
        CHECK(bound.flush <= ours.makespan);
        CHECK(bound.span <= ours.span);
      }
      if (!table.serial_links) continue;
      table.serial_links = false;
      const std::int64_t at_once = measured(input_of(lists.rows(), where, sizes, table)).makespan;
      CHECK(at_once <= ours.makespan);
      queued += at_once < ours.makespan ? 1 : 0;
    }
  }
  CHECK(queued > 200);
}

TEST_CASE("links: stages may lie on any ranks") {
  std::mt19937 random(5);
  for (int round = 0; round < 2'000; ++round) {
    const laws::any_order order(random);
    const stretto::placement where = order.where();
    const shape sizes{.ranks = where.ranks, .microbatches = where.microbatches};
    const stretto::job_table table = drawn(random, where);
    const stretto::report all = measured(input_of(order.rows(), where, sizes, table));
    CHECK(all.makespan == oracle(order.rows(), where, sizes, table));
    const stretto::step_bound bound = stretto::lower_bound(where, table.view());
    CHECK(bound.flush <= all.makespan);
    CHECK(bound.span <= all.span);
  }
}

TEST_CASE("links: so do messages that wait for their receive, and receives for them") {
  std::mt19937 random(13);
  int late = 0;
  for (int round = 0; round < 60; ++round) {
    const shape sizes = drawn_shape(random);
    for (const schedule::any& made : support::schedules()) {
      if (!made.supports(sizes).ok()) continue;
      INFO("round ", round, ", ", std::string(made.name), " ", laws::words(sizes));
      const stretto::placement where = place(made.placed(), sizes);
      stretto::job_table table = laws::any_costs(random, where);
      table.communication = static_cast<std::int64_t>(random() % 20);
      const stretto::job_lists lists = emitted(made, sizes, table);
      stretto::job_table apart = table;  // every rank is a node
      apart.node_ranks = 1;
      apart.between_nodes = table.communication;
      apart.communication = 1'000;
      std::vector<stretto::job_time> times(
          static_cast<std::size_t>(sizes.ranks) * static_cast<std::size_t>(lists.rows().stride));
      std::vector<std::int64_t> makespans;
      std::vector<std::vector<std::int64_t>> waits;
      for (const stretto::job_table* const costs : {&table, &apart}) {
        stretto::replay_input input = input_of(lists.rows(), where, sizes, *costs);
        const std::int64_t at_once = measured(input).makespan;
        input.receive_lead = 0;
        std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
        makespans.push_back(stretto::measure(input, ranks, times).makespan);
        waits.push_back(stretto::receive_waits(input, times));
        late += makespans.back() > at_once ? 1 : 0;
      }
      CHECK(makespans[0] == makespans[1]);
      CHECK(waits[0] == waits[1]);
    }
  }
  CHECK(late > 100);
}

TEST_CASE("links: schedules know nodes by their hops alone") {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const shape sizes = drawn_shape(random);
    for (const schedule::any& made : support::schedules()) {
      if (!made.supports(sizes).ok()) continue;
      INFO("round ", round, ", ", std::string(made.name), " ", laws::words(sizes));
      const stretto::placement where = place(made.placed(), sizes);
      stretto::job_table table = laws::any_costs(random, where);
      // Orders of slots, as long as a message takes none.
      if (round % 3 == 0) table = {where.ranks, where.chunks, {.communication = 3}};
      const stretto::job_lists plain = emitted(made, sizes, table);
      const auto same = [&] {
        const stretto::job_lists other = emitted(made, sizes, table);
        for (int rank = 0; rank < sizes.ranks; ++rank)
          CHECK(std::ranges::equal(plain.rows().row(rank), other.rows().row(rank)));
      };
      table.node_ranks = sizes.ranks;  // one node: whatever others take
      table.between_nodes = 1'000;
      same();
      table.node_ranks = 1;  // as far as within one
      table.between_nodes = table.communication;
      same();
      for (const std::int64_t none_is_within : {0, 1'000}) {
        table.communication = none_is_within;
        same();
      }
    }
  }
}

namespace {

//! A shape that the search serves, and costs of its own on every rank.
template <class Schedule>
std::pair<shape, stretto::job_table> drawn_search(std::mt19937& random) {
  const shape sizes{.ranks = 2 + static_cast<int>(random() % 4),
                    .microbatches = 2 + static_cast<int>(random() % 8),
                    .chunks = std::is_same_v<Schedule, schedule::zb_auto> ? 1 : 2};
  stretto::job_table table = laws::any_costs(random, place(Schedule{}.placed(), sizes));
  table.pair_hides = 0;
  return {sizes, table};
}

//! Of all variants of a search the best by a replay.
template <class Schedule>
std::int64_t shortest(const shape& sizes, const stretto::job_table& table) {
  std::int64_t least = stretto::unlimited;
  for (int variant = 0; variant < Schedule::variants; ++variant) {
    Schedule one;
    one.variant = variant;
    stretto::job_lists lists;
    if (!stretto::emit_jobs(one, sizes, {}, table.view(), lists).ok()) continue;
    const stretto::placement where = place(one.placed(), sizes);
    least = std::min(least, measured(input_of(lists.rows(), where, sizes, table)).makespan);
  }
  return least;
}

}  // namespace

TEST_CASE_TEMPLATE("links: searches time their orders by the hop between the ranks", Schedule,
                   schedule::zbv_greedy, schedule::zb_auto, schedule::v_auto) {
  std::mt19937 random(17);
  int timed = 0;
  for (int round = 0; round < 40; ++round) {
    auto [sizes, table] = drawn_search<Schedule>(random);
    table.node_ranks = 1 + static_cast<int>(random() % 3);
    table.between_nodes = 5 + static_cast<std::int64_t>(random() % 30);
    const stretto::placement where = place(Schedule{}.placed(), sizes);
    for (int variant = 0; variant < Schedule::variants; ++variant) {
      const Schedule made;
      stretto::job_lists lists(sizes.ranks, made.capacity(sizes));
      stretto::job_sink sink = lists.sink();
      const schedule::variant_score score = made.score(sizes, table.view(), variant, &sink);
      if (!score.fits || score.first == stretto::unlimited) continue;
      INFO("variant ", variant, " ", laws::words(sizes));
      CHECK(score.first == measured(input_of(lists.rows(), where, sizes, table)).makespan);
      ++timed;
      // As if all hops were as long, where each rank is a node.
      stretto::job_table near = table;
      near.node_ranks = 0;
      near.communication = table.between_nodes;
      stretto::job_table far = table;
      far.node_ranks = 1;
      far.communication = 1'000;
      stretto::job_lists made_near(sizes.ranks, made.capacity(sizes));
      stretto::job_lists made_far(sizes.ranks, made.capacity(sizes));
      stretto::job_sink near_sink = made_near.sink();
      stretto::job_sink far_sink = made_far.sink();
      CHECK(made.score(sizes, near.view(), variant, &near_sink) ==
            made.score(sizes, far.view(), variant, &far_sink));
      for (int rank = 0; rank < sizes.ranks; ++rank)
        CHECK(std::ranges::equal(made_near.rows().row(rank), made_far.rows().row(rank)));
    }
  }
  CHECK(timed > 100);
}

TEST_CASE_TEMPLATE(
    "links: a search takes that of its orders which is shortest one message at a time", Schedule,
    schedule::zbv_greedy, schedule::zb_auto, schedule::v_auto) {
  std::mt19937 random(23);
  int settled_otherwise = 0;
  for (int round = 0; round < 60; ++round) {
    auto [sizes, table] = drawn_search<Schedule>(random);
    const stretto::placement where = place(Schedule{}.placed(), sizes);
    table.communication = 4 + static_cast<std::int64_t>(random() % 8);
    table.serial_links = true;
    const stretto::job_lists lists = emitted(Schedule{}, sizes, table);
    const std::int64_t ours = measured(input_of(lists.rows(), where, sizes, table)).makespan;
    CHECK(ours <= shortest<Schedule>(sizes, table));
    stretto::job_table at_once = table;
    at_once.serial_links = false;
    const stretto::job_lists others = emitted(Schedule{}, sizes, at_once);
    const std::int64_t theirs = measured(input_of(others.rows(), where, sizes, table)).makespan;
    CHECK(ours <= theirs);
    settled_otherwise += ours < theirs ? 1 : 0;
  }
  CHECK(settled_otherwise > 0);
}

TEST_CASE("links: what joins halves takes a step for as long as a replay") {
  std::mt19937 random(41);
  for (int round = 0; round < 200; ++round) {
    const shape sizes{.ranks = 2 + static_cast<int>(random() % 4),
                      .microbatches = 1 + static_cast<int>(random() % 8)};
    const auto where = stretto::place(stretto::placement_kind::looped, sizes);
    stretto::job_table table = drawn(random, where);
    table.serial_links = false;
    const stretto::job_lists lists = emitted(schedule::zb_h1{}, sizes, table);
    const schedule::half_merge halves(sizes, where, table.view(), lists.rows());
    CHECK(halves.makespan() == measured(input_of(lists.rows(), where, sizes, table)).makespan);
  }
}

TEST_CASE("links: forwards alone on a wave start by the hop between the ranks") {
  schedule::inference made;
  made.placement = stretto::placement_kind::wave;
  std::mt19937 random(43);
  std::int64_t sums[2]{};
  for (int round = 0; round < 300; ++round) {
    const shape sizes{.ranks = 2 + static_cast<int>(random() % 5),
                      .microbatches = 1 + static_cast<int>(random() % 12),
                      .chunks = 2 + static_cast<int>(random() % 2)};
    const stretto::placement where = place(made.placed(), sizes);
    stretto::job_table table = laws::any_costs(random, where);
    table.node_ranks = 1 + static_cast<int>(random() % 2);
    table.between_nodes = 10 + static_cast<std::int64_t>(random() % 20);
    stretto::job_table blind = table;
    blind.node_ranks = 0;
    int one = 0;
    for (const stretto::job_table& by : {table, blind}) {
      const stretto::job_lists lists = emitted(made, sizes, by);
      sums[one++] += measured(input_of(lists.rows(), where, sizes, table)).makespan;
    }
  }
  CHECK(sums[0] < sums[1]);
}

TEST_CASE("links: backwards are whole again where that is shorter one message at a time") {
  std::mt19937 random(31);
  for (int round = 0; round < 300; ++round) {
    const shape sizes{.ranks = 2 + static_cast<int>(random() % 4),
                      .microbatches = 2 + static_cast<int>(random() % 8)};
    const schedule::merged<schedule::zb_h1> made;
    const stretto::placement where = place(made.placed(), sizes);
    stretto::job_table table = drawn(random, where);
    table.serial_links = true;
    const auto length = [&](const auto& of) {
      const stretto::job_lists lists = emitted(of, sizes, table);
      return measured(input_of(lists.rows(), where, sizes, table)).makespan;
    };
    CHECK(length(made) <= length(schedule::zb_h1{}));
  }
}

TEST_CASE_TEMPLATE("links: searches, too, with whole backwards or without", Schedule,
                   schedule::zbv_greedy, schedule::zb_auto, schedule::v_auto) {
  std::mt19937 random(37);
  int joined = 0;
  for (int round = 0; round < 80; ++round) {
    auto [sizes, table] = drawn_search<Schedule>(random);
    table.node_ranks = 1 + static_cast<int>(random() % 3);
    table.between_nodes = static_cast<std::int64_t>(random() % 40);
    table.serial_links = true;
    const stretto::placement where = place(Schedule{}.placed(), sizes);
    const auto emits = [&](const auto& of) { return emitted(of, sizes, table); };
    const stretto::job_lists whole = emits(schedule::merged<Schedule>{});
    const stretto::job_lists split = emits(Schedule{});
    CHECK(measured(input_of(whole.rows(), where, sizes, table)).makespan <=
          measured(input_of(split.rows(), where, sizes, table)).makespan);
    joined += whole.rows().total() < split.rows().total() ? 1 : 0;
    // Of itself a search knows nothing of it.
    const auto own = [&](const stretto::job_table_view& costs) {
      stretto::job_lists lists(sizes.ranks, Schedule{}.capacity(sizes));
      stretto::job_sink sink = lists.sink();
      REQUIRE(Schedule{}.emit(sizes, costs, sink).ok());
      return lists;
    };
    const stretto::job_lists one = own(table.view());
    const stretto::job_lists other = own(table.view().at_once());
    for (int rank = 0; rank < sizes.ranks; ++rank)
      CHECK(std::ranges::equal(one.rows().row(rank), other.rows().row(rank)));
  }
  CHECK(joined > 0);
}

TEST_CASE("links: what a slow one lets pass bounds the step") {
  const shape sizes{.ranks = 2, .microbatches = 4};
  const auto where = stretto::place(stretto::placement_kind::looped, sizes);
  const stretto::job_table at_once(2, 1, {.communication = 10});
  const stretto::job_table serial(2, 1, {.communication = 10, .serial_links = true});
  // A forward, four hops, a forward and a gradient, its hop, and a gradient.
  CHECK(stretto::lower_bound(where, serial.view()).flush == 1 + 40 + 2 + 10 + 1);
  CHECK(stretto::lower_bound(where, at_once.view()).flush < 54);
  const schedule::zb_auto made;
  const stretto::job_lists lists = emitted(made, sizes, serial);
  // The last backward for the weights stands behind it.
  CHECK(measured(input_of(lists.rows(), where, sizes, serial)).makespan == 55);
}

TEST_CASE("links: numbers that say nothing are refused") {
  const auto where =
      stretto::place(stretto::placement_kind::looped, {.ranks = 2, .microbatches = 2});
  const auto why = [&](const stretto::unit_costs& costs) {
    const stretto::job_table table(2, 1, costs);
    return stretto::costs_fit(table.view(), where, 2, 1).why;
  };
  CHECK(why({.node_ranks = 1, .between_nodes = 7}) == stretto::reason::none);
  CHECK(why({.node_ranks = -1}) == stretto::reason::node_out_of_range);
  CHECK(why({.between_nodes = -1}) == stretto::reason::hop_out_of_range);
  CHECK(why({.between_nodes = std::int64_t{1} << 47}) == stretto::reason::hop_out_of_range);
}

namespace {

//! Two ranks a node.
struct two_nodes : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const {
    return {.forward = 10, .backward_input = 12, .backward_weight = 8, .communication = 1,
            .node_ranks = 2, .between_nodes = 9, .serial_links = true};
  }
};

}  // namespace

TEST_CASE("links: compilers prove what a program computes") {
  constexpr shape sizes{.ranks = 4, .microbatches = 4, .chunks = 2};
  using step = stretto::pipeline<sizes, schedule::zbv_greedy, stretto::assignment::unassigned,
                                 two_nodes>;
  static_assert(stretto::valid<step>);
  static_assert(step::costs().hops()(1, 2) == 9 && step::costs().hops()(2, 3) == 1);
  const stretto::job_table table(4, 2, two_nodes{}.costs());
  const stretto::job_lists lists = emitted(schedule::zbv_greedy{}, sizes, table);
  for (int rank = 0; rank < sizes.ranks; ++rank)
    CHECK(std::ranges::equal(lists.rows().row(rank), step::jobs().row(rank)));
}
