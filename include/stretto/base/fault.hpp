#pragma once

#include "stretto/base/language.hpp"  // first

#include <string_view>

namespace stretto {

//! What is wrong. Every rule of validity has one enumerator of its own; the rest name bad input.
enum class fault : int {  // of 8 bits it is a letter in what clang says
  none,
  unsupported,   //!< the policy does not serve this shape or job; `verdict::why` says why
  capacity,      //!< the storage handed in is too small
  syntax,        //!< text that is no job, row or file of the grammar
  misassigned,   //!< layers and stages do not fit
  incomplete,    //!< rule `complete`: a job is missing, doubled, misplaced or out of range
  disordered,    //!< rule `ordered`: a job stands before one that it needs, on its own rank
  deadlocked,    //!< rule `live`: the replay stops with jobs left
  rendezvous,    //!< rule `rendezvous`: sends and receives do not meet
  over_limit,    //!< rule `bounded`: more memory than the rank's limit
  race,          //!< rule `race-free`: an access not ordered with another of the same bytes
  idle_event,    //!< rule `spare`: an event that orders nothing
  unsound_program,  //!< the ops of a job use a buffer that is not there
  not_resident,  //!< rule `resident`: computation may begin before communication that it must find
  untimely,      //!< rule `timely`: a receive may be posted further ahead than the plan's lead
  miscut,        //!< rule `cut`: pieces of an op overlap, leave a gap or are missing
  missharded,    //!< rule `sharded`: weights not gathered and dropped, or gradients not reduced
};

//! Why, in the words of the rule. Structural, so that it can stand in a template argument.
//! `describe` (base/reason_text.hpp) has a sentence for each.
enum class reason : int {
  none,
  ranks_below_one,
  microbatches_below_one,
  chunks_below_one,
  slices_below_one,
  chunks_not_one,
  chunks_not_two,
  slices_not_one,
  group_below_one,
  group_below_ranks,
  group_starves_short,
  group_above_microbatches,
  placement_not_served,
  placement_unsound,
  directions_unlike,
  missing,
  duplicate,
  wrong_rank,
  wrong_direction,
  out_of_range,
  both_whole_and_split,
  weight_gradient_missing,
  input_gradient_missing,
  optimizer_not_last,
  reduction_missing,
  unexpected_communication,
  bad_token,
  trailing_text,
  empty_row,
  no_form,
  needs_earlier,
  waits_forever,
  never_replayed,
  message_mismatch,
  message_unmatched,
  channel_on_two_streams,
  above_limit,
  below_base,
  read_before_write,
  overwritten_while_read,
  not_released,
  released_early,
  event_removable,
  layers_do_not_fit,
  empty_stage,
  buffer_full,
  group_above_ranks,
  variant_out_of_range,
  shape_frozen,
  ranks_odd,
  not_a_pair,
  counts_not_per_rank,
  counts_not_per_stage,
  no_such_rank,
  layer_misplaced,
  layer_missing,
  layer_twice,
  bad_layout,
  layout_order,
  layout_too_long,
  unknown_buffer,
  read_unwritten,
  used_after_free,
  slices_not_recomputed,
  bad_recompute_window,
  slices_not_offloaded,
  bad_offload_window,
  offload_recomputed,
  outlives_its_job,
  needs_nothing,
  needed_by_nothing,
  backward_ahead,
  starts_unordered,
  costs_do_not_fit,
  // Of costs, to hiding_out_of_range: plan/accepted.hpp takes these for a range.
  time_out_of_range,
  memory_out_of_range,
  base_out_of_range,
  limit_out_of_range,
  hop_out_of_range,
  node_out_of_range,
  hiding_out_of_range,
  posted_early,
  not_as_listed,
  outside_arena,
  sizes_apart,
  buffer_of_another,
  no_whole_rows,
  piece_missing,
  op_twice,
  op_missing,
  pieces_do_not_fit,
  above_capacity,
  no_such_stream,
  no_stream_for_job,
  too_many_streams_or_none,
  not_with_computation,
  copies_on_two_streams,
  sizes_not_per_stage,
  gradients_not_floats,
  // Of bytes that a memory policy says, to weights_out_of_range: the same.
  output_out_of_range,
  stash_out_of_range,
  gradients_out_of_range,
  kept_out_of_range,
  left_out_of_range,
  passing_out_of_range,
  weights_out_of_range,
  group_unsound,
  shape_too_large,
  capacity_out_of_range,
  buffer_out_of_range,
  program_twice,
  ops_elsewhere,
  no_ops,
  too_many_ops,
  op_out_of_range,
  graph_of_others,
  program_of_no_job,
  program_of_no_chunk,
  ops_misordered,
  op_needs_earlier,
  list_out_of_range,
  not_gathered,
  gathered_twice,
  never_dropped,
  too_many_gathered,
  too_few_gathered,
  nothing_to_gather,
  nothing_to_reduce,
  no_plans,
  shared_already,
  workers_below_one,
  replicas_not_summed,
  weights_not_dealt,
  gradients_not_dealt,
  summed_apart,
  backward_of_forwards,
  windows_of_lists,
  ranks_differ,
  summed_for_nobody,
  too_many_workers,
  option_out_of_range,
  warmup_not_served,
  not_dealt_both_ways,
};
//! How many reasons there are.
inline constexpr int reason_count = static_cast<int>(reason::not_dealt_both_ways) + 1;

//! The enumerator's name, as written above.
constexpr std::string_view name(fault what) {
  constexpr std::string_view names[] = {"none",       "unsupported", "capacity",   "syntax",
                                        "misassigned", "incomplete",  "disordered", "deadlocked",
                                        "rendezvous", "over_limit",  "race",       "idle_event",
                                        "unsound_program", "not_resident", "untimely", "miscut",
                                        "missharded"};
  const auto at = static_cast<std::size_t>(what);
  return at < std::size(names) ? names[at] : "no fault that there is";
}

}  // namespace stretto
