#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
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
  //! Release a sent message as soon as something received proves that it was taken; otherwise at
  //! the end of the step.
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
      case buffer_role::collective: {
        const group_info& group = groups[static_cast<std::size_t>(stage)];
        return group.elements * (group.wide ? 8 : 4);
      }
      case buffer_role::workspace: break;  // of plans whose jobs are expanded
    }
    return 0;
  }
};

constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

//! How many buffers a plan has room for, where the compiler knows; else 0.
template <class Plan>
inline constexpr std::int64_t known_buffers = 0;
template <plan_capacity Room>
inline constexpr std::int64_t known_buffers<fixed_rank_plan<Room>> = Room.buffers;

//! The buffers of one rank while its plan is written, and where they lie in the arena. What
//! forwards save for backwards lies below, what jobs and messages bring to each other above: of
//! either there are few sizes, so that a place that one leaves fits the next, and little lies idle
//! between; often there is but one, and any place will do. What the host keeps lies behind the
//! arena, in memory of its own.
template <class Plan>
class buffer_book {
 public:
  //! @param row  the clocks of the plan's instructions, of which there are so many
  constexpr buffer_book(Plan& sink, const buffer_sizes& sizes, const clock* row,
                        std::int32_t instructions)
      : about(sink.room.buffers),
        sink_(sink),
        sizes_(sizes),
        row_(row),
        instructions_(instructions) {
    for (int role = 0; role < buffer_role_count; ++role) {
      const auto of = static_cast<buffer_role>(role);
      if (sizes.stages.size() == 1 && of != buffer_role::collective) bytes_[role] = sizes.bytes(of, 0);
      else bytes_[role] = -1;
    }
  }
  constexpr ~buffer_book() = default;  // nvcc does not find it constexpr by itself

  struct about_buffer {
    //! Index of the latest access, sends aside; of a message known as taken, of the job that knows.
    std::int32_t last;
    // Once it is closed, its free neighbours, plus one, and what of its place is still free; until
    // then all of it.
    std::int32_t next;
    std::int32_t previous;
    std::int64_t begin;
    std::int64_t end;
  };
  sized_scratch<about_buffer, known_buffers<Plan>> about;
  std::int32_t released = 0;  //!< how many buffers have been
  std::int32_t now = 0;       //!< the instruction at hand

  //! A buffer that the instruction is the first to write, in use to the end of the step unless
  //! it is closed. A job takes the lowest place that is free and large enough, or, where all are
  //! of one size, the one left last; where there are copies, of those that were left on its own
  //! stream, if any, with nobody to wait for.
  //! @param oldest  of a message that comes, or a copy: it takes the place that was left the longest
  //!                ago, so that it need hardly ever wait for who was there
  constexpr std::int32_t open(buffer_role role, const job& work, bool oldest) {
    const std::int32_t id = opened_++;
    if (id == sink_.room.buffers) throw std::length_error("stretto: plan has no room for buffers");
    std::int64_t bytes = bytes_[static_cast<int>(role)];
    if (bytes < 0) bytes = sizes_.bytes(role, work.stage);
    const std::int64_t whole = aligned(bytes);
    part& of = parts_[part_.of[static_cast<int>(role)]];
    if (of.size != whole && of.size >= 0) meet_size(of, whole);
    const bool any = of.size >= 0 && (parts_[host_part].top == 0 || &of == parts_ + message_part);
    const std::int64_t begin = any ? take_any(of, oldest) : take(of, whole, oldest);
    sink_.buffers[id] = {begin, bytes, work.stage, work.microbatch, work.slice, role, now,
                         instructions_};
    about.items[id] = {now, 0, 0, begin, begin + whole};
    return id;
  }
  //! The latest job that touched what was in the place of the buffer opened last; -1: none.
  constexpr std::int32_t left_at() const { return left_at_; }
  //! The latest copy that did.
  constexpr std::int32_t copied_at() const { return copied_at_; }

  //! The buffer's place may be taken by instruction `release`, not before that of the last call,
  //! and later ones; nothing is opened any more by earlier ones.
  constexpr void close(std::int32_t id, std::int32_t release) {
    buffer& made = sink_.buffers[id];
    if (release < instructions_) {
      made.release = release;
      sink_.released[released++] = id;
    }
    link(parts_[part_.of[static_cast<int>(made.role)]], id);
  }
  //! When all are open that will be: puts each part behind the one before.
  constexpr void settle() {
    const std::int64_t saved = parts_[saved_part].top;
    const std::int64_t arena = saved + parts_[message_part].top;
    sink_.used.buffers = opened_;
    sink_.arena_bytes = arena;
    sink_.host_bytes = parts_[host_part].top;
    for (std::int32_t id = 0; id < opened_; ++id) {
      buffer& made = sink_.buffers[id];
      const buffer_role role = made.role;
      if (role == buffer_role::stash || role == buffer_role::kept) continue;
      made.offset += role == buffer_role::host ? arena : saved;
    }
  }

 private:
  //! Offsets count from its own beginning. Free places are linked as they were left while all that
  //! was asked for had one size, and in the order of their offsets from then on.
  struct part {
    std::int32_t first = 0;  // plus one
    std::int32_t last = 0;   // plus one
    std::int64_t top = 0;    // beyond it nothing has been used
    std::int64_t size = 0;   // of all; 0: nothing has been asked for; -1: there are several
  };

  static constexpr int saved_part = 0, message_part = 1, host_part = 2;
  struct part_by_role {
    int of[buffer_role_count];
    constexpr part_by_role() : of{} {
      for (int role = 0; role < buffer_role_count; ++role)
        of[role] = is_saved(static_cast<buffer_role>(role)) ? saved_part : message_part;
      of[static_cast<int>(buffer_role::host)] = host_part;
    }
  };

  //! The buffer's place is free from now on.
  constexpr void link(part& of, std::int32_t id) {
    about_buffer& free = about.items[id];
    const std::int64_t begin = free.begin;
    if (begin == free.end) return;
    std::int32_t before = of.last;
    std::int32_t after = 0;
    if (of.size < 0 && before > 0 && about.items[before - 1].begin >= begin)
      for (before = 0, after = of.first; after > 0 && about.items[after - 1].begin < begin;)
        before = after, after = about.items[after - 1].next;
    free.next = after;
    free.previous = before;
    (before > 0 ? about.items[before - 1].next : of.first) = id + 1;
    (after > 0 ? about.items[after - 1].previous : of.last) = id + 1;
  }
  //! The first that is asked for, or the first that is larger or smaller than those before.
  constexpr void meet_size(part& of, std::int64_t bytes) {
    std::int32_t at = of.first;
    of.first = of.last = 0;
    of.size = of.size == 0 ? bytes : -1;
    while (at > 0) {
      const std::int32_t next = about.items[at - 1].next;
      link(of, at - 1);
      at = next;
    }
  }

  //! Where all are of one size.
  constexpr std::int64_t take_any(part& of, bool oldest) {
    const std::int32_t at = oldest ? of.first : of.last;
    left_at_ = copied_at_ = -1;
    if (at == 0) {
      const std::int64_t from = of.top;
      of.top = from + of.size;
      return from;
    }
    about_buffer free = about.items[at - 1];
    left_at_ = free.last;
    if (oldest) {
      of.first = free.next;
      (free.next > 0 ? about.items[free.next - 1].previous : of.last) = 0;
    } else {
      of.last = free.previous;
      (free.previous > 0 ? about.items[free.previous - 1].next : of.first) = 0;
    }
    return free.begin;
  }
  //! Where there are several sizes, or copies, which take of what is saved by streams.
  constexpr std::int64_t take(part& of, std::int64_t bytes, bool oldest) {
    left_at_ = copied_at_ = -1;
    std::int64_t from = of.top;
    std::int32_t start = 0;
    const bool copies = parts_[host_part].top > 0;
    if (copies && &of == parts_ + saved_part) start = left_on(row_[now].stream, bytes);
    if (start > 0) {
      from = about.items[start - 1].begin;
    } else if (oldest) {
      std::int32_t longest = 0;
      for (std::int32_t at = of.first; at > 0;) {
        about_buffer free = about.items[at - 1];  // a copy is read faster by a compiler
        if ((start == 0 || free.last < longest) && free.end - free.begin >= bytes)
          start = at, longest = free.last;
        at = free.next;
      }
      if (start > 0) from = about.items[start - 1].begin;
    }
    if (start == 0) {
      // The first run of free places that is long enough; the last may grow.
      std::int64_t to = -1;
      std::int32_t at = of.first;
      while (at > 0) {
        about_buffer free = about.items[at - 1];
        if (free.begin != to) from = free.begin, start = at;
        to = free.end;
        if (to - from >= bytes) break;
        at = free.next;
      }
      if (at == 0) {
        if (to != of.top) from = of.top, start = 0;
        if (from + bytes > of.top) of.top = from + bytes;
      }
    }
    const std::int64_t end = from + bytes;
    for (std::int32_t at = start; at > 0;) {
      about_buffer free = about.items[at - 1];
      if (free.begin >= end) break;
      std::int32_t& left =
          copies && row_[free.last].stream > 0 ? copied_at_ : left_at_;
      if (free.last > left) left = free.last;
      if (free.end > end) {
        about.items[at - 1].begin = end;
        break;
      }
      (free.previous > 0 ? about.items[free.previous - 1].next : of.first) = free.next;
      (free.next > 0 ? about.items[free.next - 1].previous : of.last) = free.previous;
      if (free.end == end) break;
      at = free.next;
    }
    return from;
  }

  //! The lowest free place of what is saved that is large enough, and was left on `stream`.
  constexpr std::int32_t left_on(int stream, std::int64_t bytes) const {
    for (std::int32_t at = parts_[saved_part].first; at > 0; at = about.items[at - 1].next)
      if (about.items[at - 1].end - about.items[at - 1].begin >= bytes &&
          row_[about.items[at - 1].last].stream == stream)
        return at;
    return 0;
  }

  Plan& sink_;
  const buffer_sizes& sizes_;
  const clock* row_;
  std::int32_t instructions_;
  std::int64_t bytes_[buffer_role_count]{};  // by role, where all stages have the same; else -1
  std::int32_t opened_ = 0;
  std::int32_t left_at_ = -1;
  std::int32_t copied_at_ = -1;
  part_by_role part_;
  part parts_[3]{};
};

}  // namespace stretto::lowering
