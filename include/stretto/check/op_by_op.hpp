#pragma once

#include <algorithm>
#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

namespace detail {

//! The ops of a plan's jobs, node by node.
class op_counter {
 public:
  constexpr op_counter(const plan_view& plan, const placement& where)
      : plan_(plan),
        where_(where),
        chunks_(where.chunks),
        most_(ops_of(plan)),
        seen_(2 * most_),
        known_(std::int64_t{job_kind_count} * chunks_) {}
  constexpr ~op_counter() = default;  // nvcc does not find it constexpr by itself

  //! @param begin  of the node: instructions that are all ops
  //! @param end    behind its last
  constexpr verdict count(std::int32_t begin, std::int32_t end) {
    const job first = what(begin);
    job halves[2] = {first, first};
    std::int32_t highest[2] = {-1, -1}, number[2] = {0, 0};
    for (std::int32_t at = begin; at < end; ++at) {
      const int half = what(at) == first ? 0 : 1;
      const op_part& part = plan_.parts[index(at)];
      halves[half] = what(at);
      std::int32_t& seen = seen_[half * most_ + part.op];
      // Pieces of one are rule cut's.
      if (seen == end && part.pieces == 1 && part.piece == 0)
        return refuse(fault::incomplete, reason::op_twice, plan_.rank, at, what(at));
      if (seen != end) ++number[half];
      seen = end;
      highest[half] = std::max<std::int32_t>(highest[half], part.op);
    }
    // A half of which there is none is taken for the other, which has some.
    const int jobs = plan_.parts[index(end - 1)].ends;
    for (int half = 0; half < jobs; ++half) {
      const job& of = halves[half];
      std::int32_t& known =
          known_[static_cast<std::int64_t>(of.kind) * chunks_ + where_.chunk_of(of)];
      if (known == 0) known = number[half];
      if (number[half] != highest[half] + 1 || number[half] != known)
        return refuse(fault::incomplete, reason::op_missing, plan_.rank, end - 1, of);
    }
    return {};
  }

 private:
  static constexpr std::size_t index(std::int32_t at) { return static_cast<std::size_t>(at); }
  static constexpr std::int64_t ops_of(const plan_view& plan) {
    std::int64_t most = 0;
    for (const op_part& part : plan.parts) most = std::max<std::int64_t>(most, part.op + 1);
    return most;
  }
  constexpr const job& what(std::int32_t at) const { return plan_.instructions[index(at)].what; }

  const plan_view& plan_;
  placement where_;
  int chunks_;
  std::int64_t most_;            // ops of a job
  scratch<std::int32_t> seen_;   // of either half's ops, the end of the node that had it last
  scratch<std::int32_t> known_;  // by kind and chunk: how many ops the first such job has
};

}  // namespace detail

//! Rule `complete` of a plan whose jobs were expanded, which says no more of their programs: a job
//! has each of its ops once, which are numbered from 0 on, and as many as other jobs of its kind
//! and chunk.
//! @param plan  of plan.rank, as its list says (as_listed)
//! @return ok, or fault::incomplete with the op that is there twice, or with the last of a node in
//!         which one is missing
constexpr verdict op_by_op(const plan_view& plan, const replay_input& lists) {
  if (plan.parts.empty()) return {};
  detail::op_counter ops(plan, lists.where);
  const auto count = static_cast<std::int32_t>(plan.parts.size());
  for (std::int32_t begin = 0, end = 0; begin < count; begin = end) {
    end = begin + 1;
    if (plan.parts[static_cast<std::size_t>(begin)].op < 0) continue;
    while (plan.parts[static_cast<std::size_t>(end - 1)].ends == 0) ++end;
    if (const verdict found = ops.count(begin, end); !found.ok()) return found;
  }
  return {};
}

}  // namespace stretto::check
