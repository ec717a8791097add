#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/transformer.hpp"
#include "stretto/model/transformer_writer.hpp"

namespace stretto {

namespace detail {

// Not constexpr: where a chain is a constant, the name stands in the compiler's message.
[[noreturn]] inline void transformer_breaks_rule(transformer_rule broken) {
  throw std::invalid_argument("stretto::transformer: " + std::string(describe(broken)));
}

}  // namespace detail

//! The chain of a rank: for each of its chunks the forward, then from the last chunk on the
//! backwards, whole or split. Where the next stage is on the same rank nothing is sent.
//! @param layers  of each stage
//! @param on      gives the ops their times in nanoseconds; without a name: they have none
//! @throws std::invalid_argument naming the rule that the model breaks; see transformer_rule
constexpr program_chain transformer_chain(const transformer& model, const placement& where,
                                          int rank, std::span<const std::int32_t> layers,
                                          bool split, const machine& on = {}) {
  if (const transformer_rule broken = model.broken_rule(); broken != transformer_rule::none)
    detail::transformer_breaks_rule(broken);
  program_chain made;
  transformer_writer write(model, made, on);
  const int stages = where.stages();
  const auto here = [&](int chunk, int stage) { return where.stays(rank, chunk, stage); };
  std::vector<int> first = filled<int>(static_cast<std::size_t>(where.chunks));
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const int stage = where.stage_of(rank, chunk);
    made.begin(job_kind::forward, chunk);
    if (stage == 0)
      write.embed();
    else if (!here(chunk, stage - 1))
      write.receive();
    first[static_cast<std::size_t>(chunk)] = write.layers();
    for (int at = 0; at < layers[static_cast<std::size_t>(stage)]; ++at) write.layer_forward();
    if (stage + 1 == stages)
      write.head_forward();
    else if (!here(chunk, stage + 1))
      write.send();
  }
  for (int chunk = where.chunks - 1; chunk >= 0; --chunk) {
    const int stage = where.stage_of(rank, chunk);
    const int from = first[static_cast<std::size_t>(chunk)];
    const int to = from + layers[static_cast<std::size_t>(stage)];
    made.begin(split ? job_kind::backward_input : job_kind::backward, chunk);
    if (stage + 1 == stages) {
      write.head_backward_input();
      if (!split) write.head_backward_weight();
    } else if (!here(chunk, stage + 1)) {
      write.receive_gradient();
    }
    for (int at = to - 1; at >= from; --at) write.layer_backward_input(at, !split);
    if (stage == 0) {
      write.embed_backward_input();
      if (!split) write.embed_backward_weight();
    } else if (!here(chunk, stage - 1)) {
      write.send_gradient();
    }
    if (!split) continue;
    made.begin(job_kind::backward_weight, chunk);
    if (stage + 1 == stages) write.head_backward_weight();
    for (int at = to - 1; at >= from; --at) write.layer_backward_weight(at);
    if (stage == 0) write.embed_backward_weight();
  }
  return made;
}

}  // namespace stretto
