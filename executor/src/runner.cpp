#include "stretto/executor/runner.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <string>
#include <thread>

#include "guarded_plan.hpp"
#include "size_source.hpp"
#include "sm_budget.hpp"
#include "stretto/executor/describe.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/model/plan_names.hpp"

namespace stretto::executor {
namespace {

const timing not_measured{};

//! Instructions between two submits: enough to share out what waking a thread costs, few enough
//! that the first ones do not wait for long.
constexpr int batch = 256;

//! A number that looks random, the same for the same input (the finalizer of splitmix64).
std::uint64_t scramble(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

}  // namespace

runner::runner(const plan_view& plan, const parts& with, int trace_steps, random_delay delay,
               bool poison, bool guarded)
    : plan_(plan),
      with_(with),
      trace_steps_(trace_steps),
      marked_(with.on->marked()),
      guarded_(guarded),
      delay_(delay) {
  buffers_.reserve(plan_.uses.size());
  // By who sums or gathers: a buffer's number of its group is that of the plans' before they were
  // shared.
  std::vector<std::int32_t> sums(plan_.buffers.size(), -1);
  std::vector<std::int32_t> dealt(plan_.buffers.size(), -1);  // each has a part
  for (const instruction& each : plan_.instructions)
    if (is_collective(each.act))
      for (const buffer_use& use : plan_.uses_of(each)) {
        const auto buffer = static_cast<std::size_t>(use.buffer);
        if (is_sum(each.act)) sums[buffer] = each.peer;
        if (each.act != action::all_reduce) dealt[buffer] = each.peer;
      }
  for (const buffer_use& use : plan_.uses) {
    // A use that belongs to no instruction was not checked.
    const bool exists =
        use.buffer >= 0 && static_cast<std::size_t>(use.buffer) < plan_.buffers.size();
    if (!exists) {
      buffers_.push_back({});
      continue;
    }
    const buffer& from = plan_.buffers[static_cast<std::size_t>(use.buffer)];
    const std::int32_t sum = sums[static_cast<std::size_t>(use.buffer)];
    const std::int32_t group = dealt[static_cast<std::size_t>(use.buffer)];
    buffers_.push_back({bytes_of(from), use.role, use.mode, from.stage, from.microbatch, from.slice,
                        sum < 0 ? -1 : plan_.groups[static_cast<std::size_t>(sum)].stage,
                        group < 0 ? std::span<std::byte>{} : own_part(bytes_of(from), group)});
  }
  instructions_.reserve(plan_.instructions.size());
  const std::vector<int> budgets = sm_budgets(plan_, with_.on->multiprocessors());
  for (std::size_t index = 0; index < plan_.instructions.size(); ++index) {
    const instruction& from = plan_.instructions[index];
    prepared to;
    to.act = from.act;
    to.stream = from.stream;
    to.record = from.record;
    to.waits = plan_.waits_of(from);
    to.at.what = from.what;
    to.at.rank = plan_.rank;
    to.at.stream = with_.on->stream(from.stream);
    const op_part part = plan_.part_of(static_cast<std::int32_t>(index));
    to.record_start = part.started;
    to.at.op = part.op;
    to.at.piece = part.piece;
    to.at.pieces = part.pieces;
    to.at.sm_budget = budgets[index];
    if (part.started >= 0) to.at.start_event = with_.on->native_event(part.started);
    to.at.buffers = std::span<const bound_buffer>(buffers_).subspan(
        static_cast<std::size_t>(from.first_use),
        static_cast<std::size_t>(part.own_uses < 0 ? from.use_count : part.own_uses));
    to.at.stop = &with_.watch->stop_flag();
    if (with_.alone) to.at.watch = with_.watch;
    to.message = {plan_.rank, from.peer, static_cast<int>(index), from.what};
    if (from.act != action::run && from.act != action::end_step) {
      const byte_range moved = plan_.range_of(from.first_use);
      to.message.data = to.at.buffers.front().data.data() + moved.first;
      to.message.bytes = moved.bytes;
    }
    if (from.act == action::offload || from.act == action::reload) {
      to.moved.from = to.at.buffers[0].data;
      to.moved.to = to.at.buffers[1].data;
    }
    if (from.act == action::run && !with_.work->serves(from.what.kind))
      throw plan_error("plan of " + describe(plan_, static_cast<int>(index)) +
                       ": the rank's stage does not serve this kind");
    instructions_.push_back(to);
  }
  timings_.resize(static_cast<std::size_t>(trace_steps_) * instructions_.size());
  if (poison || guarded) prepare_poison(poison, guarded);
}

std::span<std::byte> runner::own_part(std::span<std::byte> all, std::int32_t group) const {
  const std::span<const std::int32_t> members =
      plan_.members_of(plan_.groups[static_cast<std::size_t>(group)]);
  const auto before = static_cast<std::size_t>(
      std::ranges::count_if(members, [this](std::int32_t rank) { return rank < plan_.rank; }));
  const std::size_t bytes = all.size() / members.size();
  return all.subspan(before * bytes, bytes);
}

std::span<std::byte> runner::bytes_of(const buffer& from) const {
  const bool host = from.role == buffer_role::host;
  const std::span<std::byte> memory = host ? with_.on->host_memory() : with_.on->arena();
  return memory.subspan(static_cast<std::size_t>(from.offset - (host ? plan_.arena_bytes : 0)),
                        static_cast<std::size_t>(from.bytes));
}

std::int64_t runner::prepared_bytes(const plan_view& plan, int trace_steps, bool poison) {
  std::size_t bytes = plan.uses.size() * sizeof(bound_buffer);
  bytes += plan.instructions.size() *
           (sizeof(prepared) + static_cast<std::size_t>(trace_steps) * sizeof(timing));
  if (poison) bytes += plan.released.size() * sizeof(std::span<std::byte>);
  return static_cast<std::int64_t>(bytes);
}

void runner::prepare_poison(bool of_released, bool of_guards) {
  poisoned_.reserve((of_released ? plan_.released.size() : 0) +
                    (of_guards ? plan_.buffers.size() : 0));
  std::vector<bool> guarded(plan_.buffers.size(), !of_guards);
  const auto release = [&](std::size_t index, bool as_ends) {
    for (const std::int32_t id : plan_.released_before(plan_.instructions[index])) {
      const buffer& from = plan_.buffers[static_cast<std::size_t>(id)];
      if (of_released && from.bytes > 0 &&
          plan_.released_as_ends(id, static_cast<std::int32_t>(index)) == as_ends)
        poisoned_.push_back(bytes_of(from));
    }
  };
  // By who first uses the buffer, whom all others wait for. A receive may have to wait itself, for
  // its message, before the buffer's bytes are free.
  const auto guard = [&](std::size_t index, bool as_ends) {
    if ((plan_.instructions[index].act != action::run) != as_ends) return;
    for (const buffer_use& use : plan_.uses_of(plan_.instructions[index])) {
      const auto id = static_cast<std::size_t>(use.buffer);
      const buffer& from = plan_.buffers[id];
      if (!guarded[id] && from.bytes > 0 && from.role != buffer_role::host)
        poisoned_.push_back(guard_behind(bytes_of(from)));
      guarded[id] = true;
    }
  };
  for (std::size_t index = 0; index < instructions_.size(); ++index) {
    const std::size_t first = poisoned_.size();
    if (index > 0) guard(index - 1, true);
    release(index, true);
    const std::size_t second = poisoned_.size();
    release(index, false);
    guard(index, false);
    const std::span made = std::span(poisoned_).subspan(first);
    if (second > first) instructions_[index - 1].poison_after = made.first(second - first);
    instructions_[index].poison_before = made.subspan(second - first);
  }
}

void runner::issue(std::int64_t step) noexcept {
  const int count = static_cast<int>(instructions_.size());
  int index = 0;
  try {
    for (; index < count && !with_.watch->stopped(); ++index) {
      enqueue_work(index, step);
      if (with_.watch->stopped()) break;  // a transport may have been called off
      enqueue_record(index, step);
      if (index % batch == batch - 1) with_.on->submit();
    }
    with_.on->submit();
  } catch (...) {
    fail(index, step);
  }
}

void runner::begin(int instruction, std::int64_t step) noexcept {
  try {
    enqueue_work(instruction, step);
  } catch (...) {
    fail(instruction, step);
  }
}

void runner::end(int instruction, std::int64_t step) noexcept {
  try {
    enqueue_record(instruction, step);
  } catch (...) {
    fail(instruction, step);
  }
}

void runner::fail(int index, std::int64_t step) noexcept {
  // Behind the last there is only a submit, which is nobody's.
  const bool is_one = index < static_cast<int>(instructions_.size());
  with_.watch->fail(plan_.rank, is_one ? ticket_of(index, step) : -1, std::current_exception());
}

void runner::enqueue_work(int index, std::int64_t step) {
  prepared& each = instructions_[static_cast<std::size_t>(index)];
  const std::int64_t ticket = ticket_of(index, step);
  timing* const stamp = stamp_of(index, step);
  for (const event_wait& wait : each.waits)
    with_.on->wait(each.stream, wait.event, wait.previous_step ? step - 1 : step);
  for (const std::span<std::byte> bytes : each.poison_before)
    with_.on->poison(each.stream, bytes, step);
  if (delay_.longest.count() > 0) delay_before(index, step);
  if (marked_) with_.on->begin(each.stream, {index, step, ticket, stamp});
  const launch at{with_.on, each.stream, step, ticket, stamp, each.record_start};
  if (each.record_start >= 0) with_.on->record(each.stream, each.record_start, step);
  switch (each.act) {
    case action::run:
      with_.on->enqueue(each.stream, {guarded_ ? run_guarded_stage : run_stage, this, &each.at, 0,
                                      step, ticket, stamp});
      break;
    case action::send:
      with_.via->send(at, each.message);
      break;
    case action::receive:
      with_.via->receive(at, each.message);
      break;
    case action::offload:
      with_.on->copy_to_host(each.stream, {each.moved.from, each.moved.to, step, ticket, stamp});
      break;
    case action::reload:
      with_.on->copy_from_host(each.stream, {each.moved.from, each.moved.to, step, ticket, stamp});
      break;
    case action::all_reduce:
      with_.via->all_reduce(at, each.message);
      break;
    case action::all_gather:
      with_.via->all_gather(at, each.message);
      break;
    case action::reduce_scatter:
      with_.via->reduce_scatter(at, each.message);
      break;
    case action::share_sum:  // refused by validate
    case action::end_step:
      with_.on->enqueue(each.stream, {nothing, this, nullptr, 0, step, ticket, stamp});
      break;
  }
}

void runner::enqueue_record(int index, std::int64_t step) {
  const prepared& each = instructions_[static_cast<std::size_t>(index)];
  // Nobody who waits for the record may be seen to start before this ends.
  if (marked_)
    with_.on->end(each.stream, {index, step, ticket_of(index, step), stamp_of(index, step)});
  for (const std::span<std::byte> bytes : each.poison_after)
    with_.on->poison(each.stream, bytes, step);
  if (each.record >= 0) with_.on->record(each.stream, each.record, step);
  // A command of its own: what is measured of end_step must be written before the step is over.
  if (each.act == action::end_step) with_.on->end_step(each.stream, step, *with_.watch);
  // Once all is to stop, a full queue takes nothing any more, and nobody is told.
  if (!with_.watch->stopped()) issued_.store(ticket_of(index, step), std::memory_order_relaxed);
}

void runner::delay_before(int index, std::int64_t step) {
  const auto longest = static_cast<std::uint64_t>(delay_.longest.count());
  const std::uint64_t where = scramble(delay_.seed + static_cast<std::uint64_t>(plan_.rank)) +
                              static_cast<std::uint64_t>(index);
  const std::uint64_t length = scramble(scramble(where) + static_cast<std::uint64_t>(step));
  with_.on->enqueue(
      instructions_[static_cast<std::size_t>(index)].stream,
      {sleep, this, nullptr, static_cast<std::int64_t>(length % (longest + 1)), step});
}

void runner::run_stage(const command& work) {
  context at = *static_cast<const context*>(work.payload);
  at.step = work.step;
  static_cast<runner*>(work.self)->with_.work->run(at);
}

void runner::run_guarded_stage(const command& work) {
  run_stage(work);
  for (const bound_buffer& each : static_cast<const context*>(work.payload)->buffers)
    if (!each.data.empty() &&
        std::ranges::count(guard_behind(each.data), std::byte{poison_byte}) !=
            std::ssize(guard_behind(each.data)))
      throw buffer_error("something was written behind the " + std::to_string(each.data.size()) +
                         " bytes of its " + std::string(name(each.role)) +
                         ", by it or by what ran before it or beside it; how many they are " +
                         std::string(said_by(each.role)));
}

void runner::nothing(const command&) {}

void runner::sleep(const command& work) {
  std::this_thread::sleep_for(std::chrono::microseconds(work.argument));
}

timing* runner::stamp_of(int index, std::int64_t step) {
  if (trace_steps_ == 0) return nullptr;
  return &timings_[static_cast<std::size_t>(step % trace_steps_) * instructions_.size() +
                   static_cast<std::size_t>(index)];
}

int runner::instruction_of(std::int64_t ticket) const {
  if (ticket < 0) return -1;
  return static_cast<int>(ticket % static_cast<std::int64_t>(instructions_.size()));
}

bool runner::started(int instruction, std::int64_t step) const {
  const prepared& each = instructions_[static_cast<std::size_t>(instruction)];
  return with_.on->progress_of(each.stream).started >= told_as(instruction, step);
}

bool runner::finished(int instruction, std::int64_t step) const {
  const prepared& each = instructions_[static_cast<std::size_t>(instruction)];
  return with_.on->progress_of(each.stream).finished >= told_as(instruction, step);
}

const timing& runner::measured(int instruction, std::int64_t step) const {
  if (trace_steps_ == 0 || step < 0) return not_measured;
  const timing& kept =
      timings_[static_cast<std::size_t>(step % trace_steps_) * instructions_.size() +
               static_cast<std::size_t>(instruction)];
  return kept.step == step ? kept : not_measured;
}

}  // namespace stretto::executor
