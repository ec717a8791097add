#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! Where sums over data-parallel replicas stand: each right behind the last job that adds to the
//! gradients of its stage, and behind what that job sends at once, so that it runs beside what is
//! left of the step. (Where no job does, because no micro-batch goes that way, behind the rank's
//! last.) All replicas of a rank have one list, so that they meet in the same order, and wait for
//! nobody else.
class due_sums {
 public:
  //! @param rows  without messages
  constexpr due_sums(const job_rows& rows, int stages, std::span<const rank_group> groups)
      : any(among(groups)),
        stride_(rows.stride),
        first_(any ? std::int64_t{rows.ranks} * rows.stride : 0),
        next_(static_cast<std::int64_t>(groups.size())) {
    if (!any) return;
    scratch<std::int32_t> last(stages);  // of each stage on the rank at hand, plus one
    for (int rank = 0; rank < rows.ranks; ++rank) {
      const std::int32_t count = rows.counts[rank];
      if (count == 0) continue;
      for (int stage = 0; stage < stages; ++stage) last[stage] = 0;
      for (std::int32_t at = 0; at < count; ++at)
        if (const job& work = rows.at(rank, at);
            work.kind == job_kind::backward || work.kind == job_kind::backward_weight)
          last[work.stage] = at + 1;
      for (std::size_t group = groups.size(); group-- > 0;) {
        if (!groups[group].data_parallel || !groups[group].sums || !groups[group].holds(rank))
          continue;
        const int stage = groups[group].stage;
        const std::int32_t found = stage >= 0 && stage < stages ? last[stage] : 0;
        std::int32_t at = (found > 0 ? found : count) - 1;
        if (rows.at(rank, at).paired && at + 1 < count) ++at;
        std::int32_t& first = first_[std::int64_t{rank} * stride_ + at];
        next_[static_cast<std::int64_t>(group)] = first;
        first = static_cast<std::int32_t>(group) + 1;
      }
    }
  }
  constexpr ~due_sums() = default;  // nvcc does not find it constexpr by itself

  const bool any;  //!< whether there are such replicas
  //! When there are, calls `visit(group)` for each that is due behind entry `at` of the rank, in
  //! their order.
  template <class Visitor>
  constexpr void behind(int rank, std::int32_t at, const Visitor& visit) const {
    for (std::int32_t group = first_[std::int64_t{rank} * stride_ + at]; group > 0;
         group = next_[group - 1])
      visit(static_cast<std::size_t>(group - 1));
  }

 private:
  static constexpr bool among(std::span<const rank_group> groups) {
    for (const rank_group& group : groups)
      if (group.data_parallel) return true;
    return false;
  }

  int stride_;
  scratch<std::int32_t> first_;  // group that is due behind an entry of a rank, plus one
  scratch<std::int32_t> next_;   // and behind it
};

}  // namespace stretto::lowering
