#include "stretto/executor/meetings.hpp"

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "plan_ends.hpp"

namespace stretto::executor {

meetings::meetings(std::span<const plan_view> plans) {
  for (const plan_view& plan : plans) ranges_.emplace_back(plan.instructions.size());
  // Everything that meets has the same key on all sides: channel or group, and its number there.
  using key = std::pair<std::pair<int, int>, std::size_t>;
  std::map<key, std::vector<place>> met;
  for (std::size_t number = 0; number < plans.size(); ++number) {
    const int plan = static_cast<int>(number);
    for (const action act : {action::send, action::receive})
      for (const auto& [channel, list] : channels_of(plans[number], act))
        for (std::size_t k = 0; k < list.size(); ++k)
          met[{channel, k}].push_back({plan, list[k].instruction});
    for (const int group : groups_of(plans[number])) {
      const group_part part = group_of(plans[number], group);
      for (std::size_t k = 0; k < part.collectives.size(); ++k)
        met[{{-1, group}, k}].push_back({plan, part.collectives[k].instruction});
    }
  }
  for (const auto& [unused, all] : met)
    for (const place& mine : all) {
      range& others =
          ranges_[static_cast<std::size_t>(mine.plan)][static_cast<std::size_t>(mine.instruction)];
      others.first = static_cast<int>(places_.size());
      for (const place& each : all)
        if (!(each == mine)) places_.push_back(each);
      others.count = static_cast<int>(places_.size()) - others.first;
    }
}

std::span<const place> meetings::others(place at) const {
  const range& where =
      ranges_[static_cast<std::size_t>(at.plan)][static_cast<std::size_t>(at.instruction)];
  return std::span<const place>(places_).subspan(static_cast<std::size_t>(where.first),
                                                 static_cast<std::size_t>(where.count));
}

}  // namespace stretto::executor
