// Whose buffers an instruction touches, by hand: what it reads besides its own.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/check/own_buffers.hpp"

namespace check_buffers {
namespace {

using stretto::access;
using stretto::buffer_role;
using stretto::job;
using stretto::job_kind;
using stretto::reason;

//! One instruction of the second of three stages, and what it touches.
struct one_instruction {
  job what;
  std::vector<stretto::buffer> buffers{};
  std::vector<stretto::buffer_use> uses{};

  void touches(buffer_role role, access mode, int slice = 0, int stage = 1) {
    uses.push_back({static_cast<std::int32_t>(buffers.size()), role, mode});
    buffers.push_back(
        {.bytes = 64, .stage = stage, .slice = static_cast<std::int16_t>(slice), .role = role});
  }
  bool accepted() const {
    const std::vector<stretto::instruction> list{
        {.what = what, .use_count = static_cast<std::int32_t>(uses.size())}};
    const stretto::plan_view plan{
        .stages = 3, .instructions = list, .uses = uses, .buffers = buffers};
    const stretto::verdict found = stretto::check::own_buffers(plan);
    if (!found.ok()) CHECK(found.why == reason::buffer_of_another);
    return found.ok();
  }
};

one_instruction forward(int slice) {
  one_instruction made{{1, 0, static_cast<std::int16_t>(slice), job_kind::forward}};
  made.touches(buffer_role::input, access::read, slice);
  made.touches(buffer_role::stash, access::write, slice);
  made.touches(buffer_role::output, access::write, slice);
  return made;
}

TEST_CASE("what its kind has nothing to do with it does not even read") {
  REQUIRE(forward(0).accepted());
  for (const buffer_role role : {buffer_role::output_gradient, buffer_role::input_gradient,
                                 buffer_role::host, buffer_role::weights, buffer_role::workspace}) {
    CAPTURE(static_cast<int>(role));
    one_instruction made = forward(0);
    made.touches(role, access::read);
    CHECK_FALSE(made.accepted());
  }
  one_instruction sends{{1, 0, 0, job_kind::send_forward}};
  sends.touches(buffer_role::output, access::read);
  REQUIRE(sends.accepted());
  sends.touches(buffer_role::stash, access::read);
  CHECK_FALSE(sends.accepted());
}

TEST_CASE("of earlier slices a job touches the stash and nothing else") {
  for (const buffer_role role : {buffer_role::stash, buffer_role::input}) {
    one_instruction made = forward(1);
    made.touches(role, access::read, 0);
    CHECK(made.accepted() == (role == buffer_role::stash));
  }
}

TEST_CASE("sums are touched by who makes and who takes them, as they do") {
  const auto with = [](const job& what, access mode, int group, bool and_own) {
    one_instruction made{what};
    if (and_own) made.touches(buffer_role::collective, access::read_write, 0, what.microbatch);
    made.touches(buffer_role::collective, mode, 0, group);
    return made.accepted();
  };
  const job sum{0, 1, 0, job_kind::all_reduce};
  CHECK(with(sum, access::read_write, 1, false));
  CHECK_FALSE(with(sum, access::read_write, 0, true));  // another group's besides its own
  CHECK_FALSE(with(sum, access::read, 0, true));
  const job update{.kind = job_kind::optimizer};
  CHECK(with(update, access::read, 0, false));
  CHECK(with(update, access::read, 1, false));
  CHECK_FALSE(with(update, access::write, 0, false));
  CHECK_FALSE(with(update, access::read_write, 1, false));
  for (const job_kind kind : {job_kind::end_step, job_kind::unshard, job_kind::reshard}) {
    CAPTURE(static_cast<int>(kind));
    CHECK_FALSE(with({.kind = kind}, access::read, 0, false));
  }
  one_instruction computes = forward(0);
  computes.touches(buffer_role::collective, access::read, 0, 0);
  CHECK_FALSE(computes.accepted());
}

}  // namespace
}  // namespace check_buffers
