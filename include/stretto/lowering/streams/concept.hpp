#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stretto/base/named_members.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::overlap {

//! What an overlap policy is: which streams there are and which of them an instruction runs on. A
//! channel, all messages from one rank to another, must stay on one stream at either end:
//! activations on one and gradients on another is possible only where no rank sends both to the
//! same one. Stream 0 is where the stages compute: forwards, backwards and what computes again,
//! what prepares a sum, the optimizer and the step's end must be sent there. Weights are gathered
//! where gradients are summed, on the stream of job_kind::all_reduce, and dropped on stream 0: of
//! that no policy is asked.
//! - `name`: as the command-line tool spells it.
//! - `count()`: number of streams, at most lowering::max_streams.
//! - `stream(i)`: name and priority of stream i.
//! - `stream_of(kind, rank, peer, ranks)`: the stream of an instruction; `peer` is the rank at the
//!   other end of a message, else -1. Both copies, to the host and back, are on one stream, which
//!   receives nothing.
//! - and, where receives are not posted as early as possible: `receive_lead()`, see
//!   with_receive_lead.
template <class Overlap>
concept Policy = requires(const Overlap& made, job_kind kind, int number) {
  { Overlap::name } -> std::convertible_to<std::string_view>;
  { made.count() } -> std::same_as<int>;
  { made.stream(number) } -> std::same_as<stream_info>;
  { made.stream_of(kind, number, number, number) } -> std::same_as<int>;
};

//! Its receive lead (replay_input::receive_lead); -1: none.
template <Policy Overlap>
constexpr int receive_lead_of(const Overlap& made) {
  constexpr bool has = requires {
    { made.receive_lead() } -> std::same_as<int>;
  };
  // Otherwise nobody would hear of it, and the lead not be proven.
  static_assert(has || !requires(Overlap& any) { any.receive_lead(); },
                "stretto: an overlap policy's receive_lead() must be const and return int");
  static_assert(has || !requires(Overlap& any) { any.receive_lead; },
                "stretto: an overlap policy's receive_lead must be a function");
  static_assert(!requires(Overlap& any) { any.receive_leads(); },
                "stretto: an overlap policy's receive_leads() is not asked for: receive_lead() is");
  static_assert(has || !stretto::detail::names_receive_lead<Overlap> ||
                    requires(Overlap& any) { any.receive_lead; } ||
                    requires(Overlap& any) { any.receive_lead(); },
                "stretto: an overlap policy's receive_lead() must be public, and take nothing");
  if constexpr (has)
    return made.receive_lead() < 0 ? -1 : made.receive_lead();
  else
    return -1;
}

//! A stream's entry in the plan; the name is cut at 23 letters.
constexpr stream_info named_stream(std::string_view name, int priority) {
  stream_info made{};
  for (std::size_t at = 0; at < name.size() && at + 1 < sizeof made.name; ++at)
    made.name[at] = name[at];
  made.priority = priority;
  return made;
}

}  // namespace stretto::overlap
