// What the model is: its sizes, and which layers it is made of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/bfloat16.hpp"
#include "model/row_sums.hpp"
#include "model/sequence_cut.hpp"

namespace train {

//! The kinds of layers that an assignment policy deals out to stages.
enum class layer_kind { embedding, block, head };

//! Sizes of a decoder-only transformer over bytes.
//! Layer 0 is the embedding, layers 1 to `layers` are the blocks, the last one is the head
//! (final norm, projection, loss), or the last ones are its pieces.
struct config {
  int layers = 8;        //!< transformer blocks, without embedding and head
  int width = 128;       //!< features per token
  int heads = 4;         //!< attention heads; each has width / heads features
  int context = 128;     //!< tokens per sequence
  int microbatch = 2;    //!< sequences per micro-batch
  int vocabulary = 256;  //!< distinct tokens, at most 256 because a token is a byte
  int expansion = 4;     //!< hidden features of the MLP, as a multiple of width
  bool tied = true;      //!< the head projects with the embedding's own table
  int slices = 1;        //!< parts of a sequence, each a job of its own
  //! Where in the sequence each of them ends, the last with it. Empty: they are equal.
  std::vector<int> slice_ends{};
  int shards = 1;        //!< equal parts of every block's heads and hidden features
  int head_pieces = 1;   //!< equal parts of the vocabulary, each with a head; see head.hpp
  //! What passes from op to op, and between stages: activations and their gradients. Within an op
  //! all is computed in single precision, whichever this is.
  precision activations = precision::fp32;

  //! Refuses sizes that make no model.
  //! @throws std::invalid_argument naming the member and the rule that it breaks
  void check() const;

  //! Blocks, the embedding, and the head or its pieces.
  int layer_count() const { return layers + 1 + head_pieces; }
  //! Which piece of the head a layer is; below 0 for one that is none.
  int piece(int layer) const { return layer - layers - 1; }
  //! Rows of the table, and columns of logits, that a piece has.
  std::size_t piece_tokens() const { return size(vocabulary) / size(head_pieces); }

  //! @throws std::invalid_argument if there is no such layer
  layer_kind kind(int layer) const;

  //! Which tokens of a sequence a slice has.
  sequence_cut cut() const { return {size(context), size(slices), slice_ends}; }
  //! How many, of the longest slice: what buffers have room for.
  std::size_t length() const { return cut().longest(); }

  //! Features of a shard's heads.
  std::size_t share() const { return size(width) / size(shards); }

  //! Rows of an activation: tokens of one micro-batch in one slice, of the longest or of this one.
  std::size_t rows() const { return size(microbatch) * length(); }
  std::size_t rows(std::size_t slice) const { return size(microbatch) * cut().length(slice); }

  //! Scalars of one activation or of its gradient: row-major [microbatch * length, width], which a
  //! shorter slice does not fill.
  std::size_t activation_scalars() const { return rows() * size(width); }

  //! What its last layers are called in a sentence: "head", "the head's 4 pieces".
  std::string head_words() const {
    return head_pieces == 1 ? "head" : "the head's " + std::to_string(head_pieces) + " pieces";
  }

  bool in_bf16() const { return activations == precision::bf16; }
  //! Scalars of memory that hold so many of an activation's.
  std::size_t held_scalars(std::size_t count) const { return in_bf16() ? (count + 1) / 2 : count; }
  //! Of a message between stages: an activation, and room for the sums of rows that go with it
  //! between pieces of the head.
  std::size_t message_scalars() const {
    return head_pieces == 1 ? held_scalars(activation_scalars()) : sums_place() + sums_scalars();
  }
  //! Where those sums begin in it, and how many there are.
  std::size_t sums_place() const { return (held_scalars(activation_scalars()) + 15) / 16 * 16; }
  std::size_t sums_scalars() const { return sums_of_row * rows(); }

  bool operator==(const config&) const = default;

  static std::size_t size(int value) { return static_cast<std::size_t>(value); }
};

inline void config::check() const {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("model config: " + what);
  };
  const struct {
    const char* name;
    int value;
    int limit;
  } members[] = {{"layers", layers, 1 << 16},         {"width", width, 1 << 16},
                 {"heads", heads, 1 << 16},           {"context", context, 1 << 20},
                 {"microbatch", microbatch, 1 << 20}, {"vocabulary", vocabulary, 256},
                 {"expansion", expansion, 64},        {"slices", slices, 1 << 14},
                 {"shards", shards, 1 << 16},         {"head_pieces", head_pieces, 256}};
  for (const auto& member : members) {
    if (member.value < 1 || member.value > member.limit) {
      refuse(std::string(member.name) + " is " + std::to_string(member.value) +
             ", it must be between 1 and " + std::to_string(member.limit));
    }
  }
  if (width % heads != 0) {
    refuse("width " + std::to_string(width) + " is not a multiple of heads " +
           std::to_string(heads));
  }
  if (slice_ends.empty() && context % slices != 0) {
    refuse("context " + std::to_string(context) + " is not a multiple of slices " +
           std::to_string(slices));
  }
  if (!slice_ends.empty() &&
      (slice_ends.size() != size(slices) || slice_ends.front() < 1 ||
       std::ranges::adjacent_find(slice_ends, std::ranges::greater_equal()) != slice_ends.end() ||
       slice_ends.back() != context)) {
    refuse("slice_ends must rise to context, " + std::to_string(context) + ", one for each of " +
           std::to_string(slices) + " slices");
  }
  // Whatever divides heads divides the hidden features, width * expansion, too.
  if (heads % shards != 0) {
    refuse("heads " + std::to_string(heads) + " and hidden features " +
           std::to_string(width * expansion) + " are not both multiples of shards " +
           std::to_string(shards));
  }
  if (vocabulary % head_pieces != 0) {
    refuse("vocabulary " + std::to_string(vocabulary) + " is not a multiple of head_pieces " +
           std::to_string(head_pieces));
  }
  // The largest buffers of a block; in double, because the products can pass 64 bits.
  const double tokens = static_cast<double>(microbatch) * context;
  const double largest = tokens * (static_cast<double>(width) * expansion +
                                   static_cast<double>(heads) * context + vocabulary);
  if (largest > 1e11) {
    refuse(
        "microbatch * context * (width * expansion + heads * context + vocabulary) passes 1e11 "
        "scalars: one block's activations would not fit any memory");
  }
}

inline layer_kind config::kind(int layer) const {
  if (layer < 0 || layer >= layer_count()) {
    throw std::invalid_argument("layer " + std::to_string(layer) +
                                " does not exist: layers are 0 (" + "embedding) to " +
                                std::to_string(layer_count() - 1) + " (head)");
  }
  if (layer == 0) return layer_kind::embedding;
  return layer <= layers ? layer_kind::block : layer_kind::head;
}

}  // namespace train
