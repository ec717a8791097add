// Lists with messages, spoilt in one place: what one walk of their order takes for proven keeps
// every rule that it stands for, and holds the jobs that there were.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stretto/check/issued.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/paired_1f1b.hpp"
#include "stretto/schedule/seq_1f1b.hpp"
#include "stretto/schedule/zb_h1.hpp"

namespace plan_issued {
namespace {

using stretto::job;
using stretto::job_kind;
using stretto::shape;
namespace check = stretto::check;
using rows = std::vector<std::vector<job>>;
using turns = std::vector<std::int32_t>;

struct nobody : stretto::replay_observer {};

//! One step's lists with messages, and what they were written from.
class issued_lists {
 public:
  template <class Schedule>
  issued_lists(const Schedule& schedule, const shape& sizes, int lead = -1, bool replicas = false)
      : table_(sizes.ranks, stretto::place(schedule.placed(), sizes).chunks),
        made_(schedule, sizes, table_.view(), stretto::overlap::with_receive_lead<>{{}, lead},
              request(!stretto::schedule::forward_only(schedule), replicas)) {
    REQUIRE(made_.answer().ok());
    issued_ = made_.issued();
    issued_.costs = table_.view();
    compute_ = issued_;
    compute_.rows = made_.jobs();
    compute_.messages = false;
    compute_.groups = {};
    for (int rank = 0; rank < issued_.rows.ranks; ++rank) {
      const auto row = issued_.rows.row(rank);
      lists.emplace_back(row.begin(), row.end());
    }
    order.assign(made_.order().ranks, made_.order().ranks + made_.order().count);
    REQUIRE(judge(lists, order));
  }

  //! Whether the walk accepts; then all that it proves must be so.
  bool judge(const rows& spoilt, const turns& turned) const {
    stretto::job_lists packed(static_cast<int>(spoilt.size()), issued_.rows.stride + 4);
    stretto::job_sink out = packed.sink();
    for (std::size_t rank = 0; rank < spoilt.size(); ++rank)
      for (const job& work : spoilt[rank]) out.push(static_cast<int>(rank), work);
    stretto::replay_input input = issued_;
    input.rows = packed.rows();
    nobody watch;
    if (!check::issued(
             compute_, input,
             {turned.data(), static_cast<std::int64_t>(turned.size()), made_.order().has_late},
             watch)
             .ok())
      return false;
    CHECK(check::complete(input).ok());
    CHECK(check::ordered(input).ok());
    CHECK(check::rendezvous(input).ok());
    for (int rank = 0; rank < compute_.rows.ranks; ++rank) {
      std::vector<job> jobs;
      for (const job& work : input.rows.row(rank))
        if (has_cost(work.kind)) jobs.push_back(work);
      const auto expected = compute_.rows.row(rank);
      CHECK(jobs == std::vector<job>(expected.begin(), expected.end()));
    }
    return true;
  }

  int stages() const { return issued_.where.stages(); }
  bool late() const { return made_.order().has_late; }

  rows lists;
  turns order;

 private:
  static stretto::plan_request request(bool train, bool replicas) {
    stretto::plan_request made;
    made.train = train;
    made.data_parallel = replicas;
    return made;
  }
  stretto::job_table table_;
  stretto::planned made_;
  stretto::replay_input issued_, compute_;
};

std::ptrdiff_t at(std::size_t index) {
  return static_cast<std::ptrdiff_t>(index);
}

//! @return how many spoilt ones are accepted all the same
int spoil_each(const issued_lists& of, long& mutants) {
  int accepted = 0;
  const auto judge = [&](const rows& lists, const turns& order) {
    ++mutants;
    accepted += of.judge(lists, order);
  };
  for (std::size_t rank = 0; rank < of.lists.size(); ++rank)
    for (std::size_t step = 0; step < of.lists[rank].size(); ++step) {
      CAPTURE(rank);
      CAPTURE(step);
      const auto with = [&](const std::function<void(std::vector<job>&)>& change) {
        rows lists = of.lists;
        change(lists[rank]);
        judge(lists, of.order);
      };
      for (std::size_t to = 0; to < of.lists[rank].size(); ++to) {
        if (to > step) with([&](auto& row) { std::swap(row[step], row[to]); });
        with([&](auto& row) {
          const job moved = row[step];
          row.erase(row.begin() + at(step));
          row.insert(row.begin() + at(to), moved);
        });
      }
      with([&](auto& row) { row.erase(row.begin() + at(step)); });
      with([&](auto& row) { row.insert(row.begin() + at(step), job(row[step])); });
      with([&](auto& row) { row[step].paired = !row[step].paired; });
      for (const int more : {-1, 1}) {
        with([&](auto& row) { row[step].stage += more; });
        with([&](auto& row) { row[step].microbatch += more; });
        with([&](auto& row) {
          row[step].slice = static_cast<std::int16_t>(row[step].slice + more);
        });
      }
      for (int kind = 0; kind < stretto::job_kind_count; ++kind)
        with([&](auto& row) { row[step].kind = static_cast<job_kind>(kind); });
      const job work = of.lists[rank][step];
      // A sum with what prepares it.
      if (work.kind == job_kind::reduce_grad)
        for (std::size_t to = 0; to + 1 < of.lists[rank].size(); ++to)
          with([&](auto& row) {
            const std::vector<job> both(row.begin() + at(step), row.begin() + at(step + 2));
            row.erase(row.begin() + at(step), row.begin() + at(step + 2));
            row.insert(row.begin() + at(to < row.size() ? to : row.size()), both.begin(),
                       both.end());
          });
      // A late message to no stage, behind any job and what is received there.
      if (work.kind == job_kind::forward || is_input_gradient(work.kind)) {
        const bool ahead = work.kind == job_kind::forward;
        job sent = work;
        sent.kind = ahead ? job_kind::send_forward : job_kind::send_backward;
        sent.paired = false;
        const std::size_t peer = rank == 0 ? 1 : 0;
        const bool beyond = work.stage == (ahead ? of.stages() - 1 : 0);
        for (std::size_t turn = 0; beyond && of.late() && turn <= of.order.size(); ++turn)
          for (std::size_t there = 0; there <= of.lists[peer].size(); ++there) {
            rows lists = of.lists;
            std::size_t behind = step + 1;
            while (behind < lists[rank].size() && is_message(lists[rank][behind].kind)) ++behind;
            lists[rank].insert(lists[rank].begin() + at(behind), sent);
            lists[peer].insert(lists[peer].begin() + at(there), stretto::matching_receive(sent));
            turns more = of.order;
            more.insert(more.begin() + at(turn),
                        stretto::lowering::order_sink::late(static_cast<int>(peer)));
            judge(lists, more);
          }
      }
      if (!is_send(work.kind)) continue;
      // Both halves of a message: neither, twice, other jobs', or elsewhere.
      const job taken = stretto::matching_receive(work);
      for (std::size_t peer = 0; peer < of.lists.size(); ++peer)
        for (std::size_t there = 0; there < of.lists[peer].size(); ++there) {
          if (!(of.lists[peer][there] == taken)) continue;
          const auto both = [&](const std::function<void(std::vector<job>&, std::size_t)>& change) {
            rows lists = of.lists;
            change(lists[rank], step);
            change(lists[peer], there);
            judge(lists, of.order);
            // An entry of the order may be its own.
            for (std::size_t turn = 0; turn < of.order.size(); ++turn) {
              if (of.order[turn] >= 0) continue;
              turns less = of.order, more = of.order;
              less.erase(less.begin() + at(turn));
              judge(lists, less);
              more.insert(more.begin() + at(turn), of.order[turn]);
              judge(lists, more);
            }
          };
          both([](auto& row, std::size_t index) { row.erase(row.begin() + at(index)); });
          both([](auto& row, std::size_t index) {
            row.insert(row.begin() + at(index), job(row[index]));
          });
          for (const int more : {-1, 1}) {
            both([&](auto& row, std::size_t index) { row[index].microbatch += more; });
            both([&](auto& row, std::size_t index) { row[index].stage += more; });
            both([&](auto& row, std::size_t index) {
              row[index].slice = static_cast<std::int16_t>(row[index].slice + more);
            });
          }
          both([](auto& row, std::size_t index) { row[index].paired = true; });
          for (const bool later : {false, true})
            both([&](auto& row, std::size_t index) {
              const std::size_t to = later ? index + 1 : index - 1;
              if (to < row.size()) std::swap(row[index], row[to]);
            });
        }
    }
  // The order: a turn left out, doubled, or before another; and a list's end with its turn.
  for (std::size_t turn = 0; turn < of.order.size(); ++turn) {
    turns spoilt = of.order;
    spoilt.erase(spoilt.begin() + at(turn));
    judge(of.lists, spoilt);
    for (std::size_t rank = 0; rank < of.lists.size(); ++rank) {
      if (of.order[turn] != static_cast<std::int32_t>(rank)) continue;
      for (std::size_t step = 0; step < of.lists[rank].size(); ++step) {
        rows lists = of.lists;
        lists[rank].erase(lists[rank].begin() + at(step));
        judge(lists, spoilt);
      }
    }
    spoilt = of.order;
    spoilt.insert(spoilt.begin() + at(turn), of.order[turn]);
    judge(of.lists, spoilt);
    if (turn + 1 == of.order.size()) continue;
    spoilt = of.order;
    std::swap(spoilt[turn], spoilt[turn + 1]);
    judge(of.lists, spoilt);
  }
  return accepted;
}

}  // namespace

TEST_CASE("what a walk of the order proves of lists with messages is so, whatever is spoilt") {
  long mutants = 0;
  int accepted = 0;
  const auto spoil = [&](const issued_lists& of) { accepted += spoil_each(of, mutants); };
  for (const int lead : {-1, 0}) {
    CAPTURE(lead);
    spoil({stretto::schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 4}, lead});
    spoil({stretto::schedule::zb_h1{}, {.ranks = 2, .microbatches = 3}, lead});
    spoil({stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 2, .chunks = 2}, lead});
    spoil({stretto::schedule::paired_1f1b{}, {.ranks = 2, .microbatches = 5}, lead});
    spoil({stretto::schedule::seq_1f1b{}, {.ranks = 3, .microbatches = 3, .slices = 2}, lead});
    spoil({stretto::schedule::inference{}, {.ranks = 3, .microbatches = 2}, lead});
    spoil({stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 3}, lead, true});
    spoil({stretto::schedule::zb_h1{}, {.ranks = 2, .microbatches = 3}, lead, true});
  }
  MESSAGE(mutants, " spoilt, ", accepted, " as good");
  CHECK(mutants > 10000);
  CHECK(accepted > 0);
}

}  // namespace plan_issued
