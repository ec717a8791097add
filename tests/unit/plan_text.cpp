// Plans as text: what a plan of whole jobs has not (those are among the tool's tests).
#include "stretto/plan/plan_text.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "stretto/lowering/streams/concept.hpp"

namespace {

using stretto::access;
using stretto::action;
using stretto::buffer_role;
using stretto::wait_reason;

TEST_CASE("a plan of ops as text: pieces with their bytes, starts, groups") {
  const stretto::job work{.stage = 2, .microbatch = 1, .slice = 3};
  const stretto::instruction instructions[] = {
      {.what = work, .stream = 1, .use_count = 1, .record = 0},
      {.what = work,
       .act = action::share_sum,
       .stream = 0,
       .wait_count = 2,
       .use_count = 1,
       .release_count = 1,
       .first_use = 1,
       .record = 2}};
  const stretto::op_part parts[] = {{.op = 4, .piece = 1, .pieces = 3, .started = 1}, {.op = 5}};
  const stretto::event_wait waits[] = {{1, wait_reason::starts_before},
                                       {2, wait_reason::gate, true}};
  const stretto::buffer_use uses[] = {{0, buffer_role::workspace, access::write},
                                      {0, buffer_role::workspace, access::read_write}};
  const stretto::byte_range ranges[] = {{128, 64}, {0, 192}};
  const std::int32_t released[] = {1};
  const stretto::buffer buffers[] = {{.offset = 256, .bytes = 192}, {.offset = 0, .bytes = 64}};
  const stretto::stream_info streams[] = {stretto::overlap::named_stream("compute", 0),
                                          stretto::overlap::named_stream("tensor_parallel", -2)};
  const stretto::group_info groups[] = {
      {.first = 0, .count = 2, .elements = 8, .wide = true},
      {.first = 1, .count = 1, .elements = 9, .stage = 2, .data_parallel = true}};
  const std::int32_t members[] = {0, 3};
  const stretto::plan_view plan{.rank = 3,
                                .ranks = 4,
                                .events = 3,
                                .arena_bytes = 448,
                                .host_bytes = 64,
                                .digest = 0x0123456789abcdefU,
                                .instructions = instructions,
                                .parts = parts,
                                .waits = waits,
                                .uses = uses,
                                .ranges = ranges,
                                .released = released,
                                .buffers = buffers,
                                .streams = streams,
                                .groups = groups,
                                .members = members};
  std::string text = "before\n";
  write_plan(plan, text);
  CHECK(
      text ==
      "before\n"
      "rank 3 of 4: 2 instructions, 3 events, 2 waits, 2 buffers; arena 448 bytes, host 64 bytes; "
      "digest 0123456789abcdef\n"
      "streams (priority): compute (0), tensor_parallel (-2)\n"
      "group 0: ranks 0, 3; 8 elements of 8 bytes\n"
      "group 1: ranks 3, over their data-parallel replicas; 9 elements of 4 bytes, gradients of "
      "stage 2\n"
      "#  job                   does       stream           records                  "
      "waits for (reason, event); access, buffer, role, offset+bytes; releases before it starts\n"
      "0  2F1.3 op 4 piece 2/3  run        tensor_parallel  event 0, at its start 1  "
      "write 0 workspace 384+64\n"
      "1  2F1.3 op 5            share_sum  compute          event 2                  "
      "waits for the start of 0 2F1.3 op 4 piece 2/3 (starts_before, event 1), "
      "1 2F1.3 op 5 of the step before (gate, event 2); read_write 0 workspace 256+192; "
      "releases 1\n");
  CHECK(stretto::origins_of(plan) ==
        std::vector<stretto::event_origin>{{0, false}, {0, true}, {1, false}});
}

TEST_CASE("what is none has a name, too, and a name without an end is as long as its room") {
  CHECK(name(static_cast<action>(200)) == "?");
  CHECK(name(static_cast<wait_reason>(200)) == "?");
  CHECK(name(static_cast<buffer_role>(200)) == "?");
  CHECK(name(static_cast<access>(200)) == "?");
  stretto::stream_info full;
  for (char& letter : full.name) letter = 'x';
  CHECK(name(full) == std::string(sizeof full.name, 'x'));
  CHECK(stretto::digest_text(0) == "0000000000000000");
}

}  // namespace
