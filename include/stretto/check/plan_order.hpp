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
        clocks_{clocks, static_cast<int>(plans.size()), stride},
        plans_(static_cast<std::int64_t>(plans.size())),
        recorder_(events(plans)),
        laps_(static_cast<int>(plans.size()), plans.front().stages, plans.front().microbatches,
              plans.front().slices) {
    std::int32_t first_event = 0;
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      const plan_view& plan = plans[rank];
      plans_[static_cast<std::int64_t>(rank)] = {
          plan.instructions.data(), plan.waits.data(), first_event,
          plan.instructions.empty() ? 0 : plan.instructions.back().stream,
          plan.instructions.empty() ? -1 : plan.instructions.back().record};
      first_event += plan.events;
    }
  }
  constexpr ~plan_order() = default;  // nvcc does not find it constexpr by itself

  //! What is wrong with the plans themselves; look at it when the walk has ended well.
  constexpr const verdict& found() const { return found_; }

  constexpr void ran(int rank, int index, const job&, std::int64_t, std::int64_t) {
    const instruction& at = come(rank, index);
    known_.done(rank, index, at.stream);
    record(rank, index, at);
  }
  constexpr void met(int sender, int send, int receiver, int receive) {
    const instruction& sends = come(sender, send);
    const instruction& receives = come(receiver, receive);
    known_.meet(sender, send, sends.stream, receiver, receive, receives.stream);
    laps_.met(known_, clocks_, sends.what, sender, send, receiver, receive, receives.stream);
    record(sender, send, sends);
    record(receiver, receive, receives);
  }
  constexpr void joined(const rank_group& group, const std::int32_t* steps) {
    const int ranks = clocks_.ranks;
    scratch<lowering::clock> before(ranks);
    scratch<bool> member(ranks);
    for (std::int32_t rank : group.members) {
      come(rank, steps[rank]);
      before[rank] = clocks_.at(rank, steps[rank]);
      member[rank] = true;
    }
    for (std::int32_t rank : group.members) {
      const int previous = rank == 0 ? ranks - 1 : rank - 1;
      const int next = rank == ranks - 1 ? 0 : rank + 1;
      if (member[previous])
        known_.learn(rank, steps[rank], previous, steps[previous], before[previous],
                     false);
      if (member[next]) known_.learn(rank, steps[rank], next, steps[next], before[next], false);
    }
    for (std::int32_t rank : group.members) {
      const instruction& at = plans_[rank].instructions[steps[rank]];
      known_.done(rank, steps[rank], at.stream);
      record(rank, steps[rank], at);
    }
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
    std::int32_t first_event = 0;  // in recorder_
    int end_stream = 0;            // the stream that ends the rank's steps
    std::int32_t end_event = -1;   // recorded when they have ended
  };

  constexpr const instruction& come(int rank, int index) {
    const rank_lists& plan = plans_[rank];
    const instruction& at = plan.instructions[index];
    known_.arrive(rank, index, at.stream);
    if (at.stream == plan.end_stream) known_.begin(rank, index);
    for (int wait = at.first_wait; wait < at.first_wait + at.wait_count; ++wait) {
      const event_wait& event = plan.waits[wait];
      const std::int32_t by =
          event.previous_step ? 0 : recorder_[plan.first_event + event.event];
      if (by > 0) {
        known_.after(rank, index, by - 1);
      } else if (!event.previous_step) {
        // A wait for an event that this step has not recorded yet orders nothing.
        blame(rank, index, at);
      } else if (event.event == plan.end_event) {
        known_.gate(rank, index);
      }
    }
    return at;
  }
  constexpr void record(int rank, int index, const instruction& at) {
    if (at.record < 0) return;
    std::int32_t& by = recorder_[plans_[rank].first_event + at.record];
    if (by > 0) blame(rank, index, at);  // which of the two records would a wait be for?
    by = index + 1;
  }
  constexpr void blame(int rank, int index, const instruction& at) {
    if (found_.ok())
      found_ = refuse(fault::race, reason::read_before_write, rank, index, at.what);
  }

  lowering::happens_before known_;
  lowering::clock_rows clocks_;
  scratch<rank_lists> plans_;
  scratch<std::int32_t> recorder_;  // index plus one
  lowering::laps laps_;
  verdict found_{};
};

}  // namespace stretto::check
