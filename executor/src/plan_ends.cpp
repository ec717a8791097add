#include "plan_ends.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "stretto/executor/describe.hpp"
#include "stretto/executor/error.hpp"

namespace stretto::executor {
namespace {

std::string text_of(int rank, const message_end& at) {
  return "rank " + std::to_string(rank) + ", instruction " + std::to_string(at.instruction) + ", " +
         describe(at.what);
}

}  // namespace

channel_lists channels_of(const plan_view& plan, action act) {
  channel_lists lists;
  for (std::size_t at = 0; at < plan.instructions.size(); ++at) {
    const instruction& each = plan.instructions[at];
    if (each.act != act) continue;
    const bool sends = act == action::send;
    const buffer_use& use = plan.uses_of(each).front();
    lists[{sends ? plan.rank : each.peer, sends ? each.peer : plan.rank}].push_back(
        {each.what, plan.buffers[static_cast<std::size_t>(use.buffer)].bytes,
         static_cast<int>(at)});
  }
  return lists;
}

void must_match(const std::pair<int, int>& channel, const message_list& sends,
                const message_list& receives) {
  const auto [from, to] = channel;
  const std::string name = "channel " + std::to_string(from) + " -> " + std::to_string(to) + ": ";
  for (std::size_t k = 0; k < std::min(sends.size(), receives.size()); ++k) {
    const message_end& sent = sends[k];
    const message_end& wanted = receives[k];
    const std::string pair = text_of(from, sent) + " meets " + text_of(to, wanted) +
                             ", both message " + std::to_string(k) + " of the channel: ";
    if (matching_receive(sent.what) != wanted.what)
      throw plan_error(name + pair + "they are not the same message");
    if (sent.bytes != wanted.bytes)
      throw plan_error(name + pair + std::to_string(sent.bytes) + " bytes are sent, " +
                       std::to_string(wanted.bytes) + " received");
  }
  if (sends.size() != receives.size())
    throw plan_error(name + std::to_string(sends.size()) + " sends, but " +
                     std::to_string(receives.size()) + " receives");
}

std::vector<int> groups_of(const plan_view& plan) {
  std::set<int> found;
  for (const instruction& each : plan.instructions)
    if (is_collective(each.act)) found.insert(each.peer);
  return {found.begin(), found.end()};
}

group_part group_of(const plan_view& plan, int group) {
  group_part part;
  const auto number = static_cast<std::size_t>(group);
  if (number >= plan.groups.size()) return part;
  const group_info& info = plan.groups[number];
  const std::span<const std::int32_t> members = plan.members_of(info);
  part.members.assign(members.begin(), members.end());
  part.elements = info.elements;
  part.wide = info.wide;
  part.exists = true;
  for (std::size_t at = 0; at < plan.instructions.size(); ++at) {
    const instruction& each = plan.instructions[at];
    if (!is_collective(each.act) || each.peer != group) continue;
    const bool gathers = each.act == action::all_gather;
    part.collectives.push_back(
        {static_cast<int>(at), each.act, gathers ? plan.range_of(each.first_use).bytes : 0});
  }
  return part;
}

void must_match(int group, int rank, const group_part& mine, int other, const group_part& theirs) {
  const std::string name = "group " + std::to_string(group) + ": ranks " + std::to_string(rank) +
                           " and " + std::to_string(other) + " differ in ";
  if (mine.exists != theirs.exists) throw plan_error(name + "whether it exists");
  if (mine.members != theirs.members) throw plan_error(name + "its members");
  if (mine.elements != theirs.elements || mine.wide != theirs.wide)
    throw plan_error(name + "what it sums");
  if (mine.collectives.size() != theirs.collectives.size())
    throw plan_error(name + "how often it sums or gathers");
  if (!std::ranges::equal(mine.collectives, theirs.collectives, &collective_end::fits))
    throw plan_error(name + "what it gathers, or when");
}

}  // namespace stretto::executor
