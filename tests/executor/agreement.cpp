#include "stretto/executor/agreement.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "failures.hpp"
#include "pipeline.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/describe.hpp"
#include "stretto/executor/validate.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/zb_h1.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

using plans = std::vector<plan_builder>;

//! Three ranks, two micro-batches, and a group of all that sums once.
plans sound() {
  plans made = pipeline_plans(3, 2, 16, layout::separate);
  for (plan_builder& each : made) {
    each.instructions.pop_back();
    const int sums = each.add_buffer(buffer_role::collective, 0, 0, 64);
    each.all_reduce(each.add_group({0, 1, 2}, 16, false), 0, sums);
    each.end();
  }
  return made;
}

//! What the processes get when each calls agree() with its plans.
std::vector<std::string> answers(const std::vector<std::vector<plan_view>>& of_processes,
                                 const std::string& last_version = "1") {
  std::vector<std::string> texts(of_processes.size());
  auto by = executor::make_local_bootstraps(static_cast<int>(of_processes.size()));
  std::vector<std::thread> threads;
  for (std::size_t process = 0; process < of_processes.size(); ++process)
    threads.emplace_back([&, process] {
      const std::vector<plan_view>& mine = of_processes[process];
      const bool last = process + 1 == of_processes.size();
      std::vector<executor::component> with{{"wire", last ? last_version : "1"}};
      if (with[0].version.empty()) with.clear();
      const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      try {
        executor::agree(mine, with, *by[process], limit);
      } catch (const executor::plan_error& caught) {
        texts[process] = caught.what();
      } catch (const std::exception& caught) {
        texts[process] = std::string("no plan_error: ") + caught.what();
      }
    });
  for (std::thread& each : threads) each.join();
  return texts;
}

//! The same with the plans of its ranks.
std::vector<std::string> answers(const plans& all, const std::vector<std::vector<int>>& ranks_of,
                                 const std::string& last_version = "1") {
  std::vector<std::vector<plan_view>> of_processes(ranks_of.size());
  for (std::size_t process = 0; process < ranks_of.size(); ++process)
    for (const int rank : ranks_of[process])
      of_processes[process].push_back(all[static_cast<std::size_t>(rank)].view());
  return answers(of_processes, last_version);
}

//! All processes are told the same, and that holds the part.
void refused(const plans& all, const std::string& part,
             const std::vector<std::vector<int>>& ranks_of = {{0}, {2, 1}}) {
  const std::vector<std::string> texts = answers(all, ranks_of);
  for (const std::string& text : texts) {
    expect_part(text, part);
    CHECK(text == texts[0]);
  }
}

}  // namespace

TEST_CASE("processes with plans of one schedule agree, however ranks are dealt to them") {
  for (const auto& dealt :
       {std::vector<std::vector<int>>{{0}, {1}, {2}}, std::vector<std::vector<int>>{{2, 0}, {1}},
        std::vector<std::vector<int>>{{}, {0, 1, 2}}})
    for (const std::string& text : answers(sound(), dealt)) CHECK(text == "");
}

TEST_CASE("the first difference is named, to all") {
  plans all = sound();
  SUBCASE("versions") {
    for (const std::string& text : answers(all, {{0}, {1}, {2}}, "2"))
      CHECK(text == "process 2 has wire 2, process 0 has wire 1");
    for (const std::string& text : answers(all, {{0}, {1}, {2}}, ""))
      CHECK(text == "process 2 has nothing, process 0 has wire 1");
  }
  SUBCASE("a rank twice") {
    refused(all, "rank 1 has two plans, in process 0 and in process 1", {{0, 1}, {1, 2}});
  }
  SUBCASE("a rank nowhere") {
    refused(all, "rank 1 is in no process", {{0}, {2}});
  }
  SUBCASE("the number of ranks") {
    all[2].head.ranks = 4;
    refused(all, "rank 2 is planned for 4 ranks, rank 0 for 3");
  }
  SUBCASE("digests") {
    all[2].head.digest = 43;
    refused(all,
            "rank 2, in process 1, runs another schedule than rank 0, in process 0: their digests "
            "differ");
  }
  SUBCASE("sizes") {
    instruction& second = all[1].at(nth(all[1], action::receive, 1));
    all[1]
        .buffers[static_cast<std::size_t>(
            all[1].uses[static_cast<std::size_t>(second.first_use)].buffer)]
        .bytes = 32;
    refused(all,
            "channel 0 -> 1: rank 0, instruction 3, 0SEND_F1 (stage 0, send of activations, "
            "micro-batch 1) meets rank 1, instruction 3, 1RECV_F1 (stage 1, receive of "
            "activations, micro-batch 1), both message 1 of the channel: 64 bytes are sent, "
            "32 received");
    all[1].head.digest = 43;
    refused(all, "their digests differ; first in channel 0 -> 1: rank 0, instruction 3");
  }
  SUBCASE("messages") {
    all[0].at(nth(all[0], action::send)).what.microbatch = 1;
    refused(all, "both message 0 of the channel: they are not the same message");
  }
  SUBCASE("a message that nobody takes") {
    all[2].at(nth(all[2], action::receive, 1)).act = action::run;
    refused(all, "channel 1 -> 2: 2 sends, but 1 receives", {{0}, {1}, {2}});
    all[2].at(nth(all[2], action::receive, 0)).act = action::run;
    refused(all, "channel 1 -> 2: 2 sends, but 0 receives", {{0}, {1}, {2}});
  }
  SUBCASE("what a group sums") {
    all[1].groups[0].elements = 8;
    refused(all, "group 0: ranks 0 and 1 differ in what it sums");
  }
  SUBCASE("a member that does not sum") {
    all[2].at(nth(all[2], action::all_reduce)).act = action::run;
    refused(all, "group 0: ranks 0 and 2 differ in how often it sums");
  }
}

namespace {

//! Plans of ZB-H1 on three ranks, and of what `change` makes of its lists.
struct zero_bubble {
  shape sizes{.ranks = 3, .microbatches = 400};
  job_table costs{3, 1};
  schedule::zb_h1 made{};
  planned plain{made, sizes, costs.view(), overlap::separate{}};

  template <class Change>
  std::unique_ptr<planned> with(const Change& change) const {
    const job_rows from = plain.jobs();
    job_lists lists(from.ranks, from.stride);
    job_sink out = lists.sink();
    for (int rank = 0; rank < from.ranks; ++rank)
      for (const job& each : from.row(rank)) out.push(rank, each);
    change(out);
    auto other = std::make_unique<planned>(
        replay_input{lists.rows(), plain.where(), sizes.microbatches, 1, costs.view(), false, {}},
        overlap::separate{});
    REQUIRE(other->answer().ok());
    return other;
  }
};

std::vector<plan_view> of(const planned& all, std::initializer_list<std::size_t> ranks) {
  std::vector<plan_view> mine;
  for (const std::size_t rank : ranks) mine.push_back(all.plans()[rank]);
  return mine;
}

}  // namespace

TEST_CASE("of two schedules whose messages are alike the first entry that differs is named") {
  const zero_bubble step;
  REQUIRE(step.plain.answer().ok());
  // Of rank 1, near the end: a backward for the weights before the one for the input beside it.
  const int late = static_cast<int>(step.plain.jobs().row(1).size()) - 4;
  REQUIRE(step.plain.jobs().at(1, late).kind == job_kind::backward_weight);
  const auto other = step.with([&](job_sink& out) {
    std::swap(out.items[out.stride + late], out.items[out.stride + late + 1]);
  });
  const auto first = [&](const std::string& rank) {
    return "in the list of rank 1, job " + std::to_string(late) + ": " +
           executor::describe(step.plain.jobs().at(1, late)) + " by the schedule of rank 0, " +
           executor::describe(step.plain.jobs().at(1, late + 1)) + " by that of rank " + rank;
  };
  const auto told = [&](const std::string& rank, const std::string& process) {
    return "rank " + rank + ", in process " + process +
           ", runs another schedule than rank 0, in process 0: their digests differ; first " +
           first(rank);
  };
  // It need not be an entry of a rank that either holds.
  for (const std::string& text : answers({of(step.plain, {0, 1}), {}, of(*other, {2})}))
    CHECK(text == told("2", "2"));
  for (const std::string& text :
       answers({of(step.plain, {0}), of(*other, {1}), of(step.plain, {2})}))
    CHECK(text == told("1", "1"));
  for (const std::string& text : answers({of(step.plain, {0}), of(step.plain, {1, 2})}))
    CHECK(text == "");
  const std::vector<plan_view> mixed{step.plain.plans()[0], other->plans()[1],
                                     step.plain.plans()[2]};
  CHECK(refusal_of([&] { executor::validate(mixed); }) ==
        "rank 1 runs another schedule than rank 0: their digests differ; first " + first("1"));

  // Workers that share a rank's stages have the rank's list.
  const shared ours(step.plain.plans(), 2);
  const shared theirs(other->plans(), 2);
  for (const std::string& text : answers({{ours.plans().begin(), ours.plans().begin() + 4},
                                          {theirs.plans().begin() + 4, theirs.plans().end()}}))
    CHECK(text == told("4", "1"));

  // Of one that knows no lists, only that it is another.
  std::vector<plan_view> unknown = of(*other, {2});
  unknown[0].lists = {};
  for (const std::string& text : answers({of(step.plain, {0, 1}), unknown}))
    CHECK(text ==
          "rank 2, in process 1, runs another schedule than rank 0, in process 0: their "
          "digests differ");
}

TEST_CASE("of lists that are not as long, where the shorter ends") {
  const zero_bubble step;
  plan_view less = step.plain.plans()[2];
  std::vector<std::int32_t> counts(less.lists.counts, less.lists.counts + 3);
  counts[0] -= 1;
  less.lists.counts = counts.data();
  less.digest += 1;
  const std::string text =
      "; first in the list of rank 0, entry " + std::to_string(counts[0]) +
      ": 0END_STEP (end of the step) by the schedule of rank 0, nothing more by that of rank 2";
  for (const std::string& each : answers({of(step.plain, {0, 1}), {less}})) expect_part(each, text);
  less.lists.ranks = 2;
  for (const std::string& each : answers({of(step.plain, {0, 1}), {less}}))
    expect_part(each,
                "their digests differ; first in their ranks: 3 by the schedule of rank 0, 2 by "
                "that of rank 2");
}
