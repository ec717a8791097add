#pragma once

#include <cstdint>
#include <string_view>

namespace stretto {

//! What the sizes of a transformer must keep.
enum class transformer_rule : std::uint8_t {
  none,                   //!< all are kept
  sizes_positive,         //!< all sizes are above 0; those that have a meaning for 0 may be 0
  heads_divide_hidden,    //!< hidden is a multiple of heads, unless head_width is given
  kv_heads_divide_heads,  //!< heads is a multiple of kv_heads
  pattern_of_window,      //!< window_pattern is given with window
  window_of_fused,        //!< a window goes with fused attention: a plain one makes all scores
  latent_keys,            //!< what else is said of latent attention is said with latent.keys
  latent_of_llama,        //!< latent attention is that of an architecture like Llama's
  latent_of_heads,  //!< latent attention has keys and values for every head: kv_heads is 0, or
                    //!< heads
  slices_divide_sequence,  //!< sequence is a multiple of slices, unless one of them is given
  part_of_sequence,  //!< the given slice begins and ends within the sequence, and is not empty
  context_divides_sequence,  //!< what a job has of a sequence is a multiple of twice
                             //!< context_parallel, unless that is 1
  ring_of_fused,  //!< context_exchange::ring goes with fused attention, to all before: a plain one
                  //!< needs all scores at once, and of a window parts would not take the same
  context_divides_heads,  //!< with context_exchange::heads heads and kv_heads are multiples of
                          //!< context_parallel times tensor_parallel
  shards_divide_heads,  //!< heads and vocabulary are multiples of tensor_parallel, and what a slice
                        //!< has of the sequence (a device of it), where that is split
  shards_divide_widths,  //!< kv_heads and the feed-forward's width are multiples of tensor_parallel
  pieces_divide_vocabulary,  //!< vocabulary is a multiple of head_pieces times tensor_parallel
  tied_head_whole,           //!< a tied head is not in pieces
  further_head_whole,        //!< with further_tokens the head is in one piece
  dense_beside_experts,      //!< dense layers are beside others with experts
  dense_width_alone,         //!< dense_feed_forward is given with dense_layers
  experts_by_rows,  //!< ranks that share a layer with experts split its rows: sequence_parallel
  experts_among_shards,  //!< each of these has experts of its own: experts.parallel is a multiple
                         //!< of tensor_parallel
  experts_for_token,  //!< a token goes to no more experts than there are
  experts_dealt,      //!< the experts are a multiple of the devices that they are dealt to
  optimizer_dealt,    //!< as many hold each expert: optimizer_shards is 1, or a multiple of these
  weights_dealt,      //!< the same of weight_shards
};

//! One sentence for people; empty for none.
constexpr std::string_view describe(transformer_rule broken) {
  switch (broken) {
    case transformer_rule::none:
      return "";
    case transformer_rule::sizes_positive:
      return "a size is below 1, or below 0 where 0 says none, or as usual";
    case transformer_rule::heads_divide_hidden:
      return "hidden is no multiple of heads";
    case transformer_rule::kv_heads_divide_heads:
      return "heads is no multiple of kv_heads";
    case transformer_rule::pattern_of_window:
      return "window_pattern has a meaning only with window";
    case transformer_rule::window_of_fused:
      return "a window goes with attention_kernel::fused";
    case transformer_rule::latent_keys:
      return "latent.queries, rotary and values have a meaning only with latent.keys";
    case transformer_rule::latent_of_llama:
      return "latent attention goes with architecture::llama";
    case transformer_rule::latent_of_heads:
      return "latent attention has keys and values for every head: kv_heads must be 0 or heads";
    case transformer_rule::slices_divide_sequence:
      return "sequence is no multiple of slices";
    case transformer_rule::part_of_sequence:
      return "the slice is no part of the sequence: 0 <= begin < end <= sequence";
    case transformer_rule::context_divides_sequence:
      return "what a job has of a sequence is no multiple of twice context_parallel";
    case transformer_rule::ring_of_fused:
      return "context_exchange::ring goes with attention_kernel::fused, without a window";
    case transformer_rule::context_divides_heads:
      return "heads and kv_heads must be multiples of context_parallel times tensor_parallel where "
             "these are exchanged";
    case transformer_rule::shards_divide_heads:
      return "heads and vocabulary, and sequence (of a slice, by context_parallel) where it is "
             "split, must be multiples of tensor_parallel";
    case transformer_rule::shards_divide_widths:
      return "kv_heads and the feed-forward's width must be multiples of tensor_parallel";
    case transformer_rule::pieces_divide_vocabulary:
      return "vocabulary is no multiple of head_pieces times tensor_parallel";
    case transformer_rule::tied_head_whole:
      return "a tied head is whole: head_pieces must be 1";
    case transformer_rule::further_head_whole:
      return "with further_tokens the head is whole: head_pieces must be 1";
    case transformer_rule::dense_beside_experts:
      return "dense_layers has a meaning only with experts";
    case transformer_rule::dense_width_alone:
      return "dense_feed_forward has a meaning only with dense_layers";
    case transformer_rule::experts_by_rows:
      return "layers with experts are split by rows: with tensor_parallel goes sequence_parallel";
    case transformer_rule::experts_among_shards:
      return "experts.parallel is no multiple of tensor_parallel";
    case transformer_rule::experts_for_token:
      return "there are fewer experts than per_token";
    case transformer_rule::experts_dealt:
      return "the experts are no multiple of experts.parallel";
    case transformer_rule::optimizer_dealt:
      return "optimizer_shards is no multiple of experts.parallel by tensor_parallel";
    case transformer_rule::weights_dealt:
      return "weight_shards is no multiple of experts.parallel by tensor_parallel";
  }
  return "";
}

}  // namespace stretto
