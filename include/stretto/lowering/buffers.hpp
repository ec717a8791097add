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
  //! `owners`: the rank's chunks, and after them its collectives.
  constexpr buffer_book(rank_sink& sink, int owners)
      : sink_(sink),
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
  constexpr about_buffer& about(std::int32_t id) { return about_[id]; }

  //! A buffer that instruction `first` is the first to write.
  constexpr std::int32_t open(std::int32_t first, buffer_role role, int owner, const job& work) {
    const int pool = owner * roles + static_cast<int>(role);
    const std::int32_t id =
        sink_.push(buffer{0, 0, work.stage, work.microbatch, work.slice, role, first, -1});
    about_buffer& made = about_[id];
    slots& from = slots_[pool];
    made.pool = pool;
    if (from.oldest > 0) {
      made.before = from.oldest - 1;
      made.slot = about_[made.before].slot;
      from.oldest = about_[made.before].next + 1;
    } else {
      made.slot = from.count++;
    }
    return id;
  }
  //! The buffer's slot may be taken by instruction `release` and later ones.
  constexpr void close(std::int32_t id, std::int32_t release) {
    sink_.buffers[id].release = release;
    slots& to = slots_[about_[id].pool];
    (to.oldest > 0 ? about_[to.newest - 1].next : to.oldest) = to.oldest > 0 ? id : id + 1;
    to.newest = id + 1;
  }

  //! Lays the slots out in the arena, pool after pool, and lists the releases by instruction.
  //! Buffers still open live to the end of the step.
  constexpr void settle(const buffer_sizes& sizes) {
    for (std::int32_t id = 0; id < sink_.used.buffers; ++id) {
      buffer& made = sink_.buffers[id];
      slots& pool = slots_[about_[id].pool];
      made.bytes = sizes.bytes(made.role, made.stage);
      if (pool.bytes < aligned(made.bytes)) pool.bytes = aligned(made.bytes);
    }
    std::int64_t top = 0;
    for (int pool = 0; pool < classes_; ++pool) {
      slots_[pool].base = top;
      top += slots_[pool].count * slots_[pool].bytes;
    }
    const std::int32_t end = sink_.used.instructions;
    for (std::int32_t id = 0; id < sink_.used.buffers; ++id) {
      buffer& made = sink_.buffers[id];
      const slots& pool = slots_[about_[id].pool];
      made.offset = pool.base + about_[id].slot * pool.bytes;
      if (made.release < 0) made.release = end;
      if (made.release < end) ++sink_.instructions[made.release].release_count;
    }
    sink_.arena_bytes = top;
    std::int32_t next = 0;
    for (std::int32_t at = 0; at < end; ++at) {
      sink_.instructions[at].first_release = next;
      next += sink_.instructions[at].release_count;
    }
    scratch<std::int32_t> filled(end);
    for (std::int32_t id = 0; id < sink_.used.buffers; ++id) {
      const std::int32_t release = sink_.buffers[id].release;
      if (release < end)
        sink_.released[sink_.instructions[release].first_release + filled[release]++] = id;
    }
  }

 private:
  static constexpr int roles = buffer_role_count;

  struct slots {
    std::int32_t oldest = 0;  // closed buffers in the order of closing, ids plus one
    std::int32_t newest = 0;
    std::int32_t count = 0;
    std::int64_t base = 0;
    std::int64_t bytes = 0;
  };

  rank_sink& sink_;
  int classes_;
  scratch<about_buffer> about_;
  scratch<slots> slots_;
};

}  // namespace stretto::lowering
