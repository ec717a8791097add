// The programs of a stage's ops: they are the ops that it runs, cost what its layers cost, touch
// what its stash holds, and need of one another what they must and no more.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "model/calibrate.hpp"
#include "model/host_math.hpp"
#include "model/kernels.hpp"
#include "model/layer.hpp"
#include "model/program.hpp"
#include "model/stage.hpp"
#include "stretto/lowering/streams/input_gradient_first.hpp"
#include "stretto/lowering/streams/look_ahead.hpp"
#include "stretto/model/op_replay.hpp"
#include "stretto/model/stream_type.hpp"

using namespace train;
using stretto::job_kind;

namespace {

config model_of(int shards) {
  return {.layers = 3, .width = 64, .heads = 4, .context = 32, .microbatch = 2, .shards = shards};
}

stretto::op_graph backward_graph(const stretto::program_chain& chain) {
  return stretto::graph_of(chain, std::span(chain.programs).subspan(1));
}

using names = std::set<std::string_view>;

//! Of every op of a graph, those that must have ended before; by name.
std::map<std::string_view, names> needs_of(const stretto::program_chain& chain,
                                           const stretto::op_graph& graph) {
  const stretto::op_neighbours needs(graph, true);
  std::map<std::string_view, names> all;
  for (std::int32_t node = 0; node < graph.size(); ++node) {
    const auto name_of = [&](std::int32_t of) {
      const auto at = static_cast<std::size_t>(of);
      return chain.ops[static_cast<std::size_t>(graph.nodes[at].op)].name;
    };
    names& mine = all[name_of(node)];
    for (const std::int32_t need : needs.of(node)) {
      mine.insert(name_of(need));
      const names further = all[name_of(need)];
      mine.insert(further.begin(), further.end());
    }
  }
  return all;
}

}  // namespace

TEST_CASE("a program's ops are those that the stage runs, and its times what the layers cost") {
  for (const int shards : {1, 2, 4})
    for (const bool split : {false, true})
      for (const auto& [first, last] : {std::pair(0, 5), {0, 1}, {0, 2}, {1, 4}, {2, 5}, {4, 5}}) {
        CAPTURE(shards);
        CAPTURE(first);
        CAPTURE(last);
        const config model = model_of(shards);
        const stage one(model, first, last, 1);
        const auto chain =
            stage_chain(model, first, last, {.recompute = split, .split = split, .chunk = 7});
        REQUIRE(chain.programs.size() == (split ? 4 : 2));
        std::uint64_t products = 0, expected = 0;
        int sums = 0, blocks = 0;
        for (const stretto::program& job : chain.programs) {
          CHECK(job.chunk == 7);
          const auto ops = one.ops(job.kind);
          const auto written = chain.ops_of(job);
          if (job.kind == job_kind::recompute) {
            CHECK(std::ranges::equal(ops, one.ops(job_kind::forward)));
            continue;
          }
          REQUIRE(ops.size() == written.size());
          for (std::size_t at = 0; at < ops.size(); ++at) {
            CHECK(written[at].name == name(ops[at].code));
            CHECK((written[at].stream == 0) == !is_sum(ops[at].code));
            CHECK(written[at].time > 0);
            sums += is_sum(ops[at].code);
            if (is_sum(ops[at].code))
              CHECK(written[at].stream ==
                    static_cast<std::uint8_t>(stretto::stream_type::tensor_parallel));
            if (expected_products(model, ops[at].code) == 0) continue;
            products += static_cast<std::uint64_t>(written[at].time);
          }
        }
        for (int layer = first; layer < last; ++layer) {
          const product_counts each = expected_products(model, layer);
          expected += each.forward + each.backward_input + each.backward_weight;
          blocks += model.kind(layer) == layer_kind::block;
        }
        CHECK(products == expected);
        CHECK(sums == (shards == 1 ? 0 : 4 * blocks));
      }
  CHECK_THROWS_WITH_AS(stage_chain(model_of(2), 3, 6),
                       doctest::Contains("layers [3, 6) are not a run"), std::invalid_argument);
}

TEST_CASE("a program's buffers are the stash, the messages, the sums") {
  for (const int shards : {1, 2, 4, -1, -2}) {
    config model = model_of(std::abs(shards));
    if (shards < 0) model.activations = precision::bf16;
    const auto math = make_host_math(model, model.activations);
    const stage one(model, 1, 3, 1, 0, *math);
    const auto chain = stage_chain(model, 1, 3, {.split = true});
    std::int64_t kept = 0, persistent = 0;
    for (const stretto::program_buffer& each : chain.buffers)
      (each.persistent ? persistent : kept) += each.bytes;
    const std::size_t sums = model.shards > 1 ? 4 * model.activation_scalars() : 0;  // of floats
    CHECK(kept == static_cast<std::int64_t>(one.stash_bytes() + 4 * one.message_bytes() + sums));
    CHECK(persistent ==
          static_cast<std::int64_t>(2 * 4 * 2 * parameter_count(model, 1)));  // and gradients
  }
}

TEST_CASE("gradients of weights need the backward only up to where their operands are") {
  for (const int shards : {1, 2}) {
    CAPTURE(shards);
    const auto chain = stage_chain(model_of(shards), 1, 2, {.split = true});
    const auto needs = needs_of(chain, backward_graph(chain));
    names before;
    std::map<std::string_view, names> expected;
    for (const op_code op : {op_code::receive_gradient, op_code::down_back, op_code::up_back,
                             op_code::up_back_sum, op_code::middle_back, op_code::attention_back,
                             op_code::qkv_back, op_code::qkv_back_sum, op_code::input_back}) {
      if (shards == 1 && is_sum(op)) continue;
      expected[name(op)] = before;
      before.insert(name(op));
      const auto behind = [&](op_code weight, op_code last) {
        if (op == last) expected[name(weight)] = before;
      };
      behind(op_code::down_weight, op_code::receive_gradient);
      behind(op_code::up_weight, op_code::down_back);
      // The sums that they need lie in the stash from the start, or are put there by who reads
      // them.
      behind(op_code::norm2_weight, shards == 1 ? op_code::up_back : op_code::middle_back);
      behind(op_code::mix_weight, op_code::middle_back);
      behind(op_code::qkv_weight, op_code::attention_back);
      behind(op_code::norm1_weight, shards == 1 ? op_code::qkv_back : op_code::input_back);
    }
    CHECK(needs == expected);
  }
}

TEST_CASE("nothing in a job waits for gradients of weights") {
  for (const int shards : {1, 2})
    for (const bool split : {false, true}) {
      const auto chain = stage_chain(model_of(shards), 0, 5, {.split = split});
      const auto graph = backward_graph(chain);
      const stretto::op_neighbours waiting(graph, false);
      int weights = 0;
      for (std::int32_t node = 0; node < graph.size(); ++node) {
        const auto op =
            chain.ops[static_cast<std::size_t>(graph.nodes[static_cast<std::size_t>(node)].op)];
        if (!op.name.ends_with("weights")) continue;
        ++weights;
        CHECK(waiting.of(node).empty());
      }
      CHECK(weights == 3 * 6 + 2);
    }
}

TEST_CASE("policies put sums behind gradients of weights") {
  const config model{.layers = 4, .width = 256, .heads = 4, .context = 64, .shards = 2};
  const auto chain = stage_chain(model, 1, 4, {.on = stretto::find_machine("host")});
  const auto graph = backward_graph(chain);
  std::vector<stretto::op_span> spans(graph.nodes.size());
  const auto makespan = [&](const std::vector<std::int32_t>& order) {
    CHECK(stretto::replay_ops(graph, order, 0, spans).ok());
    return stretto::measure_ops(graph, spans).makespan;
  };
  const auto in_order = makespan(stretto::overlap::program_order(graph));
  const auto weights_behind = makespan(stretto::overlap::input_gradient_first(graph));
  const auto ahead = stretto::overlap::look_ahead(graph);
  CHECK(weights_behind < in_order);
  CHECK(makespan(ahead.nodes) == ahead.makespan);
  CHECK(ahead.makespan <= weights_behind);
  // Whatever the order, computation alone is a bound.
  CHECK(ahead.makespan >= stretto::measure_ops(graph, spans).computes);
}

TEST_CASE("a slice's attention is a square of as many products as it has with all that it sees") {
  config model{.layers = 1, .width = 16, .heads = 4, .context = 64, .microbatch = 2, .slices = 4};
  const auto square = [&](int slice) {
    const auto calls = kernels_of(model, op_code::attention, slice);
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].times == 2 * 4);
    CHECK(calls[0].sizes[1] == 4);
    return calls[0].sizes[0];
  };
  CHECK(square(0) == 16);
  CHECK(square(3) == 32);   // 16 tokens that see 64
  CHECK(square(-1) == 25);  // that see 40
  model.slice_ends = {1, 2, 63, 64};
  CHECK(square(0) == 1);
  CHECK(square(2) == 62);  // 61 that see 63
  CHECK(square(3) == 8);   // one that sees 64
  CHECK(kernels_of(model, op_code::mix, 2)[0].sizes[0] == 2 * 61);
  CHECK(kernels_of(model, op_code::mix, 3)[0].sizes[0] == 2);
}

TEST_CASE("an op takes what its kernels do, on a machine where they were measured") {
  const std::int64_t size[] = {1}, time[] = {1};
  std::vector<stretto::measured_kernel> measured;
  std::set<std::string_view> called;
  for (const kernel& one : kernels()) {
    stretto::measured_kernel known;
    known.name = one.name;
    for (std::size_t axis = 0; axis < one.grid.size(); ++axis) known.axes[axis] = size;
    known.times = time;
    measured.push_back(known);  // a nanosecond for each product of sizes
  }
  const stretto::machine on{.name = "counts", .kernels = measured};
  for (const int shards : {1, 2}) {
    const config model = model_of(shards);
    const auto chain = stage_chain(model, 0, 5, {.split = true, .on = &on});
    const auto plain = stage_chain(model, 0, 5, {.split = true});
    for (std::size_t at = 0; at < chain.ops.size(); ++at) CHECK(chain.ops[at].time > 0);
    for (int code = 0; code < op_code_count; ++code)
      for (const bool afar : {false, true})
        for (const stretto::kernel_call& call :
             kernels_of(model, static_cast<op_code>(code), -1, afar)) {
          CHECK(on.find_kernel(call.kernel) != nullptr);
          CHECK(call.times > 0);
          called.insert(call.kernel);
        }
    // Of matrix products that are nothing else, the multiply-adds.
    for (std::size_t at = 0; at < chain.ops.size(); ++at)
      for (const op_code code : {op_code::mix, op_code::down, op_code::up_back, op_code::qkv_back})
        if (chain.ops[at].name == name(code)) CHECK(chain.ops[at].time == plain.ops[at].time);
  }
  CHECK(called.size() == kernels().size());  // and none is measured in vain
  // Operands come from afar in large stages.
  std::int64_t near_time[] = {5}, far_time[] = {7};
  measured.clear();
  for (const char* name : {"norm", "norm, from afar"}) {
    stretto::measured_kernel known;
    known.name = name;
    known.axes[0] = known.axes[1] = size;
    known.times = measured.empty() ? near_time : far_time;
    measured.push_back(known);
  }
  const stretto::machine twice{.name = "twice", .kernels = measured};
  for (const int layers : {1, 60}) {
    config model = model_of(1);
    model.layers = layers;
    const auto chain = stage_chain(model, 1, 1 + layers, {.on = &twice});
    CHECK(chain.ops[0].name == name(op_code::norm1));
    CHECK(chain.ops[0].time == (layers == 1 ? 5 : 7) * 64 * 64);
  }
}

TEST_CASE("every kernel runs at every size, and every op of a model is measured") {
  const auto times = calibrate({.few = true});
  REQUIRE(times.size() == kernels().size());
  for (const kernel_times& one : times) {
    std::size_t points = 1;
    for (const auto& axis : one.axes) points *= axis.size();
    REQUIRE(one.times.size() == points);
    for (const std::int64_t time : one.times) CHECK(time > 0);
    CHECK(std::ranges::max(one.times) == one.times.back());
  }
  config model = model_of(1);
  std::set<op_code> measured;
  for (const op_time& one : measure_ops(model, 2)) measured.insert(one.code);
  std::set<op_code> of_jobs;
  for (const job_kind kind : {job_kind::forward, job_kind::backward})
    for (const stage_op& op : job_ops(model, 0, 5, kind)) of_jobs.insert(op.code);
  CHECK(measured == of_jobs);
  model.shards = 2;
  CHECK_THROWS_WITH_AS(measure_ops(model, 1), doctest::Contains("in one piece"),
                       std::invalid_argument);
}
