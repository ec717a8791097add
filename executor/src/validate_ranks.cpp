#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stretto/executor/error.hpp"
#include "stretto/executor/validate.hpp"

namespace stretto::executor {
namespace {

//! Indices of a plan's instructions, in issue order, by the directed pair of ranks or the group.
using channel_list = std::map<std::pair<int, int>, std::vector<int>>;
using group_list = std::map<int, std::vector<int>>;

channel_list channels_of(const plan_view& plan, action act) {
  channel_list list;
  for (std::size_t at = 0; at < plan.instructions.size(); ++at) {
    const instruction& each = plan.instructions[at];
    if (each.act != act) continue;
    const bool sends = act == action::send;
    list[{sends ? plan.rank : each.peer, sends ? each.peer : plan.rank}].push_back(
        static_cast<int>(at));
  }
  return list;
}

group_list groups_of(const plan_view& plan) {
  group_list list;
  for (std::size_t at = 0; at < plan.instructions.size(); ++at)
    if (plan.instructions[at].act == action::all_reduce)
      list[plan.instructions[at].peer].push_back(static_cast<int>(at));
  return list;
}

//! Index of each rank's plan; -1 where it is not given.
std::vector<int> plan_of_rank(std::span<const plan_view> plans) {
  std::vector<int> index(static_cast<std::size_t>(plans.front().ranks), -1);
  for (std::size_t at = 0; at < plans.size(); ++at)
    index[static_cast<std::size_t>(plans[at].rank)] = static_cast<int>(at);
  return index;
}

const instruction& at(const plan_view& plan, int index) {
  return plan.instructions[static_cast<std::size_t>(index)];
}

std::int64_t message_bytes(const plan_view& plan, int index) {
  const buffer_use& use = plan.uses_of(at(plan, index)).front();
  return plan.buffers[static_cast<std::size_t>(use.buffer)].bytes;
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
    if (plan.digest != first.digest)
      throw plan_error(name + " runs another schedule than rank " + std::to_string(first.rank) +
                       ": their digests differ");
  }
}

void check_channel(const plan_view& from, const std::vector<int>& sends, const plan_view& to,
                   const std::vector<int>& receives) {
  const std::string name =
      "channel " + std::to_string(from.rank) + " -> " + std::to_string(to.rank) + ": ";
  for (std::size_t k = 0; k < std::min(sends.size(), receives.size()); ++k) {
    const job& sent = at(from, sends[k]).what;
    const job& wanted = at(to, receives[k]).what;
    const std::string pair =
        describe(from, sends[k]) + " meets " + describe(to, receives[k]) + ": ";
    if (matching_receive(sent) != wanted)
      throw plan_error(name + pair + "they are not the same message");
    const std::int64_t out = message_bytes(from, sends[k]);
    const std::int64_t in = message_bytes(to, receives[k]);
    if (out != in)
      throw plan_error(name + pair + std::to_string(out) + " bytes are sent, " +
                       std::to_string(in) + " received");
  }
  if (sends.size() != receives.size())
    throw plan_error(name + std::to_string(sends.size()) + " sends, but " +
                     std::to_string(receives.size()) + " receives");
}

void check_channels(std::span<const plan_view> plans) {
  const std::vector<int> index = plan_of_rank(plans);
  std::vector<channel_list> receives;
  for (const plan_view& plan : plans) receives.push_back(channels_of(plan, action::receive));
  const auto known = [&](int rank) { return index[static_cast<std::size_t>(rank)]; };
  for (std::size_t from = 0; from < plans.size(); ++from) {
    for (const auto& [channel, sends] : channels_of(plans[from], action::send)) {
      const int to = known(channel.second);
      if (to < 0) continue;
      const auto number = static_cast<std::size_t>(to);
      check_channel(plans[from], sends, plans[number], receives[number][channel]);
    }
  }
  // What is left are receives without any send.
  for (std::size_t to = 0; to < plans.size(); ++to) {
    for (const auto& [channel, list] : receives[to]) {
      const int from = known(channel.first);
      if (from < 0) continue;
      const plan_view& sender = plans[static_cast<std::size_t>(from)];
      if (channels_of(sender, action::send).count(channel) == 0)
        check_channel(sender, {}, plans[to], list);
    }
  }
}

void check_members(const plan_view& mine, const plan_view& other, int group, std::size_t times) {
  const std::string name = "group " + std::to_string(group) + ": ranks " +
                           std::to_string(mine.rank) + " and " + std::to_string(other.rank) +
                           " differ in ";
  const auto number = static_cast<std::size_t>(group);
  if (number >= other.groups.size()) throw plan_error(name + "whether it exists");
  const group_info& here = mine.groups[number];
  const group_info& there = other.groups[number];
  const auto members = mine.members_of(here);
  const auto others = other.members_of(there);
  if (!std::equal(members.begin(), members.end(), others.begin(), others.end()))
    throw plan_error(name + "its members");
  if (here.elements != there.elements || here.wide != there.wide)
    throw plan_error(name + "what it sums");
  const group_list list = groups_of(other);
  const auto found = list.find(group);
  if (found == list.end() || found->second.size() != times)
    throw plan_error(name + "how often it sums");
}

void check_groups(std::span<const plan_view> plans) {
  const std::vector<int> index = plan_of_rank(plans);
  for (const plan_view& plan : plans)
    for (const auto& [group, list] : groups_of(plan))
      for (const std::int32_t rank :
           plan.members_of(plan.groups[static_cast<std::size_t>(group)])) {
        const int other = index[static_cast<std::size_t>(rank)];
        if (other < 0 || rank == plan.rank) continue;
        check_members(plan, plans[static_cast<std::size_t>(other)], group, list.size());
      }
}

}  // namespace

void validate(std::span<const plan_view> plans) {
  if (plans.empty()) throw plan_error("there is no plan");
  for (const plan_view& plan : plans) validate(plan);
  check_one_job(plans);
  check_channels(plans);
  check_groups(plans);
}

meetings::meetings(std::span<const plan_view> plans) {
  for (const plan_view& plan : plans) ranges_.emplace_back(plan.instructions.size());
  // Everything that meets has the same key on all sides: channel or group, and its number there.
  using key = std::pair<std::pair<int, int>, std::size_t>;
  std::map<key, std::vector<place>> met;
  for (std::size_t number = 0; number < plans.size(); ++number) {
    const int plan = static_cast<int>(number);
    for (const action act : {action::send, action::receive})
      for (const auto& [channel, list] : channels_of(plans[number], act))
        for (std::size_t k = 0; k < list.size(); ++k) met[{channel, k}].push_back({plan, list[k]});
    for (const auto& [group, list] : groups_of(plans[number]))
      for (std::size_t k = 0; k < list.size(); ++k)
        met[{{-1, group}, k}].push_back({plan, list[k]});
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
