#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "differing_list.hpp"
#include "plan_ends.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/validate.hpp"

namespace stretto::executor {
namespace {

//! Index of each rank's plan; -1 where it is not given.
std::vector<int> plan_of_rank(std::span<const plan_view> plans) {
  std::vector<int> index(static_cast<std::size_t>(plans.front().ranks), -1);
  for (std::size_t at = 0; at < plans.size(); ++at)
    index[static_cast<std::size_t>(plans[at].rank)] = static_cast<int>(at);
  return index;
}

void check_one_job(std::span<const plan_view> plans) {
  const plan_view& first = plans.front();
  std::vector<bool> seen(static_cast<std::size_t>(first.ranks));
  for (const plan_view& plan : plans) {
    const std::string name = "rank " + std::to_string(plan.rank);
    if (plan.ranks != first.ranks)
      throw plan_error(name + " is planned for " + std::to_string(plan.ranks) + " ranks, rank " +
                       std::to_string(first.rank) + " for " + std::to_string(first.ranks));
    if (seen[static_cast<std::size_t>(plan.rank)]) throw plan_error(name + " has two plans");
    seen[static_cast<std::size_t>(plan.rank)] = true;
    if (plan.digest != first.digest) {
      const std::string found = first_difference(first.lists, first.rank, plan.lists, plan.rank);
      throw plan_error(name + " runs another schedule than rank " + std::to_string(first.rank) +
                       ": their digests differ" + (found.empty() ? "" : "; first ") + found);
    }
  }
}

void check_channels(std::span<const plan_view> plans) {
  const std::vector<int> index = plan_of_rank(plans);
  std::vector<channel_lists> receives;
  for (const plan_view& plan : plans) receives.push_back(channels_of(plan, action::receive));
  const auto known = [&](int rank) { return index[static_cast<std::size_t>(rank)]; };
  for (const plan_view& plan : plans) {
    for (const auto& [channel, sends] : channels_of(plan, action::send)) {
      const int to = known(channel.second);
      if (to >= 0) must_match(channel, sends, receives[static_cast<std::size_t>(to)][channel]);
    }
  }
  // What is left are receives without any send.
  for (const channel_lists& lists : receives) {
    for (const auto& [channel, list] : lists) {
      const int from = known(channel.first);
      if (from < 0) continue;
      if (channels_of(plans[static_cast<std::size_t>(from)], action::send).count(channel) == 0)
        must_match(channel, {}, list);
    }
  }
}

void check_groups(std::span<const plan_view> plans) {
  const std::vector<int> index = plan_of_rank(plans);
  std::map<int, const plan_view*> first;  // that is in the group
  for (const plan_view& plan : plans)
    for (const int group : groups_of(plan)) {
      const group_part mine = group_of(plan, group);
      // Members are compared with one another below; a number is one group's.
      const plan_view& other_one = *first.try_emplace(group, &plan).first->second;
      if (std::ranges::find(mine.members, other_one.rank) == mine.members.end())
        throw plan_error("group " + std::to_string(group) + ": ranks " +
                         std::to_string(other_one.rank) + " and " + std::to_string(plan.rank) +
                         " are in it, and the one is no member of the other's");
      for (const std::int32_t rank : mine.members) {
        const int other = index[static_cast<std::size_t>(rank)];
        if (other < 0 || rank == plan.rank) continue;
        must_match(group, plan.rank, mine, rank,
                   group_of(plans[static_cast<std::size_t>(other)], group));
      }
    }
}

}  // namespace

void validate(std::span<const plan_view> plans) {
  if (plans.empty())
    throw plan_error(
        "there is no plan; if any was to be made, answer() of what was to make it says "
        "why (stretto::planned, stretto::shared)");
  for (const plan_view& plan : plans) validate(plan);
  check_one_job(plans);
  check_channels(plans);
  check_groups(plans);
}

}  // namespace stretto::executor
