#include "check_options.hpp"

#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>

#include "stretto/executor/describe.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::executor {

void refuse_devices() {
  throw plan_error("a graph needs devices that can record one, such as CUDA's; the host's cannot");
}

void check(const options& with) {
  if (with.deadline <= std::chrono::nanoseconds::zero())
    throw plan_error("the deadline must be positive");
  if (with.grace < std::chrono::nanoseconds::zero())
    throw plan_error("the grace time cannot be negative");
  if (with.trace_steps < 0) throw plan_error("the number of traced steps cannot be negative");
  if (with.delay.longest.count() < 0) throw plan_error("a delay cannot be negative");
  if (with.host.queue_depth < 0) throw plan_error("the depth of a queue cannot be negative");
  if (with.host.threads < 0)
    throw plan_error("the number of a device's threads cannot be negative");
  if (with.issue != issuing::caller && with.issue != issuing::thread_per_rank)
    throw plan_error("issuing is neither caller nor thread_per_rank");
  if (with.host.queue_depth > host_settings::deepest)
    throw plan_error("a queue cannot hold " + std::to_string(with.host.queue_depth) +
                     " commands, but " + std::to_string(host_settings::deepest) + " at most");
  if (with.wire && with.capacity != 0)
    throw plan_error("a capacity of " + std::to_string(with.capacity) +
                     " is for the loopback transport, and options::wire holds another");
  if (with.checked && with.issue != issuing::caller)
    throw plan_error(
        "races are checked where the caller issues all ranks' instructions in one order");
  if (!with.graph) return;
  if (with.issue != issuing::caller)
    throw plan_error("a graph is recorded by the thread that calls step(): issuing::caller");
  if (with.trace_steps > 0)
    throw plan_error("a graph tells no times of its instructions: trace_steps must be 0");
  if (with.checked)
    throw plan_error(
        "races are looked for in what is issued, and a graph's steps are not: checked");
  if (!with.make_device) refuse_devices();
}

void check(std::span<const plan_view> plans, std::span<stage* const> stages) {
  if (stages.size() != plans.size())
    throw plan_error(std::to_string(plans.size()) + " plans, but " + std::to_string(stages.size()) +
                     " stages");
  for (std::size_t at = 0; at < stages.size(); ++at)
    if (stages[at] == nullptr)
      throw plan_error(name_of_rank(plans[at], plans[at].rank) + " has no stage");
}

void check_trace(std::span<const plan_view> plans, int steps) {
  constexpr std::int64_t most = std::int64_t{1} << 28U;  // some 10 GB
  std::int64_t times = 0;
  for (const plan_view& plan : plans) times += std::ssize(plan.instructions) * steps;
  if (times > most)
    throw plan_error("trace_steps " + std::to_string(steps) + " would keep " +
                     std::to_string(times) + " times, at most " + std::to_string(most));
}

void check_timed(const device& on, int rank) {
  if (on.timed()) return;
  throw plan_error("the device of rank " + std::to_string(rank) +
                   " takes no times; on a GPU cuda_settings::timing has it take them");
}

void refuse_loopback(const plan_view& plan) {
  for (std::size_t at = 0; at < plan.instructions.size(); ++at) {
    if (meets_others(plan.instructions[at].act))
      throw plan_error("plan of " + describe(plan, static_cast<int>(at)) +
                       ": the loopback transport moves the host's memory alone; options::wire must "
                       "hold a transport for GPUs");
  }
}

}  // namespace stretto::executor
