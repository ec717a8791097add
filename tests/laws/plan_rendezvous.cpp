// Rule 4, rendezvous, against an executor in the small that runs the programs: the rule accepts a
// program exactly if it ends on hosts that wait for every entry, and what it accepts ends however
// entries are launched.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "laws/oracle_launch.hpp"
#include "laws/oracle_programs.hpp"
#include "stretto/check/rendezvous.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/model/verdict_text.hpp"

namespace {

using oracle::generator;
using oracle::lists;
using stretto::job;
using stretto::job_kind;

//! The same as a program of the small executor: what a job needs and makes are values of its rank,
//! jobs run on any stream, a channel stays on one at either end.
oracle::program programmed(const lists& in, generator& random) {
  oracle::program made;
  made.streams = 1 + random.below(4);
  const int cells = static_cast<int>(generator::cells(in));
  made.values = 4 * cells;
  for (const auto& group : in.groups) made.groups.emplace_back(group.begin(), group.end());
  const auto value = [&](int what, const job& work, int stages_on = 0) {
    return what * cells + static_cast<int>(generator::cell(in, work, stages_on));
  };
  enum { forwarded, input, backwarded, gradient };
  for (int rank = 0; rank < static_cast<int>(in.ranks.size()); ++rank) {
    std::vector<int> sends_on, receives_from;
    for (std::size_t peer = 0; peer < in.ranks.size(); ++peer) {
      sends_on.push_back(random.below(made.streams));
      receives_from.push_back(random.below(made.streams));
    }
    auto& row = made.ranks.emplace_back();
    bool second = false;
    for (const job& work : in.ranks[static_cast<std::size_t>(rank)]) {
      oracle::op entry;
      entry.stream = random.one_in(2) ? 0 : random.below(made.streams);
      const bool last = work.stage + 1 == in.stages();
      const bool below = !last && in.holder(work.stage + 1) == rank;
      const bool above = work.stage > 0 && in.holder(work.stage - 1) == rank;
      switch (work.kind) {
        case job_kind::forward:
          if (work.stage > 0) entry.needs.push_back(value(input, work));
          if (work.slice > 0) entry.needs.push_back(value(forwarded, work) - 1);
          entry.makes.push_back(value(forwarded, work));
          if (below) entry.makes.push_back(value(input, work, 1));
          break;
        case job_kind::backward:
        case job_kind::backward_input:
          entry.needs.push_back(value(forwarded, work));
          if (!last) entry.needs.push_back(value(gradient, work));
          if (work.slice + 1 < in.slices) entry.needs.push_back(value(backwarded, work) + 1);
          entry.makes.push_back(value(backwarded, work));
          if (above) entry.makes.push_back(value(gradient, work, -1));
          break;
        case job_kind::backward_weight: entry.needs.push_back(value(backwarded, work)); break;
        case job_kind::send_forward:
        case job_kind::send_backward: {
          const bool ahead = work.kind == job_kind::send_forward;
          entry.kind = oracle::op_kind::send;
          entry.needs.push_back(value(ahead ? forwarded : backwarded, work));
          entry.peer = in.holder(work.stage + (ahead ? 1 : -1));
          entry.stream = sends_on[static_cast<std::size_t>(entry.peer)];
          entry.tag = value(ahead ? input : gradient, work, ahead ? 1 : -1);
          break;
        }
        case job_kind::receive_forward:
        case job_kind::receive_backward: {
          const bool ahead = work.kind == job_kind::receive_forward;
          entry.kind = oracle::op_kind::receive;
          entry.peer = in.holder(work.stage + (ahead ? -1 : 1));
          entry.stream = receives_from[static_cast<std::size_t>(entry.peer)];
          entry.tag = value(ahead ? input : gradient, work);
          entry.makes.push_back(entry.tag);
          break;
        }
        case job_kind::all_reduce:
          entry.kind = oracle::op_kind::collective;
          entry.peer = work.microbatch;
          entry.stream = 0;
          break;
        default: break;
      }
      if (second) {  // of a pair: one entry, which starts when both may
        row.back().needs.insert(row.back().needs.end(), entry.needs.begin(), entry.needs.end());
        row.back().makes.insert(row.back().makes.end(), entry.makes.begin(), entry.makes.end());
      } else {
        row.push_back(entry);
      }
      second = !second && work.paired;
    }
  }
  return made;
}

//! What the rule says.
stretto::verdict judged(const lists& in) {
  const int ranks = static_cast<int>(in.ranks.size());
  std::size_t stride = 1;
  for (const auto& row : in.ranks) stride = std::max(stride, row.size());
  stretto::job_lists rows(ranks, static_cast<int>(stride));
  auto sink = rows.sink();
  for (int rank = 0; rank < ranks; ++rank)
    for (const job& work : in.ranks[static_cast<std::size_t>(rank)]) sink.push(rank, work);
  const stretto::job_table table(ranks, in.stages());
  std::vector<stretto::rank_group> groups;
  for (const auto& members : in.groups) groups.push_back({members});
  return stretto::check::rendezvous({.rows = rows.rows(),
                                     .where = {.kind = stretto::placement_kind::table,
                                               .ranks = ranks,
                                               .chunks = in.stages(),
                                               .microbatches = in.microbatches,
                                               .table = in.rank_of.data(),
                                               .table_stages = in.stages()},
                                     .microbatches = in.microbatches,
                                     .slices = in.slices,
                                     .costs = table.view(),
                                     .groups = groups});
}

std::string words(const lists& in) {
  std::string text;
  for (std::size_t rank = 0; rank < in.ranks.size(); ++rank) {
    text += "\nrank " + std::to_string(rank) + ":";
    for (const job& work : in.ranks[rank])
      text += " " + std::string(stretto::to_text(work).view()) + (work.paired ? "+" : "");
  }
  return text;
}

using oracle::outcome;
constexpr oracle::launch_model strong{.name = "the host waits for every entry", .blocking = true};
constexpr oracle::launch_model streams{.name = "streams that run by themselves"};
constexpr oracle::launch_model others[] = {
    {.name = "queues of one entry", .depth = 1},
    {.name = "queues of two entries", .depth = 2},
    {.name = "one hardware queue", .one_queue = true},
    {.name = "one hardware queue of one entry", .depth = 1, .one_queue = true},
    {.name = "one message buffered", .slots = 1},
    {.name = "two messages buffered", .slots = 2},
    {.name = "a waiting host, one message buffered", .blocking = true, .slots = 1},
    {.name = "queues of one entry, two messages buffered", .depth = 1, .slots = 2},
};

}  // namespace

TEST_CASE("rendezvous accepts what ends on waiting hosts, and nothing else; that ends everywhere") {
  int accepted = 0, mismatched = 0, only_with_streams = 0, only_with_buffers = 0;
  int from_one_order_accepted = 0;
  constexpr int programs = 24000;
  for (unsigned seed = 1; seed <= programs; ++seed) {
    generator random(seed);
    lists made = random.empty();
    const unsigned origin = seed % 4;  // one order, the same scrambled (two in four), own orders
    if (origin == 3) random.from_own_orders(made);
    else random.from_one_order(made);
    if (origin == 1 || origin == 2)
      for (int times = 1 + random.below(4); times > 0; --times) random.scramble(made);
    const oracle::program program = programmed(made, random);
    const stretto::verdict found = judged(made);
    INFO("seed ", seed, words(made));
    INFO(std::string(stretto::to_text(found).view()));

    const outcome waiting = run(program, strong, seed);
    REQUIRE(found.ok() == (waiting == outcome::completes));
    const outcome by_streams = run(program, streams, seed);
    // The order in which ranks get their turns decides nothing.
    REQUIRE(run(program, strong, seed + 1) == waiting);
    REQUIRE(run(program, streams, seed + 1) == by_streams);
    if (found.ok()) {
      REQUIRE(by_streams == outcome::completes);
      for (const auto& model : others) {
        INFO(model.name);
        REQUIRE(run(program, model, seed) == outcome::completes);
      }
      ++accepted;
      from_one_order_accepted += origin == 0;
    } else {
      mismatched += waiting == outcome::mismatched;
      only_with_streams += by_streams == outcome::completes;
      only_with_buffers += by_streams == outcome::hangs &&
                           run(program, others[5], seed) == outcome::completes;
    }
    if (origin == 0) REQUIRE(found.ok());
  }
  MESSAGE(programs, " programs: ", accepted, " accepted (", from_one_order_accepted,
          " from one order), ", programs - accepted, " refused, of which ", mismatched,
          " mismatched, ", only_with_streams, " end with streams all the same, ",
          only_with_buffers, " only with buffered messages");
  // Both answers, and every way to be refused, are met often.
  CHECK(from_one_order_accepted == programs / 4);
  CHECK(accepted - from_one_order_accepted > programs / 20);
  CHECK(programs - accepted > programs / 4);
  CHECK(mismatched > 100);
  CHECK(only_with_streams > 100);
  CHECK(only_with_buffers > 100);
}
