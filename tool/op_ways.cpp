#include "op_ways.hpp"

#include <algorithm>
#include <stdexcept>

#include "errors.hpp"
#include "stretto/lowering/streams/in_pieces.hpp"
#include "stretto/lowering/streams/under_way.hpp"
#include "stretto/model/op_bound.hpp"
#include "stretto/model/op_replay.hpp"

namespace stretto::tool {

const ordered_ops& ordered_job::best() const {
  return *std::ranges::min_element(ways, {}, &ordered_ops::makespan);
}

ordered_job ways_of(const std::string& name, const op_graph& graph, const program_chain& chain,
                    const machine& on, const overlap::look_ahead_options& with,
                    const std::int64_t* apart) {
  ordered_job made;
  made.name = name;
  for (const op_node& node : graph.nodes)
    (node.communicates() ? made.communicates : made.computes) += node.time;
  made.bound = op_bound(graph, on.multiprocessors);
  const auto replayed = [&](const char* way, const op_graph& of,
                            const std::vector<std::int32_t>& order) {
    std::vector<op_span> spans(of.nodes.size());
    const verdict answer = replay_ops(of, order, on.multiprocessors, spans);
    if (!answer.ok()) throw std::logic_error("an order of ops is none");
    made.ways.push_back({way, of, order, measure_ops(of, spans).makespan});
  };
  if (apart == nullptr) {
    replayed("one stream", overlap::on_one_stream(graph), overlap::program_order(graph));
    const auto allowed = [&](const char* way, const std::vector<std::int32_t>& order) {
      if (with.outstanding == 0 || overlap::most_under_way(graph, order) <= with.outstanding)
        replayed(way, graph, order);
    };
    allowed("as the program", overlap::program_order(graph));
    allowed("input gradient first", overlap::input_gradient_first(graph));
  } else {
    made.ways.push_back({"one after the other", {}, {}, *apart});
  }
  const overlap::op_order whole = overlap::look_ahead(graph, with);
  if (whole.nodes.empty())
    throw bad_option("--outstanding", std::to_string(with.outstanding),
                     "an op of the layer needs the results of more collectives");
  replayed("look-ahead", graph, whole.nodes);
  const overlap::piece_costs costs{on.launch, on.launch + on.latency};
  const overlap::cut_order cut = overlap::in_pieces(graph, chain, costs, with);
  replayed("in pieces", cut.graph, cut.order.nodes);
  return made;
}

}  // namespace stretto::tool
