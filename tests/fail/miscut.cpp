// Between the two pieces of a product nobody writes 64 bytes of its result.
// expected: stretto: miscut: a piece of this op is missing, or does not begin where another ends
// expected: <stretto::fault::miscut, stretto::reason::pieces_do_not_fit, 0, 1, stretto::job_kind::forward, 0, 0>
#include <array>

#include "stretto/check/cut.hpp"
#include "stretto/plan/accepted.hpp"

struct product {
  static constexpr stretto::job forward{0, 0, 0, stretto::job_kind::forward};
  static constexpr std::array<stretto::instruction, 3> list{
      {{.what = forward, .use_count = 1, .first_use = 0},
       {.what = forward, .use_count = 1, .first_use = 1},
       {.what = forward, .use_count = 1, .first_use = 2}}};
  // In two pieces, and whoever reads all of it.
  static constexpr std::array<stretto::op_part, 3> parts{
      {{.op = 0, .piece = 0, .pieces = 2, .ends = 0},
       {.op = 0, .piece = 1, .pieces = 2, .ends = 0},
       {.op = 1}}};
  static constexpr std::array<stretto::buffer, 1> buffers{{{.bytes = 640, .release = 3}}};
  static constexpr std::array<stretto::buffer_use, 3> uses{
      {{0, stretto::buffer_role::workspace, stretto::access::write},
       {0, stretto::buffer_role::workspace, stretto::access::write},
       {0, stretto::buffer_role::workspace, stretto::access::read}}};
  static constexpr std::array<stretto::byte_range, 3> ranges{{{0, 256}, {320, 320}, {0, 640}}};
  static constexpr stretto::verdict checked = [] {
    stretto::plan_view plan;
    plan.instructions = list;
    plan.parts = parts;
    plan.buffers = buffers;
    plan.uses = uses;
    plan.ranges = ranges;
    return stretto::check::cut({&plan, 1}, 0);
  }();
};
static_assert(stretto::valid<product>);
