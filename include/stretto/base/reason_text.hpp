#pragma once

#include "stretto/base/language.hpp"  // first

#include <string_view>

#include "stretto/base/fault.hpp"

namespace stretto {

//! One sentence for people.
constexpr std::string_view describe(reason why) {
  switch (why) {
    case reason::none: return "";
    case reason::ranks_below_one: return "there must be at least one rank";
    case reason::microbatches_below_one: return "there must be at least one micro-batch";
    case reason::chunks_below_one: return "there must be at least one chunk per rank";
    case reason::slices_below_one: return "there must be at least one slice per micro-batch";
    case reason::chunks_not_one: return "this schedule has one chunk per rank";
    case reason::chunks_not_two: return "this schedule has two chunks per rank";
    case reason::slices_not_one: return "this schedule does not slice micro-batches";
    case reason::group_below_one: return "a group holds at least one micro-batch";
    case reason::group_below_ranks:
      return "a group of fewer micro-batches, or slices of them, than ranks starves the pipeline";
    case reason::group_starves_short:
      return "behind groups of so few slices a short last one hangs";
    case reason::group_above_microbatches: return "a group cannot exceed the micro-batches";
    case reason::placement_not_served: return "it is not made for this placement";
    case reason::warmup_not_served:
      return "interleaved_zb has the warm-ups half and standard";
    case reason::not_dealt_both_ways:
      return "layers per rank, dealt round robin to its chunks, are not for a bidirectional "
             "placement: "
             "say those of every stage (table:...), or how many there are (even:N, balanced:N)";
    case reason::placement_unsound:
      return "a table of stages names a rank for each, one that there is, and none for more stages "
             "than it has chunks";
    case reason::directions_unlike:
      return "of two directions a rank has as many chunks in one as in the other";
    case reason::missing: return "the job is missing";
    case reason::duplicate: return "the job stands here a second time";
    case reason::wrong_rank: return "the placement puts this stage on another rank";
    case reason::wrong_direction:
      return "of two directions, the second half of the micro-batches goes from the last rank to "
             "the first: the job lies on the other rank of its stage's two";
    case reason::out_of_range: return "stage, micro-batch or slice is out of range";
    case reason::both_whole_and_split:
      return "a whole backward and a split one for the same micro-batch";
    case reason::weight_gradient_missing:
      return "a backward for the input has no backward for the weights";
    case reason::input_gradient_missing:
      return "a backward for the weights has no backward for the input";
    case reason::optimizer_not_last: return "the optimizer must be the rank's last job";
    case reason::reduction_missing: return "gradients must be reduced before the optimizer";
    case reason::unexpected_communication:
      return "a compute-only list holds no communication, nor the optimizer or the step's end";
    case reason::bad_token:
      return "not an action: expected STAGE TYPE [MICROBATCH], as in 2F0, or of a forward and a "
             "backward (2F1;2B0)OVERLAP_F_B";
    case reason::trailing_text: return "text follows the action";
    case reason::empty_row: return "the rank has no job";
    case reason::no_form: return "this job has no form in the format";
    case reason::needs_earlier: return "it stands before a job of its own rank that it needs";
    case reason::waits_forever: return "it waits for a job that can never run";
    case reason::never_replayed: return "the replay ended without it";
    case reason::message_mismatch: return "send and receive at the same place of a channel differ";
    case reason::message_unmatched: return "it waits for a partner that never comes";
    case reason::channel_on_two_streams:
      return "all messages from one rank to another are sent on one stream, and received on one";
    case reason::above_limit: return "memory in use exceeds the rank's limit";
    case reason::below_base:
      return "the rank's jobs give back more memory than they take: what a forward keeps, its "
             "backward gives back, once";
    case reason::read_before_write: return "a read is not ordered after the write of its bytes";
    case reason::overwritten_while_read: return "a write is not ordered after the last access";
    case reason::not_released: return "the step's end is not ordered after it";
    case reason::released_early:
      return "a buffer is released here that others may still use";
    case reason::event_removable: return "without this event everything stays ordered";
    case reason::layers_do_not_fit: return "the layers do not sum to the model";
    case reason::empty_stage: return "a stage would hold no layer";
    case reason::buffer_full: return "the storage handed in is too small";
    case reason::group_above_ranks: return "a group of this schedule cannot exceed the ranks";
    case reason::option_out_of_range: return "an option of the schedule is out of range";
    case reason::variant_out_of_range: return "there is no such variant of this schedule";
    case reason::shape_frozen: return "this order was frozen for another shape";
    case reason::ranks_odd: return "this schedule needs an even number of ranks";
    case reason::not_a_pair:
      return "a pair is a forward and a backward of different micro-batches";
    case reason::counts_not_per_rank: return "each rank needs one layer count";
    case reason::counts_not_per_stage: return "each stage needs one layer count";
    case reason::no_such_rank: return "there is no such rank";
    case reason::layer_misplaced: return "the layer is not where the rank's share of layers lies";
    case reason::layer_missing: return "a layer lies on no stage";
    case reason::layer_twice: return "a layer lies on two stages, or before its turn";
    case reason::bad_layout: return "a layout is made of E, t, m, L, |, X*n and (...)*n";
    case reason::layout_order: return "E comes first, t before m, L last, and E and L once";
    case reason::layout_too_long: return "the layout has more than a million layers and stages";
    case reason::unknown_buffer: return "an op uses a buffer that the chain does not have";
    case reason::read_unwritten: return "an op reads a buffer that nothing has written";
    case reason::used_after_free: return "an op uses a buffer that is freed";
    case reason::slices_not_recomputed:
      return "a slice cannot be recomputed: later ones of its micro-batch read what it keeps";
    case reason::bad_recompute_window:
      return "a recompute window has a period of at least one, no negative count, and chunks from "
             "0 on "
             "of which the first is not behind the last";
    case reason::slices_not_offloaded:
      return "a slice cannot be offloaded: later ones of its micro-batch read what it keeps";
    case reason::bad_offload_window:
      return "an offload window has a period of at least one, no negative count, lag or prefetch, "
             "and "
             "chunks from 0 on of which the first is not behind the last";
    case reason::offload_recomputed:
      return "what a recompute saves anew is not offloaded";
    case reason::outlives_its_job:
      return "what ops on different streams touch must be the job's own";
    case reason::needs_nothing: return "communication needs nothing that its job computes";
    case reason::needed_by_nothing: return "nothing that its job computes needs communication";
    case reason::backward_ahead:
      return "a pair is expanded into ops with its forward ahead in the list";
    case reason::starts_unordered:
      return "it may begin before the communication issued ahead of it is there";
    case reason::costs_do_not_fit:
      return "the table of costs must have an entry for each rank, chunk and kind, in each class, "
             "and "
             "a base and a limit for each rank or none";
    case reason::time_out_of_range:
      return "a job's time is a number from 0 to 2^46, with many jobs of a kind 2^60 over their "
             "number";
    case reason::memory_out_of_range:
      return "what a job changes memory by, and its peak, are numbers of at most 2^46 either way";
    case reason::base_out_of_range:
      return "what a rank has in memory before its first job is a number from 0 to 2^46";
    case reason::limit_out_of_range: return "a limit of memory is a number from -2^46 on";
    case reason::hop_out_of_range:
      return "a message's time is a number from 0 to 2^46, with many jobs of a kind 2^60 over "
             "their "
             "number";
    case reason::node_out_of_range:
      return "a node has a number of ranks from 1 on, or 0 where all are of one";
    case reason::hiding_out_of_range: return "a pair hides 0 to 100 percent of its shorter half";
    case reason::posted_early:
      return "it may be posted further ahead of the job it is for than the receive lead";
    case reason::not_as_listed: return "the plan's instruction is not what its list has there";
    case reason::outside_arena: return "what it writes lies outside the rank's memory";
    case reason::sizes_apart: return "its two sides have buffers of different sizes";
    case reason::buffer_of_another:
      return "it touches a buffer of another job, or otherwise than its kind does, or lacks one";
    case reason::no_whole_rows:
      return "pieces of an op are whole rows, at least one each, of equal bytes; those of a sum "
             "always";
    case reason::piece_missing:
      return "of an op in pieces each stands once, in order, on one stream";
    case reason::op_twice: return "the op is there a second time in its job";
    case reason::op_missing:
      return "an op of the job is missing: they are numbered from 0 on, and as many as those of "
             "other "
             "jobs of its kind and chunk";
    case reason::pieces_do_not_fit:
      return "each piece of an op must take the bytes behind those of the one before, from the "
             "buffer's first to its last";
    case reason::above_capacity:
      return "the schedule emits more jobs on this rank than its capacity";
    case reason::no_such_stream:
      return "it is sent to a stream that there is not";
    case reason::no_stream_for_job:
      return "the overlap policy sends it to a stream that it does not have";
    case reason::too_many_streams_or_none:
      return "the overlap policy must have at least one stream, and no more than a plan can have";
    case reason::not_with_computation:
      return "it runs where stages compute, on stream 0";
    case reason::copies_on_two_streams:
      return "the overlap policy sends copies to the host and back to two streams";
    case reason::sizes_not_per_stage:
      return "there must be one entry of bytes for all stages, or one for each; request_of makes "
             "none "
             "where a memory policy's layers are not told, or not those of all stages";
    case reason::gradients_not_floats:
      return "gradients that replicas sum are whole floats, of 4 bytes each";
    case reason::output_out_of_range:
      return "bytes of a stage's output are a number from 0 to 2^40";
    case reason::stash_out_of_range:
      return "bytes of a stage's stash are a number from 0 to 2^40";
    case reason::gradients_out_of_range:
      return "bytes of a stage's gradients are a number from 0 to 2^40";
    case reason::kept_out_of_range:
      return "bytes that a stage has kept for W are a number from 0 to 2^40";
    case reason::left_out_of_range:
      return "bytes that I of a stage leaves for W are a number from 0 to 2^40";
    case reason::passing_out_of_range:
      return "bytes of the stash of a forward that runs again are a number from 0 to 2^40, or -1";
    case reason::weights_out_of_range:
      return "bytes of a stage's weights are a number from 0 to 2^40";
    case reason::group_unsound:
      return "a group has members, each of them another rank, elements, from 0 to 2^40, and a "
             "stage "
             "that there is, or -1; those of data-parallel replicas are not given, but asked for";
    case reason::shape_too_large:
      return "ranks, micro-batches, chunks and slices multiply to at most 2^24, and slices are at "
             "most 32767";
    case reason::buffer_out_of_range:
      return "bytes of a buffer are a number from 0 to 2^46, of all together at most 2^60, and "
             "rows a number from 0 to 2^46";
    case reason::program_twice: return "the job has another program, or is none that computes";
    case reason::ops_elsewhere: return "its ops are not there, or are another program's, too";
    case reason::no_ops: return "a job that is of ops has one at least";
    case reason::too_many_ops: return "a job has at most 32767 ops";
    case reason::op_out_of_range:
      return "an op's time is a number from 0 to 2^46, multiprocessors and parts none below 0, and "
             "a "
             "link one of 3";
    case reason::graph_of_others:
      return "the policy's order has left a graph of other ops than the job's, each whole or in "
             "pieces "
             "that it may be cut into, or edges to none";
    case reason::not_gathered: return "the weights of its stage are not gathered here";
    case reason::gathered_twice: return "the weights of its stage are gathered already";
    case reason::never_dropped: return "the weights that it gathers are never dropped";
    case reason::too_many_gathered:
      return "the rank holds the weights of more stages at once than it may";
    case reason::too_few_gathered:
      return "a rank has the weights of one stage at least at once, or of two, where it pairs "
             "their "
             "jobs";
    case reason::nothing_to_gather:
      return "weights are gathered where there are data-parallel replicas, each with a part";
    case reason::weights_not_dealt:
      return "the weights of a stage are dealt evenly to its replicas: their bytes are a multiple "
             "of how many these are";
    case reason::gradients_not_dealt:
      return "the gradients of a stage whose weights are dealt to its replicas are dealt evenly, "
             "too: "
             "they are a multiple of how many these are";
    case reason::summed_apart:
      return "an op that sums over its shards reads and writes one buffer, and of that whole "
             "elements of 4 bytes";
    case reason::program_of_no_job:
      return "the rank has no job of this kind on such a chunk, alone or paired with one that is "
             "of "
             "ops, too";
    case reason::program_of_no_chunk:
      return "a program is of a chunk that ranks have, which count from 0, unless all of these "
             "have "
             "one of its kind, too";
    case reason::list_out_of_range:
      return "a rank's list has no fewer jobs than none, and no more than there is room for";
    case reason::op_needs_earlier:
      return "it stands before an op of its own job that it needs";
    case reason::ops_misordered:
      return "the order of a job's ops has each of them once, every piece, and nothing else";
    case reason::backward_of_forwards:
      return "this schedule says that it has forwards alone (forward_only)";
    case reason::windows_of_lists:
      return "lists of one's own have the recomputes and copies that they are to have: what a "
             "plan's request says of them would go unheard";
    case reason::summed_for_nobody:
      return "data-parallel replicas sum gradients for the optimizer that ends a step, and "
             "plan_request::train leaves that out";
    case reason::too_many_workers:
      return "there are more than 2^24 workers, replicas and shards of all ranks";
    case reason::ranks_differ:
      return "the placement has another number of ranks than the lists";
    case reason::nothing_to_reduce: return "its stage has no gradients to reduce";
    case reason::no_plans:
      return "there are no plans; of what was to make them, answer() says why";
    case reason::shared_already:
      return "these are plans of workers that share ranks: shards and replicas are all given at "
             "once, "
             "with the plans of ranks";
    case reason::workers_below_one:
      return "every rank has at least one shard and one replica of its stages";
    case reason::replicas_not_summed:
      return "these plans do not sum gradients over replicas: with_data_parallel, or "
             "plan_request::data_parallel, has them do so";
    case reason::capacity_out_of_range:
      return "the schedule's capacity is below 0, or above eight jobs for each stage, micro-batch "
             "and "
             "slice of a rank (of which there can be three)";
  }
  return "";
}

}  // namespace stretto
