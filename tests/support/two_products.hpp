#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stretto/lowering/op_programs.hpp"
#include "stretto/lowering/streams/in_pieces.hpp"
#include "stretto/lowering/streams/look_ahead.hpp"
#include "stretto/lowering/streams/separate.hpp"

//! Jobs that are expanded into ops: a stage of one column-split and one row-split product, with a
//! sum behind the forward's, and one behind the input's gradient.
namespace support {

inline constexpr std::uint8_t tensor_parallel = stretto::overlap::separate::stream_count;

enum class op_order { program, input_gradient_first, look_ahead, pieces };

//! @tparam Holds   multiprocessors that a sum keeps, of 132
//! @tparam Chunks  of each rank
template <op_order Order, int Holds = 0, int Chunks = 1>
struct two_products {
  static constexpr std::int64_t bytes = 640;
  static constexpr std::int64_t elements = bytes / 4;  // each a row

  constexpr stretto::program_chain programs(int) const {
    stretto::program_chain chain;
    for (int chunk = 0; chunk < Chunks; ++chunk) {
      forward(chain, chunk);
      backward(chain, chunk, false);
      backward(chain, chunk, true);
    }
    return chain;
  }
  constexpr std::vector<std::int32_t> order(stretto::op_graph& graph) const {
    namespace overlap = stretto::overlap;
    const overlap::look_ahead_options with{.multiprocessors = Holds > 0 ? 132 : 0, .width = 4};
    if (Order == op_order::program) return overlap::program_order(graph);
    if (Order == op_order::input_gradient_first) return overlap::input_gradient_first(graph);
    if (Order == op_order::pieces) {
      const std::vector<std::int16_t> pieces =
          stretto::filled<std::int16_t>(graph.nodes.size(), std::int16_t{3});
      graph = overlap::cut(graph, pieces, {});
    }
    const overlap::op_order found = overlap::look_ahead(graph, with);
    return found.nodes;  // nvcc loses the parts of a temporary
  }
  constexpr std::array<stretto::stream_info, tensor_parallel + 1> streams() const {
    std::array<stretto::stream_info, tensor_parallel + 1> made{};
    const stretto::overlap::separate base;
    for (int stream = 0; stream < base.count(); ++stream)
      made[static_cast<std::size_t>(stream)] = base.stream(stream);
    made[tensor_parallel] = stretto::overlap::named_stream("tensor_parallel", -1);
    return made;
  }

 private:
  static constexpr stretto::op_form collective{.time = 5,
                                               .stream = tensor_parallel,
                                               .cut = stretto::pieces_of::rows,
                                               .holds = static_cast<std::int16_t>(Holds),
                                               .collective = true};
  static constexpr stretto::op_form rows{.time = 4, .cut = stretto::pieces_of::rows};
  static constexpr stretto::op_form residual{.time = 1, .cut = stretto::pieces_of::rows};

  constexpr void forward(stretto::program_chain& chain, int chunk) const {
    using stretto::reads;
    using stretto::writes;
    const auto x = chain.buffer("x", bytes);
    const auto h = chain.buffer("hidden", bytes);
    const auto sum = chain.buffer("sum", bytes, elements);
    const auto y = chain.buffer("y", bytes);
    chain.begin(stretto::job_kind::forward, chunk);
    chain.add("receive", {writes(x)});
    chain.add("up", {reads(x), writes(h)}, rows);
    chain.add("down", {reads(h), writes(sum)}, rows);
    chain.add("sum", {reads(sum), writes(sum)}, collective);
    chain.add("residual", {reads(sum), reads(x), writes(y)}, residual);
  }
  constexpr void backward(stretto::program_chain& chain, int chunk, bool split) const {
    using stretto::reads;
    using stretto::writes;
    const auto dy = chain.buffer("dy", bytes);
    const auto dh = chain.buffer("hidden gradient", bytes);
    const auto part = chain.buffer("part of dx", bytes, elements);
    const auto dx = chain.buffer("dx", bytes);
    chain.begin(split ? stretto::job_kind::backward_input : stretto::job_kind::backward, chunk);
    chain.add("receive", {writes(dy)});
    chain.add("down back", {reads(dy), writes(dh)}, rows);
    chain.add("up back", {reads(dh), writes(part)}, rows);
    chain.add("sum back", {reads(part), writes(part)}, collective);
    chain.add("residual back", {reads(part), reads(dy), writes(dx)}, residual);
    if (split) chain.begin(stretto::job_kind::backward_weight, chunk);
    chain.add("down weights", {reads(dy)}, {.time = 4});
    chain.add("up weights", {reads(dh)}, {.time = 4});
  }
};

}  // namespace support
