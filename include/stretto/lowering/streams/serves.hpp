#pragma once

#include "stretto/lowering/streams/concept.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::overlap {

//! Whether every instruction that this placement may bring has a stream: all are below `count()`,
//! and that is no more than a plan can have; what computes, prepares sums, updates weights and ends
//! the step is where stages compute, and copies share a stream.
//! @return ok, or fault::unsupported with the first job that is sent elsewhere; but for copies on
//!         two streams with the stream that is named for it, and the last that it might be sent to
template <Policy Overlap>
constexpr verdict serves(const Overlap& made, const placement& where) {
  const int count = made.count();
  if (count < 1 || count > max_streams)
    return {.what = fault::unsupported,
            .why = reason::too_many_streams_or_none,
            .amount = count,
            .limit = max_streams};
  const auto has = [&](job_kind kind, int rank, int peer) {
    const int stream = made.stream_of(kind, rank, peer, where.ranks);
    return stream >= 0 && stream < count;
  };
  const auto refused = [](reason why, const job& what, int rank, int stream, int last) {
    verdict found = refuse(fault::unsupported, why, rank, -1, what);
    found.amount = stream;
    found.limit = last;
    return found;
  };
  const auto none = [&](job_kind kind, int rank, int peer, int stage, int microbatch) {
    return refused(reason::no_stream_for_job,
                   {.stage = stage, .microbatch = microbatch, .kind = kind}, rank,
                   made.stream_of(kind, rank, peer, where.ranks), count - 1);
  };
  for (int rank = 0; rank < where.ranks; ++rank)
    for (const job_kind kind :
         {job_kind::offload, job_kind::reload, job_kind::reduce_grad, job_kind::all_reduce,
          job_kind::optimizer, job_kind::end_step})
      if (!has(kind, rank, -1)) return none(kind, rank, -1, where.stage_of(rank, 0), 0);
  for (int rank = 0; rank < where.ranks; ++rank) {
    for (const job_kind kind : {job_kind::forward, job_kind::backward, job_kind::backward_input,
                                job_kind::backward_weight, job_kind::recompute,
                                job_kind::reduce_grad, job_kind::optimizer, job_kind::end_step})
      if (const int stream = made.stream_of(kind, rank, -1, where.ranks); stream != 0)
        return refused(reason::not_with_computation,
                       {.stage = where.stage_of(rank, 0), .kind = kind}, rank, stream, 0);
    if (made.stream_of(job_kind::reload, rank, -1, where.ranks) !=
        made.stream_of(job_kind::offload, rank, -1, where.ranks))
      return refuse(fault::unsupported, reason::copies_on_two_streams, rank, -1,
                    {.stage = where.stage_of(rank, 0), .kind = job_kind::reload});
  }
  // Where micro-batches go both ways, the last goes the other one.
  const int ways = where.kind == placement_kind::bidirectional ? 2 : 1;
  for (int way = 0; way < ways; ++way) {
    const int microbatch = way == 0 ? 0 : where.microbatches - 1;
    for (int stage = 0; stage + 1 < where.stages(); ++stage) {
      const int rank = where.rank_of(stage, microbatch);
      const int peer = where.rank_of(stage + 1, microbatch);
      if (rank == peer) continue;
      for (const job_kind kind : {job_kind::send_forward, job_kind::receive_backward})
        if (!has(kind, rank, peer)) return none(kind, rank, peer, stage, microbatch);
      for (const job_kind kind : {job_kind::receive_forward, job_kind::send_backward})
        if (!has(kind, peer, rank)) return none(kind, peer, rank, stage + 1, microbatch);
    }
  }
  return {};
}

}  // namespace stretto::overlap
