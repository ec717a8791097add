// What plans say of events that are recorded as an op starts, by hand.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/check/plan_order.hpp"
#include "stretto/check/resident.hpp"

namespace check_order {
namespace {

using stretto::fault;
using stretto::reason;
using stretto::verdict;
using stretto::wait_reason;

//! Ops of one job on streams 1, 2 and 0; the last ends it.
struct by_hand {
  std::vector<stretto::instruction> list{};
  std::vector<stretto::op_part> parts{};
  std::vector<stretto::event_wait> waits{};

  void op(std::uint8_t stream, std::int32_t started,
          const std::vector<stretto::event_wait>& behind = {}, int holds = 8) {
    stretto::instruction at{.stream = stream};
    at.first_wait = static_cast<std::int32_t>(waits.size());
    at.wait_count = static_cast<std::int16_t>(behind.size());
    waits.insert(waits.end(), behind.begin(), behind.end());
    list.push_back(at);
    parts.push_back({.op = static_cast<std::int16_t>(parts.size()),
                     .holds = static_cast<std::int16_t>(holds),
                     .ends = 0,
                     .started = started});
  }
  //! @param resident  asked, too
  verdict judged() {
    parts.back().ends = 1;
    const std::vector<stretto::plan_view> plans{
        {.events = 3, .instructions = list, .parts = parts, .waits = waits}};
    std::vector<stretto::lowering::clock> clocks(list.size());
    const auto stride = static_cast<int>(list.size());
    stretto::check::plan_order watch(plans, clocks.data(), stride);
    watch.ran(0, 0, list[0].what);
    if (!watch.found().ok()) return watch.found();
    return stretto::check::resident(plans, {clocks.data(), 1, stride}, 0);
  }
};

stretto::event_wait start_of(std::int32_t event) {
  return {event, wait_reason::starts_before, false};
}

TEST_CASE("two starts are two events, and a start is no end") {
  by_hand made;
  made.op(1, 0);
  made.op(2, 1);
  made.op(0, -1, {start_of(0), start_of(1)}, 0);
  CHECK(made.judged().ok());
  by_hand same;
  same.op(1, 0);
  same.op(2, 0);
  same.op(0, -1, {start_of(0)}, 0);
  CHECK(same.judged().why == reason::read_before_write);
  CHECK(same.judged().step == 1);
  for (const bool start_first : {false, true}) {
    by_hand ends;
    ends.op(1, start_first ? 0 : -1);
    ends.op(2, start_first ? -1 : 0);
    ends.list[start_first ? 1 : 0].record = 0;
    ends.op(0, -1, {}, 0);
    CHECK(ends.judged().why == reason::read_before_write);
    CHECK(ends.judged().step == 1);
  }
}

TEST_CASE(
    "what computes waits for the start of all that holds, on each stream, the first op's, too") {
  by_hand made;
  made.op(1, 0);
  made.op(2, 1);
  made.op(0, -1, {start_of(1)}, 0);
  CHECK(made.judged().what == fault::not_resident);
  by_hand other;
  other.op(1, 0);
  other.op(2, 1);
  other.op(0, -1, {start_of(0)}, 0);
  CHECK(other.judged().what == fault::not_resident);
  // Who is told of a start on another stream is not what computes.
  by_hand elsewhere;
  elsewhere.op(1, 0);
  elsewhere.op(3, -1, {start_of(0)}, 0);
  elsewhere.op(0, -1, {}, 0);
  CHECK(elsewhere.judged().what == fault::not_resident);
  // Nor is the step before this one.
  by_hand before;
  before.op(1, 0);
  before.op(0, -1, {{0, wait_reason::starts_before, true}}, 0);
  CHECK(before.judged().what == fault::not_resident);
}

TEST_CASE("in a job's ops nobody is met, and a plan has no more of them than its list has jobs") {
  for (const auto act :
       {stretto::action::send, stretto::action::receive, stretto::action::all_reduce}) {
    by_hand made;
    made.op(0, -1, {}, 0);
    made.op(0, -1, {}, 0);
    made.list[0].act = act;
    CHECK(made.judged().why == reason::read_before_write);
    CHECK(made.judged().step == 0);
  }
  by_hand more;
  more.op(0, -1, {}, 0);
  more.op(0, -1, {}, 0);
  more.parts[0].ends = 1;  // the list has one job
  CHECK(more.judged().why == reason::duplicate);
  CHECK(more.judged().step == 1);
}

}  // namespace
}  // namespace check_order
