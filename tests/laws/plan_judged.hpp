#pragma once

#include <span>
#include <vector>

#include "stretto/check/plan_order.hpp"
#include "stretto/check/race_free.hpp"
#include "stretto/check/spare.hpp"
#include "stretto/check/timely.hpp"
#include "stretto/lowering/groups.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/plan/planned.hpp"

//! The rules on written plans, asked one by one, for plans that somebody has spoilt.
namespace laws {

class judged {
 public:
  //! @param made where the plans come from; it is kept by the caller
  explicit judged(const stretto::planned& made)
      : made_(made), table_(made.where().ranks, made.where().chunks) {
    const auto& any = made.plans().front();
    for (const stretto::group_info& group : any.groups)
      groups_.push_back(stretto::lowering::joined_by(group, any.members, true));
  }

  //! Rule 6 for `plans`, which are those of the constructor, spoilt.
  stretto::verdict race_free(std::span<const stretto::plan_view> plans) {
    stretto::verdict found = order(plans);
    for (int rank = 0; rank < made_.lists().ranks && found.ok(); ++rank)
      found = stretto::check::race_free(plans, rows(), rank);
    return found;
  }
  //! Rule 9, for plans that keep rule 6.
  stretto::verdict timely(std::span<const stretto::plan_view> plans) {
    stretto::verdict found = order(plans);
    for (int rank = 0; rank < made_.lists().ranks && found.ok(); ++rank)
      found = stretto::check::timely(plans, rows(), rank);
    return found;
  }
  //! Rule 7, for plans that keep rules 6 and 9.
  stretto::verdict spare(std::span<const stretto::plan_view> plans) {
    stretto::verdict found = order(plans);
    for (int rank = 0; rank < made_.lists().ranks && found.ok(); ++rank)
      found = stretto::check::spare(plans, rows(), rank);
    return found;
  }

 private:
  stretto::lowering::clock_rows rows() const {
    return {clocks_.data(), made_.lists().ranks, made_.lists().stride};
  }
  stretto::verdict order(std::span<const stretto::plan_view> plans) {
    const auto lists = made_.lists();
    clocks_.assign(static_cast<std::size_t>(lists.ranks) * static_cast<std::size_t>(lists.stride),
                   {});
    stretto::check::plan_order watch(plans, clocks_.data(), lists.stride);
    const auto& any = made_.plans().front();
    const stretto::verdict walked = stretto::replay({.rows = lists,
                                                     .where = made_.where(),
                                                     .microbatches = any.microbatches,
                                                     .slices = any.slices,
                                                     .costs = table_.view(),
                                                     .messages = true,
                                                     .groups = groups_},
                                                    watch);
    return walked.ok() ? watch.found() : walked;
  }

  const stretto::planned& made_;
  stretto::job_table table_;
  std::vector<stretto::rank_group> groups_;
  std::vector<stretto::lowering::clock> clocks_;
};

}  // namespace laws
