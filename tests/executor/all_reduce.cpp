// Sums over groups of ranks: in the order of the ranks, the same bits for all.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "failures.hpp"
#include "plan_builder.hpp"
#include "stretto/executor/callbacks.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

//! Numbers of very different size, so that another order of summing gives other bits.
template <class Element>
Element term(int rank, std::size_t at, std::int64_t step) {
  const Element sizes[] = {Element(1e6), Element(1), Element(-1e6), Element(1e-3), Element(3.7)};
  const auto which = static_cast<std::size_t>(rank + static_cast<int>(at % 5)) % 5;
  return sizes[which] * (Element(1) + Element(at) / Element(7)) + Element(rank + step);
}

template <class Element>
Element sum(const std::vector<std::int32_t>& ranks, std::size_t at, std::int64_t step) {
  Element total = term<Element>(ranks[0], at, step);
  for (std::size_t next = 1; next < ranks.size(); ++next)
    total += term<Element>(ranks[next], at, step);
  return total;
}

struct group {
  std::vector<std::int32_t> ranks;  // ascending
  std::int64_t elements;
};

//! All ranks sum over the groups that they belong to, each on a stream of its own.
template <class Element>
void check_sums(int ranks, const std::vector<group>& groups, executor::options with) {
  std::vector<plan_builder> plans;
  for (int r = 0; r < ranks; ++r) {
    plan_builder plan(r, ranks, {"compute", "one", "two", "three"});
    int index = 0;
    for (const group& each : groups) {
      // Members are listed backwards: the order of the sum is that of the ranks all the same.
      plan.add_group({each.ranks.rbegin(), each.ranks.rend()}, each.elements, sizeof(Element) == 8);
      const bool member = std::count(each.ranks.begin(), each.ranks.end(), r) > 0;
      if (member) {
        const std::int64_t bytes = each.elements * static_cast<std::int64_t>(sizeof(Element));
        const int where = plan.add_buffer(buffer_role::collective, index, 0, bytes);
        const int ready = plan.run({r, index, 0, job_kind::reduce_grad}, 0,
                                   {{where, buffer_role::collective, access::write}});
        const int done = plan.all_reduce(index, 1 + index % 3, where, {ready});
        plan.run({r, index, 0, job_kind::optimizer}, 0,
                 {{where, buffer_role::collective, access::read}}, {done});
      }
      ++index;
    }
    plans.push_back(plan.end());
  }
  std::atomic<int> wrong{0};
  std::atomic<int> checked{0};
  executor::job_callbacks callbacks;
  callbacks.reduce_grad = [](const executor::context& at) {
    const std::span<Element> values = at.view<Element>(buffer_role::collective);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = term<Element>(at.rank, k, at.step);
  };
  callbacks.optimizer = [&](const executor::context& at) {
    const group& mine = groups[static_cast<std::size_t>(at.what.microbatch)];
    const std::span<Element> values = at.view<Element>(buffer_role::collective, at.what.microbatch);
    if (values.size() != static_cast<std::size_t>(mine.elements)) ++wrong;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const Element expected = sum<Element>(mine.ranks, k, at.step);
      if (std::memcmp(&values[k], &expected, sizeof expected) != 0) ++wrong;
    }
    ++checked;
  };
  executor::callback_stage stage(callbacks);
  const std::vector<executor::stage*> stages(plans.size(), &stage);
  executor::engine engine(views(plans), stages, std::move(with));
  for (int step = 0; step < 10; ++step) engine.step();
  CHECK(wrong == 0);
  std::size_t members = 0;
  for (const group& each : groups) members += each.ranks.size();
  CHECK(checked == static_cast<int>(10 * members));
}

const std::vector<group> some_groups = {{{0, 1, 2, 3}, 1000}, {{1, 3}, 17}, {{0, 1, 2, 3}, 1},
                                        {{0, 2}, 0},          {{2}, 5},     {{0, 1, 2}, 4099}};

}  // namespace

TEST_CASE("float and double sums have the bits of the sum in rank order") {
  check_sums<float>(4, some_groups, {});
  check_sums<double>(4, some_groups, {});
}

TEST_CASE("whoever comes late changes no bit") {
  for (const std::uint64_t seed : {11U, 12U}) {
    executor::options with;
    with.delay = {seed, std::chrono::microseconds(200)};
    check_sums<float>(4, some_groups, std::move(with));
  }
  for (const executor::issuing issue :
       {executor::issuing::caller, executor::issuing::thread_per_rank}) {
    executor::options with;
    with.issue = issue;
    with.host.queue_depth = 1;
    check_sums<double>(4, some_groups, std::move(with));
  }
}

TEST_CASE("a member that never comes is named") {
  std::vector<plan_builder> plans;
  for (int r = 0; r < 3; ++r) {
    plan_builder plan(r, 3, {"compute"});
    plan.add_group({0, 1, 2}, 4, false);
    const int where = plan.add_buffer(buffer_role::collective, 0, 0, 16);
    plan.run({r, 0, 0, job_kind::reduce_grad}, 0,
             {{where, buffer_role::collective, access::write}});
    plan.all_reduce(0, 0, where);
    plans.push_back(plan.end());
  }
  executor::job_callbacks callbacks;
  callbacks.reduce_grad = [](const executor::context& at) {
    while (at.rank == 2 && !at.stopped()) std::this_thread::yield();
  };
  executor::callback_stage stage(callbacks);
  executor::stage* const stages[] = {&stage, &stage, &stage};
  executor::options with;
  with.deadline = std::chrono::milliseconds(300);
  executor::engine engine(views(plans), stages, std::move(with));
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::deadline);
  CHECK(error.rank() == 2);
  CHECK(error.instruction() == 0);
}

TEST_CASE("what prepares a sum finds its own group's buffer, and what earlier ones have summed") {
  constexpr int ranks = 3;
  const job_table costs(ranks, 1);
  plan_request wanted;
  wanted.groups = {{.first = 0, .count = 2, .elements = 1},
                   {.first = 0, .count = 3, .elements = 1}};
  wanted.members = {0, 1, 2};
  const planned made(schedule::one_f_one_b{}, {.ranks = ranks, .microbatches = 3}, costs.view(),
                     overlap::separate{}, wanted);
  REQUIRE(made.answer().ok());
  const auto nothing = [](const executor::context&) {};
  std::vector<std::pair<float, float>> sums(ranks);
  executor::callback_stage stage({
      .forward = nothing,
      .backward = nothing,
      .reduce_grad =
          [](const executor::context& at) {
            const int group = at.what.microbatch;
            REQUIRE(at.collective().size() == sizeof(float));
            at.view<float>(buffer_role::collective)[0] = group == 0 ? 1.0F : 100.0F;
            if (group == 1 && at.rank < 2)
              CHECK(at.view<float>(buffer_role::collective, 0)[0] == 2.0F);
          },
      .optimizer =
          [&](const executor::context& at) {
            auto& mine = sums[static_cast<std::size_t>(at.rank)];
            if (at.rank < 2) mine.first = at.view<float>(buffer_role::collective, 0)[0];
            mine.second = at.view<float>(buffer_role::collective, 1)[0];
          },
  });
  const std::vector<executor::stage*> stages(ranks, &stage);
  executor::engine engine(made.plans(), stages);
  engine.step();
  CHECK(sums == std::vector<std::pair<float, float>>{{2, 300}, {2, 300}, {0, 300}});
}
