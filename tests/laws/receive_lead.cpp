// Receives with a lead: where they stand, what they cost, and that a step without any of it fails.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stretto/check/issued.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/receive_waits.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::shape;

struct nobody : stretto::replay_observer {};

template <class Schedule>
stretto::planned with_lead(const Schedule& schedule, const shape& sizes, int lead,
                           const stretto::job_table& table) {
  const stretto::overlap::with_receive_lead<> overlap{{}, lead};
  stretto::plan_request request;
  request.train = !stretto::schedule::forward_only(schedule);
  return {schedule, sizes, table.view(), overlap, request};
}

//! How many nodes stand between the entry `from` of a list and its job `to`.
int nodes_between(std::span<const job> list, std::size_t from, std::size_t to) {
  int nodes = 0;
  for (std::size_t at = from + 1; at < to; ++at) {
    const bool second = list[at - 1].paired;
    nodes += stretto::is_compute(list[at].kind) && !second;
  }
  return nodes - (to > 0 && list[to - 1].paired ? 1 : 0);  // of its own node
}

bool is_for(const job& receive, const job& work) {
  const bool ahead = receive.kind == job_kind::receive_forward;
  return work.stage == receive.stage && work.microbatch == receive.microbatch &&
         work.slice == receive.slice &&
         (ahead ? work.kind == job_kind::forward : stretto::is_input_gradient(work.kind));
}

}  // namespace

TEST_CASE("no receive stands further ahead than the lead, none further back than it must") {
  int exact = 0, shapes = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (const int chunks : {1, 2})
      for (const int lead : {0, 1, 4, 1000}) {
        const shape sizes{.ranks = 4, .microbatches = 8, .chunks = chunks};
        if (!schedule.supports(sizes).ok()) continue;
        const stretto::job_table table(4, stretto::place(schedule.placed(), sizes).chunks);
        const stretto::planned made = with_lead(schedule, sizes, lead, table);
        const stretto::planned early = with_lead(schedule, sizes, -1, table);
        CAPTURE(std::string(schedule.name));
        CAPTURE(lead);
        REQUIRE(made.answer() == stretto::verdict{});
        ++shapes;
        for (int rank = 0; rank < 4; ++rank) {
          const auto list = made.lists().row(rank);
          CHECK(std::ranges::equal(made.jobs().row(rank), early.jobs().row(rank)));
          if (lead == 1000) CHECK(std::ranges::equal(list, early.lists().row(rank)));
          for (std::size_t at = 0; at < list.size(); ++at) {
            if (!stretto::is_receive(list[at].kind)) continue;
            const auto user = std::find_if(list.begin(), list.end(),
                                           [&](const job& work) { return is_for(list[at], work); });
            const int nodes =
                nodes_between(list, at, static_cast<std::size_t>(user - list.begin()));
            REQUIRE(nodes <= lead);
            exact += nodes == lead;
          }
        }
      }
  }
  CHECK(shapes > 80);
  CHECK(exact > 2000);
}

TEST_CASE("a message leaves when its receive is posted, if that is later") {
  // Two stages; 1F1B of rank 0: F0 F1 B0 F2 B1 B2, of rank 1: F0 B0 F1 B1 F2 B2. A forward takes 2,
  // a backward 3, a message 2.
  const stretto::job_table table(2, 1, {.forward = 2, .backward_input = 2, .communication = 2});
  const shape sizes{.ranks = 2, .microbatches = 3};
  struct expected {
    int lead;
    std::int64_t makespan, first_waits, second_waits;
  };
  for (const auto& [lead, makespan, first_waits, second_waits] :
       {expected{-1, 28, 9 + 3 + 7, 2 + 0 + 10}, expected{2, 28, 9 + 3 + 7, 2 + 0 + 7},
        expected{1, 28, 7 + 0 + 7, 2 + 0 + 5}, expected{0, 28, 5 + 0 + 2, 2 + 0 + 0}}) {
    CAPTURE(lead);
    const stretto::planned made = with_lead(stretto::schedule::one_f_one_b{}, sizes, lead, table);
    REQUIRE(made.answer().ok());
    const stretto::replay_input compute{made.jobs(),  made.where(), 3,  1,
                                        table.view(), false,        {}, lead};
    std::vector<stretto::rank_report> ranks(2);
    std::vector<stretto::job_time> times(2 * static_cast<std::size_t>(compute.rows.stride));
    const stretto::report found = stretto::measure(compute, ranks, times);
    REQUIRE(found.answer.ok());
    CHECK(found.makespan == makespan);
    CHECK(stretto::receive_waits(compute, times) ==
          std::vector<std::int64_t>{first_waits, second_waits});
    // Rank 1's second forward finds its input there, unless that was asked for when it could start.
    CHECK(times[static_cast<std::size_t>(compute.rows.stride) + 2].start == (lead == 0 ? 11 : 9));
  }
}

TEST_CASE(
    "no job starts before a message whose receive its lead held back has come, pairs neither") {
  int held = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (const int lead : {0, 2}) {
      const bool single = schedule.supports({.ranks = 4, .microbatches = 8}).ok();
      const shape sizes{.ranks = 4, .microbatches = 8, .chunks = single ? 1 : 2};
      REQUIRE(schedule.supports(sizes).ok());
      const stretto::job_table table(4, stretto::place(schedule.placed(), sizes).chunks,
                                     {.forward = 2, .backward_input = 3, .communication = 7});
      const stretto::planned made = with_lead(schedule, sizes, lead, table);
      CAPTURE(std::string(schedule.name));
      CAPTURE(lead);
      REQUIRE(made.answer().ok());
      const auto timed = [&](int of, std::vector<stretto::job_time>& times) {
        const stretto::replay_input compute{made.jobs(),  made.where(), 8,  1,
                                            table.view(), false,        {}, of};
        std::vector<stretto::rank_report> ranks(4);
        times.resize(4 * static_cast<std::size_t>(compute.rows.stride));
        const stretto::report found = stretto::measure(compute, ranks, times);
        REQUIRE(found.answer.ok());
        return found.makespan;
      };
      std::vector<stretto::job_time> early, times;
      CHECK(timed(lead, times) >= timed(-1, early));
      const stretto::job_rows jobs = made.jobs();
      const stretto::replay_input compute{jobs, made.where(), 8, 1, table.view()};
      for (int rank = 0; rank < 4; ++rank) {
        std::vector<std::int64_t> ends;  // of nodes
        for (int step = 0; step < jobs.counts[rank]; ++step) {
          const job& work = jobs.at(rank, step);
          const stretto::job_time& when =
              times[static_cast<std::size_t>(rank) * static_cast<std::size_t>(jobs.stride) +
                    static_cast<std::size_t>(step)];
          const bool second = step > 0 && jobs.at(rank, step - 1).paired;
          if (!second) ends.push_back(0);
          ends.back() = when.end;
          const int gate = static_cast<int>(ends.size()) - 2 - lead;
          if (gate < 0 || !compute.receives(work)) continue;
          const std::int64_t there = ends[static_cast<std::size_t>(gate)] + 7;
          CHECK(when.start >= there);
          held += when.start == there;
        }
      }
    }
  }
  CHECK(held > 300);
}

namespace {

//! Lists with late messages and their order, to be spoilt.
struct late_lists {
  late_lists() {
    REQUIRE(made.answer().ok());
    REQUIRE(made.order().has_late);
    issued = made.issued();
    issued.costs = table.view();
    compute = issued;
    compute.rows = made.jobs();
    compute.messages = false;
    jobs.assign(issued.rows.items, issued.rows.items + 3 * issued.rows.stride);
    order.assign(made.order().ranks, made.order().ranks + made.order().count);
    REQUIRE(judged(jobs, order).ok());
  }
  stretto::verdict judged(const std::vector<job>& lists,
                          const std::vector<std::int32_t>& turns) const {
    stretto::replay_input spoilt = issued;
    spoilt.rows.items = lists.data();
    nobody watch;
    return stretto::check::issued(
        compute, spoilt, {turns.data(), static_cast<std::int64_t>(turns.size()), true}, watch);
  }

  stretto::job_table table{3, 1};
  stretto::planned made =
      with_lead(stretto::schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 5}, 0, table);
  stretto::replay_input issued, compute;
  std::vector<job> jobs;
  std::vector<std::int32_t> order;
};

}  // namespace

TEST_CASE("a late message that nobody has made yet is refused") {
  const late_lists of;
  std::vector<std::size_t> place(3);  // of each rank, in its list
  int moved = 0;
  for (std::size_t turn = 0; turn < of.order.size(); ++turn) {
    if (of.order[turn] < 0) continue;
    const auto rank = static_cast<std::size_t>(of.order[turn]);
    const job* const list = of.jobs.data() + rank * static_cast<std::size_t>(of.issued.rows.stride);
    std::size_t& at = place[rank];
    while (!stretto::is_compute(list[at].kind)) ++at;
    const std::size_t made = at++;
    if (!stretto::is_send(list[at].kind)) continue;
    // The message goes before the job that makes it; its turn comes as early.
    std::vector<job> lists = of.jobs;
    job* const spoilt = lists.data() + (list - of.jobs.data());
    std::swap(spoilt[made], spoilt[at]);
    std::vector<std::int32_t> turns = of.order;
    const int to = of.made.where().rank_of(stretto::matching_receive(list[at]));
    turns.insert(turns.begin() + static_cast<std::ptrdiff_t>(turn),
                 stretto::lowering::order_sink::late(to));
    CAPTURE(turn);
    CHECK_FALSE(of.judged(lists, turns).ok());
    ++moved;
  }
  CHECK(moved > 5);
}

TEST_CASE("an order in which a late message is forgotten, doubled or moved ahead is refused") {
  const late_lists of;
  int late = 0;
  const auto refused = [&](const std::vector<std::int32_t>& turns) {
    return of.judged(of.jobs, turns).what == stretto::fault::rendezvous;
  };
  for (std::size_t at = 0; at < of.order.size(); ++at) {
    if (of.order[at] >= 0) continue;
    ++late;
    CAPTURE(at);
    const auto here = static_cast<std::ptrdiff_t>(at);
    std::vector<std::int32_t> spoilt = of.order;
    spoilt.erase(spoilt.begin() + here);
    CHECK(refused(spoilt));
    spoilt.insert(spoilt.begin(), of.order[at]);
    CHECK(refused(spoilt));
    spoilt = of.order;
    spoilt.insert(spoilt.begin() + here, of.order[at]);
    CHECK(refused(spoilt));
    spoilt = of.order;
    spoilt[at] = stretto::lowering::order_sink::late(9);
    CHECK(refused(spoilt));
  }
  CHECK(late > 5);
}
