// Rule spare, by hand: waits for sends, of two ranks.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/check/plan_order.hpp"
#include "stretto/check/spare.hpp"

namespace check_spare_sends {
namespace {

using stretto::access;
using stretto::action;
using stretto::fault;

constexpr auto reads = access::read;
constexpr auto writes = access::write;
constexpr std::int32_t room = 6;

struct use {
  std::int32_t buffer;
  access mode;
};

//! One rank's plan. Buffer i lies at 64 i.
struct by_hand {
  std::vector<stretto::instruction> list{};
  std::vector<stretto::event_wait> waits{};
  std::vector<stretto::buffer_use> uses{};
  std::vector<std::int32_t> released{};
  std::vector<stretto::buffer> buffers{};
  std::int32_t events = 0;

  //! @param behind  instructions, which then record an event
  void add(int stream, const std::vector<std::size_t>& behind, const std::vector<use>& touches,
           action act = action::run, const std::vector<std::int32_t>& frees = {}) {
    stretto::instruction at{};
    at.act = act;
    at.stream = static_cast<std::uint8_t>(stream);
    at.first_wait = static_cast<std::int32_t>(waits.size());
    at.first_use = static_cast<std::int32_t>(uses.size());
    at.first_release = static_cast<std::int32_t>(released.size());
    at.wait_count = static_cast<std::int16_t>(behind.size());
    at.use_count = static_cast<std::int32_t>(touches.size());
    at.release_count = static_cast<std::int32_t>(frees.size());
    for (const std::size_t index : behind) {
      if (list[index].record < 0) list[index].record = events++;
      waits.push_back({list[index].record, stretto::wait_reason::data, false});
    }
    for (const use& one : touches) {
      uses.push_back({.buffer = one.buffer, .mode = one.mode});
      while (static_cast<std::size_t>(one.buffer) >= buffers.size())
        buffers.push_back({.offset = 64 * static_cast<std::int64_t>(buffers.size()),
                           .bytes = 64,
                           .release = room});
    }
    released.insert(released.end(), frees.begin(), frees.end());
    list.push_back(at);
  }
  stretto::plan_view view(int rank) {
    for (stretto::instruction& at : list) at.peer = 1 - rank;
    return {.rank = rank,
            .ranks = 2,
            .events = events,
            .arena_bytes = 1 << 20,
            .instructions = list,
            .waits = waits,
            .uses = uses,
            .released = released,
            .buffers = buffers};
  }
};

TEST_CASE("what gives back and touches nothing waits for no message that it does not give back") {
  by_hand mine, other;
  mine.add(0, {}, {{0, writes}});
  mine.add(2, {}, {{1, writes}});
  mine.add(2, {}, {{1, reads}}, action::send);
  mine.add(1, {0}, {{0, reads}});
  mine.add(0, {}, {});
  mine.add(0, {2, 3}, {}, action::run, {0});
  other.add(1, {}, {{0, writes}}, action::receive);
  const std::array plans{mine.view(0), other.view(1)};
  std::vector<stretto::lowering::clock> clocks(2 * room);
  stretto::check::plan_order watch(plans, clocks.data(), room);
  for (const int index : {0, 1}) watch.ran(0, index, {});
  watch.met(0, 2, 1, 0);
  for (const int index : {3, 4, 5}) watch.ran(0, index, {});
  REQUIRE(watch.found().ok());
  const auto found = stretto::check::spare(plans, {clocks.data(), 2, room}, 0);
  CHECK(found.what == fault::idle_event);
  CHECK(found.step == 5);
}

TEST_CASE("a message that the peer is known to have taken need not be waited for") {
  // Two sends on streams of their own; what comes back was made of the second, before which the
  // peer's one stream had taken the first.
  for (const bool send_first : {true, false}) {
    by_hand mine, other;
    mine.add(0, {}, {{0, writes}});
    mine.add(0, {}, {{1, writes}});
    mine.add(2, {0}, {{0, reads}}, action::send);
    mine.add(3, {1}, {{1, reads}}, action::send);
    mine.add(1, {}, {{2, writes}}, action::receive);
    mine.add(0, send_first ? std::vector<std::size_t>{2, 4} : std::vector<std::size_t>{4, 2},
             {{0, writes}, {2, reads}});
    other.add(1, {}, {{0, writes}}, action::receive);
    other.add(1, {}, {{1, writes}}, action::receive);
    other.add(0, {1}, {{2, writes}});
    other.add(2, {2}, {{2, reads}}, action::send);
    const std::array plans{mine.view(0), other.view(1)};
    std::vector<stretto::lowering::clock> clocks(2 * room);
    stretto::check::plan_order watch(plans, clocks.data(), room);
    for (const int index : {0, 1}) watch.ran(0, index, {});
    watch.met(0, 2, 1, 0);
    watch.met(0, 3, 1, 1);
    watch.ran(1, 2, {});
    watch.met(1, 3, 0, 4);
    watch.ran(0, 5, {});
    REQUIRE(watch.found().ok());
    const auto found = stretto::check::spare(plans, {clocks.data(), 2, room}, 0);
    CHECK(found.what == fault::idle_event);
    CHECK(found.step == 5);
  }
}

TEST_CASE("a message waits for who was in its place, if that has any bytes") {
  const auto judged = [](std::int64_t offset, std::int64_t before, std::int64_t bytes,
                         access job, access receive) {
    by_hand mine, other;
    mine.add(0, {}, {{0, job}});
    mine.add(1, {0}, {{1, receive}}, action::receive);
    mine.buffers[0].bytes = before;
    mine.buffers[1].offset = offset;
    mine.buffers[1].bytes = bytes;
    other.add(2, {}, {{0, reads}}, action::send);
    other.buffers[0].bytes = bytes;
    const std::array plans{mine.view(0), other.view(1)};
    std::vector<stretto::lowering::clock> clocks(2 * room);
    stretto::check::plan_order watch(plans, clocks.data(), room);
    watch.ran(0, 0, {});
    watch.met(1, 0, 0, 1);
    REQUIRE(watch.found().ok());
    return stretto::check::spare(plans, {clocks.data(), 2, room}, 0).what;
  };
  CHECK(judged(0, 64, 64, writes, writes) == fault::none);
  CHECK(judged(0, 64, 64, reads, writes) == fault::none);
  CHECK(judged(32, 64, 64, writes, writes) == fault::none);
  CHECK(judged(64, 64, 64, writes, writes) == fault::idle_event);
  CHECK(judged(0, 0, 64, writes, writes) == fault::idle_event);
  CHECK(judged(0, 64, 0, writes, writes) == fault::idle_event);
  CHECK(judged(0, 64, 64, reads, reads) == fault::idle_event);
}

}  // namespace
}  // namespace check_spare_sends
