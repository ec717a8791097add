#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/free_places.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/plan_storage.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/stage_bytes.hpp"

namespace stretto::lowering {

//! What buffers are sized and released by. `stages` has an entry per stage, or one for all.
struct buffer_sizes {
  std::span<const stage_bytes> stages{};
  std::span<const group_info> groups{};
  //! Release a sent message as soon as something received proves that it was taken, or, of many, a
  //! job has waited for it to be sent; otherwise at the end of the step.
  bool release_sends = true;

  constexpr const stage_bytes& of(int stage) const {
    return stages.data()[stages.size() == 1 ? 0 : stage];
  }
  constexpr std::int64_t bytes(buffer_role role, int stage) const {
    const stage_bytes* const each = stages.data();
    const bool one = stages.size() == 1;
    switch (role) {
      case buffer_role::input:
      case buffer_role::input_gradient: return each[one ? 0 : stage - 1].output;
      case buffer_role::output:
      case buffer_role::output_gradient: return each[one ? 0 : stage].output;
      case buffer_role::stash:
      case buffer_role::host: return each[one ? 0 : stage].stash;
      case buffer_role::kept: return each[one ? 0 : stage].kept;
      case buffer_role::left: return each[one ? 0 : stage].left;
      case buffer_role::collective: {
        const group_info& group = groups[static_cast<std::size_t>(stage)];
        return group.elements * (group.wide ? 8 : 4);
      }
      case buffer_role::weights:
        return each[one ? 0 : stage].weights;
      case buffer_role::workspace: break;  // of plans whose jobs are expanded
    }
    return 0;
  }
};

//! The least multiple of 64 bytes that holds so many: where buffers begin.
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

//! How many buffers a plan has room for, where the compiler knows; else 0.
template <class Plan>
inline constexpr std::int64_t known_buffers = 0;
template <plan_capacity Room>
inline constexpr std::int64_t known_buffers<fixed_rank_plan<Room>> = Room.buffers;

//! The buffers of one rank while its plan is written, and where they lie in the arena. What
//! forwards save for backwards lies below, what jobs and messages bring to each other above: of
//! either there are few sizes, so that a place that one leaves fits the next, and little lies idle
//! between; often there is but one, and any place will do. Above these lie weights that are
//! gathered. What the host keeps lies behind the arena, in memory of its own.
template <class Plan>
class buffer_book {
 public:
  static constexpr int saved_part = 0, message_part = 1, weights_part = 2, host_part = 3;

  //! @param row  the clocks of the plan's instructions, of which there are so many
  constexpr buffer_book(Plan& sink, const buffer_sizes& sizes, const clock* row,
                        std::int32_t instructions)
      : last(sink.room.buffers),
        sink_(sink),
        sizes_(sizes),
        row_(row),
        instructions_(instructions),
        left_(part_count * std::int64_t{sink.room.buffers}),
        places_(sink.room.buffers) {
    for (int role = 0; role < buffer_role_count; ++role) {
      const auto of = static_cast<buffer_role>(role);
      const bool one = sizes.stages.size() == 1 && of != buffer_role::collective;
      bytes_[role] = one ? sizes.bytes(of, 0) : -1;
      whole_[role] = one ? aligned(bytes_[role]) : -1;
      part_of_[role] = of == buffer_role::host      ? host_part
                       : of == buffer_role::weights ? weights_part
                       : is_saved(of)               ? saved_part
                                                    : message_part;
    }
    for (int of = 0; of < part_count; ++of)
      parts_[of].first = parts_[of].last = of * sink.room.buffers;
  }
  constexpr ~buffer_book() = default;  // nvcc does not find it constexpr by itself

  //! Of each buffer, the index of the latest access, sends aside; of a message known as taken, of
  //! the job that knows.
  sized_scratch<std::int32_t, known_buffers<Plan>> last;
  std::int32_t released = 0;  //!< how many buffers have been
  std::int32_t now = 0;       //!< the instruction at hand

  //! A buffer that the instruction is the first to write, in use to the end of the step unless
  //! it is closed. A job takes the place left last where all are of one size, else the lowest that
  //! is free and large enough; where there are copies, of those that were left on its own stream,
  //! if any, with nobody to wait for.
  //! @param oldest  of a message that comes, or a copy: it takes the place that was left the
  //!                longest ago, so that it need hardly ever wait for who was there
  //! @param bytes   -1: what the role has
  constexpr std::int32_t open(buffer_role role, const job& work, bool oldest,
                              std::int64_t bytes = -1) {
    const std::int32_t id = opened_++;
    std::int64_t whole = -1;
    if (bytes < 0) bytes = bytes_[static_cast<int>(role)], whole = whole_[static_cast<int>(role)];
    if (bytes < 0) bytes = sizes_.bytes(role, work.stage);
    if (whole < 0) whole = aligned(bytes);
    arena_part& of = parts_[part_of_[static_cast<int>(role)]];
    if (of.size != whole && of.size != several) meet_size(of, whole);
    std::int64_t begin = of.top;
    left_at_ = -1;
    if (of.size == several) {
      begin = take(of, whole, oldest);
    } else if (of.first == of.last) {
      of.top = begin + whole;
    } else {
      const std::int32_t before = left_.items[oldest ? of.first++ : --of.last];
      begin = sink_.buffers[before].offset;
      left_at_ = last.items[before];
    }
    sink_.buffers[id] = {begin, bytes, work.stage, work.microbatch, work.slice, role, now,
                         instructions_};
    last.items[id] = now;
    return id;
  }
  //! The latest job that touched what was in the place of the buffer opened last; -1: none.
  constexpr std::int32_t left_at() const { return left_at_; }
  //! The latest copy that did, of what is saved.
  constexpr std::int32_t copied_at() const { return copied_at_; }

  //! The buffer's place may be taken by instruction `release`, not before that of the last call,
  //! and later ones; nothing is opened any more by earlier ones.
  //! @param part  which one it lies in, by its role
  constexpr void close(int part, std::int32_t id, std::int32_t release) {
    if (release < instructions_) {
      sink_.buffers[id].release = release;
      sink_.released[released++] = id;
    }
    arena_part& of = parts_[part];
    if (of.size > 0) left_.items[of.last++] = id;
    else leave(part, id);
  }
  //! When all are open that will be: puts each part behind the one before.
  constexpr void settle() {
    const std::int64_t saved = parts_[saved_part].top;
    const std::int64_t weights = saved + parts_[message_part].top;
    const std::int64_t arena = weights + parts_[weights_part].top;
    sink_.used.buffers = opened_;
    sink_.arena_bytes = arena;
    sink_.host_bytes = parts_[host_part].top;
    const std::int32_t opened = opened_;
    buffer_role role{};
    for (std::int32_t id = 0; id < opened; ++id) {
      role = sink_.buffers[id].role;
      if (!is_saved(role))
        sink_.buffers[id].offset += role == buffer_role::host      ? arena
                                    : role == buffer_role::weights ? weights
                                                                   : saved;
    }
  }

 private:
  static constexpr std::int64_t none = -1, several = -2;  // sizes
  //! Offsets count from its own beginning.
  struct arena_part {
    // Who left the free places, in this order, stands in left_; of several sizes, in places_.
    std::int32_t first = 0;
    std::int32_t last = 0;     // behind them
    std::int64_t size = none;  // of all that was asked for
    std::int64_t top = 0;      // beyond it nothing has been used
  };
  static constexpr int part_count = 4;

  constexpr void leave(int part, std::int32_t id) {
    const std::int64_t begin = sink_.buffers[id].offset;
    places_.leave(part, id, begin, begin + aligned(sink_.buffers[id].bytes), last.items[id]);
  }
  //! Notes a size that is new to this part. From the second on its free places are kept by where
  //! they lie; from the first copy to the host on those of what is saved, too, because it then
  //! matters on which stream each was left.
  constexpr void meet_size(arena_part& of, std::int64_t bytes) {
    if (&of == parts_ + host_part) meet_size(parts_[saved_part], several);
    of.size = of.size == none ? bytes : several;
    while (of.first < of.last) leave(static_cast<int>(&of - parts_), left_.items[of.first++]);
  }
  constexpr std::int64_t take(arena_part& of, std::int64_t bytes, bool oldest) {
    const bool copies = parts_[host_part].top > 0;
    const bool saved = &of == parts_ + saved_part;
    const auto found =
        places_.take(static_cast<int>(&of - parts_), bytes, oldest, of.top,
                     row_, copies, copies && saved ? row_[now].stream : -1);
    left_at_ = found.left;
    if (saved) copied_at_ = found.copied;
    return found.begin;
  }

  Plan& sink_;
  const buffer_sizes& sizes_;
  const clock* row_;
  std::int32_t instructions_;
  // By role; bytes also padded: -1 where stages differ.
  std::int64_t bytes_[buffer_role_count]{};
  std::int64_t whole_[buffer_role_count]{};
  int part_of_[buffer_role_count]{};
  std::int32_t opened_ = 0;
  std::int32_t left_at_ = -1;
  std::int32_t copied_at_ = -1;
  arena_part parts_[part_count]{};
  sized_scratch<std::int32_t, part_count * known_buffers<Plan>> left_;
  free_places<part_count, known_buffers<Plan>> places_;
};

}  // namespace stretto::lowering
