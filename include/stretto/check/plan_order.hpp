#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/laps.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::check {

//! Happens-before of written plans, from nothing but what they say: streams, waits, messages,
//! collectives. Watches a walk (or replay) of the lists that the plans were written from.
class plan_order : public replay_observer {
 public:
  //! @param plans  one per rank; instruction i of a plan is entry i of the rank's list, or, where
  //!               jobs were expanded, one of its ops: op_part says which are the last
  //! @param stride room per rank in `clocks`, which are fresh
  //! @param turns  stages go back and forth through the ranks (placement_kind::wave), so that
  //!               nothing comes full circle: laps are not followed. Wrongly true, less is known,
  //!               never more
  constexpr plan_order(std::span<const plan_view> plans, lowering::clock* clocks, int stride,
                       bool turns = false)
      : known_(clocks, static_cast<int>(plans.size()), stride),
        plans_(static_cast<std::int64_t>(plans.size())),
        plan_(plans_.data()),
        recorder_(events(plans)),
        laps_(static_cast<int>(plans.size()), plans.front().stages, plans.front().microbatches,
              plans.front().slices, turns) {
    std::int32_t first_event = 0;
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
      const plan_view& plan = plans[rank];
      plan_[rank] = {
          plan.instructions.data(), plan.waits.data(), plan.uses.data(), plan.buffers.data(),
          recorder_.data() + first_event,
          plan.instructions.empty() ? 0 : plan.instructions.back().stream,
          plan.instructions.empty() ? -1 : plan.instructions.back().record,
          plan.parts.empty() ? nullptr : plan.parts.data(),
          static_cast<std::int32_t>(plan.instructions.size())};
      first_event += plan.events;
    }
  }
  constexpr ~plan_order() = default;  // nvcc does not find it constexpr by itself

  //! What is wrong with the plans themselves; look at it when the walk has ended well.
  constexpr verdict found() const {
    for (int rank = 0; rank < static_cast<int>(plans_.size()) && found_.ok(); ++rank)
      if (const rank_lists& plan = plan_[rank]; plan.parts != nullptr && plan.next < plan.count)
        return refuse(fault::race, reason::duplicate, rank, plan.next,
                      plan.instructions[plan.next].what);
    return found_;
  }

  constexpr void ran(int rank, int index, const job&, std::int64_t = 0, std::int64_t = 0) {
    rank_lists& plan = plan_[rank];
    if (plan.parts != nullptr) return ran_ops(rank, plan);
    if (index >= plan.count && outside(rank, index)) return;
    const instruction at = plan.instructions[index];
    come(rank, index, at);
  }
  constexpr void met(int sender, int send, int receiver, int receive) {
    rank_lists& from = plan_[sender];
    rank_lists& to = plan_[receiver];
    if (from.parts != nullptr) {
      send = from.next++, receive = to.next++;
      if ((send < from.count && other_than(sender, send, action::send)) ||
          (receive < to.count && other_than(receiver, receive, action::receive)))
        return;
    }
    if ((send >= from.count && outside(sender, send)) ||
        (receive >= to.count && outside(receiver, receive)))
      return;
    const instruction sent = from.instructions[send];
    const instruction taken = to.instructions[receive];
    if ((sent.use_count == 0 ? 0 : from.buffers[from.uses[sent.first_use].buffer].bytes) !=
            (taken.use_count == 0 ? 0 : to.buffers[to.uses[taken.first_use].buffer].bytes) &&
        found_.ok())
      found_ = refuse(fault::rendezvous, reason::sizes_apart, sender, send, sent.what);
    lowering::clock& sends = come(sender, send, sent);
    lowering::clock& receives = come(receiver, receive, taken);
    // Mostly neighbours, which is said without a call.
    const int side = receiver == sender + 1   ? 1
                     : receiver == sender - 1 ? 0
                                              : side_of(sender, receiver);
    known_.meet(side, send, sends, receive, receives);
    if (laps_.any) laps_.met(sent.what, sender, send, sends, receiver, receive, receives);
  }
  constexpr void joined(const rank_group& group, const std::int32_t* entries) {
    const std::int32_t* steps = entries;
    scratch<std::int32_t> own(plan_->parts == nullptr ? 1 : plans_.size());
    if (plan_->parts != nullptr) {
      for (std::int32_t rank : group.members) own[rank] = plan_[rank].next++;
      steps = own.data();
    }
    for (std::int32_t rank : group.members)
      if (outside(rank, steps[rank])) return;
    for (std::int32_t rank : group.members)
      come(rank, steps[rank], plan_[rank].instructions[steps[rank]]);
    known_.join(group.members, steps);
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
    const buffer_use* uses = nullptr;
    const buffer* buffers = nullptr;
    std::int32_t* recorder = nullptr;  // of each event, index plus one; below zero: as it starts
    int end_stream = 0;            // the stream that ends the rank's steps
    std::int32_t end_event = -1;   // recorded when they have ended
    const op_part* parts = nullptr;
    std::int32_t count = 0;
    std::int32_t next = 0;         // of expanded plans: the instruction to come
    std::int32_t ended = 0;        // jobs that ended with one that was told of
  };

  constexpr int side_of(int rank, int peer) const {
    return lowering::side_of(rank, peer, static_cast<int>(plans_.size()));
  }
  //! All ops of the node that the job is in; nothing when its other half was told of.
  constexpr void ran_ops(int rank, rank_lists& plan) {
    if (plan.ended > 0) {
      --plan.ended;
      return;
    }
    while (!outside(rank, plan.next)) {
      const int index = plan.next++;
      const action act = plan.instructions[index].act;
      // A gather meets none but its like of the rank's other workers.
      if (meets_others(act) && act != action::all_gather && other_than(rank, index, action::run))
        return;
      const instruction& at = plan.instructions[index];
      come(rank, index, at);
      if (plan.parts[index].ends == 0) continue;
      plan.ended = plan.parts[index].ends - 1;
      return;
    }
  }
  //! A plan whose ops do not end where the list's job does.
  constexpr bool other_than(int rank, int index, action act) {
    const instruction& at = plan_[rank].instructions[index];
    if (at.act != act) blame(rank, index, at);
    return at.act != act;
  }
  //! A plan that has fewer instructions than its list wants.
  constexpr bool outside(int rank, int index) {
    if (index < plan_[rank].count) return false;
    if (found_.ok()) found_ = refuse(fault::race, reason::missing, rank, index, {});
    return true;
  }

  //! An instruction comes to its stream, after what it waits for. Nothing else of its rank comes
  //! before it is done.
  constexpr lowering::clock& come(int rank, int index, const instruction& at) {
    const rank_lists& plan = plan_[rank];
    // Mostly a send waits for a job and nothing else, as all do that its stream holds.
    std::int32_t maker = 0;  // that job, plus one
    if (at.act == action::send && at.wait_count == 1 && at.stream != plan.end_stream) {
      const event_wait wait = plan.waits[at.first_wait];
      if (!wait.previous_step && wait.why != wait_reason::starts_before)
        maker = plan.recorder[wait.event];
      if (maker > 0 && plan.instructions[maker - 1].stream != 0) maker = 0;
    }
    lowering::clock& here = maker > 0 ? known_.follow(rank, index, at.stream, maker - 1)
                                      : known_.arrive(rank, index, at.stream);
    if (at.stream == plan.end_stream) here.begun = true;
    if (maker <= 0 && at.wait_count > 0) {
      int next = at.first_wait;
      event_wait wait;  // here, because compilers are slow to make what a loop holds
      std::int32_t by = 0;
      while (next < at.first_wait + at.wait_count) {
        wait = plan.waits[next++];
        if (wait.previous_step) {
          if (wait.event == plan.end_event) here.begun = true;
          continue;
        }
        // A wait for an event that this step has not recorded yet orders nothing.
        by = plan.recorder[wait.event];
        if (wait.why == wait_reason::starts_before ? by >= 0 : by <= 0) blame(rank, index, at);
        // Of what has but begun no more is known.
        else if (by > 0 && here.own[(&here)[by - 1 - index].stream] < by)
          here.join((&here)[by - 1 - index]);
      }
    }
    if (at.record >= 0) {
      std::int32_t& by = plan.recorder[at.record];
      if (by != 0) blame(rank, index, at);  // which of the two records would a wait be for?
      by = index + 1;
    }
    if (plan.parts != nullptr) begin(rank, index, at);
    return here;
  }
  constexpr void begin(int rank, int index, const instruction& at) {
    const std::int32_t started = plan_[rank].parts[index].started;
    if (started < 0) return;
    std::int32_t& by = plan_[rank].recorder[started];
    if (by != 0) blame(rank, index, at);
    by = -1 - index;
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
