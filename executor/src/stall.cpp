#include "stall.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "plan_lookup.hpp"
#include "stretto/executor/describe.hpp"

namespace stretto::executor {
namespace {

//! What an instruction waits for, and in which words; no place: it is the end of the chain.
struct obstacle {
  std::optional<place> next{};
  std::string why{};
};

//! Whether this process has the rank.
bool is_here(std::span<const std::unique_ptr<runner>> ranks, int rank) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [rank](const auto& each) { return each->plan().rank == rank; });
}

class search {
 public:
  search(std::span<const std::unique_ptr<runner>> ranks, const meetings& met, std::int64_t step,
         std::optional<place> issuing)
      : ranks_(ranks), met_(met), step_(step), issuing_(issuing) {}

  //! The first instruction of the rank in issue order that is not done; none when all are.
  std::optional<place> first_missing(int rank) const {
    const int count = static_cast<int>(plan(rank).instructions.size());
    for (int index = 0; index < count; ++index)
      if (!finished({rank, index})) return place{rank, index};
    return {};
  }

  obstacle obstacle_of(place at) const {
    const instruction& mine = instruction_at(at);
    if (!started(at)) {
      for (int before = 0; before < at.instruction; ++before) {
        const place earlier{at.plan, before};
        if (instruction_at(earlier).stream == mine.stream && !finished(earlier))
          return {earlier, "stands on its stream behind"};
      }
      for (const event_wait& wait : plan(at.plan).waits_of(mine)) {
        if (wait.previous_step) continue;
        const place recorder{at.plan, recorder_of(plan(at.plan), wait.event)};
        const bool start = wait.why == wait_reason::starts_before;
        if (start ? !started(recorder) : !finished(recorder))
          return {recorder, start ? "waits for the start of" : "waits for"};
      }
      if (issuing_ && at != *issuing_) return {issuing_, "is issued after"};
      // A rank's own thread stands before the first, where its queue may be full.
      for (int before = 0; !issuing_ && before < at.instruction; ++before)
        if (!ranks_[static_cast<std::size_t>(at.plan)]->issued(before, step_))
          return {place{at.plan, before}, "is issued after"};
      return {{}, "has not been started, though nothing holds it up"};
    }
    if (mine.act == action::run) return {{}, "has not returned"};
    if (mine.act == action::offload || mine.act == action::reload)
      return {{}, "has not been copied yet"};
    if (mine.act == action::end_step) return {{}, "is being ended"};
    const std::span<const place> others = met_.others(at);
    for (const place& other : others)
      if (!started(other)) return {other, "waits for its partner,"};
    for (const place& other : others)
      if (finished(other)) return {{}, "waits for a message that its partner has finished with"};
    const std::string away = partners_elsewhere(at);
    if (!away.empty()) return {{}, "waits for " + away};
    return {{}, "has met its partner and is not done"};
  }

  stall run() const {
    std::optional<place> from;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()) && !from; ++rank)
      from = first_missing(rank);
    if (!from) return {{0, last(0)}, "everything was done a moment too late", {}};
    std::vector<place> chain{*from};
    while (true) {
      const obstacle met = obstacle_of(chain.back());
      if (!met.next)
        return {chain.back(), name(chain.back()) + ' ' + met.why, line_of_others({chain.back()})};
      const auto seen = std::find(chain.begin(), chain.end(), *met.next);
      if (seen != chain.end()) return circle({seen, chain.end()});
      chain.push_back(*met.next);
    }
  }

 private:
  const plan_view& plan(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->plan(); }
  const instruction& instruction_at(place at) const {
    return instruction_of(plan(at.plan), at.instruction);
  }
  //! Those of its partners that other processes hold, of which nothing is known here.
  std::string partners_elsewhere(place at) const {
    const instruction& mine = instruction_at(at);
    std::string text;
    const auto add = [&](int rank) {
      if (!is_here(ranks_, rank))
        text += (text.empty() ? "" : ", ") + name_of_rank(plan(at.plan), rank);
    };
    const bool together = is_collective(mine.act);
    if (together) {
      const plan_view& of = plan(at.plan);
      for (const std::int32_t member :
           of.members_of(of.groups[static_cast<std::size_t>(mine.peer)]))
        add(member);
    } else {
      add(mine.peer);
    }
    if (text.empty()) return text;
    // What the other process tells of its side has the same number.
    return text + ", in another process: " + std::string(kind_of_meeting(mine.act)) + ' ' +
           std::to_string(number_of(plan(at.plan), at.instruction)) +
           (together ? " of the group" : " of the channel") + " in this step";
  }
  int last(int rank) const { return static_cast<int>(plan(rank).instructions.size()) - 1; }
  bool started(place at) const {
    return ranks_[static_cast<std::size_t>(at.plan)]->started(at.instruction, step_);
  }
  bool finished(place at) const {
    return ranks_[static_cast<std::size_t>(at.plan)]->finished(at.instruction, step_);
  }
  std::string name(place at) const { return describe(plan(at.plan), at.instruction); }

  //! A line of where the ranks stand of which nothing was said.
  std::string line_of_others(const std::vector<place>& said) const {
    std::string text;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      const std::optional<place> missing = first_missing(rank);
      const auto of_rank = [rank](const place& each) { return each.plan == rank; };
      if (missing && std::none_of(said.begin(), said.end(), of_rank))
        text += (text.empty() ? "first missing of the others: " : "; ") + name(*missing);
    }
    return text;
  }

  //! The instructions wait for one another. The first of them in rank and issue order that has been
  //! started is named.
  stall circle(std::vector<place> all) const {
    const auto before = [this](const place& left, const place& right) {
      if (started(left) != started(right)) return started(left);
      return left.plan != right.plan ? left.plan < right.plan
                                     : left.instruction < right.instruction;
    };
    std::rotate(all.begin(), std::min_element(all.begin(), all.end(), before), all.end());
    std::string text = "deadlock: " + name(all.front());
    for (std::size_t at = 0; at < all.size(); ++at)
      text += ' ' + obstacle_of(all[at]).why + ' ' +
              (at + 1 < all.size() ? name(all[at + 1]) + ", which" : "the first of these");
    return {all.front(), text, line_of_others(all)};
  }

  std::span<const std::unique_ptr<runner>> ranks_;
  const meetings& met_;
  std::int64_t step_;
  std::optional<place> issuing_;
};

//! How many of a rank's instructions of one kind, with one partner, are done.
struct tally {
  int done = 0;
  int all = 0;
  std::string text() const { return std::to_string(done) + " of " + std::to_string(all); }
};

//! Members of a group are partners when any of them is elsewhere.
bool is_elsewhere(std::span<const std::unique_ptr<runner>> ranks, const plan_view& plan,
                  const instruction& what) {
  if (!is_collective(what.act)) return !is_here(ranks, what.peer);
  const auto members = plan.members_of(plan.groups[static_cast<std::size_t>(what.peer)]);
  return !std::all_of(members.begin(), members.end(),
                      [ranks](int rank) { return is_here(ranks, rank); });
}

}  // namespace

std::string exchanged_with_others(std::span<const std::unique_ptr<runner>> ranks,
                                  std::int64_t step) {
  std::string text;
  for (const auto& rank : ranks) {
    const plan_view& plan = rank->plan();
    std::map<std::pair<action, int>, tally> tallies;
    for (std::size_t at = 0; at < plan.instructions.size(); ++at) {
      const instruction& each = plan.instructions[at];
      if (!meets_others(each.act)) continue;
      if (!is_elsewhere(ranks, plan, each)) continue;
      tally& of = tallies[{each.act, each.peer}];
      ++of.all;
      if (rank->finished(static_cast<int>(at), step)) ++of.done;
    }
    if (tallies.empty()) continue;
    text += (text.empty() ? "" : "\n") + name_of_rank(plan, plan.rank) + " has";
    const char* before = " ";
    for (const auto& [what, of] : tallies) {
      const std::string peer = std::to_string(what.second);
      text += before;
      if (what.first == action::send)
        text += "sent " + of.text() + " messages to " + name_of_rank(plan, what.second);
      else if (what.first == action::receive)
        text += "received " + of.text() + " from " + name_of_rank(plan, what.second);
      else
        text += "done " + of.text() + (is_sum(what.first) ? " sums" : " gathers") +
                " of group " + peer;
      before = ", ";
    }
  }
  return text;
}

stall find_stall(std::span<const std::unique_ptr<runner>> ranks, const meetings& met,
                 std::int64_t step, std::optional<place> issuing) {
  return search(ranks, met, step, issuing).run();
}

}  // namespace stretto::executor
