#include "stretto/executor/agreement.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "failures.hpp"
#include "pipeline.hpp"
#include "stretto/executor/bootstrap.hpp"

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

//! What the processes get when each calls agree() with the plans of its ranks.
std::vector<std::string> answers(const plans& all, const std::vector<std::vector<int>>& ranks_of,
                                 const std::string& last_version = "1") {
  std::vector<std::string> texts(ranks_of.size());
  auto by = executor::make_local_bootstraps(static_cast<int>(ranks_of.size()));
  std::vector<std::thread> threads;
  for (std::size_t process = 0; process < ranks_of.size(); ++process)
    threads.emplace_back([&, process] {
      std::vector<plan_view> mine;
      for (const int rank : ranks_of[process])
        mine.push_back(all[static_cast<std::size_t>(rank)].view());
      const bool last = process + 1 == ranks_of.size();
      const std::vector<executor::component> with{{"wire", last ? last_version : "1"}};
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
    refused(all, "rank 2, in process 1, runs another schedule than rank 0: their digests differ");
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
