#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/check/complete.hpp"
#include "stretto/check/ordered.hpp"
#include "stretto/check/rendezvous.hpp"
#include "stretto/lowering/walk.hpp"

namespace stretto::check {

namespace detail {

//! What a walk asks of every entry of lists with messages, so that its end proves them.
class issued_proof {
 public:
  static constexpr bool proves = true;

  //! @param has_late  messages may come behind other nodes than that which makes them
  constexpr issued_proof(const replay_input& compute, const replay_input& issued, bool has_late)
      : issued_(issued),
        has_late_(has_late),
        rows_(compute.rows),
        where_(issued.where),
        stages_(where_.stages()),
        microbatches_(issued.microbatches),
        slices_(issued.slices),
        cursors_(compute.rows.ranks),
        cursor_(cursors_.data()),
        received_(static_cast<std::int64_t>(stages_) * issued.microbatches * issued.slices),
        there_(received_.data()) {}
  constexpr ~issued_proof() = default;  // nvcc does not find it constexpr by itself

  //! A job is the next of the rank's list without messages, and what comes from elsewhere is here.
  constexpr bool runs(int rank, const job& work) {
    const std::int32_t at = cursor_[rank];
    if (at >= rows_.counts[rank]) return false;
    cursor_[rank] = at + 1;
    job due = rows_.items[std::int64_t{rank} * rows_.stride + at];
    if (due.stage != work.stage || due.microbatch != work.microbatch || due.kind != work.kind ||
        due.slice != work.slice || due.paired != work.paired)
      return false;
    const bool ahead = due.kind == job_kind::forward;
    if (!ahead && due.kind != job_kind::backward && due.kind != job_kind::backward_input)
      return true;
    std::uint8_t& here = there_[place(due.stage, due)];
    if (has_late_) here |= ahead ? made_output : made_gradient;
    const int from = due.stage + (ahead ? -1 : 1);
    return from < 0 || from >= stages_ || (here & (ahead ? got_input : got_gradient)) != 0 ||
           where_.rank_of(from, due.microbatch) == rank;
  }

  //! A message carries what its node has just made, once. It goes `ahead` or back, to stage `to`.
  constexpr bool sends(const job& first, const job& last, const job& sent, bool ahead, int to) {
    return !sent.paired && (makes(last, sent, ahead) || makes(first, sent, ahead)) &&
           arrives(to, sent, ahead);
  }

  //! A message that was kept back carries what a node before has made, once.
  constexpr bool sends_late(const job& sent) {
    const bool ahead = sent.kind == job_kind::send_forward;
    const int to = sent.stage + (ahead ? 1 : -1);
    return to >= 0 && to < stages_ && !sent.paired && sent.microbatch >= 0 &&
           sent.microbatch < microbatches_ && sent.slice >= 0 && sent.slice < slices_ &&
           (there_[place(sent.stage, sent)] & (ahead ? made_output : made_gradient)) != 0 &&
           arrives(to, sent, ahead);
  }

  //! A sum over data-parallel replicas stands behind all gradients of its stage.
  constexpr bool reduces(int rank, const job& work) const {
    const job* const list = rows_.items + static_cast<std::int64_t>(rank) * rows_.stride;
    for (std::int32_t at = cursor_[rank]; at < rows_.counts[rank]; ++at)
      if (list[at].stage == work.stage &&
          (list[at].kind == job_kind::backward || list[at].kind == job_kind::backward_input ||
           list[at].kind == job_kind::backward_weight))
        return false;
    return true;
  }

  //! Every job has been met, and what is left keeps rule `complete`.
  constexpr verdict ends(const std::int32_t* from) {
    for (int rank = 0; rank < rows_.ranks; ++rank)
      if (cursor_[rank] != rows_.counts[rank])
        return refuse(fault::incomplete, reason::missing, rank, -1,
                      rows_.at(rank, cursor_[rank]));
    return updates_complete(issued_, from);
  }

 private:
  //! What is known of a (stage, micro-batch, slice).
  static constexpr std::uint8_t got_input = 1, got_gradient = 2, made_output = 4,
                                made_gradient = 8;

  constexpr std::int64_t place(int stage, const job& work) const {
    return (static_cast<std::int64_t>(stage) * microbatches_ + work.microbatch) * slices_ +
           work.slice;
  }
  static constexpr bool makes(const job& maker, const job& sent, bool ahead) {
    return maker.stage == sent.stage && maker.microbatch == sent.microbatch &&
           maker.slice == sent.slice &&
           (ahead ? maker.kind == job_kind::forward
                  : maker.kind == job_kind::backward || maker.kind == job_kind::backward_input);
  }
  constexpr bool arrives(int to, const job& sent, bool ahead) {
    std::uint8_t& here = there_[place(to, sent)];
    if ((here & (ahead ? got_input : got_gradient)) != 0) return false;
    here |= ahead ? got_input : got_gradient;
    return true;
  }

  const replay_input& issued_;
  bool has_late_;
  job_rows rows_;  // without messages
  placement where_;
  int stages_;
  int microbatches_;
  int slices_;
  scratch<std::int32_t> cursors_;
  std::int32_t* cursor_;
  scratch<std::uint8_t> received_;
  std::uint8_t* there_;
};

}  // namespace detail

//! Rules complete, ordered and rendezvous of lists with messages and ends, in one walk of the
//! global order that `observer` hears of. `compute`, the lists without messages, keeps complete and
//! live. So every job is there once, on its rank and behind what it needs there, because the lists
//! hold the same jobs in the same order; what comes from another rank is proven here to be sent
//! when it is made and received before it is used; and the walk itself is one execution in which
//! every message finds both its ranks at it: lists that block have none, whatever the order.
//! @return ok, or the first of those rules that is broken, over lists that the walk has refused
template <class Observer>
constexpr verdict issued(const replay_input& compute, const replay_input& lists,
                         const lowering::order_view& order, Observer& observer) {
  detail::issued_proof proof(compute, lists, order.has_late);
  const verdict walked = lowering::walk(lists, order, observer, proof);
  if (walked.ok()) return walked;
  if (const verdict found = ordered(compute); !found.ok()) return found;
  if (const verdict found = complete(lists); !found.ok()) return found;
  if (const verdict found = ordered(lists); !found.ok()) return found;
  if (const verdict found = rendezvous(lists); !found.ok()) return found;
  return walked;
}

}  // namespace stretto::check
