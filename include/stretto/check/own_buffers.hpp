#pragma once

#include <cstdint>

#include "stretto/model/plan_view.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

namespace detail {

//! What an instruction does to the buffers of its own job, by its kind and their roles for it.
struct touch_table {
  //! The access, plus one; none: 0.
  int mode[job_kind_count][buffer_role_count]{};
  //! A bit for each role that it cannot do without.
  int needs[job_kind_count]{};

  //! @param gathers  weights are gathered, and read by all that computes
  constexpr explicit touch_table(bool gathers) {
    using enum job_kind;
    using enum buffer_role;
    for (const job_kind kind : {forward, recompute, backward, backward_input, backward_weight})
      set(kind, input, access::read, true);
    for (const job_kind kind : {forward, recompute}) {
      set(kind, stash, access::write, true);
      set(kind, kept, access::write, false);
    }
    set(forward, output, access::write, true);
    for (const job_kind kind : {backward, backward_input, backward_weight}) {
      const bool whole = kind != backward_weight;
      set(kind, output_gradient, access::read, true);
      // The backward for the weights reads what the one for the input has left of either.
      set(kind, stash, whole ? access::read_write : access::read, whole);
      set(kind, kept, whole ? access::read_write : access::read, false);
      if (whole) set(kind, input_gradient, access::write, true);
    }
    set(backward_input, left, access::write, false);
    set(backward_weight, left, access::read, false);
    set(send_forward, output, access::read, true);
    set(receive_forward, input, access::write, true);
    set(send_backward, input_gradient, access::read, true);
    set(receive_backward, output_gradient, access::write, true);
    set(offload, stash, access::read, true);
    set(offload, host, access::write, true);
    set(reload, host, access::read, true);
    set(reload, stash, access::write, true);
    for (const job_kind kind : {reduce_grad, all_reduce})
      needs[static_cast<int>(kind)] = bit(collective);
    if (!gathers) return;
    for (const job_kind kind :
         {forward, recompute, backward, backward_input, backward_weight, reshard})
      set(kind, weights, access::read, true);
    set(unshard, weights, access::write, true);
    set(all_gather, weights, access::read_write, true);
  }
  static constexpr int bit(buffer_role role) { return 1 << static_cast<int>(role); }

 private:
  constexpr void set(job_kind kind, buffer_role role, access how, bool needed) {
    mode[static_cast<int>(kind)][static_cast<int>(role)] = 1 + static_cast<int>(how);
    if (needed) needs[static_cast<int>(kind)] |= bit(role);
  }
};

//! Whether a job at the end of its rank's list may touch this collective's buffer: its group
//! prepares and sums it, and who comes behind reads it.
constexpr bool touches_sum(const job& what, const buffer& of, access mode) {
  if (of.role != buffer_role::collective) return false;
  const bool own = of.stage == what.microbatch;
  switch (what.kind) {
    case job_kind::reduce_grad: return mode == (own ? access::write : access::read);
    case job_kind::all_reduce: return own && mode == access::read_write;
    default: return what.kind == job_kind::optimizer && mode == access::read;
  }
}

}  // namespace detail

//! Rule `complete` of a written plan, of whole jobs: each instruction touches the buffers of its
//! own stage, micro-batch and slice, all that its kind needs, each once, as it does, and no others.
//! An input is what came in a message, or the output of the stage before on the same rank;
//! gradients likewise. Later slices read what earlier ones of their micro-batch keep; the buffers
//! of collectives are their groups'. Where weights are gathered, all that computes reads its
//! stage's. As all accesses to a buffer are ordered (race_free), every job then computes with what
//! its own micro-batch has left for it.
//! @param plan  as its rank's list says (as_listed)
//! @return ok, or fault::incomplete with the instruction
constexpr verdict own_buffers(const plan_view& plan) {
  const instruction* const list = plan.instructions.data();
  const buffer_use* const uses = plan.uses.data();
  const buffer* const buffers = plan.buffers.data();
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  const int rank = plan.rank;
  const int stages = plan.stages;
  bool gathers = false;
  for (const group_info& group : plan.groups) gathers = gathers || group.weights >= 0;
  detail::touch_table touches(gathers);
  using enum buffer_role;
  // Constants, and copies: compilers are slow to call, and to read what lies in a plan.
  constexpr int from_before = 1 << int(input) | 1 << int(input_gradient);
  constexpr int from_behind = 1 << int(output) | 1 << int(output_gradient);
  constexpr int saved = 1 << int(stash) | 1 << int(kept);
  // Of the instruction and the use at hand; here, because compilers are slow to make what loops
  // hold.
  instruction at;
  job what;
  int kind = 0;
  bool own = true;
  int seen = 0;
  int earlier = 0;
  std::int32_t next = 0;
  std::int32_t end = 0;
  buffer_use touched;
  buffer of;
  int role = 0;
  int bit = 0;
  int mode = 0;
  for (std::int32_t index = 0; index < count; ++index) {
    at = list[index];
    // Mostly a message touches its own, in the one role that it can, which is said at once.
    if (at.use_count == 1 && (at.act == action::send || at.act == action::receive)) {
      touched = uses[at.first_use];
      of = buffers[touched.buffer];
      kind = static_cast<int>(at.what.kind);
      if (of.stage == at.what.stage && of.microbatch == at.what.microbatch &&
          of.slice == at.what.slice && of.role == touched.role &&
          touches.mode[kind][static_cast<int>(of.role)] == 1 + static_cast<int>(touched.mode))
        continue;
    }
    what = at.what;
    kind = static_cast<int>(what.kind);
    own = true;
    seen = earlier = 0;
    next = at.first_use;
    end = next + at.use_count;
    while (next < end) {
      touched = uses[next++];
      of = buffers[touched.buffer];
      // And a job one of its own, in the role that it was made in.
      if (of.stage == what.stage && of.microbatch == what.microbatch && of.slice == what.slice &&
          of.role == touched.role &&
          touches.mode[kind][static_cast<int>(of.role)] == 1 + static_cast<int>(touched.mode) &&
          (seen & 1 << static_cast<int>(of.role)) == 0) {
        seen |= 1 << static_cast<int>(of.role);
        continue;
      }
      role = static_cast<int>(touched.role);
      bit = 1 << role;
      if (touched.role >= collective && touched.role <= weights) {
        own = own && (touched.role == weights
                          ? of.role == weights && of.stage == what.stage &&
                                touches.mode[kind][role] == 1 + static_cast<int>(touched.mode)
                          : detail::touches_sum(what, of, touched.mode));
        if (touched.role == collective && of.stage != what.microbatch) continue;
        if ((seen & bit) != 0) own = false;
        seen |= bit;
        continue;
      }
      if (of.role != touched.role) {
        // What stays on the rank keeps the role that it was made in.
        if (touched.role == input && of.role == output) ++of.stage;
        else if (touched.role == output_gradient && of.role == input_gradient) --of.stage;
        else own = false;
      }
      mode = touches.mode[kind][role];
      if (of.slice == what.slice) {
        if ((seen & bit) != 0) own = false;
        seen |= bit;
      } else {
        // Of earlier slices, one after the other.
        if (of.slice != earlier++ || touched.role != stash) own = false;
        if (what.kind == job_kind::forward) mode = 1 + static_cast<int>(access::read);
      }
      if (of.stage != what.stage || of.microbatch != what.microbatch ||
          1 + static_cast<int>(touched.mode) != mode)
        own = false;
    }
    int needs = touches.needs[kind];
    if (what.kind <= job_kind::recompute) {
      if (what.stage == 0) needs &= ~from_before;
      if (what.stage + 1 == stages) needs &= ~from_behind;
      if (what.kind == job_kind::backward_weight && (seen & saved) == 0) own = false;
    }
    if (!own || (seen & needs) != needs ||
        earlier != (what.kind <= job_kind::backward_input ? what.slice : 0))
      return refuse(fault::incomplete, reason::buffer_of_another, rank, index, what);
  }
  return {};
}

}  // namespace stretto::check
