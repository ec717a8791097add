#include "step_failure.hpp"

#include "cause_text.hpp"
#include "flight_record.hpp"
#include "plan_lookup.hpp"
#include "stall.hpp"
#include "stretto/executor/checked_device.hpp"
#include "stretto/executor/describe.hpp"

namespace stretto::executor {
namespace {

//! Races aside, whatever a stage throws is its own, and whatever a message or a collective ends
//! with is the transport's; of another instruction the exception's type says it.
//! @param at       which was running; null: it is not known
//! @param checked  for races, of whatever was to be issued
failure kind_of(const std::exception_ptr& cause, const instruction* at, bool checked) {
  const bool runs = at != nullptr && at->act == action::run;
  const bool meets = at != nullptr && meets_others(at->act);
  const failure usual = meets ? failure::transport : failure::stage;
  try {
    std::rethrow_exception(cause);
  } catch (const race_error&) {
    return checked ? failure::race : usual;
  } catch (const late_error&) {
    return runs ? failure::stage : failure::deadline;
  } catch (const transport_error&) {
    return runs ? failure::stage : failure::transport;
  } catch (...) {
    return usual;
  }
}

}  // namespace

culprit step_failure::culprit_at(place at) const {
  const plan_view& plan = plans_[static_cast<std::size_t>(at.plan)];
  culprit where{plan.rank, at.instruction, {}, step_};
  if (at.instruction >= 0) where.what = instruction_of(plan, at.instruction).what;
  return where;
}

std::string step_failure::name_of(place at) const {
  return describe(plans_[static_cast<std::size_t>(at.plan)], at.instruction);
}

diagnosis step_failure::reported(const monitor::report& first) const {
  std::size_t plan = 0;
  while (plan + 1 < plans_.size() && plans_[plan].rank != first.rank) ++plan;
  const place at{static_cast<int>(plan), ranks_[plan]->instruction_of(first.ticket)};
  const bool known = at.instruction >= 0;
  const std::string where = known ? name_of(at) : name_of_rank(plans_[plan], first.rank);
  const std::string then =
      !known && issuing_ ? "; what was issued then is " + name_of(*issuing_) : "";
  const instruction* const what = known ? &instruction_of(plans_[plan], at.instruction) : nullptr;
  return {kind_of(first.cause, what, checked_),
          culprit_at(at),
          step_text() + ", " + where + ": " + cause_text(first.cause) + then,
          exchanged_with_others(ranks_, step_),
          first.cause,
          flight_record(ranks_, met_, step_, at)};
}

diagnosis step_failure::late(bool calls) const {
  // What GPUs were given meanwhile goes on, whoever held up the rest.
  const stall found =
      issuing_ && calls
          ? stall{*issuing_,
                  name_of(*issuing_) +
                      " was issued when its time was over: it, or those before it, took "
                      "the thread that issues too long",
                  {}}
          : find_stall(ranks_, met_, step_, issuing_);
  const std::string counts = exchanged_with_others(ranks_, step_);
  return {failure::deadline,
          culprit_at(found.at),
          step_text() + " has not ended in time: " + found.text,
          found.others + (found.others.empty() || counts.empty() ? "" : "\n") + counts,
          nullptr,
          flight_record(ranks_, met_, step_, found.at)};
}

diagnosis step_failure::replay_reported(const monitor::report& first) const {
  return {kind_of(first.cause, nullptr, checked_),
          {first.rank, -1, {}, step_},
          step_text() + ", as a graph, " + name_of_rank(plans_.front(), first.rank) + ": " +
              cause_text(first.cause),
          {},
          first.cause,
          {}};
}

diagnosis step_failure::replay_late() const {
  return {failure::deadline,
          {-1, -1, {}, step_},
          step_text() +
              " has not ended in time; of a graph replayed without graph_progress is not known "
              "what it waits for",
          {},
          nullptr,
          {}};
}

diagnosis step_failure::not_replayed(const std::exception_ptr& cause) const {
  return {failure::stage,
          {-1, -1, {}, step_},
          step_text() + ", as a graph: " + cause_text(cause),
          {},
          cause,
          {}};
}

}  // namespace stretto::executor
