#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/buffers.hpp"
#include "stretto/lowering/data_order.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/plan_storage.hpp"
#include "stretto/lowering/untaken_sends.hpp"
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
        known_(known),
        overlap_(overlap),
        sizes_(sizes),
        rank_(rank),
        out_(out),
        book_(out, input.where.chunks + static_cast<int>(input.groups.size())),
        cells_(input.where.chunks * static_cast<std::int64_t>(input.microbatches) * input.slices),
        ids_(stage_roles * cells_),
        last_reader_(cells_),
        untaken_(input.rows.stride),
        collective_(static_cast<std::int64_t>(input.groups.size()) + 1) {}

  constexpr void write() {
    const std::span<const job> list = in_.rows.row(rank_);
    // What a stage keeps is kept to the last job of its micro-batch (slice) that reads it; the
    // backwards of later slices, which read it, too, come before.
    for (const job& work : list)
      if (work.kind == job_kind::backward || work.kind == job_kind::backward_weight)
        last_reader_[here(work)] = work.kind;
    if (static_cast<int>(list.size()) > out_.room.instructions)
      throw std::length_error("stretto: plan has no room for instructions");
    for (const job& work : list) {
      begin(work);
      if (is_compute(work.kind)) {
        compute(work);
      } else if (is_send(work.kind)) {
        send(work);
      } else if (is_receive(work.kind)) {
        receive(work);
      } else {
        finish(work);
      }
      ++at_;
    }
    book_.settle(sizes_);
  }

 private:
  // The roles that belong to a stage's micro-batch; the collectives' buffers are found by group.
  static constexpr int stage_roles = static_cast<int>(buffer_role::collective);

  //! Cells of this rank only: its chunks' stages.
  constexpr std::int64_t here(const job& work) const {
    return (static_cast<std::int64_t>(in_.where.chunk_of(work)) * in_.microbatches +
            work.microbatch) * in_.slices + work.slice;
  }
  constexpr std::int32_t& id_of(buffer_role role, std::int64_t cell) {
    return ids_[static_cast<int>(role) * cells_ + cell];
  }

  constexpr void begin(const job& work) {
    const int peer = is_send(work.kind)      ? in_.where.rank_of(matching_receive(work))
                     : is_receive(work.kind) ? in_.where.rank_of(matching_send(work))
                                             : -1;
    const int stream = overlap_.stream_of(work.kind, rank_, peer, in_.rows.ranks);
    instruction& made = out_.instructions[at_];
    made.what = work, made.stream = static_cast<std::uint8_t>(stream);
    made.peer = work.kind == job_kind::all_reduce ? work.microbatch : peer;
    made.first_wait = out_.used.waits, made.first_use = out_.used.uses;
    made.act = is_send(work.kind)                    ? action::send
               : is_receive(work.kind)               ? action::receive
               : work.kind == job_kind::all_reduce ? action::all_reduce
               : work.kind == job_kind::end_step   ? action::end_step
                                                     : action::run;
    out_.used.instructions = at_ + 1;
    before_ = last_on_[stream] - 1;
    last_on_[stream] = at_ + 1;
    needs_ = 0;
  }

  //! Whether `earlier` is done before this instruction by stream order alone.
  constexpr bool stream_knows(std::int32_t earlier) const {
    return before_ >= 0 &&
           known_.at(rank_, before_).own[out_.instructions[earlier].stream] > earlier;
  }
  constexpr void need(std::int32_t earlier) {
    if (!stream_knows(earlier)) needed_[needs_++] = earlier;
  }
  constexpr void touch(std::int32_t id, buffer_role role, access mode) {
    out_.push(buffer_use{id, role, mode});
    ++out_.instructions[at_].use_count;
  }
  //! A buffer's accesses, sends aside, follow one another: on the compute stream, and across
  //! streams at its ends.
  constexpr void use(std::int32_t id, buffer_role role, access mode) {
    touch(id, role, mode);
    need(book_.about(id).last);
    book_.about(id).last = at_;
  }
  constexpr std::int32_t open(buffer_role role, int chunk, const job& work) {
    const std::int32_t id = book_.open(at_, role, chunk, work);
    touch(id, role, access::write);
    book_.about(id).last = at_;
    return id;
  }

  //! Turns what is needed into waits, without those that another wait implies.
  constexpr void wait_for_needs() {
    for (int one = 0; one < needs_; ++one) {
      const std::int32_t earlier = needed_[one];
      const int stream = out_.instructions[earlier].stream;
      bool implied = false;
      for (int other = 0; needs_ > 1 && other < needs_ && !implied; ++other)
        implied = other != one && (needed_[other] == earlier
                                       ? other < one
                                       : known_.at(rank_, needed_[other]).own[stream] > earlier);
      if (!implied) wait_for(earlier, wait_reason::data);
    }
  }
  constexpr void wait_for(std::int32_t earlier, wait_reason why) {
    instruction& recorded = out_.instructions[earlier];
    if (recorded.record < 0) recorded.record = out_.events++;
    out_.push(event_wait{recorded.record, why, false});
    ++out_.instructions[at_].wait_count;
  }

  constexpr void compute(const job& work) {
    const std::int64_t cell = here(work);
    const bool forward = work.kind == job_kind::forward;
    const std::int32_t input = work.stage > 0 ? id_of(buffer_role::input, cell) - 1 : -1;
    const std::int32_t gradient =
        forward ? -1 : id_of(buffer_role::output_gradient, cell) - 1;
    if (input >= 0) use(input, buffer_role::input, access::read);
    if (gradient >= 0) use(gradient, buffer_role::output_gradient, access::read);
    if (needs_ > 0) wait_for_needs();
    if (sizes_.release_sends) release_taken();

    // New buffers take slots whose last accesses are on this stream, or are sends known as taken.
    const int chunk = in_.where.chunk_of(work);
    std::int32_t& stash = id_of(buffer_role::stash, cell);
    if (forward) {
      stash = open(buffer_role::stash, chunk, work) + 1;
      if (work.slice > 0) use_earlier_slices(work, cell);
      if (work.stage + 1 < in_.where.stages())
        make(work, buffer_role::output, chunk, work.stage + 1, buffer_role::input);
    } else {
      touch(stash - 1, buffer_role::stash,
            work.kind == job_kind::backward_weight ? access::read : access::read_write);
      book_.about(stash - 1).last = at_;
      if (work.slice > 0) use_earlier_slices(work, cell);
      if (is_input_gradient(work.kind) && work.stage > 0)
        make(work, buffer_role::input_gradient, chunk, work.stage - 1,
             buffer_role::output_gradient);
    }
    if (last_reader_[cell] != work.kind) return;  // zero is forward: no backward comes
    if (input >= 0) book_.close(input, at_ + 1);
    if (gradient >= 0) book_.close(gradient, at_ + 1);
    if (!forward) {
      book_.close(stash - 1, at_ + 1);
    } else if (work.slice + 1 == in_.slices) {  // no later slice reads any
      for (std::int64_t of = cell - work.slice; of <= cell; ++of)
        book_.close(id_of(buffer_role::stash, of) - 1, at_ + 1);
    }
  }

  //! Attention looks back: a slice reads what earlier slices of its micro-batch keep, and its
  //! backward for the input adds to their gradients. Their stashes come after the job's own.
  constexpr void use_earlier_slices(const job& work, std::int64_t cell) {
    if (work.kind == job_kind::backward_weight) return;
    const access mode = is_input_gradient(work.kind) ? access::read_write : access::read;
    for (std::int64_t earlier = cell - work.slice; earlier < cell; ++earlier) {
      const std::int32_t id = id_of(buffer_role::stash, earlier) - 1;
      touch(id, buffer_role::stash, mode);
      book_.about(id).last = at_;
    }
  }

  //! What the job makes for stage `to`, which knows it as `role_there` when it is on this rank.
  constexpr void make(const job& work, buffer_role role, int chunk, int to,
                      buffer_role role_there) {
    const std::int32_t id = open(role, chunk, work);
    id_of(role, here(work)) = id + 1;
    if (in_.where.rank_of(to, work.microbatch) != rank_) return;
    job there = work;
    there.stage = to;
    id_of(role_there, here(there)) = id + 1;
  }

  constexpr void send(const job& work) {
    const buffer_role role = work.kind == job_kind::send_forward ? buffer_role::output
                                                                 : buffer_role::input_gradient;
    const std::int32_t id = id_of(role, here(work)) - 1;
    touch(id, role, access::read);
    need(out_.buffers[id].first);
    wait_for_needs();
    untaken_.push(out_.instructions[at_].stream, at_, id);
  }

  constexpr void receive(const job& work) {
    const buffer_role role = work.kind == job_kind::receive_forward ? buffer_role::input
                                                                    : buffer_role::output_gradient;
    const int stream = out_.instructions[at_].stream;
    const std::int32_t id = open(role, in_.where.chunk_of(work), work);
    id_of(role, here(work)) = id + 1;
    if (const std::int32_t before = book_.about(id).before; before >= 0) {
      // The slot's previous occupant was last read by a job; the message itself, coming from a
      // peer that has heard of that job, or an earlier wait of this stream may prove it done.
      const std::int32_t last = book_.about(before).last;
      const int last_stream = out_.instructions[last].stream;
      if (waited_[stream] <= last && last_stream != stream &&
          known_.at(rank_, at_).own[last_stream] <= last) {
        wait_for(last, wait_reason::data);
        waited_[stream] = last + 1;
        return;
      }
    }
    if (known_.at(rank_, at_).gated) {
      out_.push(event_wait{-1, wait_reason::gate, true});
      ++out_.instructions[at_].wait_count;
    }
  }

  constexpr void finish(const job& work) {
    const auto group = static_cast<std::size_t>(work.microbatch);
    if (work.kind == job_kind::reduce_grad) {
      for (std::size_t earlier = 0; earlier < group && !in_.sums_replicas(work); ++earlier)
        read_collective(earlier);
      collective_[static_cast<std::int64_t>(group)] =
          open(buffer_role::collective, in_.where.chunks + work.microbatch,
               {work.microbatch, 0, 0, work.kind, false}) + 1;
    } else if (work.kind == job_kind::all_reduce) {
      use(collective_[static_cast<std::int64_t>(group)] - 1, buffer_role::collective,
          access::read_write);
    } else if (work.kind == job_kind::optimizer) {
      for (std::size_t earlier = 0; earlier < in_.groups.size(); ++earlier)
        read_collective(earlier);
    } else if (work.kind == job_kind::end_step) {
      for (int stream = 0; stream < overlap_.count(); ++stream) wait_for_end_of(stream);
      name_gate();
      return;
    }
    wait_for_needs();
  }
  constexpr void read_collective(std::size_t group) {
    if (const std::int32_t id = collective_[static_cast<std::int64_t>(group)] - 1; id >= 0)
      use(id, buffer_role::collective, access::read);
  }
  //! Everything that `stream` holds is done before the step ends, by this rank's own events: what a
  //! peer has heard of may still be running here. Where somebody waits for the stream's last
  //! instruction, his own stream's last is waited for in turn.
  constexpr void wait_for_end_of(int stream) {
    const std::int32_t last = last_on_[stream] - 1;
    if (last >= 0 && last != at_ && out_.instructions[last].record < 0)
      wait_for(last, wait_reason::bound);
  }
  //! The record that the streams' first instructions wait for in the next step.
  constexpr void name_gate() {
    for (int wait = 0; wait < out_.used.waits; ++wait) {
      if (!out_.waits[wait].previous_step) continue;
      instruction& end = out_.instructions[at_];
      if (end.record < 0) end.record = out_.events++;
      out_.waits[wait].event = end.record;
    }
  }

  //! Whether this instruction may count on the peer having taken the message of `send`.
  constexpr bool taken(std::int32_t send) const {
    const instruction& sent = out_.instructions[send];
    const clock& now = known_.at(rank_, at_);
    const std::int32_t there = known_.at(rank_, send).partner;
    return now.own[sent.stream] > send ||
           known_.knows_taken(now, rank_, sent.peer, there,
                              overlap_.stream_of(matching_receive(sent.what).kind, sent.peer,
                                                 rank_, in_.rows.ranks));
  }
  constexpr void release_taken() {
    for (int stream = 0; stream < overlap_.count(); ++stream)
      while (untaken_.holds(stream) && taken(untaken_.oldest(stream)))
        book_.close(untaken_.pop(stream), at_);
  }

  const replay_input& in_;
  clock_rows known_;
  Overlap overlap_;
  buffer_sizes sizes_;
  int rank_;
  rank_sink& out_;
  buffer_book book_;
  std::int64_t cells_;
  scratch<std::int32_t> ids_;  // buffer by (role, cell), plus one
  scratch<job_kind> last_reader_;
  untaken_sends untaken_;
  scratch<std::int32_t> collective_;      // buffer by group, plus one
  std::int32_t last_on_[max_streams]{};   // latest instruction of each stream, plus one
  std::int32_t waited_[max_streams]{};    // latest job that a receive stream has waited for
  std::int32_t needed_[max_streams + 8]{};
  int needs_ = 0;
  std::int32_t at_ = 0;
  std::int32_t before_ = -1;              // instruction before this one on its stream
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
