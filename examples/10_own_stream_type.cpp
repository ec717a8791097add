// A stream type of one's own: experts' all-to-all, proven at compile time with the rest of a step.
// g++ -std=c++20 -Iinclude examples/10_own_stream_type.cpp -o own_stream_type
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string_view>
#include <vector>

#include "stretto/stretto.hpp"

enum class my_stream : std::uint8_t {
  compute,
  tensor_parallel,
  expert_all_to_all,  // what the library does not know
  send_next,
  receive_previous,
  send_previous,
  receive_next,
};

template <>
struct stretto::stream_traits<my_stream> {
  static constexpr int count = 7;
  static constexpr std::string_view name(my_stream one) {
    constexpr std::string_view names[] = {"compute",   "tensor_parallel", "expert_all_to_all",
                                          "send_next", "receive_previous", "send_previous",
                                          "receive_next"};
    return names[static_cast<int>(one)];
  }
  static constexpr int priority(my_stream one) { return one == my_stream::compute ? 0 : -1; }
};

//! A layer with experts: tokens are sent to them and come back, while another micro-batch computes.
//! Times in microseconds.
struct expert_layer {
  constexpr stretto::program_chain programs(int /*rank*/) const {
    using stretto::reads, stretto::writes;
    stretto::program_chain chain;
    const auto on = [](my_stream stream, std::int64_t time) {
      return stretto::op_form{.time = time, .stream = static_cast<std::uint8_t>(stream)};
    };
    const auto x = chain.buffer("input", 1 << 20), a = chain.buffer("attended", 1 << 20);
    const auto there = chain.buffer("dispatched", 1 << 20);
    const auto made = chain.buffer("experts' result", 1 << 20);
    const auto back = chain.buffer("combined", 1 << 20), y = chain.buffer("output", 1 << 20);
    const auto dy = chain.buffer("gradient", 1 << 20);
    const auto dback = chain.buffer("gradient there", 1 << 20);
    const auto dmade = chain.buffer("experts' gradient", 1 << 20);
    const auto da = chain.buffer("gradient back", 1 << 20), dx = chain.buffer("dx", 1 << 20);
    chain.begin(stretto::job_kind::forward, 0);
    chain.add("attention", {reads(x), writes(a)}, {.time = 300});
    chain.add("route", {reads(a), writes(there)}, {.time = 20});
    chain.add("dispatch", {writes(there)}, on(my_stream::expert_all_to_all, 150));
    chain.add("experts", {reads(there), writes(made), writes(back)}, {.time = 400});
    chain.add("combine", {writes(back)}, on(my_stream::expert_all_to_all, 150));
    chain.add("residual", {reads(back), reads(a), writes(y)}, {.time = 20});
    chain.begin(stretto::job_kind::backward, 0);
    chain.add("route back", {reads(dy), writes(dback)}, {.time = 20});
    chain.add("combine back", {writes(dback)}, on(my_stream::expert_all_to_all, 150));
    chain.add("experts back", {reads(dback), writes(dmade), writes(da)}, {.time = 400});
    chain.add("dispatch back", {writes(da)}, on(my_stream::expert_all_to_all, 150));
    chain.add("attention back", {reads(da), writes(dx)}, {.time = 300});
    chain.add("experts' weights", {reads(made), reads(dmade)}, {.time = 400});
    chain.add("attention's weights", {reads(x), reads(dx)}, {.time = 300});
    return chain;
  }
  constexpr std::vector<std::int32_t> order(stretto::op_graph& graph) const {
    const stretto::overlap::op_order found = stretto::overlap::look_ahead(graph, {.width = 4});
    return found.nodes;
  }
  constexpr std::array<stretto::stream_info, 7> streams() const {
    std::array<stretto::stream_info, 7> made{};
    for (int stream = 0; stream < 7; ++stream)
      made[static_cast<std::size_t>(stream)] =
          stretto::overlap::typed<my_stream>{}.stream(stream);
    return made;
  }
};

// Pairs: the experts' all-to-all of a backward lies behind a forward of another micro-batch.
using jobs = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                               stretto::schedule::paired_1f1b, stretto::assignment::unassigned,
                               stretto::memory::release_early,
                               stretto::overlap::typed<my_stream>>;
using step = stretto::with_ops<jobs, expert_layer>;
static_assert(stretto::valid<step>);

int main() {
  const stretto::program_chain chain = expert_layer{}.programs(0);
  const stretto::plan_view& plan = step::plans()[1];
  for (std::size_t at = 0; at < plan.instructions.size(); ++at) {
    const stretto::instruction& one = plan.instructions[at];
    const std::int16_t op = plan.parts[at].op;
    std::cout << plan.streams[one.stream].name << ": " << stretto::to_text(one.what).view();
    for (const stretto::program& job : chain.programs)
      if (op >= 0 && job.kind == one.what.kind)
        std::cout << ' ' << chain.ops[static_cast<std::size_t>(job.first_op + op)].name;
    std::cout << '\n';
  }
}
