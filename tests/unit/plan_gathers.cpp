// Gathers of weights in plans: where they stand and on which stream, what is refused, who takes
// part, and what a list is refused for in which they stand elsewhere.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "stretto/check/as_listed.hpp"
#include "stretto/check/own_buffers.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/chimera.hpp"
#include "stretto/schedule/dualpipe_v.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/schedules.hpp"
#include "unit/issued_lists.hpp"

namespace {

using stretto::access;
using stretto::action;
using stretto::buffer_role;
using stretto::instruction;
using stretto::job;
using stretto::job_kind;
using stretto::plan_view;
using stretto::reason;
using stretto::shape;

stretto::plan_request request(int gathered) {
  stretto::plan_request made;
  made.data_parallel = true;
  made.gathered = gathered;
  made.stages = {{.output = 64, .stash = 128, .gradients = 480, .weights = 192}};
  return made;
}

template <class Schedule>
stretto::planned plans_of(const Schedule& schedule, const shape& sizes,
                          const stretto::plan_request& asked) {
  const stretto::job_table table(sizes.ranks, place(schedule.placed(), sizes).chunks);
  return {schedule, sizes, table.view(), stretto::overlap::separate{}, asked};
}

//! Of an instruction's uses the one of weights; none: a buffer below 0.
stretto::buffer_use weights_of(const plan_view& plan, const instruction& at) {
  for (const stretto::buffer_use& use : plan.uses_of(at))
    if (use.role == buffer_role::weights) return use;
  return {};
}

}  // namespace

TEST_CASE(
    "every stage's weights are there for its jobs, no more than asked for at once, and whole") {
  int shapes = 0, again = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (const int chunks : {1, 2, 3})
      for (const int most : {2, 3}) {
        const shape sizes{.ranks = 4, .microbatches = 8, .chunks = chunks};
        if (!schedule.supports(sizes).ok()) continue;
        CAPTURE(schedule.name);
        CAPTURE(chunks);
        CAPTURE(most);
        ++shapes;
        const stretto::planned made = plans_of(schedule, sizes, request(most));
        REQUIRE(made.answer() == stretto::verdict{});
        for (const plan_view& plan : made.plans()) {
          CHECK(plan.lists.counts == made.lists().counts);
          std::map<int, std::int32_t> there;  // by stage the buffer
          std::map<int, int> gathers;
          for (std::size_t index = 0; index < plan.instructions.size(); ++index) {
            const instruction& at = plan.instructions[index];
            const stretto::buffer_use use = weights_of(plan, at);
            const int stage = at.what.stage;
            if (at.what.kind == job_kind::unshard) {
              REQUIRE(use.mode == access::write);
              CHECK(at.act == action::run);
              CHECK(at.stream == 0);
              CHECK(there.emplace(stage, use.buffer).second);
              CHECK(plan.buffers[static_cast<std::size_t>(use.buffer)].bytes == 192);
              again += gathers[stage]++ > 0 ? 1 : 0;
              // The others' parts come at once, where gradients are summed.
              const instruction& next = plan.instructions[index + 1];
              CHECK(next.act == action::all_gather);
              CHECK(next.stream == stretto::overlap::separate::data_parallel);
              const stretto::group_info& group = plan.groups[static_cast<std::size_t>(next.peer)];
              CHECK(group.stage == stage);
              CHECK(group.weights == 192);
              CHECK(plan.members_of(group).front() == plan.rank);
              CHECK(weights_of(plan, next).buffer == use.buffer);
              CHECK(weights_of(plan, next).mode == access::read_write);
            } else if (at.what.kind == job_kind::reshard) {
              CHECK(there.at(stage) == use.buffer);
              CHECK(plan.buffers[static_cast<std::size_t>(use.buffer)].release ==
                    static_cast<int>(index) + 1);
              there.erase(stage);
            } else if (is_compute(at.what.kind)) {
              REQUIRE(there.count(stage) == 1);
              CHECK(use.buffer == there.at(stage));
              CHECK(use.mode == access::read);
            } else {
              CHECK((at.act == action::all_gather || use.buffer < 0));
            }
            CHECK(there.size() <= static_cast<std::size_t>(most));
          }
          CHECK(there.empty());
        }
      }
  }
  CHECK(shapes > 60);
  CHECK(again > shapes);
}

TEST_CASE("room for weights is as large as what is gathered at once") {
  const shape sizes{.ranks = 2, .microbatches = 8, .chunks = 3};
  const stretto::planned plain = plans_of(stretto::schedule::interleaved{}, sizes, request(0));
  for (const int most : {1, 2, 3, 4}) {
    const stretto::planned made = plans_of(stretto::schedule::interleaved{}, sizes, request(most));
    REQUIRE(made.answer().ok());
    for (std::size_t rank = 0; rank < 2; ++rank)
      CHECK(made.plans()[rank].arena_bytes ==
            plain.plans()[rank].arena_bytes + 192 * std::min(most, 3));
  }
}

TEST_CASE("forwards alone gather weights, and sum nothing") {
  const shape sizes{.ranks = 3, .microbatches = 4, .chunks = 2};
  const stretto::schedule::inference forwards;
  const stretto::planned made = plans_of(forwards, sizes, request(1));
  REQUIRE(made.answer().ok());
  for (const plan_view& plan : made.plans()) {
    CHECK(plan.groups.size() == 6);  // each of a rank's stages
    std::map<job_kind, int> count;
    for (const instruction& at : plan.instructions) ++count[at.what.kind];
    CHECK(count[job_kind::unshard] == count[job_kind::reshard]);
    CHECK(count[job_kind::unshard] == count[job_kind::all_gather]);
    CHECK(count[job_kind::unshard] >= 2);
    CHECK(count[job_kind::reduce_grad] + count[job_kind::all_reduce] + count[job_kind::optimizer] ==
          0);
  }
  // Nor do those that train without an optimizer.
  stretto::plan_request trial = request(1);
  trial.train = false;
  const stretto::planned tried =
      plans_of(stretto::schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 4}, trial);
  REQUIRE(tried.answer().ok());
  for (const instruction& at : tried.plans()[0].instructions) {
    CHECK(at.what.kind != job_kind::reduce_grad);
    CHECK(at.what.kind != job_kind::all_reduce);
  }
  // Replicas that each have all weights do nothing together.
  const stretto::planned whole = plans_of(forwards, sizes, request(0));
  REQUIRE(whole.answer().ok());
  CHECK(whole.plans()[0].groups.empty());
  // Those of several workers are gathered by each shard's replicas.
  const stretto::shared workers(made.plans(), 2, 3);
  CHECK(workers.answer().ok());
  CHECK(workers.plans().size() == 18);
}

TEST_CASE("what cannot be gathered is refused") {
  const shape sizes{.ranks = 2, .microbatches = 4, .chunks = 2};
  const auto why = [&](const auto& schedule, const stretto::plan_request& asked) {
    const stretto::verdict found = plans_of(schedule, sizes, asked).answer();
    CHECK(found.what == stretto::fault::unsupported);
    return found.why;
  };
  stretto::plan_request alone = request(2);
  alone.data_parallel = false;
  CHECK(why(stretto::schedule::interleaved{}, alone) == reason::nothing_to_gather);
  CHECK(why(stretto::schedule::inference{}, alone) == reason::nothing_to_gather);
  CHECK(why(stretto::schedule::interleaved{}, request(-1)) == reason::too_few_gathered);
  CHECK(why(stretto::schedule::dualpipe_v{}, request(1)) == reason::too_few_gathered);
  stretto::plan_request large = request(2);
  large.stages[0].weights = std::int64_t{1} << 41;
  CHECK(why(stretto::schedule::interleaved{}, large) == reason::weights_out_of_range);
  // The memory that they take counts.
  const stretto::job_table roomy(2, 2, {.memory_unshard = 5});
  std::vector<std::int64_t> limits{100, 100};
  stretto::job_table_view limited = roomy.view();
  const auto least_limit = [&](int gathered) {
    for (std::int64_t limit = 1;; ++limit) {
      limits.assign(2, limit);
      limited.limit = limits;
      const stretto::planned made(stretto::schedule::interleaved{}, sizes, limited,
                                  stretto::overlap::separate{}, request(gathered));
      if (made.answer().what != stretto::fault::over_limit) return limit;
    }
  };
  CHECK(least_limit(1) == least_limit(0) + 5);
  CHECK(least_limit(2) == least_limit(0) + 10);
  const stretto::planned made = plans_of(stretto::schedule::interleaved{}, sizes, request(1));
  REQUIRE(made.answer().ok());
  const stretto::shared odd(made.plans(), 1, 5);
  CHECK(std::string(to_text(odd.answer()).view()) ==
        "unsupported on rank 0, job 0UNSHARD: the weights of a stage are dealt evenly to its "
        "replicas: "
        "their bytes are a multiple of how many these are");
  CHECK(odd.plans().empty());
}

TEST_CASE("workers: the shards of a replica each gather with their like of the others") {
  const shape sizes{.ranks = 2, .microbatches = 4, .chunks = 2};
  const stretto::planned made = plans_of(stretto::schedule::interleaved{}, sizes, request(1));
  REQUIRE(made.answer().ok());
  const stretto::shared workers(made.plans(), 2, 3);
  REQUIRE(workers.plans().size() == 12);
  for (const plan_view& plan : workers.plans()) {
    CAPTURE(plan.rank);
    const int rank = plan.rank / 6, shard = plan.rank % 2;
    int gathers = 0;
    for (const instruction& at : plan.instructions) {
      if (at.act != action::all_gather) continue;
      ++gathers;
      const stretto::group_info& group = plan.groups[static_cast<std::size_t>(at.peer)];
      CHECK(group.stage == at.what.stage);
      const auto members = plan.members_of(group);
      const std::vector<std::int32_t> wanted{6 * rank + shard, 6 * rank + 2 + shard,
                                             6 * rank + 4 + shard};
      CHECK(std::equal(members.begin(), members.end(), wanted.begin(), wanted.end()));
    }
    CHECK(gathers > 2);
  }
}

TEST_CASE("of the gradients each replica sums the part that it holds, over both directions, too") {
  const shape sizes{.ranks = 4, .microbatches = 4};
  const stretto::planned made = plans_of(stretto::schedule::chimera{}, sizes, request(2));
  REQUIRE(made.answer().ok());
  for (const int replicas : {1, 2, 3, 4}) {
    CAPTURE(replicas);
    const stretto::shared workers(made.plans(), 2, replicas);
    REQUIRE(workers.answer().ok());
    for (const plan_view& plan : workers.plans()) {
      int dealt = 0, joined = 0;
      for (const instruction& at : plan.instructions) {
        if (!is_sum(at.act)) continue;
        const stretto::group_info& group = plan.groups[static_cast<std::size_t>(at.peer)];
        const auto id = static_cast<std::size_t>(plan.uses_of(at)[0].buffer);
        const bool deals = at.act == action::reduce_scatter;
        ++(deals ? dealt : joined);
        CHECK(group.data_parallel == deals);
        CHECK(plan.members_of(group).size() == static_cast<std::size_t>(deals ? replicas : 2));
        CHECK(group.elements == (deals ? 120 : 120 / replicas));
        CHECK(plan.buffers[id].bytes == 4 * group.elements);
        // The base's buffers are those of all.
        CHECK(made.plans()[static_cast<std::size_t>(plan.rank / 2 / replicas)].buffers[id].bytes ==
              480);
      }
      CHECK(dealt == 2);  // the rank's stages
      CHECK(joined == 2);
    }
  }
  const std::int64_t base = made.storage_bytes();
  CHECK(stretto::shared(made.plans(), 1, 2).storage_bytes() > base / 2);  // buffers of its own, too
  stretto::plan_request odd = request(2);
  odd.stages[0].gradients = 484;
  const stretto::planned spoilt = plans_of(stretto::schedule::chimera{}, sizes, odd);
  REQUIRE(spoilt.answer().ok());
  CHECK(stretto::shared(spoilt.plans(), 1, 1).answer().ok());
  const stretto::shared apart(spoilt.plans(), 1, 2);
  CHECK(std::string(to_text(apart.answer()).view()) ==
        "unsupported on rank 0, job 0REDUCE_GRAD: the gradients of a stage whose weights are dealt "
        "to "
        "its replicas are dealt evenly, too: they are a multiple of how many these are");
  CHECK(apart.plans().empty());
  // Where replicas have all weights each, they sum all.
  odd.gathered = 0;
  const stretto::planned whole = plans_of(stretto::schedule::chimera{}, sizes, odd);
  const stretto::shared all(whole.plans(), 1, 2);
  REQUIRE(all.answer().ok());
  for (const plan_view& plan : all.plans())
    for (const instruction& at : plan.instructions) CHECK(at.act != action::reduce_scatter);
}

TEST_CASE("a sum is of parts where replicas hold parts, and of all where they do not") {
  const shape sizes{.ranks = 2, .microbatches = 4, .chunks = 2};
  int spoilt = 0;
  for (const int gathered : {0, 2}) {
    const stretto::planned made =
        plans_of(stretto::schedule::interleaved{}, sizes, request(gathered));
    REQUIRE(made.answer().ok());
    plan_view plan = made.plans()[1];
    std::vector<instruction> list(plan.instructions.begin(), plan.instructions.end());
    plan.instructions = list;
    REQUIRE(stretto::check::as_listed(plan, made.issued()).ok());
    for (std::size_t index = 0; index < list.size(); ++index) {
      if (!is_sum(list[index].act)) continue;
      CHECK(list[index].act == (gathered > 0 ? action::reduce_scatter : action::all_reduce));
      const action before = list[index].act;
      for (const action other :
           {action::reduce_scatter, action::all_reduce, action::all_gather, action::run}) {
        list[index].act = other;
        const stretto::verdict found = stretto::check::as_listed(plan, made.issued());
        CHECK(found.ok() == (other == before));
        if (found.ok()) continue;
        CHECK(found.why == reason::not_as_listed);
        CHECK(found.step == static_cast<int>(index));
        ++spoilt;
      }
      list[index].act = before;
    }
  }
  CHECK(spoilt == 2 * 2 * 3);
}

TEST_CASE("digests differ by whether weights are gathered, how many at once, and their size") {
  const shape sizes{.ranks = 2, .microbatches = 4, .chunks = 2};
  std::set<std::uint64_t> digests;
  stretto::plan_request larger = request(1);
  larger.stages[0].weights = 256;
  for (const stretto::plan_request& asked : {request(0), request(1), request(2), larger}) {
    const stretto::planned made = plans_of(stretto::schedule::interleaved{}, sizes, asked);
    digests.insert(made.plans()[0].digest);
  }
  CHECK(digests.size() == 4);
}

TEST_CASE("a list in which a gather is missing, doubled or elsewhere is refused") {
  const shape sizes{.ranks = 4, .microbatches = 8, .chunks = 2};
  const stretto::planned made = plans_of(stretto::schedule::interleaved{}, sizes, request(1));
  REQUIRE(made.answer().ok());
  long refused = 0;
  const auto judged = [&](const std::function<void(std::vector<job>&)>& spoil) {
    stretto::job_lists copy(4, made.lists().stride + 2);
    auto sink = copy.sink();
    for (int rank = 0; rank < 4; ++rank) {
      std::vector<job> row(made.lists().row(rank).begin(), made.lists().row(rank).end());
      if (rank == 1) spoil(row);
      for (const job& work : row) sink.push(rank, work);
    }
    return unit::judged(made, copy.rows());
  };
  REQUIRE(judged([](auto&) {}).ok());
  const std::size_t count = made.lists().row(1).size();
  for (std::size_t at = 0; at < count; ++at) {
    const job_kind kind = made.lists().row(1)[at].kind;
    if (!is_gather(kind) && kind != job_kind::all_gather) continue;
    CAPTURE(at);
    const auto here = static_cast<std::ptrdiff_t>(at);
    CHECK_FALSE(judged([&](auto& row) { row.erase(row.begin() + here); }).ok());
    CHECK_FALSE(judged([&](auto& row) { row.insert(row.begin() + here, row[at]); }).ok());
    CHECK_FALSE(judged([&](auto& row) { row[at].stage = row[at].stage == 1 ? 5 : 1; }).ok());
    CHECK_FALSE(judged([&](auto& row) { ++row[at].microbatch; }).ok());
    CHECK_FALSE(judged([&](auto& row) { std::swap(row[at], row[at + 1]); }).ok());
    refused += 5;
  }
  CHECK(refused > 100);
}

TEST_CASE("a plan whose job reads no weights, or another stage's, is refused") {
  const shape sizes{.ranks = 2, .microbatches = 4, .chunks = 2};
  const stretto::planned made = plans_of(stretto::schedule::interleaved{}, sizes, request(2));
  REQUIRE(made.answer().ok());
  plan_view plan = made.plans()[0];
  REQUIRE(stretto::check::own_buffers(plan).ok());
  std::vector<stretto::buffer_use> uses(plan.uses.begin(), plan.uses.end());
  plan.uses = uses;
  int spoilt = 0;
  for (std::size_t index = 0; index < plan.instructions.size(); ++index) {
    const instruction& at = plan.instructions[index];
    for (std::int32_t use = at.first_use; use < at.first_use + at.use_count; ++use) {
      stretto::buffer_use& one = uses[static_cast<std::size_t>(use)];
      if (one.role != buffer_role::weights) continue;
      const stretto::buffer_use before = one;
      const auto refused = [&] {
        const stretto::verdict found = stretto::check::own_buffers(plan);
        CHECK(found.why == reason::buffer_of_another);
        CHECK(found.step == static_cast<int>(index));
        one = before;
        ++spoilt;
      };
      one.role = buffer_role::workspace, refused();
      one.mode = before.mode == access::read ? access::read_write : access::read, refused();
      for (const stretto::buffer_use& other : plan.uses)
        if (other.role == buffer_role::weights &&
            plan.buffers[static_cast<std::size_t>(other.buffer)].stage != at.what.stage) {
          one.buffer = other.buffer;
          break;
        }
      refused();
    }
  }
  CHECK(spoilt > 60);
}
