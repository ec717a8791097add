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
  constexpr buffer_book(rank_sink& sink, const buffer_sizes& sizes, int owners,
                        std::int32_t instructions)
      : sink_(sink),
        sizes_(sizes),
        instructions_(instructions),
        abouts_(sink.room.buffers),
        about_(abouts_.data()),
        pools_(std::int64_t{owners} * roles),
        pool_(pools_.data()) {}
  constexpr ~buffer_book() = default;  // nvcc does not find it constexpr by itself

  struct about_buffer {
    std::int32_t last;    //!< index of the latest access, sends aside
    std::int32_t before;  //!< the slot's previous occupant, or -1
    std::int32_t next;    //!< free list, plus one
    std::int32_t pool;
  };
  constexpr about_buffer* about() { return about_; }

  //! A buffer that instruction `first` is the first to write, in use to the end of the step unless
  //! it is closed.
  constexpr std::int32_t open(std::int32_t first, buffer_role role, int owner, const job& work) {
    const int number = owner * roles + static_cast<int>(role);
    pool& from = pool_[number];
    const std::int32_t before = from.oldest - 1;
    std::int64_t offset = sink_.arena_bytes;
    if (before >= 0) {
      offset = sink_.buffers[before].offset;
      from.oldest = about_[before].next;
    } else {
      // All of a pool are of one stage; slots lie in the order in which they are first needed.
      if (!from.known) from.known = true, from.bytes = sizes_.bytes(role, work.stage);
      sink_.arena_bytes += aligned(from.bytes);
    }
    const std::int32_t id = sink_.used.buffers;
    if (id == sink_.room.buffers)
      throw std::length_error("stretto: plan has no room for buffers");
    sink_.buffers[id] = {offset, from.bytes, work.stage, work.microbatch,
                         work.slice, role, first, instructions_};
    about_[id] = {first, before, 0, number};
    sink_.used.buffers = id + 1;
    return id;
  }
  //! The buffer's slot may be taken by instruction `release`, not before that of the last call, and
  //! later ones.
  constexpr void close(std::int32_t id, std::int32_t release) {
    if (release < instructions_) {
      sink_.buffers[id].release = release;
      sink_.released[released_++] = id;
      ++sink_.instructions[release].release_count;
    }
    pool& to = pool_[about_[id].pool];
    if (to.oldest > 0) about_[to.newest].next = id + 1;
    else to.oldest = id + 1;
    to.newest = id;
  }
  //! How many buffers have been released.
  constexpr std::int32_t released() const { return released_; }

 private:
  static constexpr int roles = buffer_role_count;

  struct pool {
    std::int32_t oldest = 0;  // closed buffers in the order of closing, plus one
    std::int32_t newest = 0;
    bool known = false;
    std::int64_t bytes = 0;
  };

  rank_sink& sink_;
  const buffer_sizes& sizes_;
  std::int32_t instructions_;
  std::int32_t released_ = 0;
  scratch<about_buffer> abouts_;
  about_buffer* about_;
  scratch<pool> pools_;
  pool* pool_;
};

}  // namespace stretto::lowering
