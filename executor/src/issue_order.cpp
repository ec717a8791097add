#include "issue_order.hpp"

#include <algorithm>
#include <string>

#include "stretto/executor/describe.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::executor {
namespace {

class merge {
 public:
  merge(std::span<const plan_view> plans, const meetings& met)
      : plans_(plans), met_(met), next_(plans.size(), 0) {
    std::size_t count = 0;
    for (const plan_view& each : plans) count += 2 * each.instructions.size();
    order_.reserve(count);
  }

  std::vector<turn> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int plan = 0; plan < static_cast<int>(plans_.size()); ++plan)
        moved = advance(plan) || moved;
    }
    for (int plan = 0; plan < static_cast<int>(plans_.size()); ++plan)
      if (!is_through(plan)) refuse({plan, next_of(plan)});
    return std::move(order_);
  }

 private:
  int& next_of(int plan) { return next_[static_cast<std::size_t>(plan)]; }
  bool is_through(int plan) {
    return next_of(plan) ==
           static_cast<int>(plans_[static_cast<std::size_t>(plan)].instructions.size());
  }

  //! By one instruction, so that no device waits while a whole step is issued to another; through a
  //! meeting when everybody is there.
  bool advance(int plan) {
    if (is_through(plan)) return false;
    const place mine{plan, next_of(plan)};
    const std::span<const place> others = met_.others(mine);
    const auto is_there = [this](const place& each) {
      return next_of(each.plan) == each.instruction;
    };
    if (!std::all_of(others.begin(), others.end(), is_there)) return false;
    if (!others.empty()) {
      meet(mine, others);
    } else {
      order_.push_back({mine.plan, mine.instruction});
      ++next_of(plan);
    }
    return true;
  }

  void meet(place mine, std::span<const place> others) {
    for (const bool ends : {false, true}) {
      order_.push_back({mine.plan, mine.instruction, !ends, ends});
      for (const place& each : others) order_.push_back({each.plan, each.instruction, !ends, ends});
    }
    ++next_of(mine.plan);
    for (const place& each : others) ++next_of(each.plan);
  }

  [[noreturn]] void refuse(place stuck) {
    std::string why;
    for (const place& each : met_.others(stuck)) {
      const int reached = next_of(each.plan);
      if (reached != each.instruction)
        why = name(each) + ", which it meets, comes after " + name({each.plan, reached}) +
              ", which is stuck too";
    }
    throw plan_error("plan of " + name(stuck) + ": a single thread cannot issue it: " + why);
  }
  std::string name(place at) const {
    return describe(plans_[static_cast<std::size_t>(at.plan)], at.instruction);
  }

  std::span<const plan_view> plans_;
  const meetings& met_;
  std::vector<int> next_;  // of each plan: the first instruction not yet in the order
  std::vector<turn> order_;
};

}  // namespace

std::vector<turn> order_of_issue(std::span<const plan_view> plans, const meetings& met) {
  return merge(plans, met).run();
}

}  // namespace stretto::executor
