#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/buffers.hpp"
#include "stretto/lowering/data_order.hpp"
#include "stretto/lowering/errand.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/held_buffers.hpp"
#include "stretto/lowering/plan_storage.hpp"
#include "stretto/lowering/untaken_sends.hpp"
#include "stretto/lowering/waits.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::lowering {

namespace detail {

//! Writes one rank's instructions from its list; each entry becomes one, at the same index.
template <class Overlap>
class instruction_writer {
 public:
  constexpr instruction_writer(const replay_input& input, clock_rows known, const Overlap& overlap,
                               const buffer_sizes& sizes, int rank, rank_sink& out)
      : in_(input),
        where_(input.where),
        stages_(where_.stages()),
        list_(input.rows.items + static_cast<std::int64_t>(rank) * input.rows.stride),
        count_(input.rows.counts[rank]),
        row_(known.clocks + static_cast<std::int64_t>(rank) * known.stride),
        known_(known),
        overlap_(overlap),
        sizes_(sizes),
        rank_(rank),
        out_(out),
        made_(out.instructions),
        use_(out.uses),
        uses_end_(out.uses + out.room.uses),
        book_(out, sizes_, count_),
        about_(book_.about()),
        waits_(row_, out),
        held_(input, rank),
        untaken_(known, input.rows.stride),
        collective_(static_cast<std::int64_t>(input.groups.size()) + 1) {}
  constexpr ~instruction_writer() = default;  // nvcc does not find it constexpr by itself

  constexpr void write() {
    if (count_ > out_.room.instructions)
      throw std::length_error("stretto: plan has no room for instructions");
    // Lists hold backwards for all forwards, or none.
    for (const job* work = list_ + count_; work != list_ && !backwards_;)
      backwards_ = is_input_gradient((--work)->kind);
    for (const job* work = list_; work < list_ + count_; ++work)
      if (work->kind == job_kind::recompute) held_.of(*work).again = true;
    for (; at_ < count_; ++at_) {
      const job work = list_[at_];  // a copy is read faster by a compiler
      const job_kind kind = work.kind;
      errand of;
      if (kind > job_kind::recompute) {
        of = errand_of(work, where_);
        of.stream = of.act == action::send || of.act == action::receive || is_copy(kind)
                        ? row_[at_].stream
                        : overlap_.stream_of(kind, rank_, -1, in_.rows.ranks);
      }
      // Releases before this one were counted when its buffers were closed.
      const std::int16_t releases = made_[at_].release_count;
      const std::int32_t first_wait = out_.used.waits;
      const buffer_use* const first_use = use_;
      // Compilers copy one made beside faster than they make it there.
      const instruction made{work, of.act, static_cast<std::uint8_t>(of.stream), 0, 0, releases,
                             of.peer, first_wait,
                             static_cast<std::int32_t>(first_use - out_.uses),
                             book_.released() - releases, -1};
      made_[at_] = made;
      waits_.come(at_, of.stream);
      if (kind <= job_kind::recompute) {
        compute(work);
      } else {
        if (of.stream == 0) news_ = true;
        if (of.act == action::send) send(work, of.peer);
        else if (of.act == action::receive) receive(work);
        else if (of.act == action::offload) offload(work);
        else if (of.act == action::reload) reload(work);
        else finish(work);
      }
      if (const std::int32_t waits = out_.used.waits - first_wait; waits > 0)
        made_[at_].wait_count = static_cast<std::int16_t>(waits);
      made_[at_].use_count = static_cast<std::int16_t>(use_ - first_use);
    }
    out_.used.uses = static_cast<std::int32_t>(use_ - out_.uses);
    out_.used.instructions = count_;
    out_.streams = waits_.streams();
    book_.settle();
  }

 private:
  using cell = held_buffers::cell;

  constexpr void push(std::int32_t id, buffer_role role, access mode) {
    if (use_ == uses_end_) throw std::length_error("stretto: plan has no room for uses");
    *use_ = {id, role, mode};
    ++use_;
  }
  //! A buffer's accesses, sends aside, follow one another: on the compute stream, and across
  //! streams at its ends.
  constexpr void use(std::int32_t id, buffer_role role, access mode) {
    push(id, role, mode);
    std::int32_t& last = about_[id].last;
    waits_.need(last);
    last = at_;
  }
  //! For a job: whatever has been in its place is known to it as done, or stood on its stream.
  //! @return the buffer, plus one
  constexpr std::int32_t open(buffer_role role, const job& work) {
    const std::int32_t id = book_.open(at_, role, work, false);
    push(id, role, access::write);
    return id + 1;
  }
  constexpr std::int32_t open_saved(buffer_role role, const job& work) {
    const std::int32_t made = open(role, work);
    if (book_.copied_at() >= 0) waits_.need_place_of(book_.copied_at());
    return made;
  }

  constexpr void compute(const job& work) {
    cell& at = held_.of(work);
    const bool forward = work.kind == job_kind::forward;
    const bool backward = !forward && work.kind != job_kind::recompute;
    const std::int32_t input = work.stage > 0 ? at.input - 1 : -1;
    const std::int32_t gradient = backward ? at.output_gradient - 1 : -1;
    if (input >= 0) read(input, buffer_role::input);
    if (gradient >= 0) read(gradient, buffer_role::output_gradient);
    if (!backward) {
      at.stash = open_saved(buffer_role::stash, work);
      if (backwards_ && sizes_.of(work.stage).kept > 0)
        at.kept = open_saved(buffer_role::kept, work);
    } else if (at.host > 0 && at.stash > 0) {
      waits_.need(about_[at.stash - 1].last);
      news_ = true;
    }
    waits_.wait_for_needs();
    if (news_ && sizes_.release_sends)
      untaken_.drop_taken(row_[at_], [&](std::int32_t message) {
        about_[message].last = at_;  // who knows
        book_.close(message, at_);
      });
    news_ = false;

    if (forward) {
      if (work.slice > 0) use_earlier_slices(work, &at);
      if (work.stage + 1 < stages_) {
        at.output = open(buffer_role::output, work);
        if (cell* const there = held_.on_this_rank(work, work.stage + 1)) there->input = at.output;
      }
      // What a forward saves that runs a second time is gone with it; the second run saves it anew.
      if (at.again) close_saved(at);
      if (backwards_) return;
      if (input >= 0) book_.close(input, at_ + 1);
      if (work.slice + 1 == in_.slices)  // no later slice reads any
        for (cell* of = &at - work.slice; of <= &at; ++of) book_.close(of->stash - 1, at_ + 1);
      return;
    }
    if (!backward) return;
    const bool last = work.kind == job_kind::backward_weight;
    const access mode = last ? access::read : access::read_write;
    if (at.stash > 0) use_saved(at.stash - 1, buffer_role::stash, mode);
    if (at.kept > 0) use_saved(at.kept - 1, buffer_role::kept, mode);
    if (work.slice > 0) use_earlier_slices(work, &at);
    if (is_input_gradient(work.kind) && work.stage > 0) {
      at.input_gradient = open(buffer_role::input_gradient, work);
      if (cell* const there = held_.on_this_rank(work, work.stage - 1))
        there->output_gradient = at.input_gradient;
    }
    // What a stage keeps is kept to the last job of its micro-batch (slice) that reads it; the
    // backwards of later slices, which read it, too, come before.
    if (work.kind != job_kind::backward && work.kind != job_kind::backward_weight) {
      if (at.kept == 0) return;
      book_.close(at.stash - 1, at_ + 1);
      at.stash = 0;
      return;
    }
    if (input >= 0) book_.close(input, at_ + 1);
    if (gradient >= 0) book_.close(gradient, at_ + 1);
    close_saved(at);
  }
  //! What comes from another job: with news, where a stream that is not the job's has brought it.
  constexpr void read(std::int32_t id, buffer_role role) {
    push(id, role, access::read);
    std::int32_t& last = about_[id].last;
    if (made_[last].stream != 0) {
      waits_.need(last);
      news_ = true;
    }
    last = at_;
  }
  constexpr void use_saved(std::int32_t id, buffer_role role, access mode) {
    push(id, role, mode);
    about_[id].last = at_;
  }
  constexpr void close_saved(const cell& at) {
    if (at.stash > 0) book_.close(at.stash - 1, at_ + 1);
    if (at.kept > 0) book_.close(at.kept - 1, at_ + 1);
  }

  //! Attention looks back: a slice reads what earlier slices of its micro-batch keep, and its
  //! backward for the input adds to their gradients. Their stashes come after the job's own.
  constexpr void use_earlier_slices(const job& work, const cell* at) {
    if (work.kind == job_kind::backward_weight) return;
    const access mode = is_input_gradient(work.kind) ? access::read_write : access::read;
    for (const cell* earlier = at - work.slice; earlier < at; ++earlier) {
      push(earlier->stash - 1, buffer_role::stash, mode);
      about_[earlier->stash - 1].last = at_;
    }
  }

  constexpr void send(const job& work, int peer) {
    const bool ahead = work.kind == job_kind::send_forward;
    const cell& at = held_.of(work);
    const std::int32_t id = (ahead ? at.output : at.input_gradient) - 1;
    push(id, ahead ? buffer_role::output : buffer_role::input_gradient, access::read);
    waits_.need(out_.buffers[id].first);
    waits_.wait_for_needs();
    if (!sizes_.release_sends) return;
    const std::int32_t there = row_[at_].partner - 1;
    const clock& taken = known_.clocks[std::int64_t{peer} * known_.stride + there];
    untaken_.push(made_[at_].stream,
                  {at_, id, there, peer,
                   static_cast<std::int8_t>(side_of(rank_, peer, in_.rows.ranks)),
                   taken.stream, 0});
  }

  constexpr void receive(const job& work) {
    const bool ahead = work.kind == job_kind::receive_forward;
    const buffer_role role = ahead ? buffer_role::input : buffer_role::output_gradient;
    const std::int32_t id = book_.open(at_, role, work, true);
    push(id, role, access::write);
    cell& at = held_.of(work);
    (ahead ? at.input : at.output_gradient) = id + 1;
    waits_.take_place_of(book_.left_at());
  }

  //! The stash is given back when it is on the host, and taken anew by the reload.
  constexpr void offload(const job& work) {
    cell& at = held_.of(work);
    const std::int32_t stash = at.stash - 1;
    use(stash, buffer_role::stash, access::read);
    waits_.wait_for_needs();
    at.host = open(buffer_role::host, work);
    book_.close(stash, at_ + 1);
  }
  constexpr void reload(const job& work) {
    cell& at = held_.of(work);
    use(at.host - 1, buffer_role::host, access::read);
    const std::int32_t stash = book_.open(at_, buffer_role::stash, work, true);
    push(stash, buffer_role::stash, access::write);
    at.stash = stash + 1;
    waits_.take_place_of(book_.left_at());
    book_.close(at.host - 1, at_ + 1);
  }

  constexpr void finish(const job& work) {
    const auto group = static_cast<std::size_t>(work.microbatch);
    if (work.kind == job_kind::reduce_grad) {
      const bool replicas = in_.sums_replicas(work);
      for (std::size_t earlier = 0; earlier < group && !in_.groups[group].data_parallel; ++earlier)
        if (!replicas || in_.groups[earlier].data_parallel) read_collective(earlier);
      collective_[static_cast<std::int64_t>(group)] =
          open(buffer_role::collective, {work.microbatch, 0, 0, work.kind, false});
    } else if (work.kind == job_kind::all_reduce) {
      use(collective_[static_cast<std::int64_t>(group)] - 1, buffer_role::collective,
          access::read_write);
    } else if (work.kind == job_kind::optimizer) {
      for (std::size_t earlier = 0; earlier < in_.groups.size(); ++earlier)
        read_collective(earlier);
    } else if (work.kind == job_kind::end_step) {
      waits_.end_step(overlap_.count());
      return;
    }
    waits_.wait_for_needs();
  }
  constexpr void read_collective(std::size_t group) {
    if (const std::int32_t id = collective_[static_cast<std::int64_t>(group)] - 1; id >= 0)
      use(id, buffer_role::collective, access::read);
  }

  const replay_input& in_;
  placement where_;
  int stages_;
  const job* list_;
  std::int32_t count_;
  const clock* row_;  // of this rank
  clock_rows known_;
  Overlap overlap_;
  buffer_sizes sizes_;
  int rank_;
  rank_sink& out_;
  instruction* made_;
  buffer_use* use_;  // the next
  const buffer_use* uses_end_;
  buffer_book book_;
  buffer_book::about_buffer* about_;
  wait_book waits_;
  held_buffers held_;
  untaken_sends untaken_;
  scratch<std::int32_t> collective_;      // buffer by group, plus one
  std::int32_t at_ = 0;
  bool backwards_ = false;
  bool news_ = false;  // something may have been heard of the peers since the last job
};

}  // namespace detail

//! Writes the plan of `rank`: streams, buffers with their release points, and the fewest events.
//! An event stands where two accesses to the same bytes, one of them a write, lie on different
//! streams and nothing orders them otherwise; a sent buffer is free once something received proves
//! that the peer took it, which costs no event; the step's end comes after everything.
//! @param input lists with messages and ends; every wait for data lies between entries of one list
//! @param known what `data_order` found on those lists
//! @param out   empty, with room for the list
template <class Overlap>
constexpr void write_instructions(const replay_input& input, clock_rows known,
                                  const Overlap& overlap, const buffer_sizes& sizes, int rank,
                                  rank_sink& out) {
  detail::instruction_writer<Overlap>(input, known, overlap, sizes, rank, out).write();
}

}  // namespace stretto::lowering
