#pragma once

#include <cstdint>

#include "stretto/lowering/buffers.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/held_buffers.hpp"
#include "stretto/lowering/plan_storage.hpp"
#include "stretto/lowering/waits.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! What is kept while the plan of one rank is written: its uses, buffers and waits, and which
//! buffers are held of each micro-batch. An instruction's uses are said while it is the one `at_`.
template <class Plan>
class plan_books {
 protected:
  using cell = held_buffers::cell;
  static constexpr int saved_part = buffer_book<Plan>::saved_part;
  static constexpr int message_part = buffer_book<Plan>::message_part;

  //! @param row the rank's clocks, as `data_order` found them
  constexpr plan_books(const replay_input& input, const clock* row, const buffer_sizes& sizes,
                       int rank, Plan& out, buffer_book<Plan>& book, wait_book<Plan>& waits)
      : out_(out), row_(row), sizes_(sizes), book_(book), waits_(waits), held_(input, rank) {}
  constexpr ~plan_books() = default;  // nvcc does not find it constexpr by itself

  //! A use that needs no wait of its own.
  constexpr void touch(std::int32_t id, buffer_role role, access mode) {
    out_.uses[used_++] = {id, role, mode};
    book_.last.items[id] = at_;
  }
  //! A buffer's accesses, sends aside, follow one another: on the compute stream, and across
  //! streams at its ends.
  constexpr void use(std::int32_t id, buffer_role role, access mode) {
    out_.uses[used_++] = {id, role, mode};
    std::int32_t& last = book_.last.items[id];
    waits_.need(at_, last);
    last = at_;
  }
  //! For a job: whatever has been in its place is known to it as done, or stood on its stream.
  //! @return the buffer, plus one
  constexpr std::int32_t open(buffer_role role, const job& work, std::int64_t bytes = -1) {
    const std::int32_t id = book_.open(role, work, false, bytes);
    out_.uses[used_++] = {id, role, access::write};
    return id + 1;
  }
  constexpr std::int32_t open_saved(buffer_role role, const job& work, std::int64_t bytes = -1) {
    const std::int32_t made = open(role, work, bytes);
    if (book_.copied_at() >= 0) waits_.need_place_of(at_, book_.copied_at());
    return made;
  }
  constexpr void close_saved(const cell& at) {
    if (at.stash > 0) book_.close(saved_part, at.stash - 1, at_ + 1);
    if (at.kept > 0) book_.close(saved_part, at.kept - 1, at_ + 1);
  }
  //! Attention looks back: a slice reads what earlier slices of its micro-batch keep, and its
  //! backward for the input adds to their gradients. Their stashes come after the job's own.
  constexpr void use_earlier_slices(const job& work, const cell* at) {
    if (work.kind == job_kind::backward_weight) return;
    const access mode = is_input_gradient(work.kind) ? access::read_write : access::read;
    for (const cell* earlier = at - work.slice; earlier < at; ++earlier)
      touch(earlier->stash - 1, buffer_role::stash, mode);
  }

  Plan& out_;
  const clock* row_;  // of this rank
  buffer_sizes sizes_;
  std::int32_t at_ = 0;
  std::uint8_t stream_ = 0;  // of the instruction
  std::int32_t used_ = 0;    // uses
  // By themselves: gcc takes time for each struct that a store passes through.
  buffer_book<Plan>& book_;
  wait_book<Plan>& waits_;
  held_buffers held_;
};

}  // namespace stretto::lowering
