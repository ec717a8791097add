#pragma once

#include "stretto/model/verdict.hpp"

namespace stretto {

//! The static_assert form of a verdict. Its arguments are written out one by one because that is
//! what makes every compiler print them by name: the fault, why, the rank, the step in that rank's
//! list, and the job (kind, stage, micro-batch). One sentence a fault, so that the rule is named
//! in the message too.
template <fault What, reason Why, int Rank, int Step, job_kind Kind, int Stage, int Microbatch>
struct accepted {
  static_assert(What != fault::unsupported,
                "stretto: unsupported: the policy does not serve this shape");
  static_assert(What != fault::capacity, "stretto: capacity: the storage is too small");
  static_assert(What != fault::syntax, "stretto: syntax: this is not an action of the grammar");
  static_assert(What != fault::misassigned,
                "stretto: misassigned: the layers do not fit the stages");
  static_assert(What != fault::incomplete,
                "stretto: incomplete: a job is missing, doubled, misplaced or out of range");
  static_assert(What != fault::disordered,
                "stretto: disordered: a job stands before one of its rank that it needs");
  static_assert(What != fault::deadlocked,
                "stretto: deadlocked: the replay stops; this job waits for one that never runs");
  static_assert(What != fault::rendezvous,
                "stretto: rendezvous: a send and a receive do not meet");
  static_assert(What != fault::over_limit,
                "stretto: over_limit: the rank needs more memory than its limit");
  static_assert(What != fault::race,
                "stretto: race: two accesses to the same bytes are not ordered");
  static_assert(What != fault::idle_event,
                "stretto: idle_event: an event orders nothing that is not ordered without it");
  static constexpr bool value = What == fault::none;
};

//! True, or a compile error that names rule, reason, rank, step and job.
template <const verdict& Found>
inline constexpr bool accepted_verdict =
    accepted<Found.what, Found.why, Found.rank, Found.step, Found.where.kind, Found.where.stage,
             Found.where.microbatch>::value;

//! `static_assert(stretto::valid<step>)`: every rule holds for a stretto::pipeline (or whatever
//! else has a `static constexpr verdict checked`), or the build stops and says which does not.
template <class Checked>
inline constexpr bool valid =  // written out: nvcc's host pass loses a member's reference
    accepted<Checked::checked.what, Checked::checked.why, Checked::checked.rank,
             Checked::checked.step, Checked::checked.where.kind, Checked::checked.where.stage,
             Checked::checked.where.microbatch>::value;

}  // namespace stretto
