#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "stretto/model/replay.hpp"
#include "stretto/plan/accepted.hpp"
#include "stretto/plan/plans_expander.hpp"

namespace stretto {

namespace detail {

//! How much a plan of ops has of each.
struct plan_sizes {
  std::size_t instructions = 0;  //!< and parts
  std::size_t waits = 0;
  std::size_t uses = 0;
  std::size_t ranges = 0;
  std::size_t released = 0;
  std::size_t buffers = 0;

  //! Room for this plan, too.
  constexpr void grow_to(const lowering::op_plan& plan) {
    instructions = std::max(instructions, plan.instructions.size());
    waits = std::max(waits, plan.waits.size());
    uses = std::max(uses, plan.uses.size());
    ranges = std::max(ranges, plan.ranges.size());
    released = std::max(released, plan.released.size());
    buffers = std::max(buffers, plan.buffers.size());
  }
};

}  // namespace detail

//! A stretto::pipeline whose jobs are expanded into ops, at compile time (see `expanded`).
//! `static_assert(valid<with_ops<Step, Ops>>)` proves all rules or names the one that is broken.
//! @tparam Ops  also says `streams()`: a std::array of stream_info
template <class Step, OpPolicy Ops>
class with_ops {
  static constexpr auto streams_ = Ops{}.streams();
  static constexpr std::size_t ranks = static_cast<std::size_t>(Step::sizes.ranks);

  static constexpr detail::plans_expander made() {
    return {Step::plans(), Step::issued(), streams_, Ops{},
            [](auto& watch) { return replay(Step::issued(), watch); }};
  }
  struct facts {
    verdict answer{};
    detail::plan_sizes most{};
  };
  static constexpr facts facts_ = [] {
    const detail::plans_expander all = made();
    facts found{.answer = all.answer};
    for (const lowering::op_plan& plan : all.written) found.most.grow_to(plan);
    return found;
  }();
  struct frozen_plan {
    std::array<instruction, facts_.most.instructions> instructions{};
    std::array<op_part, facts_.most.instructions> parts{};
    std::array<event_wait, facts_.most.waits> waits{};
    std::array<buffer_use, facts_.most.uses> uses{};
    std::array<byte_range, facts_.most.ranges> ranges{};
    std::array<std::int32_t, facts_.most.released> released{};
    std::array<buffer, facts_.most.buffers> buffers{};
    detail::plan_sizes sizes{};
    std::int32_t events = 0;
    std::int64_t arena_bytes = 0;
    std::uint64_t digest = 0;
  };
  static constexpr std::array<frozen_plan, ranks> frozen_ = [] {
    std::array<frozen_plan, ranks> all{};
    const detail::plans_expander made_now = made();
    for (std::size_t rank = 0; rank < ranks && made_now.answer.ok(); ++rank) {
      const lowering::op_plan& from = made_now.written[rank];
      frozen_plan& to = all[rank];
      std::copy(from.instructions.begin(), from.instructions.end(), to.instructions.begin());
      std::copy(from.parts.begin(), from.parts.end(), to.parts.begin());
      std::copy(from.waits.begin(), from.waits.end(), to.waits.begin());
      std::copy(from.uses.begin(), from.uses.end(), to.uses.begin());
      std::copy(from.ranges.begin(), from.ranges.end(), to.ranges.begin());
      std::copy(from.released.begin(), from.released.end(), to.released.begin());
      std::copy(from.buffers.begin(), from.buffers.end(), to.buffers.begin());
      to.sizes.grow_to(from);
      to.events = from.events;
      to.arena_bytes = from.arena_bytes;
      to.digest = made_now.views[rank].digest;
    }
    return all;
  }();
  static constexpr std::array<plan_view, ranks> plans_ = [] {
    std::array<plan_view, ranks> all{};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const frozen_plan& from = frozen_[rank];
      plan_view& to = all[rank];
      to = Step::plans()[rank];
      to.instructions = std::span(from.instructions.data(), from.sizes.instructions);
      to.parts = std::span(from.parts.data(), from.sizes.instructions);
      to.waits = std::span(from.waits.data(), from.sizes.waits);
      to.uses = std::span(from.uses.data(), from.sizes.uses);
      to.ranges = std::span(from.ranges.data(), from.sizes.ranges);
      to.released = std::span(from.released.data(), from.sizes.released);
      to.buffers = std::span(from.buffers.data(), from.sizes.buffers);
      to.streams = streams_;
      to.events = from.events;
      to.arena_bytes = from.arena_bytes;
      to.digest = from.digest;
    }
    return all;
  }();

 public:
  static constexpr shape sizes = Step::sizes;
  //! What a replay of the lists with messages takes.
  static constexpr replay_input issued() { return Step::issued(); }
  static constexpr verdict checked = facts_.answer;
  //! The plans of all ranks, for the executor. They live as long as the program.
  static constexpr std::span<const plan_view> plans() {
    static_assert(valid<with_ops>);
    return plans_;
  }
};

}  // namespace stretto
