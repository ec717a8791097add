#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
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
    return stages[stages.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
  }
  constexpr std::int64_t bytes(buffer_role role, int stage) const {
    switch (role) {
      case buffer_role::input:
      case buffer_role::input_gradient: return of(stage - 1).output;
      case buffer_role::output:
      case buffer_role::output_gradient: return of(stage).output;
      case buffer_role::stash: return of(stage).stash;
      case buffer_role::collective: {
        const group_info& group = groups[static_cast<std::size_t>(stage)];
        return group.elements * (group.wide ? 8 : 4);
      }
    }
    return 0;
  }
};

constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

//! The buffers of one rank while its plan is written. Buffers of one (role, owner) are equally
//! large and share slots: a new one takes the slot that has been free the longest, so that its
//! previous occupant's last access lies as far back as can be.
class buffer_book {
 public:
  //! `owners`: the rank's chunks, and after them its collectives; `instructions`: of the plan.
  constexpr buffer_book(rank_sink& sink, int owners, std::int32_t instructions)
      : sink_(sink),
        instructions_(instructions),
        classes_(owners * roles),
        about_(sink.room.buffers),
        slots_(classes_) {}

  struct about_buffer {
    std::int32_t last = -1;     //!< index of the latest access, sends aside
    std::int32_t before = -1;   //!< the slot's previous occupant
    std::int32_t next = -1;     //!< free list
    std::int32_t slot = 0;
    std::int32_t pool = 0;
  };
  constexpr about_buffer* about() { return about_.data(); }

  //! A buffer that instruction `first` is the first to write.
  constexpr std::int32_t open(std::int32_t first, buffer_role role, int owner, const job& work) {
    const int pool = owner * roles + static_cast<int>(role);
    const std::int32_t id =
        sink_.push(buffer{0, 0, work.stage, work.microbatch, work.slice, role, first, -1});
    about_buffer* const all = about_.data();
    slots& from = slots_.data()[pool];
    std::int32_t before = -1;
    std::int32_t slot = from.count;
    if (from.oldest > 0) {
      before = from.oldest - 1;
      slot = all[before].slot;
      from.oldest = all[before].next + 1;
    } else {
      ++from.count;
      from.stage = work.stage;
    }
    all[id] = {first, before, -1, slot, pool};
    return id;
  }
  //! The buffer's slot may be taken by instruction `release`, not before that of the last call, and
  //! later ones.
  constexpr void close(std::int32_t id, std::int32_t release) {
    sink_.buffers[id].release = release;
    if (release < instructions_) {
      sink_.released[released_++] = id;
      ++sink_.instructions[release].release_count;
    }
    about_buffer* const all = about_.data();
    slots& to = slots_.data()[all[id].pool];
    if (to.oldest > 0) all[to.newest - 1].next = id;
    else to.oldest = id + 1;
    to.newest = id + 1;
  }
  //! How many buffers have been released.
  constexpr std::int32_t released() const { return released_; }

  //! Lays the slots out in the arena, pool after pool. Buffers still open live to the end of the
  //! step.
  constexpr void settle(const buffer_sizes& sizes) {
    const std::int32_t count = sink_.used.buffers;
    const about_buffer* const all = about_.data();
    slots* const pools = slots_.data();
    std::int64_t top = 0;
    for (int at = 0; at < classes_; ++at) {
      slots& pool = pools[at];
      if (pool.count == 0) continue;
      pool.bytes = sizes.bytes(static_cast<buffer_role>(at % roles), pool.stage);
      pool.stride = aligned(pool.bytes);
      pool.base = top;
      top += pool.count * pool.stride;
    }
    for (std::int32_t id = 0; id < count; ++id) {
      buffer& made = sink_.buffers[id];
      const slots& pool = pools[all[id].pool];
      made.bytes = pool.bytes;
      made.offset = pool.base + all[id].slot * pool.stride;
      if (made.release < 0) made.release = instructions_;
    }
    sink_.arena_bytes = top;
  }

 private:
  static constexpr int roles = buffer_role_count;

  struct slots {
    std::int32_t oldest = 0;  // closed buffers in the order of closing, ids plus one
    std::int32_t newest = 0;
    std::int32_t count = 0;
    std::int32_t stage = 0;  // of all of them
    std::int64_t base = 0;
    std::int64_t bytes = 0;
    std::int64_t stride = 0;
  };

  rank_sink& sink_;
  std::int32_t instructions_;
  std::int32_t released_ = 0;
  int classes_;
  scratch<about_buffer> about_;
  scratch<slots> slots_;
};

}  // namespace stretto::lowering
