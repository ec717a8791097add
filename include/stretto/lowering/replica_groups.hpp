#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! By which group a stage's data-parallel replicas on one of its ranks gather its weights.
class replica_groups {
 public:
  constexpr replica_groups(int ranks, int stages, std::span<const rank_group> groups)
      : any(gather(groups)), stages_(stages), group_(any ? std::int64_t{ranks} * stages : 0) {
    for (std::size_t group = 0; any && group < groups.size(); ++group)
      if (groups[group].gathers)
        for (const std::int32_t rank : groups[group].members)
          group_[place(rank, groups[group].stage)] = static_cast<std::int32_t>(group) + 1;
  }
  constexpr ~replica_groups() = default;  // nvcc does not find it constexpr by itself

  //! Whether any of them gathers.
  static constexpr bool gather(std::span<const rank_group> groups) {
    for (const rank_group& group : groups)
      if (group.gathers) return true;
    return false;
  }
  const bool any;  //!< whether one does
  //! The group; -1: none. Only where weights are gathered.
  constexpr std::int32_t of(int rank, int stage) const { return group_[place(rank, stage)] - 1; }

 private:
  constexpr std::int64_t place(int rank, int stage) const {
    return std::int64_t{rank} * stages_ + stage;
  }

  int stages_;
  scratch<std::int32_t> group_;  // plus one
};

}  // namespace stretto::lowering
