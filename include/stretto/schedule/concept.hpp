#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include "stretto/base/named_members.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::schedule {

//! What a schedule is: a value without state beyond its options that says what it is called, where
//! it lays the stages, which shapes it serves, how long a rank's list can get, and that writes the
//! compute jobs of all ranks. It never sees layers, communication or streams.
//!
//! - `name`: as the command-line tool spells it.
//! - `placed()`: how stages are laid over ranks; not placement_kind::table, whose table it cannot
//!   name.
//! - `supports(shape)`: ok, or fault::unsupported and the reason; of options of one's own that have
//!   no reason of theirs, reason::option_out_of_range.
//! - `capacity(shape)`: jobs that the longest rank may hold: at most three for each of its stages,
//!   micro-batch and slice. More than eight are refused, as they can only be an error.
//! - `emit(shape, table, sink)`: appends every rank's jobs by `sink.push`; the shape is supported.
//!   Returns ok, or what the costs or limits in `table` make impossible.
//!
//! All of these are constexpr, and a verdict that refuses has a reason, which compilers and to_text
//! say. An emit that needs memory takes stretto::scratch, or std::vector; of that in libstdc++ 12
//! clang evaluates `v(n, 0)` and not `v(n)`.
//!
//! One that has no backwards says so by a member `forward_only`, which is true.
template <class Schedule>
concept Policy = requires(const Schedule& made, const shape& sizes, const job_table_view& table,
                             job_sink& sink) {
  { Schedule::name } -> std::convertible_to<std::string_view>;
  { made.placed() } -> std::same_as<placement_kind>;
  { made.supports(sizes) } -> std::same_as<verdict>;
  { made.capacity(sizes) } -> std::same_as<int>;
  { made.emit(sizes, table, sink) } -> std::same_as<verdict>;
};

//! Whether a schedule asks for room that a rank can need, for a shape that it serves.
//! @return ok, or fault::unsupported and reason::capacity_out_of_range
template <Policy Schedule>
constexpr verdict capacity_or_refuse(const Schedule& made, const shape& sizes) {
  const std::int64_t cells =
      std::int64_t{place(made.placed(), sizes).chunks} * sizes.microbatches * sizes.slices;
  const std::int64_t most = cells < shape::most_jobs / 2 ? 8 * cells : 4 * shape::most_jobs;
  const std::int64_t room = made.capacity(sizes);
  return room >= 0 && room <= most ? verdict{}
                                   : refuse(fault::unsupported, reason::capacity_out_of_range);
}

//! Whether none of a schedule's jobs is a backward: its member `forward_only` says so.
template <class Schedule>
constexpr bool forward_only(const Schedule& made) {
  static_assert(!requires(Schedule& any) { any.forward_only(); },
                "stretto: a schedule's forward_only is a value and not a function");
  static_assert(!stretto::detail::names_forward_only<Schedule> || requires { made.forward_only; } ||
                    requires(Schedule& any) { any.forward_only(); },
                "stretto: a schedule's forward_only must be public");
  static_assert(!requires { made.forwards_only; },
                "stretto: a schedule's forwards_only is not asked for: forward_only is");
  if constexpr (requires { made.forward_only; }) return made.forward_only;
  return false;
}

//! The verdict that most `supports` begin with.
constexpr verdict positive_or_refuse(const shape& sizes) {
  const reason why = positive(sizes);
  return why == reason::none ? verdict{} : refuse(fault::unsupported, why);
}

//! The same for a schedule of one chunk per rank that may cut micro-batches in slices.
constexpr verdict one_sliced_chunk_or_refuse(const shape& sizes) {
  if (sizes.chunks > 1) return refuse(fault::unsupported, reason::chunks_not_one);
  return positive_or_refuse(sizes);
}

//! The same for one that cuts none.
constexpr verdict one_chunk_or_refuse(const shape& sizes) {
  if (sizes.chunks <= 1 && sizes.slices > 1)
    return refuse(fault::unsupported, reason::slices_not_one);
  return one_sliced_chunk_or_refuse(sizes);
}

//! The same for two chunks per rank.
constexpr verdict two_chunks_or_refuse(const shape& sizes) {
  if (const verdict sound = positive_or_refuse(sizes); !sound) return sound;
  if (sizes.chunks != 2) return refuse(fault::unsupported, reason::chunks_not_two);
  if (sizes.slices > 1) return refuse(fault::unsupported, reason::slices_not_one);
  return {};
}

//! The same for a schedule of two directions, where the stages of every rank differ.
constexpr verdict two_waves_or_refuse(const shape& sizes) {
  if (const verdict sound = positive_or_refuse(sizes); !sound) return sound;
  if (sizes.ranks % 2 != 0) return refuse(fault::unsupported, reason::ranks_odd);
  if (sizes.slices > 1) return refuse(fault::unsupported, reason::slices_not_one);
  return {};
}

//! The same for one chunk a direction.
constexpr verdict two_ways_or_refuse(const shape& sizes) {
  if (const verdict sound = two_waves_or_refuse(sizes); !sound) return sound;
  if (sizes.chunks > 1) return refuse(fault::unsupported, reason::chunks_not_one);
  return {};
}

}  // namespace stretto::schedule
