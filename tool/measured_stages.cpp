#include "measured_stages.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "numbers.hpp"
#include "stretto/model/job_text.hpp"

namespace stretto::tool {

namespace {

//! Neither told of a stage, nor by the hop, nor the same whatever the schedule.
bool is_left_out(job_kind kind) {
  return kind == job_kind::recompute || kind == job_kind::all_reduce ||
         kind == job_kind::all_gather;
}

//! Times of messages, by whether they went from node to node.
struct measured_hops {
  int node_ranks;
  std::vector<std::int64_t> within{};
  std::vector<std::int64_t> between{};

  std::vector<std::int64_t>& of(int from, int to) {
    const hop_times nodes{.within = 0, .between = 1, .node_ranks = node_ranks};
    return nodes(from, to) == 0 ? within : between;
  }
};

//! What the messages of a step took, each from when both its ranks are at it.
void add_hops(const std::vector<traced>& step, measured_hops& hops) {
  std::map<work_key, const traced*> received;
  for (const traced& one : step)
    if (is_receive(one.what.kind)) received[key_of(one.what)] = &one;
  for (const traced& one : step) {
    if (!is_send(one.what.kind)) continue;
    const auto found = received.find(key_of(matching_receive(one.what)));
    if (found == received.end()) continue;
    const traced& other = *found->second;
    const std::int64_t both = std::max(one.when.start, other.when.start);
    hops.of(one.rank, other.rank).push_back(std::max(std::int64_t{0}, other.when.end - both));
  }
}

}  // namespace

measured_stages::measured_stages(const measured_trace& trace, int node_ranks)
    : ranks(trace.ranks()), workers(trace.workers()) {
  using times = std::array<std::vector<std::int64_t>, cost_kinds>;
  std::map<int, times> of;
  measured_hops messages{.node_ranks = node_ranks};
  std::set<job_kind> others;
  for (const std::int64_t number : trace.steps()) {
    const std::vector<traced> step = trace.step(number);
    add_hops(step, messages);
    for (const traced& one : step) {
      const auto kind = static_cast<std::size_t>(one.what.kind);
      if (is_left_out(one.what.kind)) others.insert(one.what.kind);
      const bool told = one.computes || is_copy(one.what.kind);
      if (!told || kind >= cost_kinds || one.what.stage < 0) continue;
      of[one.what.stage][kind].push_back(one.when.end - one.when.start);
      slices = std::max(slices, one.what.slice + 1);
    }
  }
  if (of.empty()) trace.fail("it has no jobs of stages");
  for (const job_kind kind : others)
    left_out += (left_out.empty() ? "" : ", ") + std::string(letters(kind));
  within_nodes = !messages.within.empty();
  hops.within = median(messages.within);
  if (!messages.between.empty())
    hops = {.within = hops.within, .node_ranks = node_ranks, .between = median(messages.between)};
  for (const std::int64_t hop : {hops.within, hops.between})
    if (hop > most_cost)
      trace.fail("a message took " + std::to_string(hop) + " ns, which is more than " +
                 std::to_string(most_cost));
  for (auto& [number, jobs] : of) {
    const auto stage = static_cast<int>(stages.size());
    const auto took = [&](job_kind kind) {
      const std::int64_t time = median(jobs[static_cast<std::size_t>(kind)]);
      if (time > most_cost)
        trace.fail("a " + std::string(letters(kind)) + " of stage " + std::to_string(stage) +
                   " took " + std::to_string(time) + " ns, which is more than " +
                   std::to_string(most_cost));
      return time;
    };
    const auto has = [&](job_kind kind) { return !jobs[static_cast<std::size_t>(kind)].empty(); };
    if (number != stage || !has(job_kind::forward))
      trace.fail("it has no forward of stage " + std::to_string(stage));
    if (has(job_kind::backward_input) != has(job_kind::backward_weight))
      trace.fail("of the backwards of stage " + std::to_string(stage) + " it has but one half");
    layer_entry made{.which = std::to_string(stage), .layers = {stage}};
    made.costs.forward = took(job_kind::forward);
    made.costs.backward_input = took(job_kind::backward_input);
    made.costs.backward_weight = took(job_kind::backward_weight);
    made.costs.whole_saves = 0;
    if (has(job_kind::backward)) {
      const std::int64_t whole = took(job_kind::backward);
      if (!has(job_kind::backward_input)) {
        guessed_halves = true;
        made.costs.backward_weight = whole / 2;
        made.costs.backward_input = whole - whole / 2;
      }
      made.costs.whole_saves =
          std::max(std::int64_t{0}, made.costs.backward_input + made.costs.backward_weight - whole);
    }
    if (has(job_kind::offload) || has(job_kind::reload))
      made.copy = std::max(took(job_kind::offload), took(job_kind::reload));
    stages.push_back(made);
  }
}

}  // namespace stretto::tool
