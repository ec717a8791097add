#pragma once

#include <cstdint>
#include <span>

#include "stretto/lowering/replica_groups.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

namespace detail {

//! What an entry of a list does in a plan, by its kind.
struct action_table {
  action of[job_kind_count]{};

  constexpr action_table() {
    for (int number = 0; number < job_kind_count; ++number) {
      const auto kind = static_cast<job_kind>(number);
      of[number] = is_send(kind)                  ? action::send
                   : is_receive(kind)             ? action::receive
                   : kind == job_kind::offload    ? action::offload
                   : kind == job_kind::reload     ? action::reload
                   : kind == job_kind::all_reduce ? action::all_reduce
                   : kind == job_kind::all_gather ? action::all_gather
                   : kind == job_kind::end_step   ? action::end_step
                                                  : action::run;
    }
  }
};

//! Whether an op is of a job of its node, whose jobs the list has from `entry` on.
constexpr bool is_op_of(const instruction& at, const op_part& part, const job* entry) {
  const int jobs = entry->paired ? 2 : 1;
  job node = *entry;
  node.paired = false;
  return (at.act == action::run || at.act == action::share_sum) && is_compute(node.kind) &&
         (at.what == node || (jobs == 2 && at.what == entry[1])) &&
         (part.ends == 0 || part.ends == jobs);
}

}  // namespace detail

//! Rule `complete` of a written plan: it does what its rank's list says, entry by entry, or op by
//! op where jobs are expanded; messages go to and come from the ranks that the placement names;
//! sums are of parts where replicas hold parts. What is proven of the lists then holds of the
//! plans. Which buffers a job touches says own_buffers; whether all its ops are there, op_by_op.
//! @param plan   of plan.rank
//! @param lists  with messages: what it was written from, complete
//! @return ok, or fault::incomplete with the instruction; where the plan ends early, with what is
//!         missing
constexpr verdict as_listed(const plan_view& plan, const replay_input& lists) {
  const int rank = plan.rank;
  const placement where = lists.where;
  const job* const list = lists.rows.items + static_cast<std::int64_t>(rank) * lists.rows.stride;
  const std::int32_t entries = lists.rows.counts[rank];
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  const instruction* const instructions = plan.instructions.data();
  const op_part* const parts = plan.parts.empty() ? nullptr : plan.parts.data();
  const detail::action_table acts;
  const bool scatters = lowering::replica_groups::gather(lists.groups);
  std::int32_t next = 0;
  bool open = false;  // ops of the node from `next` on have come, and more will
  // Copies, and here: compilers are slow to read what lies in a plan, to make what a loop holds,
  // and to call.
  instruction at;
  job entry;
  bool listed = false;
  for (std::int32_t index = 0; index < count; ++index) {
    at = instructions[index];
    if (next >= entries)
      return refuse(fault::incomplete, reason::not_as_listed, rank, index, at.what);
    if (parts != nullptr && parts[index].op >= 0) {
      if (!detail::is_op_of(at, parts[index], list + next))
        return refuse(fault::incomplete, reason::not_as_listed, rank, index, at.what);
      open = parts[index].ends == 0;
      next += parts[index].ends;
      continue;
    }
    entry = list[next++];
    listed = !open && at.what.stage == entry.stage && at.what.microbatch == entry.microbatch &&
             at.what.slice == entry.slice && at.what.kind == entry.kind &&
             at.what.paired == entry.paired &&
             at.act == (scatters && lists.scatters(entry) ? action::reduce_scatter
                                                          : acts.of[static_cast<int>(entry.kind)]);
    // Whom a message goes to or comes from, or the group of a collective, is the entry's, too.
    if (entry.kind == job_kind::send_forward || entry.kind == job_kind::receive_backward)
      listed = listed && at.peer == where.rank_of(entry.stage + 1, entry.microbatch);
    else if (entry.kind == job_kind::send_backward || entry.kind == job_kind::receive_forward)
      listed = listed && at.peer == where.rank_of(entry.stage - 1, entry.microbatch);
    else if (entry.kind == job_kind::all_reduce || entry.kind == job_kind::all_gather)
      listed = listed && at.peer == entry.microbatch;
    if (!listed) return refuse(fault::incomplete, reason::not_as_listed, rank, index, at.what);
  }
  if (next == entries && !open) return {};
  return refuse(fault::incomplete, reason::missing, rank, count, list[next]);
}

}  // namespace stretto::check
