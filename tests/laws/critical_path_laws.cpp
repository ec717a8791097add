// Critical paths of every schedule's steps, with all that a replay knows: they leave no gap, and
// what on them takes longer makes the step longer by as much.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "laws/any_order.hpp"
#include "laws/grid/plan_grid.hpp"
#include "laws/order_laws.hpp"
#include "stretto/lowering/communication.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/plan/critical_path.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/gradient_sums.hpp"
#include "stretto/plan/report.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::job_lists;
using stretto::replay_input;
using stretto::shape;

std::int64_t one_below(std::mt19937& random, unsigned most) {
  return static_cast<std::int64_t>(random() % most);
}

//! What a step is put together from, drawn. Not copied: the input points into it.
struct drawn_step {
  shape sizes;
  stretto::job_table costs;
  job_lists lists;
  replay_input input;
  bool possible = false;

  drawn_step(std::mt19937& random, const stretto::schedule::any& schedule, const shape& of)
      : sizes(of), costs(laws::any_costs(random, place(schedule.placed(), of))) {
    const bool trains = !stretto::schedule::forward_only(schedule);
    costs.communication = one_below(random, 6);
    costs.node_ranks = static_cast<int>(one_below(random, 4));
    costs.between_nodes = one_below(random, 20);
    costs.serial_links = random() % 2 == 0;
    stretto::memory::windows put;
    if (trains && sizes.slices == 1 && random() % 2 == 0) {
      if (random() % 2 == 0)
        put.recompute = {2, 1};
      else
        put.offload = {
            {2, 1}, static_cast<int>(one_below(random, 3)), static_cast<int>(one_below(random, 3))};
    }
    const bool gathers = random() % 3 == 0;
    const bool sums = trains && random() % 3 == 0;
    for (int rank = 0; rank < costs.ranks; ++rank)
      for (int chunk = 0; chunk < costs.chunks; ++chunk)
        for (const job_kind kind : {job_kind::recompute, job_kind::offload, job_kind::reload,
                                    job_kind::unshard, job_kind::reduce_grad})
          costs.at(rank, chunk, kind).time =
              (kind == job_kind::unshard && !gathers) || (kind == job_kind::reduce_grad && !sums)
                  ? 0
                  : one_below(random, 30);
    if (!emit_jobs(schedule, sizes, put, costs.view(), lists).ok()) return;
    input = {.rows = lists.rows(),
             .where = place(schedule.placed(), sizes),
             .microbatches = sizes.microbatches,
             .slices = sizes.slices,
             .costs = costs.view()};
    if (random() % 3 == 0) input.receive_lead = static_cast<int>(one_below(random, 4));
    if (gathers) {
      const int most = stretto::least_gathered(input.rows) + static_cast<int>(one_below(random, 2));
      put_in_place(with_gathered_weights(input, most));
    }
    if (sums) put_in_place(with_gradient_sums(input));
    if (!gathers && !sums && random() % 3 == 0) {
      job_lists issued(sizes.ranks, stretto::lowering::with_messages(input.rows.stride));
      stretto::job_sink sink = issued.sink();
      REQUIRE(stretto::lowering::add_messages(input, sink).ok());
      put_in_place(std::move(issued));
      input.messages = true;
    }
    possible = true;
  }
  drawn_step(const drawn_step&) = delete;
  drawn_step& operator=(const drawn_step&) = delete;

  std::int64_t makespan() const {
    std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
    return stretto::measure(input, ranks).makespan;
  }
  void costs_changed() { input.costs = costs.view(); }

 private:
  void put_in_place(job_lists made) {
    lists = std::move(made);
    input.rows = lists.rows();
  }
};

std::pair<stretto::report, std::vector<stretto::critical_job>> traced(const replay_input& input) {
  const auto count = static_cast<std::size_t>(input.rows.ranks);
  std::vector<stretto::rank_report> ranks(count);
  std::vector<stretto::job_time> timeline(count * static_cast<std::size_t>(input.rows.stride));
  const stretto::report all = stretto::measure(input, ranks, timeline);
  REQUIRE(all.answer.ok());
  return {all, critical_path(input, timeline)};
}

void check_gapless(const std::vector<stretto::critical_job>& path, const stretto::report& all) {
  std::int64_t now = 0;
  for (const stretto::critical_job& one : path) {
    REQUIRE(one.when.start == now + one.waited);
    REQUIRE((one.waited == 0 || (one.waited > 0 && one.messages > 0)));
    now = one.when.end;
  }
  REQUIRE(now == all.makespan);
}

//! Entry of the job table that a job of a path reads.
using entry = std::tuple<int, int, job_kind>;

}  // namespace

TEST_CASE("critical paths leave no gap, and what on them is longer makes the step longer") {
  std::mt19937 random(20261130);
  std::map<job_kind, int> met;
  int with_messages = 0;
  int one_after_the_other = 0;
  int late = 0;
  for (int round = 0; round < 300; ++round) {
    const shape sizes{.ranks = 1 + static_cast<int>(random() % 6),
                      .microbatches = 1 + static_cast<int>(random() % 9),
                      .chunks = 1 + static_cast<int>(random() % 3),
                      .slices = random() % 4 == 0 ? 2 : 1};
    for (const stretto::schedule::any& made : support::schedules()) {
      if (!made.supports(sizes).ok()) continue;
      INFO("round ", round, ", ", std::string(made.name), " ", laws::words(sizes));
      drawn_step step(random, made, sizes);
      if (!step.possible) continue;
      const replay_input& input = step.input;
      const auto [all, path] = traced(input);
      check_gapless(path, all);
      std::int64_t messages = 0;
      std::map<entry, int> jobs;
      bool sums = false;
      for (const stretto::critical_job& one : path) {
        messages += one.messages;
        one_after_the_other += one.messages > 1 ? 1 : 0;
        with_messages += input.messages && one.messages > 0 ? 1 : 0;
        const job& work = input.rows.at(one.rank, one.step);
        ++met[work.kind];
        sums = sums || work.kind == job_kind::reduce_grad;
        if (work.paired) continue;  // what its halves take is not their sum
        const int chunk = is_of_stage(work.kind) ? input.where.chunk_on(one.rank, work.stage)
                                                 : input.where.chunk_of(work);
        ++jobs[{one.rank, chunk, work.kind}];
      }
      if (sums) continue;  // which are in another order when others are longer

      for (const auto& [of, count] : jobs) {
        const auto [rank, chunk, kind] = of;
        INFO("rank ", rank, " chunk ", chunk, " ", std::string(to_text(job{.kind = kind}).view()));
        std::int64_t& time = step.costs.at(rank, chunk, kind).time;
        time += 7;
        step.costs_changed();
        CHECK(step.makespan() >= all.makespan + 7 * count);
        time -= 7;
      }
      step.costs.communication += 7;
      step.costs.between_nodes += 7;
      step.costs_changed();
      CHECK(step.makespan() >= all.makespan + 7 * messages);
      if (input.receive_lead >= 0) {
        step.input.receive_lead = -1;
        step.costs.communication -= 7;
        step.costs.between_nodes -= 7;
        step.costs_changed();
        late += step.makespan() < all.makespan ? 1 : 0;
      }
    }
  }
  for (const job_kind kind : {job_kind::forward, job_kind::backward, job_kind::backward_input,
                              job_kind::backward_weight, job_kind::recompute, job_kind::offload,
                              job_kind::reload, job_kind::unshard, job_kind::reduce_grad})
    CHECK(met[kind] > 50);
  CHECK(with_messages > 100);
  CHECK(one_after_the_other > 100);
  CHECK(late > 50);
}

TEST_CASE("critical paths of the lists of plans, whose ranks come together in groups") {
  std::mt19937 random(7);
  int sums = 0;
  laws::for_each_plan(
      3, 4, 2, 25, [&](const laws::grid_point& point, const stretto::planned& made) {
        if (!made.answer().ok()) return;
        INFO(point.words());
        replay_input issued = made.issued();
        stretto::job_table costs = laws::any_costs(random, issued.where);
        for (int rank = 0; rank < costs.ranks; ++rank)
          for (int chunk = 0; chunk < costs.chunks; ++chunk)
            for (const job_kind kind : {job_kind::recompute, job_kind::offload, job_kind::reload,
                                        job_kind::unshard, job_kind::reduce_grad})
              costs.at(rank, chunk, kind).time = one_below(random, 10);
        issued.costs = costs.view();
        const auto [all, path] = traced(issued);
        check_gapless(path, all);
        sums += issued.rows.at(path.back().rank, path.back().step).kind == job_kind::reduce_grad
                    ? 1
                    : 0;
      });
  CHECK(sums > 100);
}
