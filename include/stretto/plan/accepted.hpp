#pragma once

#include <cstdint>
#include <type_traits>

#include "stretto/model/verdict.hpp"

namespace stretto {

namespace detail {

template <int>
inline constexpr bool never = false;

//! Whether fault::unsupported is about the shape: other reasons have a sentence of their own below.
constexpr bool speaks_of_shape(reason why) {
  switch (why) {
    case reason::costs_do_not_fit:
    case reason::time_out_of_range:
    case reason::memory_out_of_range:
    case reason::base_out_of_range:
    case reason::limit_out_of_range:
    case reason::hop_out_of_range:
    case reason::node_out_of_range:
    case reason::hiding_out_of_range:
    case reason::below_base:
    case reason::bad_recompute_window:
    case reason::slices_not_recomputed:
    case reason::bad_offload_window:
    case reason::slices_not_offloaded:
    case reason::offload_recomputed:
    case reason::gradients_not_floats:
    case reason::output_out_of_range:
    case reason::stash_out_of_range:
    case reason::gradients_out_of_range:
    case reason::kept_out_of_range:
    case reason::left_out_of_range:
    case reason::passing_out_of_range:
    case reason::weights_out_of_range:
    case reason::no_stream_for_job:
    case reason::too_many_streams_or_none:
    case reason::no_such_stream:
    case reason::not_with_computation:
    case reason::copies_on_two_streams:
    case reason::group_unsound:
    case reason::too_few_gathered:
    case reason::nothing_to_gather:
    case reason::backward_ahead:
    case reason::capacity_out_of_range:
    case reason::option_out_of_range:
    case reason::warmup_not_served:
      return false;
    default:
      return true;
  }
}

//! Whether it is about bytes that a memory policy says: base/fault.hpp has these one after another.
constexpr bool speaks_of_bytes(reason why) {
  return why >= reason::output_out_of_range && why <= reason::weights_out_of_range;
}
//! Or costs, which it has so, too.
constexpr bool speaks_of_costs(reason why) {
  return why >= reason::time_out_of_range && why <= reason::hiding_out_of_range;
}
//! Or about a stream that an overlap policy sends a job to.
constexpr bool speaks_of_stream(reason why) {
  return why == reason::no_stream_for_job || why == reason::not_with_computation;
}

}  // namespace detail

//! The static_assert form of a verdict. Its arguments are written out one by one because that is
//! what makes every compiler print them by name: the fault, why, the rank, the step in that rank's
//! list, and the job (kind, stage, micro-batch). One sentence a fault, so that the rule is named
//! in the message too.
template <fault What, reason Why, int Rank, int Step, job_kind Kind, int Stage, int Microbatch>
struct accepted {
  static_assert(What != fault::unsupported || !detail::speaks_of_shape(Why),
                "stretto: unsupported: the policy does not serve this shape");
  static_assert(
      What != fault::unsupported || Why != reason::costs_do_not_fit,
      "stretto: unsupported: the table of costs has not an entry for each rank, chunk and "
      "kind");
  static_assert(What != fault::unsupported || !detail::speaks_of_costs(Why),
                "stretto: unsupported: the memory policy has a time below 0 or above 2^46, memory "
                "beyond 2^46, or hides more or less than 0 to 100 percent");
  static_assert(What != fault::unsupported || Why != reason::below_base,
                "stretto: unsupported: by the memory policy a rank's jobs give back more than they "
                "take, and a limit of memory would mean nothing");
  static_assert(
      What != fault::unsupported || Why != reason::bad_recompute_window,
      "stretto: unsupported: the memory policy recomputes by a period below 1, or a count "
      "below 0, or chunks that begin below 0 or of which the first is behind the last");
  static_assert(
      What != fault::unsupported || Why != reason::slices_not_recomputed,
      "stretto: unsupported: the memory policy recomputes, and micro-batches are in slices: "
      "later ones read what a slice keeps");
  static_assert(
      What != fault::unsupported || Why != reason::bad_offload_window,
      "stretto: unsupported: the memory policy offloads by a period below 1, or a count, "
      "lag or prefetch below 0, or chunks that begin below 0 or of which the first is behind "
      "the last");
  static_assert(
      What != fault::unsupported || Why != reason::slices_not_offloaded,
      "stretto: unsupported: the memory policy offloads, and micro-batches are in slices: "
      "later ones read what a slice keeps");
  static_assert(What != fault::unsupported || Why != reason::offload_recomputed,
                "stretto: unsupported: the memory policy offloads what it recomputes, too");
  static_assert(
      What != fault::unsupported || Why != reason::no_stream_for_job,
      "stretto: unsupported: the overlap policy has no such stream as it sends this job to");
  static_assert(What != fault::unsupported || Why != reason::too_many_streams_or_none,
                "stretto: unsupported: the overlap policy has no stream, or too many");
  static_assert(What != fault::unsupported || Why != reason::no_such_stream,
                "stretto: unsupported: an op of this job is sent to a stream that there is not");
  static_assert(What != fault::unsupported || Why != reason::not_with_computation,
                "stretto: unsupported: the overlap policy puts this job where no stage computes");
  static_assert(What != fault::unsupported || Why != reason::copies_on_two_streams,
                "stretto: unsupported: the overlap policy sends copies to the host and back to two "
                "streams");
  static_assert(What != fault::unsupported || !detail::speaks_of_bytes(Why),
                "stretto: unsupported: the memory policy has bytes below 0 or above 2^40");
  static_assert(
      What != fault::unsupported || Why != reason::gradients_not_floats,
      "stretto: unsupported: replicas sum gradients, and the memory policy's are no whole "
      "floats of 4 bytes");
  static_assert(What != fault::unsupported || Why != reason::group_unsound,
                "stretto: unsupported: this group has no members, or such as there are not");
  static_assert(What != fault::unsupported || Why != reason::too_few_gathered,
                "stretto: unsupported: replicas gather the weights of fewer stages at once than a "
                "rank needs: one, or two where it pairs their jobs");
  static_assert(
      What != fault::unsupported || Why != reason::nothing_to_gather,
      "stretto: unsupported: weights are gathered where there are data-parallel replicas, each "
      "with a part");
  static_assert(What != fault::unsupported || Why != reason::backward_ahead,
                "stretto: unsupported: a pair with its backward ahead is not expanded into ops");
  static_assert(What != fault::unsupported || Why != reason::capacity_out_of_range,
                "stretto: unsupported: the schedule's capacity is below 0, or above eight jobs for "
                "each stage, micro-batch and slice of a rank");
  static_assert(What != fault::unsupported || (Why != reason::option_out_of_range &&
                                               Why != reason::warmup_not_served),
                "stretto: unsupported: an option of the schedule is out of range");
  static_assert(What != fault::capacity || Why != reason::above_capacity,
                "stretto: capacity: the schedule emits more jobs on this rank than its capacity");
  static_assert(What != fault::capacity || Why == reason::above_capacity,
                "stretto: capacity: the storage is too small");
  static_assert(What != fault::syntax, "stretto: syntax: this is not an action of the grammar");
  static_assert(What != fault::misassigned,
                "stretto: misassigned: the layers do not fit the stages");
  static_assert(What != fault::incomplete,
                "stretto: incomplete: a job is missing, doubled, misplaced or out of range");
  static_assert(What != fault::disordered,
                "stretto: disordered: a job stands before one of its rank that it needs");
  static_assert(What != fault::deadlocked,
                "stretto: deadlocked: the replay stops; this job waits for one that never runs "
                "(stretto::standing_still, of plan/standing_still.hpp, says who waits for whom)");
  static_assert(What != fault::rendezvous || Why == reason::channel_on_two_streams,
                "stretto: rendezvous: a send and a receive do not meet");
  static_assert(
      What != fault::rendezvous || Why != reason::channel_on_two_streams,
      "stretto: rendezvous: messages between two ranks are on two streams: all from one to "
      "another must be sent on one, and received on one");
  static_assert(What != fault::over_limit,
                "stretto: over_limit: the rank needs more memory than its limit");
  static_assert(What != fault::race,
                "stretto: race: two accesses to the same bytes are not ordered");
  static_assert(What != fault::idle_event,
                "stretto: idle_event: an event orders nothing that is not ordered without it");
  static_assert(
      What != fault::unsound_program,
      "stretto: unsound_program: an op of this job uses what is not there, or is not tied "
      "to its job");
  static_assert(What != fault::not_resident,
                "stretto: not_resident: it may begin before communication issued ahead of it");
  static_assert(What != fault::untimely,
                "stretto: untimely: this receive may be posted further ahead than the plan's lead");
  static_assert(
      What != fault::miscut,
      "stretto: miscut: a piece of this op is missing, or does not begin where another ends");
  static_assert(What != fault::missharded,
                "stretto: missharded: weights are not gathered and dropped around their use, or "
                "gradients not reduced once");
  static constexpr bool value = What == fault::none;
};

//! The same for layers that do not fit the stages, with what a job has no place for: the rank, how
//! much there is, and what would be valid (assignment/concept.hpp says of what).
template <reason Why, int Rank, std::int64_t Given, std::int64_t Valid>
struct assigned {
  static_assert(Why != reason::empty_stage || Rank < 0,
                "stretto: empty_stage: this rank is given fewer layers than it needs");
  static_assert(
      Why != reason::empty_stage || Rank >= 0,
      "stretto: empty_stage: the model has fewer layers than stages, which need one each");
  static_assert(Why != reason::layers_do_not_fit,
                "stretto: layers_do_not_fit: the layers do not sum to the model");
  static_assert(Why != reason::counts_not_per_rank,
                "stretto: counts_not_per_rank: each rank needs one layer count");
  static_assert(Why != reason::counts_not_per_stage,
                "stretto: counts_not_per_stage: each stage needs one layer count");
  static_assert(Why != reason::no_such_rank, "stretto: no_such_rank: there is no such rank");
  static_assert(Why != reason::layer_misplaced,
                "stretto: layer_misplaced: this layer must be on another rank");
  static_assert(Why != reason::layer_missing,
                "stretto: layer_missing: this layer lies on no stage");
  static_assert(Why != reason::layer_twice,
                "stretto: layer_twice: this layer lies on two stages, or before its turn");
  static_assert(Why != reason::bad_layout,
                "stretto: bad_layout: at this character the text is no layout");
  static_assert(Why != reason::layout_order,
                "stretto: layout_order: E comes first, t before m, L last, and E and L once");
  static_assert(Why != reason::layout_too_long,
                "stretto: layout_too_long: more than a million layers and stages");
  static constexpr bool value = true;
};

//! The same for a rank's memory, in the unit of the job table: how much it needs, and how much it
//! has. Of a search that finds no order, the least limit that is enough for every rank.
template <int Rank, std::int64_t Needed, std::int64_t Limit>
struct within_limit {
  static_assert(Needed <= Limit,
                "stretto: over_limit: within_limit<rank, needed, limit> says how much");
  static constexpr bool value = true;
};

//! The same for the slice of the job that `accepted` names, of micro-batches in slices; the first
//! one goes without saying.
template <int Rank, int Step, int Slice>
struct of_slice {
  static_assert(Slice <= 0,
                "stretto: of_slice<rank, step, slice> says which slice of the job it is");
  static constexpr bool value = true;
};

//! The same for the other job of a verdict: what the one that `accepted` names needs, waits for,
//! meets or clashes with.
template <job_kind Kind, int Stage, int Microbatch, int Slice>
struct other_job {
  static_assert(detail::never<Slice>,
                "stretto: other_job<kind, stage, micro-batch, slice> is what that job needs, waits "
                "for, meets or clashes with");
  static constexpr bool value = true;
};

//! The same for a number that a policy gives, a job's stream, its cost or a stage's bytes: what it
//! is, and the most that it may be.
template <int Rank, std::int64_t Given, std::int64_t Most>
struct given_number {
  static_assert(detail::never<Rank>,
                "stretto: given_number<rank, given, most> says which stream, or how much");
  static constexpr bool value = true;
};

//! The same for a job that stands in a list a second time: where it stands the first time.
template <int Rank, std::int64_t Step>
struct first_time {
  static_assert(detail::never<Rank>,
                "stretto: first_time<rank, step> says where the job stands the first time");
  static constexpr bool value = true;
};

namespace detail {

//! All of the above, of the members of a verdict.
template <fault What, reason Why, int Rank, int Step, job_kind Kind, int Stage, int Microbatch,
          int Slice, bool HasOther, job_kind OtherKind, int OtherStage, int OtherMicrobatch,
          int OtherSlice, std::int64_t Amount, std::int64_t Limit>
inline constexpr bool sound =
    accepted<What, Why, Rank, Step, Kind, Stage, Microbatch>::value &&
    of_slice<Rank, Step, What == fault::none ? 0 : Slice>::value &&
    std::conditional_t<HasOther && Why == reason::duplicate, first_time<Rank, Amount>,
                       std::true_type>::value &&
    std::conditional_t<HasOther && Why != reason::duplicate,
                       other_job<OtherKind, OtherStage, OtherMicrobatch, OtherSlice>,
                       std::true_type>::value &&
    std::conditional_t<What == fault::unsupported &&
                           (speaks_of_bytes(Why) || speaks_of_costs(Why) || speaks_of_stream(Why)),
                       given_number<Rank, Amount, Limit>, std::true_type>::value &&
    assigned<What == fault::misassigned ? Why : reason::none, Rank, Amount, Limit>::value &&
    within_limit<Rank, What == fault::over_limit ? Amount : 0,
                 What == fault::over_limit ? Limit : 0>::value;

}  // namespace detail

//! True, or a compile error that names rule, reason, rank, step and job, and the amounts.
template <const verdict& Found>
inline constexpr bool accepted_verdict =
    detail::sound<Found.what, Found.why, Found.rank, Found.step, Found.where.kind,
                  Found.where.stage, Found.where.microbatch, Found.where.slice, Found.has_other,
                  Found.other.kind, Found.other.stage, Found.other.microbatch, Found.other.slice,
                  Found.amount, Found.limit>;

namespace detail {

//! Every rule holds for `Checked`, or a compile error.
template <class Checked>
inline constexpr bool proven =  // written out: nvcc's host pass loses a member's reference
    sound<Checked::checked.what, Checked::checked.why, Checked::checked.rank, Checked::checked.step,
          Checked::checked.where.kind, Checked::checked.where.stage,
          Checked::checked.where.microbatch, Checked::checked.where.slice,
          Checked::checked.has_other, Checked::checked.other.kind, Checked::checked.other.stage,
          Checked::checked.other.microbatch, Checked::checked.other.slice, Checked::checked.amount,
          Checked::checked.limit>;

//! The same, proven when the body is made.
template <class Checked>
void prove() {
  static_assert(proven<Checked>);
}
template <void (*)()>
inline constexpr bool asked = true;

}  // namespace detail

//! `static_assert(stretto::valid<step>)`: every rule holds for a stretto::pipeline (or whatever
//! else has a `static constexpr verdict checked`), or the build stops and says which does not.
//!
//! A file of CUDA is read for the device and for the host, and by nvcc a third time. What is costly
//! to prove is proven once, by the compiler that makes the host's code: device code by itself
//! (`nvcc -ptx`, `clang++ --cuda-device-only`), or a question that stands in device code alone, is
//! not proven. What runs a step is the host's, and asks again (pipeline::plans).
#if defined(__CUDA_ARCH__)
template <class Checked>
inline constexpr bool valid = true;
#elif defined(__NVCC__)
// The pass of nvcc that takes the host's code from the device's leaves the bodies of templates
// alone, and the host's compiler, which reads what it writes, makes all whose address is taken.
template <class Checked>
inline constexpr bool valid = detail::asked<&detail::prove<Checked>>;
#else
template <class Checked>
inline constexpr bool valid = detail::proven<Checked>;
#endif

}  // namespace stretto
