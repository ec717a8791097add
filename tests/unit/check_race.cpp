// Rule race-free on one rank's plans, by hand: who gives bytes back, and who takes them then.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stretto/check/plan_order.hpp"
#include "stretto/check/race_free.hpp"

namespace check_race {
namespace {

using stretto::access;
using stretto::action;
using stretto::event_wait;
using stretto::reason;
using stretto::verdict;
using stretto::wait_reason;

struct use {
  std::int32_t buffer;
  access mode;
};
constexpr auto reads = access::read;
constexpr auto writes = access::write;

//! A rank's plan. Its step ends on stream 0; other streams wait for the end of the step before.
struct by_hand {
  std::vector<stretto::instruction> list{};
  std::vector<event_wait> waits{};
  std::vector<stretto::buffer_use> uses{};
  std::vector<std::int32_t> released{};
  std::vector<stretto::buffer> buffers{};
  bool begun[8]{true};

  //! From its first use to before instruction `release`. @return which it is
  std::int32_t buffer(std::int64_t offset, std::int64_t bytes, std::int32_t first,
                      std::int32_t release) {
    buffers.push_back({.offset = offset, .bytes = bytes, .first = first, .release = release});
    return static_cast<std::int32_t>(buffers.size()) - 1;
  }
  //! @param behind  instructions that it waits for; the end records event 0, others what they are
  //! plus one
  void add(int stream, const std::vector<std::int32_t>& behind, const std::vector<use>& touches,
           const std::vector<std::int32_t>& frees = {}, action act = action::run) {
    const auto index = static_cast<std::int32_t>(list.size());
    stretto::instruction at{.what = {.microbatch = index}, .act = act};
    at.stream = static_cast<std::uint8_t>(stream);
    at.first_wait = static_cast<std::int32_t>(waits.size());
    at.first_use = static_cast<std::int32_t>(uses.size());
    at.first_release = static_cast<std::int32_t>(released.size());
    at.record = act == action::end_step ? 0 : index + 1;
    if (!begun[stream]) waits.push_back({0, wait_reason::gate, true});
    begun[stream] = true;
    for (const std::int32_t by : behind) waits.push_back({by + 1, wait_reason::data, false});
    for (const use& one : touches) uses.push_back({.buffer = one.buffer, .mode = one.mode});
    released.insert(released.end(), frees.begin(), frees.end());
    at.wait_count =
        static_cast<std::int16_t>(waits.size() - static_cast<std::size_t>(at.first_wait));
    at.use_count = static_cast<std::int32_t>(touches.size());
    at.release_count = static_cast<std::int32_t>(frees.size());
    list.push_back(at);
  }
  //! The step's end, behind all of its streams.
  void end(const std::vector<std::int32_t>& frees = {}) {
    std::vector<std::int32_t> last;
    for (int stream = 1; stream < 8; ++stream)
      for (std::size_t index = list.size(); index-- > 0;)
        if (list[index].stream == stream) {
          last.push_back(static_cast<std::int32_t>(index));
          break;
        }
    add(0, last, {}, frees, action::end_step);
  }
  verdict judged() const {
    const stretto::plan_view plan{.events = static_cast<std::int32_t>(list.size()) + 1,
                                  .arena_bytes = 1024,
                                  .instructions = list,
                                  .waits = waits,
                                  .uses = uses,
                                  .released = released,
                                  .buffers = buffers};
    const std::vector<stretto::plan_view> plans{plan};
    std::vector<stretto::lowering::clock> clocks(list.size());
    const auto stride = static_cast<int>(list.size());
    stretto::check::plan_order watch(plans, clocks.data(), stride);
    for (int index = 0; index < stride; ++index)
      watch.ran(0, index, list[static_cast<std::size_t>(index)].what);
    if (!watch.found().ok()) return watch.found();
    return stretto::check::race_free(plans, {clocks.data(), 1, stride}, 0);
  }
};

TEST_CASE("who takes bytes waits for who gives them back, as that starts") {
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    by_hand made;
    const auto old = made.buffer(0, 64, 0, 2);
    const auto other = made.buffer(64, 64, 1, 5);
    const auto fresh = made.buffer(0, 64, 3, 5);
    made.add(0, {}, {{old, writes}});
    made.add(0, {}, {{other, writes}});
    made.add(1, {1}, {},
             {old});  // and has not begun when the next one has its turn, unless waited for
    made.add(0, waits ? std::vector<std::int32_t>{2} : std::vector<std::int32_t>{},
             {{fresh, writes}});
    made.add(0, {}, {{fresh, reads}, {other, reads}});
    made.end({other, fresh});
    const verdict found = made.judged();
    CHECK(found.ok() == waits);
    if (waits) continue;
    CHECK(found.why == reason::overwritten_while_read);
    CHECK(found.step == 3);
    CHECK(found.other == made.list[2].what);
  }
}

TEST_CASE("to wait for what stands before it on its stream is not to wait for who gives back") {
  for (const std::int32_t behind : {1, 2}) {
    CAPTURE(behind);
    by_hand made;
    const auto old = made.buffer(0, 64, 0, 2);
    const auto fresh = made.buffer(0, 64, 3, 4);
    made.add(0, {}, {{old, writes}});
    made.add(1, {0}, {});
    made.add(1, {}, {}, {old});
    made.add(0, {behind}, {{fresh, writes}});
    made.end({fresh});
    CHECK(made.judged().ok() == (behind == 2));
  }
}

TEST_CASE("what comes behind who gives back does not know for it") {
  by_hand made;
  const auto old = made.buffer(0, 64, 0, 3);
  made.add(0, {}, {{old, writes}});
  made.add(1, {0}, {{old, reads}});
  made.add(2, {0}, {{old, reads}});  // gives it back as it ends
  made.add(0, {1, 2}, {}, {old});
  made.end();
  CHECK(made.judged().why == reason::released_early);
  CHECK(made.judged().step == 3);
}

TEST_CASE("bytes of readers on several streams are taken behind who gives them back as it ends") {
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    by_hand made;
    const auto old = made.buffer(0, 64, 0, 4);
    const auto fresh = made.buffer(0, 64, 4, 6);
    made.add(0, {}, {{old, writes}});
    made.add(1, {0}, {{old, reads}});
    made.add(2, {0}, {{old, reads}});
    made.add(3, {1, 2}, {{old, reads}});
    made.add(0, waits ? std::vector<std::int32_t>{3} : std::vector<std::int32_t>{},
             {{fresh, writes}}, {old});
    made.end();
    const verdict found = made.judged();
    CHECK(found.ok() == waits);
    if (!waits) CHECK(found.why == reason::overwritten_while_read);
  }
}

TEST_CASE("the first to touch a buffer writes it, and the last comes before its release") {
  for (const access mode : {reads, access::read_write, writes}) {
    by_hand made;
    const auto one = made.buffer(0, 64, 0, 2);
    made.add(0, {}, {{one, mode}});
    made.end();
    CHECK(made.judged().ok() == (mode == writes));
    if (mode != writes) CHECK(made.judged().why == reason::read_before_write);
  }
  by_hand late;
  const auto one = late.buffer(0, 64, 0, 1);
  late.add(0, {}, {{one, writes}});
  late.add(0, {}, {{one, reads}}, {one});
  late.end();
  CHECK(late.judged().why == reason::not_released);
  CHECK(late.judged().step == 1);
}

TEST_CASE("another stream's end is not this one's") {
  by_hand made;
  made.add(0, {}, {});
  made.add(1, {}, {});
  made.add(2, {}, {});
  made.end();
  REQUIRE(made.judged().ok());
  for (const std::int32_t only : {2, 3}) {  // events, one more than their instructions
    by_hand less = made;
    std::erase_if(less.waits, [&](const event_wait& wait) {
      return !wait.previous_step && wait.event == only;
    });
    --less.list.back().wait_count;
    CHECK(less.judged().why == reason::not_released);
    CHECK(less.judged().step == only - 1);
  }
}

TEST_CASE("who gives them back as it ends is waited for by who takes them") {
  for (const int giver : {0, 1})
    for (const bool waits : {false, true}) {
      CAPTURE(giver);
      CAPTURE(waits);
      by_hand made;
      const auto old = made.buffer(0, 64, 0, 2);
      const auto fresh = made.buffer(0, 64, 3, 4);
      made.add(0, {}, {{old, writes}});
      made.add(giver, giver == 0 ? std::vector<std::int32_t>{} : std::vector<std::int32_t>{0},
               {{old, reads}});
      made.add(2, {}, {}, {old});  // it need not know of it, and does nothing with it
      made.add(0, waits && giver == 1 ? std::vector<std::int32_t>{1} : std::vector<std::int32_t>{},
               {{fresh, writes}});
      made.end({fresh});
      CHECK(made.judged().ok() == (waits || giver == 0));
    }
}

TEST_CASE("what gives bytes back knows of all who touched them") {
  for (const bool knows : {false, true})
    for (const bool as_ends : {false, true}) {
      CAPTURE(knows);
      CAPTURE(as_ends);
      by_hand made;
      const auto old = made.buffer(0, 64, 0, 4);
      made.add(0, {}, {{old, writes}});
      made.add(1, {0}, {{old, reads}});
      made.add(2, {0}, {{old, reads}});
      const std::vector<std::int32_t> behind =
          knows ? std::vector<std::int32_t>{1, 2} : std::vector<std::int32_t>{1};
      // The one before the release, if it touches the buffer, or else the one behind it.
      made.add(0, as_ends ? behind : std::vector<std::int32_t>{},
               as_ends ? std::vector<use>{{old, reads}} : std::vector<use>{});
      made.add(0, as_ends ? std::vector<std::int32_t>{} : behind, {}, {old});
      made.end();
      CHECK(made.judged().ok() == knows);
      if (!knows) CHECK(made.judged().why == reason::released_early);
    }
}

TEST_CASE("readers on several streams are all waited for, and each knows of the writer") {
  for (int without = -1; without < 3; ++without) {
    CAPTURE(without);
    by_hand made;
    const auto one = made.buffer(0, 64, 0, 6);
    made.add(0, {}, {{one, writes}});
    for (int stream = 1; stream <= 3; ++stream) made.add(stream, {0}, {{one, reads}});
    std::vector<std::int32_t> behind;
    for (int reader = 0; reader < 3; ++reader)
      if (reader != without) behind.push_back(reader + 1);
    made.add(0, behind, {{one, access::read_write}});
    made.add(0, {}, {{one, reads}});
    made.end({one});
    CHECK(made.judged().ok() == (without < 0));
    by_hand other;
    const auto two = other.buffer(0, 64, 0, 5);
    other.add(0, {}, {{two, writes}});
    for (int stream = 1; stream <= 3; ++stream)
      other.add(stream,
                stream - 1 == without ? std::vector<std::int32_t>{} : std::vector<std::int32_t>{0},
                {{two, reads}});
    other.end();
    CHECK(other.judged().ok() == (without < 0));
    if (without >= 0) CHECK(other.judged().why == reason::read_before_write);
  }
}

TEST_CASE("a write behind a write is behind the readers between them") {
  for (const bool waits : {false, true}) {
    by_hand made;
    const auto one = made.buffer(0, 64, 0, 4);
    made.add(0, {}, {{one, writes}});
    made.add(1, {0}, {{one, reads}});
    made.add(2, {0}, {{one, reads}});
    made.add(1, waits ? std::vector<std::int32_t>{2} : std::vector<std::int32_t>{},
             {{one, writes}});
    made.end({one});
    CHECK(made.judged().ok() == waits);
    if (!waits) CHECK(made.judged().why == reason::overwritten_while_read);
  }
}

TEST_CASE("a stream's last is waited for before the step ends, by somebody of this step") {
  by_hand made;
  made.add(0, {}, {});
  made.add(1, {}, {});
  made.end();
  REQUIRE(made.judged().ok());
  by_hand nobody = made;
  --nobody.list.back().wait_count;
  nobody.waits.pop_back();
  CHECK(nobody.judged().why == reason::not_released);
  nobody = made;
  nobody.waits.back().previous_step = true;
  CHECK(nobody.judged().why == reason::not_released);
  nobody = made;
  nobody.list[1].record = -1;
  CHECK_FALSE(nobody.judged().ok());
}

TEST_CASE("what waits for some other event of the step before may run before its end") {
  by_hand made;
  made.add(0, {}, {});
  made.add(1, {}, {});
  made.end();
  made.waits[0].event = 2;  // its own, of the step before
  CHECK(made.judged().why == reason::overwritten_while_read);
}

}  // namespace
}  // namespace check_race
