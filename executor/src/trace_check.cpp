#include <string>
#include <vector>

#include "plan_lookup.hpp"
#include "stretto/executor/describe.hpp"
#include "stretto/executor/meetings.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/executor/validate.hpp"
#include "trace_index.hpp"

namespace stretto::executor {
namespace {

class order_check {
 public:
  order_check(std::span<const plan_view> plans, std::span<const trace_record> records,
              bool rendezvous)
      : plans_(plans), met_(plans), found_(plans, records), rendezvous_(rendezvous) {}

  std::optional<broken_order> run() {
    for (std::size_t plan = 0; plan < plans_.size(); ++plan) {
      recorders_ = recorders_of(plans_[plan]);
      for (const auto& [step, unused] : found_.steps()) {
        check_rank(static_cast<int>(plan), step);
        if (broken_) return broken_;
      }
    }
    return broken_;
  }

 private:
  const instruction& at(place where) const {
    return instruction_of(plans_[static_cast<std::size_t>(where.plan)], where.instruction);
  }
  std::string name(place where) const {
    return describe(plans_[static_cast<std::size_t>(where.plan)], where.instruction);
  }

  void check_rank(int plan, std::int64_t step) {
    const plan_view& mine = plans_[static_cast<std::size_t>(plan)];
    std::vector<int> last_on(mine.streams.size(), -1);
    for (int index = 0; index < static_cast<int>(mine.instructions.size()); ++index) {
      const place here{plan, index};
      int& before = last_on[at(here).stream];
      if (before >= 0) check_order({plan, before}, step, here, step, "stream order");
      before = index;
      for (const event_wait& wait : mine.waits_of(at(here))) {
        const place recorder{plan, recorders_[static_cast<std::size_t>(wait.event)]};
        // A start: its stream has come to it, which is no time in a trace.
        if (at(recorder).record != wait.event) continue;
        const std::int64_t when = wait.previous_step ? step - 1 : step;
        if (found_.has_step(when))
          check_order(recorder, when, here, step, "event " + std::to_string(wait.event));
      }
      for (const place other : met_.others(here)) check_meeting(other, here, step);
    }
  }

  //! `before` has ended when `after` starts.
  void check_order(place before, std::int64_t its_step, place after, std::int64_t step,
                   const std::string& reason) {
    const trace_record* late = found_.find(step, after);
    if (late == nullptr || broken_) return;
    const trace_record* early = found_.find(its_step, before);
    if (early != nullptr && early->end <= late->start) return;
    note(before, after, step, reason, early == nullptr ? "has no record" : "ends after it starts");
  }

  //! `mine` does not end before `other` starts; of a message only the receive, unless both meet.
  void check_meeting(place other, place mine, std::int64_t step) {
    if (at(mine).act == action::send && !rendezvous_) return;
    const trace_record* late = found_.find(step, mine);
    if (late == nullptr || broken_) return;
    const trace_record* early = found_.find(step, other);
    if (early != nullptr && early->start - early->off <= late->end + late->off) return;
    note(other, mine, step, is_collective(at(mine).act) ? "collective" : "message",
         early == nullptr ? "has no record" : "starts after it ends");
  }

  void note(place before, place after, std::int64_t step, const std::string& reason,
            const std::string& what) {
    broken_ = broken_order{"step " + std::to_string(step) + ": " + name(after) + " comes after " +
                           name(before) + " (" + reason + "), which " + what};
  }

  std::span<const plan_view> plans_;
  meetings met_;
  trace_index found_;
  bool rendezvous_;
  std::vector<int> recorders_;
  std::optional<broken_order> broken_;
};

}  // namespace

std::optional<broken_order> check_against(std::span<const plan_view> plans,
                                          std::span<const trace_record> records, bool rendezvous) {
  validate(plans);
  return order_check(plans, records, rendezvous).run();
}

}  // namespace stretto::executor
