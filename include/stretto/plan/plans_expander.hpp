#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/check/all.hpp"
#include "stretto/check/plan_order.hpp"
#include "stretto/lowering/expand.hpp"
#include "stretto/lowering/op_programs.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/plan/digest.hpp"

namespace stretto {

namespace detail {

//! Expands plans and proves them anew. The same at both times.
class plans_expander {
 public:
  //! @param issued    the lists that the plans were written from
  //! @param order_of  (observer): tells it of everything in these, in an order in which causes
  //!                  precede effects, and says how that went
  template <OpPolicy Ops, class OrderOf>
  constexpr plans_expander(std::span<const plan_view> base, const replay_input& issued,
                           std::span<const stream_info> streams, const Ops& ops,
                           const OrderOf& order_of) {
    if (base.empty()) {
      answer = refuse(fault::unsupported, reason::no_plans);
      return;
    }
    std::size_t stride = 0;
    std::uint64_t digest = base.front().digest;
    written = filled<lowering::op_plan>(base.size());
    for (std::size_t rank = 0; rank < base.size() && answer.ok(); ++rank) {
      const lowering::rank_sequences sequences(ops, base[rank], issued.where);
      answer = sequences.answer();
      if (!answer.ok()) return;
      lowering::expand_plan(base[rank], sequences, written[rank]);
      const auto& list = written[rank].instructions;
      for (std::size_t at = 0; at < list.size() && answer.ok(); ++at)
        if (list[at].stream >= streams.size())
          answer = refuse(fault::unsupported, reason::no_such_stream, static_cast<int>(rank),
                          static_cast<int>(at), list[at].what);
      if (!answer.ok()) return;
      stride = std::max(stride, written[rank].instructions.size());
      digest = digest_of_ops(digest, viewed(written[rank].instructions),
                             viewed(written[rank].parts), viewed(written[rank].ranges));
    }
    for (const plan_view& plan : base) {
      headers_.push_back(plan);
      headers_.back().streams = streams;
      headers_.back().digest = digest;
    }
    std::vector<lowering::clock> clocks = filled<lowering::clock>(written.size() * stride);
    const lowering::clock_rows known{clocks.data(), static_cast<int>(written.size()),
                                     static_cast<int>(stride)};
    view();
    answer = check::as_listed(viewed(views), issued);
    if (answer.ok()) find_order(order_of, clocks, known.stride);
    if (!answer.ok()) return;
    for (int rank = 0; rank < known.ranks; ++rank) drop_idle(rank, known);
    for (lowering::clock& one : clocks) one = {};
    find_order(order_of, clocks, known.stride);
    if (answer.ok()) answer = check::plans(viewed(views), known);
  }

  constexpr ~plans_expander() = default;  // nvcc does not find it constexpr by itself

  verdict answer{};
  std::vector<lowering::op_plan> written;
  std::vector<plan_view> views;

 private:
  constexpr void view() {
    views.clear();
    for (std::size_t rank = 0; rank < written.size(); ++rank)
      views.push_back(written[rank].view(headers_[rank]));
  }
  template <class OrderOf>
  constexpr void find_order(const OrderOf& order_of, std::vector<lowering::clock>& clocks,
                            int stride) {
    view();
    check::plan_order by_plan(viewed(views), clocks.data(), stride);
    answer = order_of(by_plan);
    if (answer.ok()) answer = by_plan.found();
  }
  //! Where a pair has become one node, what its halves wait for may be implied by one another, and
  //! what waited for either now waits for both. Of a wait that kept a receive's lead, too, that is
  //! what may be left.
  constexpr void drop_idle(int rank, const lowering::clock_rows& known) {
    lowering::op_plan& mine = written[static_cast<std::size_t>(rank)];
    record_gates(rank);
    constexpr event_wait dropped{.event = -1, .previous_step = true};
    check::detail::each_idle(
        viewed(views), known, rank, [&](const check::detail::idle_wait& found) {
          const auto at = static_cast<std::size_t>(found.index);
          if (found.wait >= 0)
            mine.waits[static_cast<std::size_t>(found.wait)] =
                found.gate < 0
                    ? dropped
                    : event_wait{mine.instructions[static_cast<std::size_t>(found.gate)].record,
                                 wait_reason::lead, false};
          else if (mine.instructions[at].record == found.event)
            mine.instructions[at].record = -1;
          else
            mine.parts[at].started = -1;
          return true;
        });
    std::size_t kept = 0;
    for (instruction& at : mine.instructions) {
      const auto first = static_cast<std::size_t>(at.first_wait);
      const auto end = first + static_cast<std::size_t>(at.wait_count);
      at.first_wait = static_cast<std::int32_t>(kept);
      for (std::size_t wait = first; wait < end; ++wait)
        if (mine.waits[wait] != dropped) mine.waits[kept++] = mine.waits[wait];
      at.wait_count = static_cast<std::int16_t>(kept - static_cast<std::size_t>(at.first_wait));
    }
    mine.waits.resize(kept);
    number_events(mine);
  }
  //! An event for whatever a receive must not be posted before.
  constexpr void record_gates(int rank) {
    lowering::op_plan& mine = written[static_cast<std::size_t>(rank)];
    const check::detail::receive_gate_table gates(views[static_cast<std::size_t>(rank)]);
    for (std::size_t at = 0; at < mine.instructions.size(); ++at)
      if (const std::int32_t gate = gates.of(static_cast<std::int32_t>(at)); gate >= 0)
        if (std::int32_t& event = mine.instructions[static_cast<std::size_t>(gate)].record;
            event < 0)
          event = mine.events++;
    views[static_cast<std::size_t>(rank)].events = mine.events;
  }
  //! Events count from 0, without gaps.
  static constexpr void number_events(lowering::op_plan& mine) {
    std::vector<std::int32_t> number =
        filled<std::int32_t>(static_cast<std::size_t>(mine.events), -1);
    mine.events = 0;
    for (std::size_t at = 0; at < mine.instructions.size(); ++at)
      for (std::int32_t* const event : {&mine.instructions[at].record, &mine.parts[at].started})
        if (*event >= 0)
          *event = number[static_cast<std::size_t>(*event)] = mine.events++;
    for (event_wait& wait : mine.waits) wait.event = number[static_cast<std::size_t>(wait.event)];
  }

  std::vector<plan_view> headers_;  // what expanding leaves as it was
};

}  // namespace detail

}  // namespace stretto
