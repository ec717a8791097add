#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/base/stored.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/lowering/op_sequence.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::lowering {

//! One rank's plan whose jobs are expanded into ops.
struct op_plan {
  std::vector<instruction> instructions;
  std::vector<op_part> parts;
  std::vector<event_wait> waits;
  std::vector<buffer_use> uses;
  std::vector<byte_range> ranges;  //!< none where all uses are of whole buffers
  std::vector<std::int32_t> released;
  std::vector<buffer> buffers;
  std::int32_t events = 0;
  std::int64_t arena_bytes = 0;

  constexpr ~op_plan() = default;  // nvcc does not find it constexpr by itself
  //! The rest of `base` is the plan that this was expanded from.
  constexpr plan_view view(plan_view base) const {
    base.instructions = viewed(instructions);
    base.parts = viewed(parts);
    base.waits = viewed(waits);
    base.uses = viewed(uses);
    base.ranges = viewed(ranges);
    base.released = viewed(released);
    base.buffers = viewed(buffers);
    base.events = events;
    base.arena_bytes = arena_bytes;
    return base;
  }
  constexpr std::int64_t storage_bytes() const {
    return stored_bytes(instructions, parts, waits, uses, ranges, released, buffers);
  }
};

namespace detail {

class plan_expander {
 public:
  constexpr plan_expander(const plan_view& base, op_plan& out) : base_(base), out_(out) {}
  constexpr ~plan_expander() = default;  // nvcc does not find it constexpr by itself

  //! @param sequence_of see expand_plan
  template <class SequenceOf>
  constexpr void write(const SequenceOf& sequence_of) {
    const auto count = static_cast<std::int32_t>(base_.instructions.size());
    // 1. Which node each instruction belongs to, and where that begins and ends.
    first_ = filled<std::int32_t>(index(count) + 1);
    std::vector<const op_sequence*> sequences = filled<const op_sequence*>(index(count), nullptr);
    pair_ = filled<char>(index(count));
    std::int32_t at = 0;
    std::int64_t workspace = 0;
    for (std::int32_t from = 0; from < count; ++from) {
      const instruction& work = base_.instructions[index(from)];
      const bool pair = work.what.paired && from + 1 < count;
      const op_sequence* const found =
          work.act == action::run && is_compute(work.what.kind)
              ? sequence_of(base_.instructions.subspan(index(from), pair ? 2 : 1))
              : nullptr;
      first_[index(from)] = at;
      if (found == nullptr) {
        ++at;
        continue;
      }
      sequences[index(from)] = found;
      workspace = std::max(workspace, found->workspace_bytes);
      cut_ = cut_ || found->cut;
      if (pair) first_[index(++from)] = at, pair_[index(from)] = 1;
      at += static_cast<std::int32_t>(found->steps.size());
    }
    first_[index(count)] = at;
    releases_ = filled<std::vector<std::int32_t>>(index(at) + 1);
    event_of_ = filled<std::int32_t>(index(base_.events), -1);
    out_.arena_bytes = base_.arena_bytes + workspace;
    move_buffers();
    // 2. Events: a pair has one for both halves.
    for (std::int32_t from = 0; from < count; ++from) {
      const std::int32_t event = base_.instructions[index(from)].record;
      if (event < 0) continue;
      const bool shared =
          pair_[index(from)] != 0 && base_.instructions[index(from) - 1].record >= 0;
      event_of_[index(event)] =
          shared ? event_of_[index(base_.instructions[index(from) - 1].record)] : out_.events++;
    }
    // 3. Instructions.
    for (std::int32_t from = 0; from < count; ++from) {
      if (sequences[index(from)] == nullptr) {
        copy(from);
        continue;
      }
      write_node(from, *sequences[index(from)]);
      if (from + 1 < count && pair_[index(from) + 1] != 0) ++from;
    }
    write_releases();
  }

 private:
  static constexpr std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }

  constexpr void move_buffers() {
    for (const buffer& one : base_.buffers) {
      buffer moved = one;
      moved.first = first_[index(one.first)];
      moved.release = first_[index(one.release)];
      // The host's memory lies behind the arena, which has grown.
      if (one.role == buffer_role::host) moved.offset += out_.arena_bytes - base_.arena_bytes;
      out_.buffers.push_back(moved);
    }
    for (std::size_t from = 0; from < base_.instructions.size(); ++from)
      for (const std::int32_t freed : base_.released_before(base_.instructions[from])) {
        // What the first half of a pair touches is there as long as the pair.
        std::size_t until = from;
        if (pair_[from] != 0 && base_.released_as_ends(freed, static_cast<std::int32_t>(from)))
          ++until;
        out_.buffers[index(freed)].release = first_[until];
        releases_[index(first_[until])].push_back(freed);
      }
    // Freed at the end: not in any list.
  }

  constexpr void put_waits(std::int32_t from) {
    for (event_wait wait : base_.waits_of(base_.instructions[index(from)])) {
      wait.event = event_of_[index(wait.event)];
      out_.waits.push_back(wait);
    }
  }
  constexpr void put_uses(std::int32_t from) {
    for (const buffer_use& use : base_.uses_of(base_.instructions[index(from)]))
      put_use(use, {0, base_.buffers[index(use.buffer)].bytes});
  }
  constexpr void put_use(const buffer_use& use, const byte_range& range) {
    out_.uses.push_back(use);
    if (cut_) out_.ranges.push_back(range);
  }
  constexpr instruction& begin(instruction made) {
    made.first_wait = static_cast<std::int32_t>(out_.waits.size());
    made.first_use = static_cast<std::int32_t>(out_.uses.size());
    made.record = -1;
    out_.instructions.push_back(made);
    out_.parts.push_back({});
    return out_.instructions.back();
  }
  constexpr void end() {
    instruction& made = out_.instructions.back();
    made.wait_count = static_cast<std::int16_t>(out_.waits.size() - index(made.first_wait));
    made.use_count = static_cast<std::int32_t>(out_.uses.size() - index(made.first_use));
  }
  constexpr void copy(std::int32_t from) {
    instruction& made = begin(base_.instructions[index(from)]);
    if (const std::int32_t event = base_.instructions[index(from)].record; event >= 0)
      made.record = event_of_[index(event)];
    put_waits(from);
    put_uses(from);
    end();
  }

  //! Waits of the job, or of both, come before the first op, which computes; what they record after
  //! the last that computes. Ops that compute hold all that their own job touches, the first and
  //! the last what both do, for their node; and a local buffer whoever gives it back.
  constexpr void write_node(std::int32_t from, const op_sequence& ops) {
    const int halves = pair_[index(from) + 1] != 0 ? 2 : 1;
    const auto first = static_cast<std::int32_t>(out_.instructions.size());
    const auto count = static_cast<std::int32_t>(ops.steps.size());
    std::vector<std::int32_t> ended = filled<std::int32_t>(ops.steps.size(), -1);
    std::vector<std::int32_t> started = filled<std::int32_t>(ops.steps.size(), -1);
    std::vector<std::int32_t> local;
    for (const op_sequence::local_buffer& one : ops.buffers) {
      const job& work = base_.instructions[index(from + one.half)].what;
      local.push_back(static_cast<std::int32_t>(out_.buffers.size()));
      out_.buffers.push_back({.offset = base_.arena_bytes + one.offset,
                              .bytes = one.bytes,
                              .stage = work.stage,
                              .microbatch = work.microbatch,
                              .slice = work.slice,
                              .role = buffer_role::workspace,
                              .first = first + one.first,
                              .release = first + one.last + 1});
      releases_[index(first + one.last + 1)].push_back(local.back());
    }
    for (std::int32_t at = 0; at < count; ++at) {
      const op_sequence::step& step = ops.steps[index(at)];
      const bool outer = at == 0 || at + 1 == count;
      instruction work = base_.instructions[index(from + step.half)];
      work.stream = step.stream;
      work.what.paired = false;
      if (step.collective) work.act = action::share_sum;
      instruction& made = begin(work);
      op_part& part = out_.parts.back();
      part = step.part;
      if (at == 0)
        for (int half = 0; half < halves; ++half) put_waits(from + half);
      for (std::int32_t wait = step.first_wait; wait < step.first_wait + step.waits; ++wait) {
        const op_sequence::wait& one = ops.waits[index(wait)];
        out_.waits.push_back({one.start ? started[index(one.step)] : ended[index(one.step)],
                              one.start ? wait_reason::starts_before : wait_reason::data, false});
      }
      if (step.stream == 0 && !step.collective) put_uses(from + step.half);
      for (std::int32_t use = step.first_use; use < step.first_use + step.uses; ++use) {
        buffer_use made_use = ops.uses[index(use)];
        made_use.buffer = local[index(made_use.buffer)];
        put_use(made_use, ops.ranges[index(use)]);
      }
      const auto own = static_cast<std::int32_t>(out_.uses.size() - index(made.first_use));
      for (const op_sequence::held& one : ops.held_uses)
        if (one.step == at)
          put_use({local[index(one.buffer)], buffer_role::workspace, access::read},
                  {0, ops.buffers[index(one.buffer)].bytes});
      if (outer && halves == 2) put_uses(from + 1 - step.half);
      if (static_cast<std::int32_t>(out_.uses.size() - index(made.first_use)) > own)
        part.own_uses = own;
      if (step.recorded) made.record = ended[index(at)] = out_.events++;
      if (step.started_recorded) part.started = started[index(at)] = out_.events++;
      if (at + 1 == count) {
        part.ends = static_cast<std::uint8_t>(halves);
        for (int half = 0; half < halves; ++half)
          if (const std::int32_t event = base_.instructions[index(from + half)].record; event >= 0)
            made.record = event_of_[index(event)];
      }
      end();
    }
  }

  constexpr void write_releases() {
    for (std::size_t at = 0; at < out_.instructions.size(); ++at) {
      instruction& made = out_.instructions[at];
      made.first_release = static_cast<std::int32_t>(out_.released.size());
      made.release_count = static_cast<std::int32_t>(releases_[at].size());
      for (const std::int32_t freed : releases_[at]) out_.released.push_back(freed);
    }
  }

  plan_view base_;
  op_plan& out_;
  std::vector<std::int32_t> first_;  // instruction of each old one's node, and their number
  std::vector<char> pair_;           // second half of a pair
  bool cut_ = false;                 // whether pieces touch parts of buffers
  std::vector<std::vector<std::int32_t>> releases_;  // before each new instruction
  std::vector<std::int32_t> event_of_;               // the new event of each old one
};

}  // namespace detail

//! Expands the jobs of a rank's plan into ops. A node, which is a job or a pair, starts when all
//! that its jobs wait for is there, as its first op, and is done with its last, both on the stream
//! that computes: what holds between the jobs of the plan holds between their ops. Some waits may
//! be more than needed where a pair has become one: see plans_expander.
//! @param sequence_of  (node): the ops of a node's job, or of both its jobs, given as instructions;
//!                     kept by the caller; null leaves them whole
template <class SequenceOf>
constexpr void expand_plan(const plan_view& base, const SequenceOf& sequence_of, op_plan& out) {
  detail::plan_expander(base, out).write(sequence_of);
}

}  // namespace stretto::lowering
