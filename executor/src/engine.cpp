#include "stretto/executor/engine.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "after.hpp"
#include "cause_text.hpp"
#include "check_options.hpp"
#include "end_threads.hpp"
#include "guarded_plan.hpp"
#include "issue_order.hpp"
#include "issuers.hpp"
#include "pause.hpp"
#include "stall.hpp"
#include "step_failure.hpp"
#include "stretto/executor/checked_device.hpp"
#include "stretto/executor/loopback_transport.hpp"
#include "stretto/executor/meetings.hpp"
#include "stretto/executor/validate.hpp"
#include "stretto/model/verdict_text.hpp"

namespace stretto::executor {

//! Members are destroyed from the last to the first: threads before what they use.
struct engine::state {
  options with;
  std::vector<plan_view> plans;
  std::vector<guarded_plan> guarded;  // none: they are run as they are
  meetings met;
  monitor watch;
  bool own_wire;  // the caller's
  std::unique_ptr<transport> wire;
  std::vector<std::unique_ptr<runner>> runners;
  std::vector<std::unique_ptr<device>> devices;
  std::unique_ptr<issuers> threads;
  std::vector<turn> order;  // without them
  // Waking a stream's thread costs, so it is done once for many commands. Not so where queues may
  // fill: what one waits for must not be held back on another device.
  bool hold_back = false;
  std::optional<place> issuing;  // where it ended early
  std::atomic<bool> stepping{false};
  bool polled = false;
  bool calls = false;  // callbacks, in the thread that issues and waits: on GPUs
  std::unique_ptr<step_graph> graph;
  bool recorded = false;
  time_point began{};      // the step under way
  std::int64_t steps = 0;  // completed
  bool failed = false;
  int threads_left = 0;     // after a failure
  bool held = false;        // some of them by a callback
  std::string failed_with;  // and its text

  state(std::span<const plan_view> given, std::span<stage* const> stages, options wanted)
      : with(std::move(wanted)),
        plans(given.begin(), given.end()),
        met(plans),
        watch(static_cast<int>(plans.size())),
        own_wire(with.wire != nullptr),
        wire(with.wire ? std::move(with.wire) : make_loopback_transport(with.capacity)) {
    int streams = 0;
    for (const plan_view& plan : plans) streams += static_cast<int>(plan.streams.size());
    if (with.host.threads == 0) with.host.threads = streams;
    try {
      if (wire->needs_one_issuer() && with.issue != issuing::caller && plans.size() > 1)
        throw plan_error(
            "the transport needs a single issuing thread for all ranks: issuing::caller");
      if (with.graph) wire->record_steps();
      wire->open(plans, watch);
      make(stages);
    } catch (...) {
      wire->tell("it could not begin: " + cause_text(std::current_exception()));
      wire.reset();  // before the devices, as in the end
      throw;
    }
  }

  void make(std::span<stage* const> stages) {
    std::shared_ptr<race_check> races;
    if (with.checked) races = make_race_check(plans, wire->rendezvous());
    if (with.checked && !with.make_device)
      for (const plan_view& plan : plans) guarded.emplace_back(plan);
    with.host.guarded = !guarded.empty();
    for (std::size_t at = 0; at < plans.size(); ++at) {
      const plan_view& plan = guarded.empty() ? plans[at] : guarded[at].view();
      devices.push_back(with.make_device ? with.make_device(plan, watch)
                                         : make_host_device(plan, with.host, watch));
      if (!devices[at])
        throw plan_error("make_device gave none for rank " + std::to_string(plans[at].rank));
      if (with.graph && !devices[at]->capturable()) refuse_devices();
      if (with.trace_steps > 0) check_timed(*devices[at], plans[at].rank);
      if (with.graph && with.graph_progress) devices[at]->follow_replays();
      if (races) devices[at] = make_checked_device(std::move(devices[at]), races, at);
      if (!own_wire && devices[at]->stream(0).native != nullptr) refuse_loopback(plans[at]);
      wire->attach(plans[at].rank, *devices[at]);
      const bool alone = with.issue == issuing::caller && devices[at]->polled();
      calls = calls || alone;
      const runner::parts parts{devices[at].get(), wire.get(), stages[at], &watch, alone};
      runners.push_back(std::make_unique<runner>(plan, parts, with.trace_steps, with.delay,
                                                 with.poison, !guarded.empty()));
    }
    if (with.issue == issuing::thread_per_rank)
      threads = std::make_unique<issuers>(runners, watch);
    else
      order = order_of_issue(plans, met);
    hold_back = !with.make_device && with.host.queue_depth == 0;
    polled = wire->polled();
    for (const auto& each : devices) polled = polled || each->polled();
    if (!with.graph) return;
    graph = with.graph();
    if (!graph) throw plan_error("options::graph made none");
  }

  //! The step by the graph, which is recorded first if need be.
  void replay() {
    bool launched = false;
    try {
      if (!recorded) record();
      for (const auto& each : devices) each->replay();
      graph->launch();
      launched = true;
      while (!graph->is_over()) {
        wire->poll();
        if (watch.stopped()) fail_replayed();
        const time_point now = std::chrono::steady_clock::now();
        if (now >= watch.deadline()) fail_late_replay();
        pause(now);
      }
      for (const auto& each : devices) each->replayed();
    } catch (const execution_error&) {
      throw;
    } catch (...) {
      const std::exception_ptr cause = std::current_exception();
      graph->cancel();
      if (launched && with.graph_progress) {
        // Whatever asks a GPU that has failed hears of it, and not of the instruction.
        const place at = find_stall(runners, met, steps).at;
        watch.fail(plans[static_cast<std::size_t>(at.plan)].rank, at.instruction, cause);
        fail_as_reported();
      }
      fail(found().not_replayed(cause));
    }
  }

  void record() {
    graph->begin(devices);
    for (const auto& each : devices) each->capture(true);
    issue();
    for (const auto& each : devices) each->capture(false);
    if (watch.stopped()) {
      graph->cancel();
      fail_as_reported();
    }
    if (issuing) {
      graph->cancel();
      fail_late();
    }
    graph->end();
    for (const auto& each : runners) each->replays(steps);
    recorded = true;
  }

  //! For the end of the step that was issued.
  monitor::outcome wait() noexcept {
    if (!polled) return watch.wait_until(watch.deadline());
    while (true) {
      for (const auto& each : devices) each->poll();
      wire->poll();
      const time_point now = std::chrono::steady_clock::now();
      const monitor::outcome seen = pause(now);
      if (seen != monitor::outcome::late || now >= watch.deadline()) return seen;
    }
  }

  //! Before the next look at what is polled, for less if all have ended or one has failed.
  monitor::outcome pause(time_point now) noexcept {
    const std::chrono::nanoseconds length = pause_after(now - began);
    if (length == length.zero()) std::this_thread::yield();
    return watch.wait_until(std::min(watch.deadline(), now + length));
  }

  //! By the calling thread.
  void issue() noexcept {
    place last{-1, -1};
    try {
      issue(last);
    } catch (...) {  // a device's submit()
      issuing = last;
      watch.fail(plans[static_cast<std::size_t>(std::max(last.plan, 0))].rank, -1,
                 std::current_exception());
    }
  }
  //! @param last  what has been issued
  void issue(place& last) {
    int turns = 0;
    for (const turn& next : order) {
      // Nobody else looks at the time meanwhile.
      if (calls && last.plan >= 0 && std::chrono::steady_clock::now() >= watch.deadline()) {
        issuing = last;
        return;
      }
      last = {next.plan, next.instruction};
      const auto plan = static_cast<std::size_t>(next.plan);
      if (next.begins) runners[plan]->begin(next.instruction, steps);
      if (next.ends && !watch.stopped()) runners[plan]->end(next.instruction, steps);
      if (watch.stopped()) {
        issuing = last;
        return;
      }
      if (!hold_back)
        devices[plan]->submit();
      else if (++turns % 256 == 0)
        submit();
    }
    submit();
  }

  void submit() {
    for (const auto& each : devices) each->submit();
  }

  ~state() {
    graph.reset();  // communicators wait for what was recorded with them
    if (!failed) wire->close();
    // The error may be on its way to somebody who is told only when this is over.
    if (held)
      std::fprintf(stderr, "stretto: waiting for a callback that does not return; %s\n",
                   failed_with.c_str());
    if (failed && threads) static_cast<void>(threads->join(time_point::max()));
    const bool waits = failed && polled;
    // The host's threads of one device may be in the memory of another, which goes with it.
    const unfinished left = end_threads(!polled ? time_point::max()
                                        : waits ? after(with.grace)
                                                : time_point::min());
    if (left.all() > 0 && waits)
      for (const auto& each : devices) each->abandon();
    wire.reset();  // it may have made the devices' memory known to others
  }

  unfinished end_threads(time_point limit) noexcept {
    return executor::end_threads({watch, *wire, devices, threads.get(), polled}, limit);
  }

  //! As things are now: before the ranks are aborted.
  step_failure found() const { return {plans, runners, met, with.checked, steps, issuing}; }

  [[noreturn]] void fail(diagnosis said) {
    failed = true;
    wire->tell(said.text);
    const unfinished left = end_threads(after(with.grace));
    threads_left = left.all();
    held = left.threads > 0 || (!polled && left.streams > 0);
    if (threads_left > 0)
      said.text += (polled ? "; threads and streams of devices whose work has not ended: "
                           : "; threads held by a callback that has not returned: ") +
                   std::to_string(threads_left);
    failed_with = said.text;
    if (!said.more.empty()) said.text += '\n' + said.more;
    throw execution_error(said.kind, said.where, said.text, std::move(said.cause), threads_left,
                          std::move(said.flight_record));
  }

  [[noreturn]] void fail_as_reported() { fail(found().reported(watch.first_failure())); }
  [[noreturn]] void fail_late() { fail(found().late(calls)); }
  //! What somebody has reported of the graph's step.
  [[noreturn]] void fail_replayed() {
    if (with.graph_progress) fail_as_reported();
    fail(found().replay_reported(watch.first_failure()));
  }
  [[noreturn]] void fail_late_replay() {
    if (with.graph_progress) fail_late();
    fail(found().replay_late());
  }
};

bool built_for_debugging() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

engine::engine(std::span<const plan_view> plans, std::span<stage* const> stages, options with) {
  try {
    check(with);
    validate(plans);
    check(plans, stages);
    check_trace(plans, with.trace_steps);
  } catch (...) {
    if (with.wire) with.wire->tell("it could not begin: " + cause_text(std::current_exception()));
    throw;
  }
  state_ = std::make_unique<state>(plans, stages, std::move(with));
}

std::span<const plan_view> engine::answered(std::span<const plan_view> plans,
                                            const verdict& answer) {
  if (!answer.ok()) throw plan_error("there are no plans: " + std::string(to_text(answer).view()));
  return plans;
}

engine::~engine() = default;

void engine::step() {
  state& my = *state_;
  struct turnstile {
    std::atomic<bool>& taken;
    ~turnstile() { taken.store(false, std::memory_order_release); }
  };
  if (my.stepping.exchange(true, std::memory_order_acquire))
    throw execution_error(failure::refused, {},
                          "the step is refused: another is under way, in another thread or in that "
                          "which called back",
                          nullptr, 0);
  const turnstile only{my.stepping};
  if (my.failed)
    throw execution_error(
        failure::refused, {-1, -1, {}, my.steps},
        "step " + std::to_string(my.steps) +
            " is refused: the engine has failed in an earlier call: " + my.failed_with,
        nullptr, 0);
  my.began = std::chrono::steady_clock::now();
  my.watch.begin_step(after(my.with.deadline));
  if (my.graph && my.steps > 0) {
    my.replay();
    my.wire->rest();
    ++my.steps;
    return;
  }
  if (my.threads)
    my.threads->begin(my.steps);
  else
    my.issue();
  switch (my.wait()) {
    case monitor::outcome::ended:
      my.wire->rest();
      ++my.steps;
      return;
    case monitor::outcome::failed:
      my.fail_as_reported();
    case monitor::outcome::late:
      my.fail_late();
  }
}

std::int64_t engine::steps() const {
  return state_->steps;
}

bool engine::failed() const {
  return state_->failed;
}

namespace {

std::size_t known(std::size_t index, std::size_t plans) {
  if (index < plans) return index;
  throw plan_error("there is no plan at index " + std::to_string(index) + ": this engine has " +
                   std::to_string(plans));
}

}  // namespace

high_water_mark engine::most_in_use(std::size_t index) const {
  return executor::most_in_use(state_->plans[known(index, state_->plans.size())]);
}

std::span<std::byte> engine::arena(std::size_t index) const {
  return state_->devices[known(index, state_->devices.size())]->arena();
}

std::span<std::byte> engine::host_memory(std::size_t index) const {
  return state_->devices[known(index, state_->devices.size())]->host_memory();
}

std::vector<trace_record> engine::trace() const {
  const state& my = *state_;
  std::vector<trace_record> records;
  // A thread that still runs may write to the timings.
  if (my.threads_left > 0) return records;
  const std::int64_t last = my.steps - (my.failed ? 0 : 1);
  for (std::int64_t step = last - my.with.trace_steps + 1; step <= last; ++step)
    for (const auto& rank : my.runners) {
      const int count = static_cast<int>(rank->plan().instructions.size());
      for (int index = 0; index < count; ++index) {
        const timing& kept = rank->measured(index, step);
        if (kept.step == step && kept.end != 0)
          records.push_back({rank->plan().rank, index, step, kept.start, kept.end, kept.off});
      }
    }
  return records;
}

}  // namespace stretto::executor
