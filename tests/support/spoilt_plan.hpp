#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/check/all.hpp"
#include "stretto/check/plan_order.hpp"
#include "stretto/plan/pipeline.hpp"

//! Plans of a pipeline with rank 0's spoilt, and what the rules say of them, at compile time.
namespace support {

//! @tparam Step  a stretto::pipeline that is in order
//! @tparam Spoil its operator()(instructions, buffers) changes rank 0's
template <class Step, class Spoil>
struct spoilt {
  static constexpr std::size_t ranks = static_cast<std::size_t>(Step::sizes.ranks);
  static constexpr stretto::plan_view whole = Step::plans()[0];
  struct arrays {
    std::array<stretto::instruction, whole.instructions.size()> instructions{};
    std::array<stretto::buffer, whole.buffers.size()> buffers{};
  };
  static constexpr arrays spoilt_arrays = [] {
    arrays made;
    std::copy(whole.instructions.begin(), whole.instructions.end(), made.instructions.begin());
    std::copy(whole.buffers.begin(), whole.buffers.end(), made.buffers.begin());
    Spoil{}(made.instructions, made.buffers);
    return made;
  }();
  static constexpr stretto::verdict checked = [] {
    std::array<stretto::plan_view, ranks> plans{};
    std::copy(Step::plans().begin(), Step::plans().end(), plans.begin());
    plans[0].instructions = spoilt_arrays.instructions;
    plans[0].buffers = spoilt_arrays.buffers;
    const stretto::verdict listed = stretto::check::as_listed(plans, Step::issued());
    if (!listed.ok()) return listed;
    // What ops touch is asked of the plans that they were expanded from.
    if (whole.parts.empty())
      if (const stretto::verdict touched = stretto::check::own_buffers(plans); !touched.ok())
        return touched;
    std::size_t longest = static_cast<std::size_t>(Step::issued().rows.stride);
    for (const stretto::plan_view& plan : Step::plans())
      longest = std::max(longest, plan.instructions.size());
    const int stride = static_cast<int>(longest);
    std::vector<stretto::lowering::clock> clocks =
        stretto::filled<stretto::lowering::clock>(ranks * longest);
    stretto::check::plan_order watch(plans, clocks.data(), stride);
    const stretto::verdict walked = stretto::replay(Step::issued(), watch);
    if (!walked.ok()) return walked;
    if (!watch.found().ok()) return watch.found();
    return stretto::check::plans(plans, {clocks.data(), Step::sizes.ranks, stride});
  }();
};

}  // namespace support
