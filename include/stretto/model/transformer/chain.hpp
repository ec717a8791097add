#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "stretto/model/machine.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/transformer.hpp"
#include "stretto/model/transformer/writer.hpp"

namespace stretto {

namespace detail {

// Not constexpr: where a chain is a constant, the name stands in the compiler's message.
[[noreturn]] inline void transformer_breaks_rule(transformer_rule broken) {
  throw std::invalid_argument("stretto::transformer: " + std::string(describe(broken)));
}

[[noreturn]] inline void transformer_parts_wrong(const char* what) {
  throw std::invalid_argument(std::string("stretto::transformer_chain: ") + what);
}

//! The number of the first piece of the head on every stage, or behind it where it has none.
//! @throws std::invalid_argument for parts of which the first has no embedding, or another has one;
//!         whose layers are not numbered on, where they differ; or in which pieces are not each
//!         once, in order, behind all layers, the last on the last
constexpr std::vector<std::int64_t> first_pieces(const transformer& model,
                                                 std::span<const transformer_part> parts) {
  std::vector<std::int64_t> first;
  std::int64_t layers = parts.empty() ? 0 : parts.front().first;
  std::int64_t pieces = 0;
  for (const transformer_part& part : parts) {
    if (part.layers < 0 || part.head_pieces < 0)
      transformer_parts_wrong("a stage has less than no layers, or pieces of the head");
    if (part.first != layers && (model.dense_layers > 0 || model.window > 0))
      transformer_parts_wrong("a stage's first layer is not the one behind those before");
    layers += part.layers;
    if (part.embedding != first.empty())
      transformer_parts_wrong("the embedding is not on the first stage alone");
    if (pieces > 0 && part.layers > 0)
      transformer_parts_wrong("a layer is behind a piece of the head");
    if (part.head_norm != (pieces == 0 && part.head_pieces > 0))
      transformer_parts_wrong("the last norm is not with the head's first piece alone");
    first.push_back(pieces);
    pieces += part.head_pieces;
  }
  if (pieces != model.head_pieces || parts.back().head_pieces == 0)
    transformer_parts_wrong("the head's pieces are not all there, the last on the last stage");
  return first;
}

}  // namespace detail

//! The parts of stages with so many layers each, the embedding with the first and a head in one
//! piece with the last.
constexpr std::vector<transformer_part> transformer_parts(std::span<const std::int32_t> layers) {
  std::vector<transformer_part> parts;
  std::int64_t first = 0;
  for (const std::int32_t count : layers) {
    const bool last = parts.size() + 1 == layers.size();
    parts.push_back({count, parts.empty(), last ? 1 : 0, last, first});
    first += count;
  }
  return parts;
}

//! The chain of a rank: for each of its chunks the forward, then from the last chunk on the
//! backwards, whole or split. What goes between stages is received and sent by ops of these names;
//! where the next stage is on the same rank one with the name "hand on" reads it.
//! @param parts  of every stage
//! @param on     gives the ops their times in nanoseconds; without a name: they have none
//! @param again  which layers' forwards backwards run once more: these then keep inputs alone
//! @throws std::invalid_argument naming the rule that the model breaks, see transformer_rule, or
//!         what is wrong with the parts
constexpr program_chain transformer_chain(const transformer& model, const placement& where,
                                          int rank, std::span<const transformer_part> parts,
                                          bool split, const machine& on = {},
                                          layers_again again = {}) {
  if (const transformer_rule broken = model.broken_rule(); broken != transformer_rule::none)
    detail::transformer_breaks_rule(broken);
  const auto stages = static_cast<std::size_t>(where.stages());
  if (parts.size() != stages || parts.empty())
    detail::transformer_parts_wrong("there is not a part of every stage");
  const std::vector<std::int64_t> pieces = detail::first_pieces(model, parts);
  program_chain made;
  transformer_writer write(model, made, on);
  struct chunk_place {
    std::size_t stage;
    int first_layer, head;
    bool stays_in, stays_out;  // what is before, or behind, is on this rank, too
    bool sums_in, sums_out;    // pieces of the head are before, or before what is behind
  };
  std::vector<chunk_place> chunks;
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const int stage = where.stage_of(rank, chunk);
    const auto at = static_cast<std::size_t>(stage);
    const transformer_part& part = parts[at];
    const chunk_place here{at,
                           write.layers(),
                           write.heads(),
                           stage > 0 && where.stays(rank, chunk, stage - 1),
                           at + 1 < stages && where.stays(rank, chunk, stage + 1),
                           pieces[at] > 0,
                           pieces[at] + part.head_pieces > 0};
    made.begin(job_kind::forward, chunk);
    if (part.embedding) write.embed();
    if (stage > 0 && !here.stays_in) write.receive(here.sums_in);
    for (int layer = 0; layer < part.layers; ++layer)
      write.layer_forward(model.kind_of(part.first + layer));
    if (part.head_pieces > 0) write.head_forward(pieces[at], part.head_pieces);
    for (int ahead = 0; part.head_norm && ahead < model.further_tokens; ++ahead)
      write.further_forward(model.kind_of(part.first + part.layers + ahead));
    if (at + 1 < stages)
      here.stays_out ? write.hand_on(here.sums_out) : write.send(here.sums_out);
    chunks.push_back(here);
  }
  for (int chunk = where.chunks - 1; chunk >= 0; --chunk) {
    const chunk_place& here = chunks[static_cast<std::size_t>(chunk)];
    const transformer_part& part = parts[here.stage];
    const int end = here.first_layer + static_cast<int>(part.layers);
    const auto layer_back = [&](int at) {
      write.layer_backward_input(at, !split, at - here.first_layer < again.first);
    };
    made.begin(split ? job_kind::backward_input : job_kind::backward, chunk);
    if (here.stage + 1 < stages && !here.stays_out) write.receive_gradient(here.sums_out);
    const int further = part.head_norm ? model.further_tokens : 0;
    for (int ahead = further; ahead >= 0 && part.head_pieces > 0; --ahead) {
      write.head_backward_input(here.head + ahead);
      if (!split) write.head_backward_weight(here.head + ahead);
      if (ahead < further) write.add_further();
      if (ahead == 0) break;
      layer_back(end + ahead - 1);
      write.further_backward_input(ahead - 1, !split);
    }
    for (int at = end - 1; at >= here.first_layer; --at) layer_back(at);
    if (part.embedding) {
      write.embed_backward_input();
      if (!split) write.embed_backward_weight();
    }
    if (here.stage > 0)
      here.stays_in ? write.hand_on_gradient(here.sums_in) : write.send_gradient(here.sums_in);
    if (!split) continue;
    made.begin(job_kind::backward_weight, chunk);
    for (int ahead = further; ahead >= 0 && part.head_pieces > 0; --ahead) {
      write.head_backward_weight(here.head + ahead);
      if (ahead == 0) break;
      write.layer_backward_weight(end + ahead - 1);
      write.further_backward_weight(ahead - 1);
    }
    for (int at = end - 1; at >= here.first_layer; --at) write.layer_backward_weight(at);
    if (part.embedding) write.embed_backward_weight();
    if (part.is_empty()) write.nothing();
  }
  return made;
}

}  // namespace stretto
