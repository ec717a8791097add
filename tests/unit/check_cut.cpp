// Rule cut on plans of one op in pieces, by hand: pieces that are there twice or not at all, that
// touch other buffers, fewer, or the same bytes.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/check/cut.hpp"

namespace check_cut {
namespace {

using stretto::access;
using stretto::action;
using stretto::reason;
using stretto::verdict;

//! Pieces of op 0 of one forward, on stream 1; op 1, which ends the job, computes on stream 0.
//! Each reads buffer 0 and writes buffer 1, of 256 bytes either.
struct cut_plan {
  std::vector<stretto::instruction> list{};
  std::vector<stretto::op_part> parts{};
  std::vector<stretto::buffer_use> uses{};
  std::vector<stretto::byte_range> ranges{};
  std::vector<stretto::buffer> buffers = std::vector<stretto::buffer>(3, {.bytes = 256});

  //! @param first, bytes  of what it touches, in both buffers
  void piece(int number, int pieces, std::int64_t first, std::int64_t bytes) {
    list.push_back({.act = action::run,
                    .stream = 1,
                    .use_count = 2,
                    .first_use = static_cast<std::int32_t>(uses.size())});
    parts.push_back({.op = 0,
                     .piece = static_cast<std::int16_t>(number),
                     .pieces = static_cast<std::int16_t>(pieces),
                     .ends = 0});
    uses.push_back({.buffer = 0, .mode = access::read});
    uses.push_back({.buffer = 1, .mode = access::write});
    ranges.insert(ranges.end(), 2, {first, bytes});
  }
  verdict judged() {
    auto instructions = list;
    instructions.push_back(
        {.act = action::run, .first_use = static_cast<std::int32_t>(uses.size())});
    auto all = parts;
    all.push_back({.op = 1});
    const stretto::plan_view plan{.instructions = instructions,
                                  .parts = all,
                                  .uses = uses,
                                  .ranges = ranges,
                                  .buffers = buffers};
    return stretto::check::cut({&plan, 1}, 0);
  }
};

cut_plan halves() {
  cut_plan made;
  made.piece(0, 2, 0, 128);
  made.piece(1, 2, 128, 128);
  return made;
}
cut_plan wholes() {
  cut_plan made;
  made.piece(0, 2, 0, 256);
  made.piece(1, 2, 0, 256);
  return made;
}

TEST_CASE("pieces in parts, or of all where they compute, are in order") {
  CHECK(halves().judged().ok());
  CHECK(wholes().judged().ok());
}

TEST_CASE("a piece that is there twice, on another stream, or alone is refused") {
  cut_plan made = wholes();
  made.piece(1, 2, 0, 256);
  CHECK(made.judged().why == reason::piece_missing);
  made = wholes();
  made.list[1].stream = 2;
  CHECK(made.judged().why == reason::piece_missing);
  for (const bool part : {false, true}) {
    CAPTURE(part);
    made = {};
    made.piece(0, 2, 0, part ? 128 : 256);
    CHECK(made.judged().why == reason::piece_missing);
    made = {};
    made.piece(1, 2, part ? 128 : 0, part ? 128 : 256);
    CHECK(made.judged().why == reason::piece_missing);
  }
}

TEST_CASE("pieces that touch other buffers, or fewer, leave a gap in these") {
  cut_plan made = halves();
  made.uses[3].buffer = 2;
  CHECK(made.judged().why == reason::pieces_do_not_fit);
  made = halves();
  made.uses[3].mode = access::read;
  CHECK(made.judged().why == reason::pieces_do_not_fit);
  made = halves();
  made.list[1].use_count = 1;
  CHECK(made.judged().why == reason::pieces_do_not_fit);
  made = halves();
  made.parts[1].own_uses = 1;
  CHECK(made.judged().why == reason::pieces_do_not_fit);
  made.parts[0].own_uses = 1;  // what is held for other ops is not the piece's
  CHECK(made.judged().ok());
}

TEST_CASE("pieces that take the same part, all behind a part, none, or more than there is") {
  const auto of = [](stretto::byte_range first, stretto::byte_range second) {
    cut_plan made;
    made.piece(0, 2, first.first, first.bytes);
    made.piece(1, 2, second.first, second.bytes);
    return made.judged().why;
  };
  CHECK(of({0, 128}, {0, 128}) == reason::pieces_do_not_fit);
  CHECK(of({0, 128}, {0, 256}) == reason::pieces_do_not_fit);
  CHECK(of({0, 256}, {128, 128}) == reason::pieces_do_not_fit);
  CHECK(of({0, 0}, {0, 256}) == reason::pieces_do_not_fit);
  CHECK(of({64, 64}, {128, 128}) == reason::pieces_do_not_fit);
  CHECK(of({64, 256}, {64, 256}) == reason::pieces_do_not_fit);
}

TEST_CASE("the last of three pieces that is missing, and one in the midst") {
  for (const int without : {0, 1, 2}) {
    CAPTURE(without);
    cut_plan made;
    for (int number = 0; number < 3; ++number)
      if (number != without) made.piece(number, 3, 0, 256);
    CHECK(made.judged().why == reason::piece_missing);
  }
}

}  // namespace
}  // namespace check_cut
