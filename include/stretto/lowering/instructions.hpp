#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/collective_books.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/untaken_sends.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

namespace detail {

//! Writes one rank's instructions from its list; each entry becomes one, at the same index.
template <class Overlap, class Plan>
class instruction_writer : collective_books<Plan> {
  using books = collective_books<Plan>;
  using books::at_, books::book_, books::gathers_, books::held_, books::in_, books::out_,
      books::row_, books::sizes_, books::stream_, books::used_, books::waits_, books::weights_;
  using books::close_saved, books::finish, books::gather, books::open, books::open_saved,
      books::touch, books::use, books::use_earlier_slices;
  using typename books::cell;

 public:
  constexpr instruction_writer(const replay_input& input, clock_rows known, const Overlap& overlap,
                               const buffer_sizes& sizes, int rank, Plan& out,
                               buffer_book<Plan>& book, wait_book<Plan>& waits,
                               untaken_sends& untaken)
      : books(input, known.row(rank), sizes, rank, out, book, waits),
        stages_(input.where.stages()),
        list_(input.rows.items + static_cast<std::int64_t>(rank) * input.rows.stride),
        count_(input.rows.counts[rank]),
        overlap_(overlap),
        rank_(rank),
        untaken_(untaken) {}
  constexpr ~instruction_writer() = default;  // nvcc does not find it constexpr by itself

  constexpr void write() {
    // Lists hold backwards for all forwards, or none.
    for (const job* work = list_ + count_; work != list_ && !backwards_;)
      backwards_ = is_input_gradient((--work)->kind);
    untaken_.most = most_untaken(in_.rows.ranks, backwards_ || in_.where.chunks > 1);
    // Compilers read what is local, and copies, faster; and clang pays for every argument of a
    // call, which is why so much that is said of the instruction at hand stands beside it.
    const job* const list = list_;
    const clock* const row = row_;
    const std::int32_t count = count_;
    job work;
    action act = action::run;
    std::int32_t peer = -1;
    std::int32_t first_wait = 0;
    std::int32_t first_release = 0;
    std::int32_t first_use = 0;
    for (; at_ < count; ++at_) {
      work = list[at_];
      stream_ = row[at_].stream;
      book_.now = at_;
      first_wait = out_.used.waits;
      first_release = closed_;
      first_use = used_;
      closed_ = book_.released;
      last_on_[stream_] = at_ + 1;
      act = action::run;
      peer = -1;
      if (work.kind <= job_kind::recompute) {
        compute(work);
      } else {
        if (stream_ == 0) news_ = true;
        if (is_message(work.kind)) {
          peer = row[at_].peer;
          if (work.kind == job_kind::send_forward || work.kind == job_kind::send_backward)
            act = action::send, send(work);
          else
            act = action::receive, receive(work);
        } else {
          act = run_errand(work);
          if (is_collective(act)) peer = work.microbatch;
        }
      }
      out_.instructions[at_] = {work,
                                act,
                                stream_,
                                static_cast<std::int16_t>(out_.used.waits - first_wait),
                                static_cast<std::int32_t>(used_ - first_use),
                                static_cast<std::int32_t>(closed_ - first_release),
                                peer,
                                first_wait,
                                first_use,
                                first_release,
                                -1};
    }
    if (count > 0 && list[count - 1].kind == job_kind::end_step)
      waits_.end_step(count - 1, last_on_, overlap_.count());
    out_.used.uses = used_;
    out_.used.instructions = count;
    for (out_.streams = max_streams; out_.streams > 0 && last_on_[out_.streams - 1] == 0;)
      --out_.streams;
    book_.settle();
  }

 private:
  static constexpr int saved = books::saved_part, message = books::message_part;

  //! Of an entry that is neither a computation nor a message.
  constexpr action run_errand(const job& work) {
    switch (work.kind) {
      case job_kind::offload: return offload(work), action::offload;
      case job_kind::reload: return reload(work), action::reload;
      case job_kind::end_step: return action::end_step;  // written behind all others
      case job_kind::all_reduce:
        finish(work);
        return in_.scatters(work) ? action::reduce_scatter : action::all_reduce;
      case job_kind::unshard:
      case job_kind::reshard:
      case job_kind::all_gather:
        return gather(work);
      default: return finish(work), action::run;
    }
  }

  constexpr void compute(const job& work) {
    cell& at = held_.of(work);
    const job_kind kind = work.kind;
    const bool forward = kind == job_kind::forward;
    const bool backward = !forward && kind != job_kind::recompute;
    const std::int32_t input = work.stage > 0 ? at.input - 1 : -1;
    const std::int32_t gradient = backward ? at.output_gradient - 1 : -1;
    if (input >= 0) touch(input, buffer_role::input, access::read);
    if (gradient >= 0) touch(gradient, buffer_role::output_gradient, access::read);
    std::int32_t gathered = -1;  // who touched the weights last
    if (gathers_) {
      const std::int32_t weights = weights_[work.stage] - 1;
      gathered = book_.last.items[weights];
      touch(weights, buffer_role::weights, access::read);
    }
    const std::int32_t after = row_[at_].after;
    const bool reloaded = copies_ && backward && at.host > 0 && at.stash > 0;
    if ((news_ || after > 0 || reloaded) && sizes_.release_sends) drop_taken();
    news_ = false;
    const bool crowded = untaken_.crowded();
    if (crowded) wait_for_sends();
    if (!copies_ && !crowded && !gathers_) {
      if (after > 0) waits_.wait_after(0, after - 1);
      open_all_saved(at, work, backward);
    } else {
      if (after > 0) waits_.need_unknown(at_, after - 1);
      open_all_saved(at, work, backward);
      if (reloaded) waits_.need(at_, book_.last.items[at.stash - 1]);
      if (gathered >= 0) waits_.need(at_, gathered);
      waits_.wait_for_needs();
    }

    if (forward) {
      if (work.slice > 0) use_earlier_slices(work, &at);
      if (work.stage + 1 < stages_) {
        at.output = open(buffer_role::output, work);
        if (cell* const there = held_.on_this_rank(work, work.stage + 1)) there->input = at.output;
      }
      // What a forward saves that runs a second time is gone with it; the second run saves it anew.
      if (row_[at_].again) close_saved(at);
      if (backwards_) return;
      if (input >= 0) book_.close(message, input, at_ + 1);
      if (work.slice + 1 == in_.slices)  // no later slice reads any
        for (cell* of = &at - work.slice; of <= &at; ++of)
          book_.close(saved, of->stash - 1, at_ + 1);
      return;
    }
    if (!backward) return;
    const access mode = kind == job_kind::backward_weight ? access::read : access::read_write;
    const std::int32_t stash = at.stash - 1;
    const std::int32_t kept = at.kept - 1;
    if (stash >= 0) touch(stash, buffer_role::stash, mode);
    if (kept >= 0) touch(kept, buffer_role::kept, mode);
    const std::int32_t left = kind == job_kind::backward_weight ? at.left - 1 : -1;
    if (left >= 0) touch(left, buffer_role::left, mode);
    if (work.slice > 0) use_earlier_slices(work, &at);
    if (work.stage > 0 && kind != job_kind::backward_weight) {
      at.input_gradient = open(buffer_role::input_gradient, work);
      if (cell* const there = held_.on_this_rank(work, work.stage - 1))
        there->output_gradient = at.input_gradient;
    }
    // What a stage keeps is kept to the last job of its micro-batch (slice) that reads it; the
    // backwards of later slices, which read it, too, come before.
    if (kind == job_kind::backward_input) {
      if (kept < 0) return;
      book_.close(saved, stash, at_ + 1);
      at.stash = 0;
      return;
    }
    if (input >= 0) book_.close(message, input, at_ + 1);
    if (gradient >= 0) book_.close(message, gradient, at_ + 1);
    if (stash >= 0) book_.close(saved, stash, at_ + 1);
    if (kept >= 0) book_.close(saved, kept, at_ + 1);
    if (left >= 0) book_.close(saved, left, at_ + 1);
  }
  constexpr void open_all_saved(cell& at, const job& work, bool backward) {
    if (backward) {
      if (work.kind == job_kind::backward_input && sizes_.of(work.stage).left > 0)
        at.left = open_saved(buffer_role::left, work);
      return;
    }
    const std::int64_t passing = row_[at_].again ? sizes_.of(work.stage).passing : -1;
    at.stash = open_saved(buffer_role::stash, work, passing);
    if (backwards_ && passing < 0 && sizes_.of(work.stage).kept > 0)
      at.kept = open_saved(buffer_role::kept, work);
  }
  //! Gives back, before the job, what it knows the peers to have taken.
  constexpr void drop_taken() {
    untaken_.drop_taken(row_[at_], [&](std::int32_t taken) {
      book_.last.items[taken] = at_;  // who knows
      book_.close(message, taken, at_);
    });
    closed_ = book_.released;
  }
  //! Gives back what has been on its way for the longest, where that is too much, after an event.
  constexpr void wait_for_sends() {
    untaken_.drop_oldest([&](std::int32_t send, std::int32_t taken) {
      waits_.need_done(at_, send);
      book_.last.items[taken] = at_;
      book_.close(message, taken, at_);
    });
    closed_ = book_.released;
  }

  constexpr void send(const job& work) {
    const bool ahead = work.kind == job_kind::send_forward;
    const cell& at = held_.of(work);
    const std::int32_t id = (ahead ? at.output : at.input_gradient) - 1;
    out_.uses[used_++] = {id, ahead ? buffer_role::output : buffer_role::input_gradient,
                          access::read};
    clock now = row_[at_];
    if (now.after > 0) waits_.wait_after(stream_, now.after - 1);
    if (!sizes_.release_sends) return;
    // Mostly neighbours, which is said without a call.
    const int side = now.peer == rank_ + 1   ? 1
                     : now.peer == rank_ - 1 ? 0
                                             : side_of(rank_, now.peer, in_.rows.ranks);
    untaken_.push(stream_, {at_, id, now.partner - 1, now.peer, side, 0});
  }

  constexpr void receive(const job& work) {
    const bool ahead = work.kind == job_kind::receive_forward;
    const buffer_role role = ahead ? buffer_role::input : buffer_role::output_gradient;
    const std::int32_t id = book_.open(role, work, true);
    out_.uses[used_++] = {id, role, access::write};
    cell& at = held_.of(work);
    (ahead ? at.input : at.output_gradient) = id + 1;
    waits_.take_place_of(at_, book_.left_at());
  }

  //! The stash is given back when it is on the host, and taken anew by the reload.
  constexpr void offload(const job& work) {
    copies_ = true;
    cell& at = held_.of(work);
    const std::int32_t stash = at.stash - 1;
    use(stash, buffer_role::stash, access::read);
    waits_.wait_for_needs();
    at.host = open(buffer_role::host, work);
    book_.close(saved, stash, at_ + 1);
  }
  constexpr void reload(const job& work) {
    cell& at = held_.of(work);
    use(at.host - 1, buffer_role::host, access::read);
    const std::int32_t stash = book_.open(buffer_role::stash, work, true);
    out_.uses[used_++] = {stash, buffer_role::stash, access::write};
    at.stash = stash + 1;
    waits_.wait_for_needs();
    waits_.take_place_of(at_, book_.left_at());
    book_.close(book_.host_part, at.host - 1, at_ + 1);
  }

  int stages_;
  const job* list_;
  std::int32_t count_;
  Overlap overlap_;
  int rank_;
  untaken_sends& untaken_;
  std::int32_t closed_ = 0;  // buffers released before the instruction, or by then
  std::int32_t last_on_[max_streams]{};  // latest instruction of each stream, plus one
  bool backwards_ = false;
  bool copies_ = false;  // there have been some
  bool news_ = false;  // something may have been heard of the peers since the last job
};

}  // namespace detail

//! Writes the plan of `rank`: streams, buffers with their release points, and the fewest events.
//! An event stands where two accesses to the same bytes, one of them a write, lie on different
//! streams and nothing orders them otherwise; a sent buffer is free once something received proves
//! that the peer took it, which costs no event; the step's end comes after everything.
//! @param input lists with messages and ends; every wait for data lies between entries of one list
//! @param known what `data_order` found on those lists
//! @param out   a fixed_rank_plan or rank_plan: empty, with room for the list
template <class Overlap, class Plan>
constexpr void write_instructions(const replay_input& input, clock_rows known,
                                  const Overlap& overlap, const buffer_sizes& sizes, int rank,
                                  Plan& out) {
  buffer_book<Plan> book(out, sizes, known.row(rank), input.rows.counts[rank]);
  wait_book<Plan> waits(known.row(rank), out);
  untaken_sends untaken(known, input.rows.stride);
  detail::instruction_writer<Overlap, Plan>(input, known, overlap, sizes, rank, out, book, waits,
                                            untaken)
      .write();
}

}  // namespace stretto::lowering
