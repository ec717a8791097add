#include "stretto/check/byte_owners.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

using stretto::check::detail::byte_owners;

namespace {

//! The owner of each byte by itself; nobody: -1.
class owners_of_bytes {
 public:
  explicit owners_of_bytes(std::int64_t bytes) : owner_(static_cast<std::size_t>(bytes), -1) {}

  std::set<std::int32_t> take(std::int64_t begin, std::int64_t end, std::int32_t owner) {
    std::set<std::int32_t> before;
    for (std::int64_t byte = begin; byte < end; ++byte) {
      std::int32_t& its = owner_[static_cast<std::size_t>(byte)];
      if (its >= 0) before.insert(its);
      its = owner;
    }
    return before;
  }
  std::int64_t first() const {
    std::int64_t byte = 0;
    while (owner_[static_cast<std::size_t>(byte)] < 0) ++byte;
    return byte;
  }
  std::int64_t last() const {
    auto byte = static_cast<std::int64_t>(owner_.size()) - 1;
    while (owner_[static_cast<std::size_t>(byte)] < 0) --byte;
    return byte;
  }
  std::int32_t of(std::int64_t byte) const { return owner_[static_cast<std::size_t>(byte)]; }

 private:
  std::vector<std::int32_t> owner_;
};

}  // namespace

TEST_CASE("who loses bytes is told of each buffer whose bytes are taken") {
  std::mt19937 random(11);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(end));
  };
  int beneath = 0;  // buffers below where the first one began
  int across = 0;   // and across
  for (int round = 0; round < 2000; ++round) {
    const std::int64_t bytes = 1 + below(400);
    // Mostly sizes that repeat, as those of buffers do.
    const std::int64_t unit = round % 3 == 0 ? 1 : 1 + below(16);
    const int buffers = 1 + static_cast<int>(below(40));
    byte_owners mine(buffers);
    owners_of_bytes each(bytes);
    std::int64_t start = -1;
    bool any = false;
    for (std::int32_t buffer = 0; buffer < buffers; ++buffer) {
      const std::int64_t begin = below(bytes) / unit * unit;
      std::int64_t end = begin + (round % 2 == 0 ? unit : unit * below(5));
      if (end > bytes) end = bytes;
      std::set<std::int32_t> told;
      mine.take(begin, end, buffer, [&](std::int32_t owner) { told.insert(owner); });
      REQUIRE(told == each.take(begin, end, buffer));
      any = any || begin < end;
      if (!any) continue;
      if (start < 0) start = begin;
      beneath += begin < start && end <= start && begin < end;
      across += begin < start && end > start;
      REQUIRE(mine.lowest().begin == each.first());
      REQUIRE(mine.lowest().owner == each.of(each.first()));
      REQUIRE(mine.highest().end == each.last() + 1);
      REQUIRE(mine.highest().owner == each.of(each.last()));
    }
    if (!any) CHECK(mine.highest().owner == -1);
  }
  CHECK(beneath > 1000);
  CHECK(across > 500);
}

TEST_CASE("bytes below the arena are told of, too") {
  byte_owners mine(3);
  const auto nobody = [](std::int32_t) { FAIL("somebody had these bytes"); };
  mine.take(64, 128, 0, nobody);
  mine.take(-64, 0, 1, nobody);
  CHECK(mine.lowest().begin == -64);
  CHECK(mine.lowest().owner == 1);
  std::set<std::int32_t> told;
  mine.take(-128, 256, 2, [&](std::int32_t owner) { told.insert(owner); });
  CHECK(told == std::set<std::int32_t>{0, 1});
  CHECK(mine.lowest().owner == 2);
  CHECK(mine.highest().owner == 2);
}
