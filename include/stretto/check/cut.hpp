#pragma once

#include <cstdint>
#include <span>

#include "stretto/model/plan_view.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

namespace detail {

//! Of the op that an instruction is a piece of.
struct other_pieces {
  std::int32_t before = -1;  //!< the piece before it; -1: there is none
  std::int32_t behind = -1;
  bool twice = false;
};

//! Pieces lie between the first and the last op of their node.
constexpr other_pieces find_pieces(const plan_view& plan, std::int32_t index) {
  const auto at = static_cast<std::size_t>(index);
  const op_part mine = plan.parts[at];
  other_pieces found;
  const auto look = [&](std::int32_t other) {
    const auto there = static_cast<std::size_t>(other);
    const op_part theirs = plan.parts[there];
    if (theirs.op != mine.op || !(plan.instructions[there].what == plan.instructions[at].what))
      return;
    const bool alike = theirs.pieces == mine.pieces &&
                       plan.instructions[there].stream == plan.instructions[at].stream;
    if (!alike || theirs.piece == mine.piece) found.twice = true;
    if (theirs.piece == mine.piece - 1 && other < index) found.before = other;
    if (theirs.piece == mine.piece + 1 && other > index) found.behind = other;
  };
  for (std::int32_t other = index - 1;
       other >= 0 && plan.parts[static_cast<std::size_t>(other)].ends == 0; --other)
    look(other);
  const auto count = static_cast<std::int32_t>(plan.parts.size());
  for (std::int32_t other = index;
       other + 1 < count && plan.parts[static_cast<std::size_t>(other)].ends == 0;)
    look(++other);
  return found;
}

//! Whether the uses of a piece begin where those of the one before end, and whole ones are the
//! same: of what computes, for what sums all in each piece would sum it as often.
constexpr bool fits(const plan_view& plan, std::int32_t index, std::int32_t before) {
  const auto own = [&](std::int32_t of) {
    const std::int32_t said = plan.parts[static_cast<std::size_t>(of)].own_uses;
    return said < 0 ? plan.instructions[static_cast<std::size_t>(of)].use_count : said;
  };
  const instruction& at = plan.instructions[static_cast<std::size_t>(index)];
  const op_part part = plan.parts[static_cast<std::size_t>(index)];
  if (before >= 0 && own(index) != own(before)) return false;
  const bool sums = at.act == action::share_sum;
  for (std::int32_t use = 0; use < own(index); ++use) {
    const buffer_use mine = plan.uses[static_cast<std::size_t>(at.first_use + use)];
    const byte_range range = plan.range_of(at.first_use + use);
    const std::int64_t all = plan.buffers[static_cast<std::size_t>(mine.buffer)].bytes;
    const bool whole = range.first == 0 && range.bytes == all;
    std::int64_t begin = 0;
    if (before >= 0) {
      const std::int32_t other =
          plan.instructions[static_cast<std::size_t>(before)].first_use + use;
      if (!(plan.uses[static_cast<std::size_t>(other)] == mine)) return false;
      const byte_range theirs = plan.range_of(other);
      if (whole && theirs == range && !sums) continue;
      begin = theirs.first + theirs.bytes;
    }
    // One that takes all must be alone with that, or be followed by others that do, too.
    if (whole && before < 0 && !sums) continue;
    const bool last = part.piece + 1 == part.pieces;
    if (range.first != begin || range.bytes < 1 || (range.first + range.bytes == all) != last)
      return false;
  }
  return true;
}

}  // namespace detail

//! Rule cut, for one rank: of an op in pieces each stands once, in order, on one stream, and of
//! what it touches in part each begins where the one before ends: none twice, and no gap. A sum in
//! pieces is in parts.
constexpr verdict cut(std::span<const plan_view> plans, int rank) {
  const plan_view& plan = plans[static_cast<std::size_t>(rank)];
  const auto count = static_cast<std::int32_t>(plan.parts.size());
  for (std::int32_t index = 0; index < count; ++index) {
    const op_part& part = plan.parts[static_cast<std::size_t>(index)];
    if (part.pieces == 1 && part.piece == 0) continue;
    const job& what = plan.instructions[static_cast<std::size_t>(index)].what;
    const detail::other_pieces others = detail::find_pieces(plan, index);
    if (part.pieces < 1 || part.piece < 0 || part.piece >= part.pieces || others.twice ||
        (others.before < 0) != (part.piece == 0) ||
        (others.behind < 0) != (part.piece + 1 == part.pieces))
      return refuse(fault::miscut, reason::piece_missing, rank, index, what);
    if (!detail::fits(plan, index, others.before))
      return refuse(fault::miscut, reason::pieces_do_not_fit, rank, index, what);
  }
  return {};
}

}  // namespace stretto::check
