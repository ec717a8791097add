#include "progress_events.hpp"

#include <algorithm>
#include <limits>

#include "plan_lookup.hpp"

namespace stretto::executor::cuda {

progress_events::progress_events(const plan_view& plan, std::span<const owned_event> recorded)
    : plan_(plan),
      count_(static_cast<std::int64_t>(plan.instructions.size())),
      recorder_(recorders_of(plan)),
      lanes_(std::make_unique<lane[]>(plan.streams.size())) {
  done_.reserve(plan.instructions.size());
  for (int index = 0; index < static_cast<int>(plan.instructions.size()); ++index) {
    const instruction& each = plan.instructions[static_cast<std::size_t>(index)];
    lane_of(each.stream).instructions.push_back(index);
    if (each.record >= 0) {
      done_.push_back(recorded[static_cast<std::size_t>(each.record)].get());
    } else {
      own_.push_back(make_event());
      done_.push_back(own_.back().get());
    }
  }
}

void progress_events::end(int stream, cudaStream_t native, const mark& what) {
  const auto number = static_cast<std::size_t>(what.instruction);
  if (plan_.instructions[number].record >= 0) return;
  check(cudaEventRecord(done_[number], native), "cudaEventRecord");
  lane_of(stream).ended.store(what.ticket, std::memory_order_release);
}

void progress_events::recorded(int event, std::int64_t step) {
  const int index = recorder_[static_cast<std::size_t>(event)];
  const instruction& by = plan_.instructions[static_cast<std::size_t>(index)];
  if (by.record != event) return;
  lane_of(by.stream).ended.store(step * count_ + index, std::memory_order_release);
}

//! What a stream has worked off is looked for in steps that double, and then in halves: the events
//! of a stream are over in its order, and each question takes as long as a record.
void progress_events::look() {
  for (std::size_t stream = 0; stream < plan_.streams.size(); ++stream) {
    lane& on = lanes_[stream];
    if (on.instructions.empty()) continue;
    const std::int64_t ended = on.ended.load(std::memory_order_acquire);
    const auto is_done = [&](std::int64_t number) {
      const std::int64_t ticket = ticket_of(on, number);
      return ticket <= ended &&
             is_over(cudaEventQuery(done_[static_cast<std::size_t>(ticket % count_)]),
                     "cudaEventQuery");
    };
    std::int64_t next = on.next.load(std::memory_order_relaxed);
    std::int64_t part = 1;
    for (; is_done(next + part - 1); part *= 2) next += part;
    for (part /= 2; part > 0; part /= 2)
      if (is_done(next + part - 1)) next += part;
    on.next.store(next, std::memory_order_relaxed);
  }
}

void progress_events::step_ended(std::int64_t step) {
  for (std::size_t stream = 0; stream < plan_.streams.size(); ++stream) {
    lane& on = lanes_[stream];
    const auto length = static_cast<std::int64_t>(on.instructions.size());
    on.next.store(std::max(on.next.load(std::memory_order_relaxed), (step + 1) * length),
                  std::memory_order_relaxed);
  }
}

progress progress_events::of(int stream) const {
  const lane& on = lane_of(stream);
  if (on.instructions.empty()) return {};
  progress made{-1, finished(stream)};
  made.started = made.finished;
  const std::int64_t next = ticket_of(on, next_of(stream));
  if (has_started(static_cast<int>(next % count_), next / count_)) made.started = next;
  return made;
}

std::int64_t progress_events::first_missing() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (int stream = 0; stream < static_cast<int>(plan_.streams.size()); ++stream)
    if (const lane& on = lane_of(stream); !on.instructions.empty())
      first = std::min(first, ticket_of(on, next_of(stream)));
  return first;
}

//! The first of the stream's that is not known to be done, counted over all steps.
std::int64_t progress_events::next_of(int stream) const {
  const lane& on = lane_of(stream);
  if (words_ == nullptr) return on.next.load(std::memory_order_relaxed);
  return words_->step() * static_cast<std::int64_t>(on.instructions.size()) + words_->done(stream);
}

std::int64_t progress_events::ticket_of(const lane& on, std::int64_t number) const {
  const auto length = static_cast<std::int64_t>(on.instructions.size());
  return number / length * count_ + on.instructions[static_cast<std::size_t>(number % length)];
}

//! When all that it waits for is done: no event is spent on it.
bool progress_events::has_started(int instruction, std::int64_t step) const {
  const std::int64_t ticket = step * count_ + instruction;
  const stretto::instruction& mine = plan_.instructions[static_cast<std::size_t>(instruction)];
  const lane& on = lane_of(mine.stream);
  if (finished(mine.stream) >= ticket) return true;
  const bool issued = words_ != nullptr || on.begun.load(std::memory_order_acquire) >= ticket;
  if (!issued || ticket_of(on, next_of(mine.stream)) != ticket) return false;
  for (const event_wait& wait : plan_.waits_of(mine)) {
    if (wait.previous_step) continue;
    const int from = recorder_[static_cast<std::size_t>(wait.event)];
    const stretto::instruction& other = plan_.instructions[static_cast<std::size_t>(from)];
    if (other.record == wait.event ? finished(other.stream) < step * count_ + from
                                   : !has_started(from, step))
      return false;
  }
  return true;
}

}  // namespace stretto::executor::cuda
