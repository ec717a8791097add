#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"
#include "stretto/check/doubled.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

namespace detail {

//! The walk behind check::sharded: down each list, with what is there of the rank's stages.
class shards {
 public:
  constexpr shards(const replay_input& input, int most)
      : rows_(input.rows), stages_(input.where.stages()), most_(most), stage_(stages_) {}
  constexpr ~shards() = default;  // nvcc needs it written

  constexpr verdict run() {
    look_through();
    if (!gathers_ && !reduces_) return {};
    for (rank_ = 0; rank_ < rows_.ranks; ++rank_) {
      held_ = 0;
      last_ = -1;
      for (int step = 0; step < rows_.counts[rank_]; ++step)
        if (const verdict found = enter(step, rows_.at(rank_, step)); !found.ok()) return found;
      if (const verdict found = end_of_list(); !found.ok()) return found;
    }
    return keeping_ < rows_.ranks ? kept_ : verdict{};
  }

 private:
  struct stage_state {
    int rank = 0;       //!< whose list this was found in
    int gathered = -1;  //!< the step of the UNSHARD, until it is dropped
    int backward = -1;  //!< the step of the latest
    bool reduced = false;
  };

  static constexpr bool makes_gradients(job_kind kind) {
    return is_input_gradient(kind) || kind == job_kind::backward_weight;
  }

  //! What the lists speak of at all.
  constexpr void look_through() {
    for (int rank = 0; rank < rows_.ranks; ++rank)
      for (int step = 0; step < rows_.counts[rank]; ++step) {
        const job_kind kind = rows_.at(rank, step).kind;
        gathers_ = gathers_ || is_gather(kind);
        reduces_ = reduces_ || kind == job_kind::reduce_grad;
      }
  }

  constexpr verdict no(reason why, int step, const job& work) const {
    return refuse(fault::missharded, why, rank_, step, work);
  }

  constexpr stage_state& state_of(const job& work) {
    stage_state& here = stage_[work.stage];
    if (here.rank != rank_) here = {.rank = rank_};
    return here;
  }

  constexpr verdict enter(int step, const job& work) {
    if (!is_compute(work.kind) && !is_gather(work.kind) && work.kind != job_kind::reduce_grad)
      return {};
    if (work.stage < 0 || work.stage >= stages_)
      return refuse(fault::incomplete, reason::out_of_range, rank_, step, work);
    stage_state& here = state_of(work);
    switch (work.kind) {
      case job_kind::unshard:
        if (here.gathered >= 0) return no(reason::gathered_twice, step, work);
        here.gathered = step;
        if (++held_ > most_) {
          verdict above = no(reason::too_many_gathered, step, work);
          above.amount = held_;
          above.limit = most_;
          return above;
        }
        return {};
      case job_kind::reshard:
        if (here.gathered < 0) return no(reason::not_gathered, step, work);
        here.gathered = -1;
        --held_;
        return {};
      case job_kind::reduce_grad:
        if (here.reduced) return doubled(fault::missharded, rows_, rank_, step, work);
        if (here.backward < 0) return no(reason::nothing_to_reduce, step, work);
        here.reduced = true;
        return {};
      default:
        if (gathers_ && here.gathered < 0) return no(reason::not_gathered, step, work);
        if (makes_gradients(work.kind)) here.backward = step;
        last_ = work.stage;
        return {};
    }
  }

  //! What the list has left undone.
  constexpr verdict end_of_list() {
    for (int step = 0; step < rows_.counts[rank_]; ++step) {
      const job& work = rows_.at(rank_, step);
      if (work.kind == job_kind::unshard && state_of(work).gathered == step) {
        const verdict left = no(reason::never_dropped, step, work);
        if (reduces_ || work.stage != last_) return left;
        if (keeping_++ == 0) kept_ = left;
      } else if (reduces_ && makes_gradients(work.kind)) {
        const stage_state& here = state_of(work);
        if (here.backward == step && !here.reduced)
          return no(reason::missing, step, {.stage = work.stage, .kind = job_kind::reduce_grad});
      }
    }
    return {};
  }

  job_rows rows_;
  int stages_;
  int most_;
  bool gathers_ = false;  // any rank
  bool reduces_ = false;  // any rank
  scratch<stage_state> stage_;
  int rank_ = 0;
  int held_ = 0;     // stages whose weights are there
  int last_ = -1;    // the stage that computed last
  int keeping_ = 0;  // ranks that end with that stage's weights
  verdict kept_{};   // what is wrong with the first of them, unless all do
};

}  // namespace detail

//! Rule `sharded`, of lists that keep `complete` and `ordered` and say where weights that are
//! sharded are gathered (UNSHARD) and dropped (RESHARD), or a stage's gradients reduced
//! (REDUCE_GRAD), as torch.distributed.pipelining's do. If any list gathers or drops, a stage
//! computes with its weights gathered; they are not gathered twice without being dropped between,
//! dropped only when gathered, and not left at the end. If any list reduces, each stage with
//! backwards has one reduction, which `ordered` puts behind the last of them. Lists with neither
//! are not looked at further. Older PyTorch, which has no REDUCE_GRAD, leaves the weights of
//! each rank's last job gathered: where no list reduces, this is accepted if all ranks do so.
//! Linear in the jobs. Of lists without data-parallel groups, which reduce for each group.
//! @param most  of how many stages at once a rank may hold the weights
//! @return ok; fault::missharded with the rank, the step and the job (of a reduction that is
//!         missing the step of the backward that asks for it; of too many stages how many, and
//!         `most`); or fault::incomplete for a job out of range.
constexpr verdict sharded(const replay_input& input, int most = std::numeric_limits<int>::max()) {
  return detail::shards(input, most).run();
}

//! Of how many stages at once a rank holds the weights, in lists that keep rule `sharded`; 0 where
//! nothing is gathered.
constexpr int most_gathered(const job_rows& rows, int rank) {
  int held = 0;
  int most = 0;
  for (const job& work : rows.row(rank)) {
    held += work.kind == job_kind::unshard ? 1 : work.kind == job_kind::reshard ? -1 : 0;
    if (held > most) most = held;
  }
  return most;
}

}  // namespace stretto::check
