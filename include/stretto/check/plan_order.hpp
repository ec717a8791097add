#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/laps.hpp"
#include "stretto/lowering/walk.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::check {

//! Happens-before of written plans, from nothing but what they say: streams, waits, messages,
//! collectives. Watches a walk (or replay) of the lists that the plans were written from.
class plan_order : public replay_observer {
 public:
  //! @param plans  one per rank; instruction i of a plan is entry i of the rank's list
  //! @param stride room per rank in `clocks`, which are fresh
  constexpr plan_order(std::span<const plan_view> plans, lowering::clock* clocks, int stride)
      : known_(clocks, static_cast<int>(plans.size()), stride),
        plans_(static_cast<std::int64_t>(plans.size())),
        plan_(plans_.data()),
        recorder_(events(plans)),
        laps_(static_cast<int>(plans.size()), plans.front().stages, plans.front().microbatches,
              plans.front().slices) {
    std::int32_t first_event = 0;
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      const plan_view& plan = plans[rank];
      plan_[rank] = {
          plan.instructions.data(), plan.waits.data(), recorder_.data() + first_event,
          plan.instructions.empty() ? 0 : plan.instructions.back().stream,
          plan.instructions.empty() ? -1 : plan.instructions.back().record};
      first_event += plan.events;
    }
  }
  constexpr ~plan_order() = default;  // nvcc does not find it constexpr by itself

  //! What is wrong with the plans themselves; look at it when the walk has ended well.
  constexpr const verdict& found() const { return found_; }

  constexpr void ran(int rank, int index, const job&, std::int64_t, std::int64_t) {
    lowering::clock& here = come(rank, index);
    here.own[here.stream] = index + 1;
    record(rank, index);
  }
  constexpr void met(int sender, int send, int receiver, int receive) {
    lowering::clock& sends = come(sender, send);
    lowering::clock& receives = come(receiver, receive);
    known_.meet(sender, send, sends, receiver, receive, receives);
    laps_.met(known_.row_of(receiver), plan_[sender].instructions[send].what, sender, send, sends,
              receiver, receive, receives);
    record(sender, send);
    record(receiver, receive);
  }
  constexpr void joined(const rank_group& group, const std::int32_t* steps) {
    for (std::int32_t rank : group.members) come(rank, steps[rank]);
    known_.join(group.members, steps);
    for (std::int32_t rank : group.members) record(rank, steps[rank]);
  }

 private:
  static constexpr std::int64_t events(std::span<const plan_view> plans) {
    std::int64_t sum = 0;
    for (const plan_view& plan : plans) sum += plan.events;
    return sum;
  }
  struct rank_lists {
    const instruction* instructions = nullptr;
    const event_wait* waits = nullptr;
    std::int32_t* recorder = nullptr;  // of each event, index plus one
    int end_stream = 0;            // the stream that ends the rank's steps
    std::int32_t end_event = -1;   // recorded when they have ended
  };

  //! An instruction comes to its stream, after what it waits for.
  constexpr lowering::clock& come(int rank, int index) {
    const rank_lists& plan = plan_[rank];
    const instruction& at = plan.instructions[index];
    lowering::clock& here = known_.arrive(rank, index, at.stream);
    if (at.stream == plan.end_stream) here.begun = true;
    const event_wait* const end = plan.waits + at.first_wait + at.wait_count;
    for (const event_wait* wait = plan.waits + at.first_wait; wait < end; ++wait) {
      if (wait->previous_step) {
        if (wait->event == plan.end_event) here.begun = true;
        continue;
      }
      // A wait for an event that this step has not recorded yet orders nothing.
      const std::int32_t by = plan.recorder[wait->event];
      if (by == 0) {
        blame(rank, index, at);
        continue;
      }
      const lowering::clock& earlier = known_.row_of(rank)[by - 1];
      if (here.own[earlier.stream] < by) here.join(earlier);
    }
    return here;
  }
  constexpr void record(int rank, int index) {
    const rank_lists& plan = plan_[rank];
    const instruction& at = plan.instructions[index];
    if (at.record < 0) return;
    std::int32_t& by = plan.recorder[at.record];
    if (by > 0) blame(rank, index, at);  // which of the two records would a wait be for?
    by = index + 1;
  }
  constexpr void blame(int rank, int index, const instruction& at) {
    if (found_.ok())
      found_ = refuse(fault::race, reason::read_before_write, rank, index, at.what);
  }

  lowering::happens_before known_;
  scratch<rank_lists> plans_;
  rank_lists* plan_;
  scratch<std::int32_t> recorder_;
  lowering::laps laps_;
  verdict found_{};
};

}  // namespace stretto::check
