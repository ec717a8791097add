// Rule spare, by hand: waits between readers, and for the start of what nobody need wait for.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/check/plan_order.hpp"
#include "stretto/check/race_free.hpp"
#include "stretto/check/resident.hpp"
#include "stretto/check/spare.hpp"

namespace check_spare {
namespace {

using stretto::access;
using stretto::action;
using stretto::event_wait;
using stretto::fault;
using stretto::verdict;
using stretto::wait_reason;

constexpr auto reads = access::read;
constexpr auto writes = access::write;

event_wait end_of(std::int32_t index) {
  return {2 * index, wait_reason::data, false};
}
event_wait start_of(std::int32_t index) {
  return {2 * index + 1, wait_reason::starts_before, false};
}

struct use {
  std::int32_t buffer;
  access mode;
};

//! Ops of one job, which the rank's last ends; instruction i records event 2 i as it ends and 2 i +
//! 1 as it starts, if anybody waits for these.
struct by_hand {
  std::vector<stretto::instruction> list{};
  std::vector<stretto::op_part> parts{};
  std::vector<event_wait> waits{};
  std::vector<stretto::buffer_use> uses{};
  std::vector<stretto::buffer> buffers{};

  void op(int stream, const std::vector<event_wait>& behind, const std::vector<use>& touches = {},
          int holds = 0) {
    stretto::instruction at{};
    at.stream = static_cast<std::uint8_t>(stream);
    at.first_wait = static_cast<std::int32_t>(waits.size());
    at.first_use = static_cast<std::int32_t>(uses.size());
    at.wait_count = static_cast<std::int16_t>(behind.size());
    at.use_count = static_cast<std::int32_t>(touches.size());
    waits.insert(waits.end(), behind.begin(), behind.end());
    for (const use& one : touches) {
      uses.push_back({.buffer = one.buffer, .mode = one.mode});
      while (static_cast<std::size_t>(one.buffer) >= buffers.size())
        buffers.push_back({.offset = 64 * static_cast<std::int64_t>(buffers.size()),
                           .bytes = 64,
                           .release = 1 << 20});
    }
    list.push_back(at);
    parts.push_back({.op = static_cast<std::int16_t>(parts.size()),
                     .holds = static_cast<std::int16_t>(holds),
                     .ends = 0});
  }
  //! Events that are waited for, in their order.
  verdict judged() {
    parts.back().ends = 1;
    std::vector<std::int32_t> number(2 * list.size(), -1);
    std::vector<event_wait> named = waits;
    std::int32_t events = 0;
    for (event_wait& wait : named) {
      std::int32_t& mine = number[static_cast<std::size_t>(wait.event)];
      if (mine < 0) mine = events++;
      wait.event = mine;
    }
    for (std::size_t index = 0; index < list.size(); ++index) {
      list[index].record = number[2 * index];
      parts[index].started = number[2 * index + 1];
    }
    const std::vector<stretto::plan_view> plans{{.events = events,
                                                 .arena_bytes = 1 << 20,
                                                 .instructions = list,
                                                 .parts = parts,
                                                 .waits = named,
                                                 .uses = uses,
                                                 .buffers = buffers}};
    std::vector<stretto::lowering::clock> clocks(list.size());
    const auto stride = static_cast<int>(list.size());
    stretto::check::plan_order watch(plans, clocks.data(), stride);
    watch.ran(0, 0, list[0].what);
    if (!watch.found().ok()) return watch.found();
    return stretto::check::spare(plans, {clocks.data(), 1, stride}, 0);
  }
};

TEST_CASE("who reads need not wait for who reads, but a writer for either") {
  for (const access mode : {reads, access::read_write}) {
    by_hand made;
    made.op(0, {}, {{0, writes}});
    made.op(1, {end_of(0)}, {{0, reads}});
    made.op(2, {end_of(0), end_of(1)}, {{0, mode}});
    const verdict found = made.judged();
    if (mode == reads) {
      CHECK(found.what == fault::idle_event);
      CHECK(found.step == 2);
    } else {
      // Who waits for the reader knows of the writer.
      CHECK(found.what == fault::idle_event);
      by_hand one;
      one.op(0, {}, {{0, writes}});
      one.op(1, {end_of(0)}, {{0, reads}});
      one.op(2, {end_of(1)}, {{0, mode}});
      CHECK(one.judged().ok());
    }
  }
}

TEST_CASE("readers of what the other does not touch need not wait, wherever these stand") {
  by_hand made;
  made.op(0, {}, {{0, writes}, {1, writes}});
  made.op(1, {end_of(0)}, {{0, reads}, {2, writes}});
  made.op(2, {end_of(0)}, {{0, reads}, {1, reads}});
  CHECK(made.judged().ok());
  by_hand more;
  more.op(0, {}, {{0, writes}, {1, writes}});
  more.op(1, {end_of(0)}, {{2, writes}, {0, reads}});
  more.op(2, {end_of(1)}, {{0, reads}, {1, reads}});
  CHECK(more.judged().what == fault::idle_event);
}

TEST_CASE(
    "the start of what holds multiprocessors is waited for once, by what computes, if it must") {
  const auto with = [](int stream, const std::vector<event_wait>& behind, int holds,
                       const std::vector<event_wait>& later = {}) {
    by_hand made;
    made.op(1, {}, {}, holds);
    made.op(1, {}, {}, holds);
    made.op(stream, behind);
    made.op(0, later);
    return made.judged();
  };
  CHECK(with(0, {start_of(1)}, 8).ok());
  CHECK(with(0, {start_of(0)}, 8).ok());  // who does not wait for the other breaks rule resident
  CHECK(with(2, {start_of(1)}, 8).what == fault::idle_event);                 // computes nothing
  CHECK(with(0, {start_of(1)}, 0).what == fault::idle_event);                 // holds none
  CHECK(with(0, {start_of(1)}, 8, {start_of(1)}).what == fault::idle_event);  // once more
  CHECK(with(0, {start_of(1)}, 8, {start_of(0)}).what == fault::idle_event);  // began before
  CHECK(with(0, {start_of(0)}, 8, {start_of(1)}).ok());
  by_hand over;  // it is over, which a wait for data says
  over.op(1, {}, {{0, writes}}, 8);
  over.op(0, {end_of(0), start_of(0)}, {{0, reads}});
  CHECK(over.judged().what == fault::idle_event);
  by_hand own;  // its own stream
  own.op(0, {}, {}, 8);
  own.op(0, {start_of(0)});
  CHECK(own.judged().what == fault::idle_event);
}

TEST_CASE("a piece waits for what those behind it need, and for what no other op does") {
  // The third of four pieces reads what the first waits for.
  const auto with = [](const auto& change) {
    by_hand made;
    made.op(0, {}, {{0, writes}});
    made.op(1, {end_of(0)}, {{1, writes}});
    for (int piece = 1; piece < 4; ++piece)
      made.op(1, {}, {{piece == 2 ? 0 : 1, piece == 2 ? reads : writes}});
    made.op(0, {end_of(4)}, {{1, writes}});
    for (std::size_t index = 1; index < 5; ++index) {
      made.parts[index].op = 1;
      made.parts[index].piece = static_cast<std::int16_t>(index - 1);
      made.parts[index].pieces = 4;
    }
    change(made);
    return made.judged();
  };
  CHECK(with([](by_hand&) {}).ok());
  const auto idle = [&](const auto& change) {
    const verdict found = with(change);
    CHECK(found.what == fault::idle_event);
    CHECK(found.step == 1);
  };
  idle([](by_hand& of) { of.uses[3] = of.uses[2]; });  // none of them does
  idle([](by_hand& of) { of.parts[3].op = 7; });
  idle([](by_hand& of) { of.list[3].what.microbatch = 1; });
  // Those before it are not behind it.
  idle([](by_hand& of) {
    for (std::size_t index = 1; index < 5; ++index)
      of.parts[index].piece = static_cast<std::int16_t>(4 - index);
  });
  // The op's next run is another one.
  idle([](by_hand& of) {
    for (std::size_t index = 1; index < 5; ++index) {
      of.parts[index].piece = static_cast<std::int16_t>((index - 1) % 2);
      of.parts[index].pieces = 2;
    }
  });
}

}  // namespace
}  // namespace check_spare
