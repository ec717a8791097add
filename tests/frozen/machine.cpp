// Compiling is passing: a measured machine that the tool has just written as a header, and an
// overlap policy that reads its times in constant expressions.
#include "measured_host.hpp"
#include "stretto/lowering/op_programs.hpp"
#include "stretto/lowering/streams/look_ahead.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/transformer/chain.hpp"

struct measured_layers {
  static constexpr stretto::transformer model{
      .hidden = 64, .heads = 4, .sequence = 64, .tensor_parallel = 2};

  constexpr stretto::program_chain programs(int rank) const {
    constexpr std::int32_t layers[] = {1, 1, 1};
    return stretto::transformer_chain(model, {.ranks = 3, .chunks = 1}, rank,
                                      stretto::transformer_parts(layers), false, measured_host::on);
  }
  constexpr std::vector<std::int32_t> order(const stretto::op_graph& graph) const {
    const stretto::overlap::op_order found = stretto::overlap::look_ahead(graph, {});
    return found.nodes;
  }
};
static_assert(stretto::OpPolicy<measured_layers>);

constexpr std::int64_t time_of(std::string_view op) {
  const stretto::program_chain chain = measured_layers{}.programs(1);
  for (const stretto::op& one : chain.ops)
    if (one.name == op) return one.time;
  return -1;
}
static_assert(time_of("widen") == 6400 + (25600 - 6400) / 3);  // 64 x 64 times 64 x 128
static_assert(time_of("scores") == 2 * 1600);                  // two heads, 64 x 16 times 16 x 64
static_assert(time_of("norm") == 1502);                        // 32 KiB of 1 to 64, of 50 to 3000
static_assert(measured_host::on.find_kernel("gelu") == nullptr);

constexpr std::size_t issued() {
  const measured_layers policy;
  const stretto::program_chain chain = policy.programs(1);
  const stretto::op_graph graph = stretto::graph_of(chain, std::span(chain.programs).subspan(0, 1));
  const std::vector<std::int32_t> order = policy.order(graph);
  return order.size();
}
static_assert(issued() > 10);
