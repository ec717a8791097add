#include "flight_record.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "plan_lookup.hpp"
#include "stretto/executor/describe.hpp"
#include "stretto/model/plan_names.hpp"

namespace stretto::executor {
namespace {

//! Of each stream, how many instructions are shown that are done, and that are not.
constexpr int shown_done = 3;
constexpr int shown_next = 5;

enum class state : std::uint8_t { not_issued, issued, started, done };

std::string_view words(state of) {
  switch (of) {
    case state::not_issued:
      return "not issued";
    case state::issued:
      return "issued";
    case state::started:
      return "started";
    case state::done:
      return "done";
  }
  return "";
}

class picture {
 public:
  picture(std::span<const std::unique_ptr<runner>> ranks, const meetings& met, std::int64_t step,
          place culprit)
      : ranks_(ranks), met_(met), culprit_(culprit) {
    for (const auto& rank : ranks) {
      std::vector<state>& states = states_.emplace_back(rank->plan().instructions.size());
      for (int index = 0; index < static_cast<int>(states.size()); ++index)
        states[static_cast<std::size_t>(index)] = rank->finished(index, step)  ? state::done
                                                  : rank->started(index, step) ? state::started
                                                  : rank->issued(index, step)  ? state::issued
                                                                               : state::not_issued;
    }
  }

  void add(int rank, std::string& text) const {
    const std::vector<state>& states = states_[static_cast<std::size_t>(rank)];
    const auto done = std::count(states.begin(), states.end(), state::done);
    const auto missing =
        std::find_if(states.begin(), states.end(), [](state of) { return of != state::done; });
    text += name_of_rank(plan(rank), plan(rank).rank) + ": " + std::to_string(done) + " of " +
            std::to_string(states.size()) + " done";
    if (missing == states.end()) {
      text += '\n';
      return;
    }
    const int first = static_cast<int>(missing - states.begin());
    text += "; first missing: " + std::to_string(first) + ' ' + name({rank, first}) + '\n';
    for (int stream = 0; stream < static_cast<int>(plan(rank).streams.size()); ++stream)
      add_stream(rank, stream, text);
  }

 private:
  const plan_view& plan(int rank) const { return ranks_[static_cast<std::size_t>(rank)]->plan(); }
  std::string name(place at) const {
    return std::string(to_text(plan(at.plan), at.instruction).view());
  }
  state state_of(place at) const {
    return states_[static_cast<std::size_t>(at.plan)][static_cast<std::size_t>(at.instruction)];
  }

  void add_stream(int rank, int stream, std::string& text) const {
    std::vector<int> all;
    for (int index = 0; index < static_cast<int>(plan(rank).instructions.size()); ++index)
      if (instruction_of(plan(rank), index).stream == stream) all.push_back(index);
    const int count = static_cast<int>(all.size());
    int done = 0;
    while (done < count && state_of({rank, all[static_cast<std::size_t>(done)]}) == state::done)
      ++done;
    if (count == 0) return;
    text += "  " +
            std::string(stretto::name(plan(rank).streams[static_cast<std::size_t>(stream)])) +
            ": " + std::to_string(done) + " of " + std::to_string(count) + " done\n";
    if (done == count) return;
    const int last = std::min(count, done + shown_next);
    for (int at = std::max(0, done - shown_done); at < last; ++at)
      add_line({rank, all[static_cast<std::size_t>(at)]}, text);
    if (last == count) return;
    const bool holds_culprit =
        culprit_.plan == rank &&
        std::find(all.begin() + last, all.end(), culprit_.instruction) != all.end();
    text += "    and " + std::to_string(count - last) + " more" +
            (holds_culprit ? ", of which" : "") + '\n';
    if (holds_culprit) add_line(culprit_, text);
  }

  void add_line(place at, std::string& text) const {
    const auto padded = [](std::string part, std::size_t width) {
      if (part.size() < width) part.append(width - part.size(), ' ');
      return part + "  ";
    };
    const std::string number = std::to_string(at.instruction);
    const std::string more =
        exchange(at) + waits(at) + (at == culprit_ ? "; named by the error" : "");
    const std::string state(words(state_of(at)));
    text += "    " + padded(number, 4) + padded(name(at), 14) +
            (more.empty() ? state : padded(state, 10) + more.substr(2)) + '\n';
  }

  // Each of these two begins with "; ", or is empty.

  //! Of a message or a collective.
  std::string exchange(place at) const {
    const plan_view& of = plan(at.plan);
    const instruction& mine = instruction_of(of, at.instruction);
    if (!meets_others(mine.act)) return {};
    const bool together = is_collective(mine.act);
    const std::string with = mine.act == action::send ? " to " : " from ";
    std::string text = "; " + std::string(kind_of_meeting(mine.act)) + ' ';
    text +=
        std::to_string(number_of(of, at.instruction)) +
        (together ? " of group " + std::to_string(mine.peer) : with + name_of_rank(of, mine.peer)) +
        ", " + std::to_string(of.range_of(mine.first_use).bytes) + " bytes";
    for (const place& other : met_.others(at))
      text += "; meets " + name_of_rank(plan(other.plan), plan(other.plan).rank) + "'s " +
              std::to_string(other.instruction) + ", " + std::string(words(state_of(other)));
    return text;
  }

  //! What has not happened that it waits for.
  std::string waits(place at) const {
    if (state_of(at) == state::done || state_of(at) == state::started) return {};
    const plan_view& of = plan(at.plan);
    std::string text;
    for (const event_wait& wait : of.waits_of(instruction_of(of, at.instruction))) {
      if (wait.previous_step) continue;
      const int before = recorder_of(of, wait.event);
      const bool start = instruction_of(of, before).record != wait.event;
      if (state_of({at.plan, before}) >= (start ? state::started : state::done)) continue;
      text += (text.empty() ? "; waits for " : ", ");
      text +=
          (start ? "the start of " : "") + std::to_string(before) + ' ' + name({at.plan, before});
    }
    return text;
  }

  std::span<const std::unique_ptr<runner>> ranks_;
  const meetings& met_;
  place culprit_;
  std::vector<std::vector<state>> states_;  // by rank here and instruction
};

}  // namespace

std::string flight_record(std::span<const std::unique_ptr<runner>> ranks, const meetings& met,
                          std::int64_t step, place culprit) {
  const picture all(ranks, met, step, culprit);
  std::string text = "step " + std::to_string(step) +
                     ", what each stream has done of its plan; messages count from 0 in a step\n";
  for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) all.add(rank, text);
  return text;
}

}  // namespace stretto::executor
