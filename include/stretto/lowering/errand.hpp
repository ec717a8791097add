#pragma once

#include "stretto/model/job.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::lowering {

//! What an entry of a rank's list asks of the executor.
struct errand {
  action act = action::run;
  int peer = -1;  //!< as instruction::peer
};

//! The errand of any entry of a list.
constexpr errand errand_of(const job& work, const placement& where) {
  switch (work.kind) {
    case job_kind::send_forward:
      return {action::send, where.rank_of(work.stage + 1, work.microbatch)};
    case job_kind::send_backward:
      return {action::send, where.rank_of(work.stage - 1, work.microbatch)};
    case job_kind::receive_forward:
      return {action::receive, where.rank_of(work.stage - 1, work.microbatch)};
    case job_kind::receive_backward:
      return {action::receive, where.rank_of(work.stage + 1, work.microbatch)};
    case job_kind::offload: return {action::offload};
    case job_kind::reload: return {action::reload};
    case job_kind::all_reduce: return {action::all_reduce, work.microbatch};
    case job_kind::end_step: return {action::end_step};
    default: return {};
  }
}

}  // namespace stretto::lowering
