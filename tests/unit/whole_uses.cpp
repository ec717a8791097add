#include "stretto/lowering/whole_uses.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace {

using stretto::access;
using stretto::buffer_role;
using stretto::byte_range;

TEST_CASE("what touches all of a buffer touches every piece of it, however many") {
  constexpr std::int32_t pieces = 40'000;
  const std::vector<stretto::buffer> buffers{{.offset = 64, .bytes = pieces}};
  const std::vector<stretto::instruction> instructions{
      {.act = stretto::action::send, .use_count = 1},
      {.use_count = 1, .release_count = 1, .first_use = 1}};
  std::vector<stretto::buffer_use> uses(2, {0, buffer_role::workspace, access::read});
  std::vector<byte_range> ranges{{0, pieces}, {pieces - 2, 2}};
  // The pieces' own uses, the last first.
  for (std::int64_t at = pieces - 1; at >= 0; --at) {
    uses.push_back({0, buffer_role::workspace, access::write});
    ranges.push_back({at, 1});
  }
  const std::vector<std::int32_t> released{0};
  stretto::plan_view plan;
  plan.instructions = instructions;
  plan.uses = uses;
  plan.ranges = ranges;
  plan.released = released;
  plan.buffers = buffers;

  const stretto::lowering::whole_uses whole({&plan, 1}, 0);
  const stretto::plan_view& made = whole.views()[0];
  REQUIRE(made.buffers.size() == pieces);
  CHECK(made.buffers[1].offset == 65);
  CHECK(made.buffers[1].bytes == 1);
  CHECK(made.instructions[0].use_count == pieces);
  CHECK(made.uses_of(made.instructions[0]).back().buffer == pieces - 1);
  CHECK(made.instructions[1].use_count == 2);
  CHECK(made.uses_of(made.instructions[1]).front().buffer == pieces - 2);
  CHECK(made.released_before(made.instructions[1]).size() == pieces);
}

}  // namespace
