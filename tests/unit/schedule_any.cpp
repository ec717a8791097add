// schedule::any does what the schedule in it does, with its options; by_name finds every schedule.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/by_name.hpp"
#include "stretto/schedule/merged.hpp"

namespace {

using stretto::job_table;
using stretto::shape;
using stretto::schedule::any;

constexpr shape shapes[] = {{4, 8, 1}, {4, 8, 2}, {3, 7, 3}, {2, 4, 1, 2}, {0, 4, 1}, {4, -1, 2}};

//! The jobs of all ranks, rank by rank; what emit says.
template <class Schedule>
std::vector<stretto::job> jobs(const Schedule& schedule, const shape& sizes,
                               const job_table& costs, stretto::verdict& answer) {
  stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
  stretto::job_sink out = lists.sink();
  answer = schedule.emit(sizes, costs.view(), out);
  std::vector<stretto::job> made;
  for (int rank = 0; rank < sizes.ranks; ++rank)
    made.insert(made.end(), out.items + rank * out.stride,
                out.items + rank * out.stride + out.counts[rank]);
  return made;
}

template <class Schedule>
void check_same(const Schedule& schedule, const any& held) {
  CAPTURE(std::string(held.name));
  CHECK(held.name == Schedule::name);
  CHECK(held.forward_only == (held.name == "inference"));
  CHECK(held.placed() == schedule.placed());
  for (const shape& sizes : shapes) {
    CAPTURE(sizes.ranks);
    CAPTURE(sizes.chunks);
    CHECK(held.supports(sizes) == schedule.supports(sizes));
    if (!schedule.supports(sizes).ok()) continue;
    CHECK(held.capacity(sizes) == schedule.capacity(sizes));
    job_table costs(sizes.ranks, stretto::place(schedule.placed(), sizes).chunks,
                    {.forward = 3, .backward_input = 4, .backward_weight = 2});
    for (const std::int64_t limit : {stretto::unlimited, std::int64_t{1}}) {
      costs.limit.assign(static_cast<std::size_t>(sizes.ranks), limit);
      stretto::verdict one, other;
      CHECK(jobs(held, sizes, costs, one) == jobs(schedule, sizes, costs, other));
      CHECK(one == other);
    }
  }
}

}  // namespace

TEST_CASE("every schedule is in the catalogue, in order, and found by its name") {
  const std::vector<any> catalogue = stretto::schedule::catalogue();
  REQUIRE(catalogue.size() == static_cast<std::size_t>(stretto::schedule::all::size));
  auto next = catalogue.begin();
  stretto::schedule::all::for_each([&](const auto& schedule) {
    check_same(schedule, *next++);
    const auto found = stretto::schedule::by_name(schedule.name);
    REQUIRE(found.has_value());
    CHECK(found->name == schedule.name);
    CHECK(found->placed() == schedule.placed());
  });
  for (const char* nothing : {"", "1F1B", "zbv ", "gpip", "gpipee"})
    CHECK(!stretto::schedule::by_name(nothing).has_value());
}

TEST_CASE("options are kept, also by copies and when what it was made from has changed or moved") {
  using namespace stretto::schedule;
  interleaved grouped_by_six{.group = 6};
  const any held = grouped_by_six;
  any copy = any(one_f_one_b{});
  copy = held;
  grouped_by_six.group = 4;
  check_same(interleaved{.group = 6}, held);
  check_same(interleaved{.group = 6}, copy);
  const any moved = std::move(copy);
  check_same(interleaved{.group = 6}, moved);
  check_same(interleaved{.group = 6}, copy);  // it is never empty
  check_same(zb_auto{.variant = 1}, zb_auto{.variant = 1});
  check_same(zb_h1{.split = split_kind::partial}, zb_h1{.split = split_kind::partial});
  const shape sizes{4, 12, 2};
  stretto::verdict answer;
  CHECK(jobs(held, sizes, job_table(4, 2), answer) !=
        jobs(interleaved{}, sizes, job_table(4, 2), answer));
}

TEST_CASE("it has the name of its own copy, whatever becomes of what it was made from") {
  struct named : stretto::schedule::one_f_one_b {
    std::string name = "a schedule of somebody's own, whose name is made when the program runs";
  };
  std::optional<named> made(std::in_place);
  const any held = *made;
  const any copy = held;
  made->name.assign(made->name.size(), '-');
  made.reset();
  CHECK(held.name == named{}.name);
  CHECK(copy.name == held.name);
}

TEST_CASE("what may choose says how many orders it has, and scores each as the schedule does") {
  using namespace stretto::schedule;
  CHECK(any(one_f_one_b{}).orders() == 0);
  CHECK(any(zb_auto{}).orders() == zb_auto::variants);
  CHECK(any(zb_auto{.variant = 3}).orders() == 0);
  CHECK(any(merged<zbv>{}).orders() == 2);
  CHECK(any(merged<zbv>(zbv{}, merge_kind::adjacent)).orders() == 0);
  CHECK(any(zb_auto{.objective = objective_kind::span}).aim() == objective_kind::span);
  CHECK(any(zbv{}).aim() == objective_kind::flush);
  const shape sizes{3, 5, 1};
  const job_table costs(3, 1, {2, 3, 1, 1});
  for (int tried = 0; tried < zb_auto::variants; ++tried)
    CHECK(any(zb_auto{}).score(sizes, costs.view(), tried) ==
          zb_auto{}.score(sizes, costs.view(), tried));
}

TEST_CASE("it is planned as what it is; without backwards there is no optimizer") {
  for (const any& schedule : stretto::schedule::catalogue()) {
    CAPTURE(std::string(schedule.name));
    shape sizes{4, 8, 2};
    if (!schedule.supports(sizes).ok()) sizes.chunks = 1;
    const job_table costs(4, stretto::place(schedule.placed(), sizes).chunks);
    const stretto::planned made(schedule, sizes, costs.view(), stretto::overlap::separate{});
    REQUIRE(made.answer() == stretto::verdict{});
    bool updates = false;
    for (const stretto::job& work : made.lists().row(0))
      updates = updates || work.kind == stretto::job_kind::optimizer;
    CHECK(updates == !schedule.forward_only);
  }
  const shape sizes{4, 8, 2};
  const job_table costs(4, 2);
  const stretto::schedule::zbv typed;
  const stretto::planned one(any(typed), sizes, costs.view(), stretto::overlap::separate{});
  const stretto::planned other(typed, sizes, costs.view(), stretto::overlap::separate{});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(one.plans()[rank].digest == other.plans()[rank].digest);
    CHECK(std::ranges::equal(one.plans()[rank].instructions, other.plans()[rank].instructions));
    CHECK(std::ranges::equal(one.plans()[rank].waits, other.plans()[rank].waits));
    CHECK(std::ranges::equal(one.plans()[rank].buffers, other.plans()[rank].buffers));
  }
}
