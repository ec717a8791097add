#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "laws/oracle_buffers.hpp"
#include "stretto/model/plan_view.hpp"

//! What can go wrong when plans run, found from the plans alone: two steps written out, every rank
//! and every stream with its own place in the clocks, bytes instead of buffers. Shares no code
//! with the rules and is as slow as need be.
namespace oracle {

//! One wait of one instruction.
struct wait_at {
  int rank = -1;
  int index = -1;
  int wait = -1;

  bool operator==(const wait_at&) const = default;
};

//! How a message is carried: its halves meet, so that each side knows what the other did before;
//! or it is buffered, so that the sender knows nothing of the receiver.
enum class carried { rendezvous, buffered };

class two_steps {
 public:
  explicit two_steps(std::span<const stretto::plan_view> plans,
                     carried how = carried::buffered)
      : plans_(plans), how_(how) {
    for (const auto& plan : plans) {
      first_.push_back(total_);
      total_ += static_cast<int>(plan.instructions.size());
      streams_ = std::max(streams_, static_cast<int>(plan.streams.size()));
    }
    chains_ = static_cast<int>(plans.size()) * streams_;
    joint_.resize(static_cast<std::size_t>(2 * total_));
    for (std::size_t node = 0; node < joint_.size(); ++node) joint_[node] = static_cast<int>(node);
    chain_.resize(joint_.size());
    place_.resize(joint_.size());
    pairs_.resize(plans.size());
    for (std::size_t rank = 0; rank < plans.size() && still_.what == flaw::none; ++rank)
      still_ = look_at_buffers(plans[rank], pairs_[rank]);
    if (still_.what == flaw::none) still_ = join_messages();
    if (still_.what == flaw::none) still_ = link();
    if (still_.what == flaw::none) sort();
  }

  //! What is wrong with the plans as they are, or none.
  finding found() { return found_without({}); }
  //! What would be wrong without that wait.
  finding found_without(wait_at left_out) {
    if (still_.what != flaw::none) return still_;
    tick(left_out);
    const int ranks = static_cast<int>(plans_.size());
    for (int k = 0; k < ranks; ++k) {
      const int rank = left_out.rank < 0 ? k : (left_out.rank + k) % ranks;
      if (const finding here = look_at(rank, left_out); here.what != flaw::none) return here;
    }
    return {};
  }
  //! What every instruction knew in the end, when it was last asked what is wrong: place by chain.
  const std::vector<std::int32_t>& clocks() const { return clocks_; }
  //! Whether `earlier` of the rank is done when `later`, of the same step, starts.
  bool ordered(int rank, int earlier, int later) {
    if (!ticked_) tick({});
    return before(node(1, rank, earlier), node(1, rank, later));
  }

 private:
  struct edge {
    int from;
    int to;
    wait_at by;
  };

  int node(int step, int rank, int index) const {
    return step * total_ + first_[static_cast<std::size_t>(rank)] + index;
  }
  const stretto::plan_view& plan(int rank) const { return plans_[static_cast<std::size_t>(rank)]; }
  int count(int rank) const { return static_cast<int>(plan(rank).instructions.size()); }
  const stretto::instruction& at(int rank, int index) const {
    return plan(rank).instructions[static_cast<std::size_t>(index)];
  }
  template <class T>
  static decltype(auto) item(T& items, int at) {
    return items[static_cast<std::size_t>(at)];
  }

  //! The k-th send of a channel and its k-th receive are one; so are a group's k-th collectives.
  finding join_messages() {
    std::map<std::pair<int, int>, std::vector<std::pair<int, int>>> sends, receives;
    std::map<int, std::map<int, std::vector<std::pair<int, int>>>> collectives;
    for (int rank = 0; rank < static_cast<int>(plans_.size()); ++rank)
      for (int index = 0; index < count(rank); ++index) {
        const auto& here = at(rank, index);
        const std::pair entry{rank, index};
        if (here.act == stretto::action::send) sends[{rank, here.peer}].push_back(entry);
        if (here.act == stretto::action::receive) receives[{here.peer, rank}].push_back(entry);
        if (is_collective(here.act)) collectives[here.peer][rank].push_back(entry);
      }
    const auto join = [&](std::pair<int, int> one, std::pair<int, int> other) {
      for (int step : {0, 1})
        item(joint_, node(step, other.first, other.second)) =
            item(joint_, node(step, one.first, one.second));
    };
    for (auto& [channel, all] : sends) receives[channel];
    for (auto& [channel, taken] : receives) {
      auto& sent = sends[channel];
      for (std::size_t k = 0; k < std::max(sent.size(), taken.size()); ++k) {
        if (k >= taken.size()) return {flaw::unmatched, sent[k].first, sent[k].second, -1};
        if (k >= sent.size()) return {flaw::unmatched, taken[k].first, taken[k].second, -1};
        const auto& one = at(sent[k].first, sent[k].second);
        const auto& other = at(taken[k].first, taken[k].second);
        const bool ahead = one.what.kind == stretto::job_kind::send_forward;
        const auto bytes = [&](std::pair<int, int> end) {
          const auto uses = plan(end.first).uses_of(at(end.first, end.second));
          return uses.empty()
                     ? 0
                     : plan(end.first).buffers[static_cast<std::size_t>(uses[0].buffer)].bytes;
        };
        if (bytes(sent[k]) != bytes(taken[k]) ||
            other.what.stage != one.what.stage + (ahead ? 1 : -1) ||
            other.what.microbatch != one.what.microbatch || other.what.slice != one.what.slice ||
            other.what.kind != (ahead ? stretto::job_kind::receive_forward
                                      : stretto::job_kind::receive_backward))
          return {flaw::unmatched, sent[k].first, sent[k].second, taken[k].second};
        if (one.stream != at(sent[0].first, sent[0].second).stream)
          return {flaw::channel, sent[k].first, sent[k].second, sent[0].second};
        if (other.stream != at(taken[0].first, taken[0].second).stream)
          return {flaw::channel, taken[k].first, taken[k].second, taken[0].second};
        if (how_ == carried::rendezvous) join(sent[k], taken[k]);
        for (int step : {0, 1})
          if (how_ == carried::buffered)
            edges_.push_back({node(step, sent[k].first, sent[k].second),
                              node(step, taken[k].first, taken[k].second),
                              {}});
      }
    }
    for (auto& [group, members] : collectives) {
      const auto& any = plan(members.begin()->first);
      const auto expected = any.members_of(any.groups[static_cast<std::size_t>(group)]);
      for (std::int32_t member : expected) {
        auto& all = members[member];
        auto& leader = members[expected[0]];
        if (all.size() != leader.size()) return {flaw::unmatched, member, -1, -1};
        for (std::size_t k = 0; k < all.size(); ++k)
          if (member != expected[0]) join(leader[k], all[k]);
      }
    }
    return {};
  }

  //! Streams run in order, over both steps; waits.
  finding link() {
    for (int rank = 0; rank < static_cast<int>(plans_.size()); ++rank) {
      std::vector<int> last(static_cast<std::size_t>(streams_), -1);
      std::vector<int> length(static_cast<std::size_t>(streams_), 0);
      std::map<int, int> recorder;
      for (int index = 0; index < count(rank); ++index)
        if (const int event = at(rank, index).record; event >= 0)
          if (!recorder.insert({event, index}).second)
            return {flaw::bad_event, rank, index, recorder[event]};
      for (int step : {0, 1})
        for (int index = 0; index < count(rank); ++index) {
          const auto& here = at(rank, index);
          const int now = node(step, rank, index);
          item(chain_, now) = rank * streams_ + here.stream;
          item(place_, now) = ++item(length, here.stream);
          if (item(last, here.stream) >= 0)
            edges_.push_back({item(joint_, item(last, here.stream)), item(joint_, now), {}});
          item(last, here.stream) = now;
          for (int wait = 0; wait < here.wait_count; ++wait) {
            const auto& event = item(plan(rank).waits, here.first_wait + wait);
            const auto by = recorder.find(event.event);
            if (by == recorder.end() || (!event.previous_step && by->second >= index))
              return {flaw::bad_event, rank, index, -1};
            if (event.previous_step && step == 0) continue;
            const int from = node(event.previous_step ? 0 : step, rank, by->second);
            edges_.push_back({item(joint_, from), item(joint_, now), {rank, index, wait}});
          }
        }
    }
    return {};
  }

  //! An order in which causes precede effects, and the edges along it.
  void sort() {
    std::vector<std::vector<int>> out(joint_.size());
    std::vector<int> missing(joint_.size());
    for (std::size_t number = 0; number < edges_.size(); ++number) {
      item(out, edges_[number].from).push_back(static_cast<int>(number));
      ++item(missing, edges_[number].to);
    }
    std::vector<int> ready;
    for (int now = 0; now < 2 * total_; ++now)
      if (item(joint_, now) == now && item(missing, now) == 0) ready.push_back(now);
    std::vector<int> turn(joint_.size(), -1);
    for (std::size_t next = 0; next < ready.size(); ++next) {
      item(turn, ready[next]) = static_cast<int>(next);
      for (int number : item(out, ready[next]))
        if (--item(missing, item(edges_, number).to) == 0)
          ready.push_back(item(edges_, number).to);
    }
    for (int now = 0; now < 2 * total_; ++now)
      if (item(joint_, now) == now && item(turn, now) < 0) still_ = {flaw::circle, -1, -1, -1};
    if (still_.what != flaw::none) return;
    std::sort(edges_.begin(), edges_.end(), [&](const edge& one, const edge& other) {
      return item(turn, one.to) < item(turn, other.to);
    });
    turns_ = ready;
    parts_.resize(joint_.size());
    for (int now = 0; now < 2 * total_; ++now) item(parts_, item(joint_, now)).push_back(now);
  }

  //! Without a wait no clock differs but of what it is for, and of what comes after one that
  //! differs.
  void tick(wait_at left_out) {
    const bool all = left_out.rank < 0;
    if (all) {
      clocks_.assign(joint_.size() * static_cast<std::size_t>(chains_), 0);
    } else {
      if (whole_.empty()) tick({}), whole_ = clocks_;
      clocks_ = whole_;
    }
    std::vector<bool> differs(joint_.size(), false);
    std::vector<std::int32_t> mine(static_cast<std::size_t>(chains_));
    auto next = edges_.begin();
    for (int now : turns_) {
      const auto first = next;
      bool ask = all;
      for (; next != edges_.end() && next->to == now; ++next)
        ask = ask || next->by == left_out || item(differs, next->from);
      if (!ask) continue;
      std::fill(mine.begin(), mine.end(), 0);
      for (auto one = first; one != next; ++one) {
        if (!all && one->by == left_out) continue;
        const std::int32_t* const theirs = clock(one->from);
        for (std::size_t chain = 0; chain < mine.size(); ++chain)
          mine[chain] = std::max(mine[chain], theirs[chain]);
      }
      for (int part : item(parts_, now)) item(mine, item(chain_, part)) = item(place_, part);
      differs[static_cast<std::size_t>(now)] = !std::equal(mine.begin(), mine.end(), clock(now));
      std::copy(mine.begin(), mine.end(), clock(now));
    }
    ticked_ = all;
  }
  std::int32_t* clock(int joint) {
    return clocks_.data() + static_cast<std::ptrdiff_t>(joint) * chains_;
  }
  bool before(int one, int other) {
    return clock(item(joint_, other))[item(chain_, one)] >= item(place_, one);
  }

  finding look_at(int rank, wait_at left_out) {
    for (const access_pair& pair : item(pairs_, rank)) {
      const int one = node(0, rank, pair.one), other = node(0, rank, pair.other);
      const int one_later = node(1, rank, pair.one), other_later = node(1, rank, pair.other);
      const bool sound = (!pair.same_step ||
                          (before(one, other) && before(one_later, other_later))) &&
                         before(one, other_later) && before(other, one_later) &&
                         (!pair.same_step || at(rank, pair.other).act != stretto::action::send ||
                          done_before_start(rank, pair.one, pair.other, left_out));
      if (!sound) return {flaw::race, rank, pair.one, pair.other};
    }
    if (left_out.rank < 0)
      if (const finding here = look_at_releases(rank, left_out); here.what != flaw::none)
        return here;
    const int end = count(rank) - 1;
    for (int index = 0; index <= end; ++index)
      if (!before(node(0, rank, end), node(1, rank, index)))
        return {flaw::gate, rank, index, -1};
    // What this rank itself knows to be done when the step ends: back along streams and events.
    std::vector<bool> done(static_cast<std::size_t>(end + 1));
    done[static_cast<std::size_t>(end)] = true;
    for (int index = end; index >= 0; --index) {
      if (!item(done, index)) return {flaw::bound, rank, index, -1};
      const auto& here = at(rank, index);
      for (int before_it = index - 1; before_it >= 0; --before_it)
        if (at(rank, before_it).stream == here.stream) {
          done[static_cast<std::size_t>(before_it)] = true;
          break;
        }
      for (int wait = 0; wait < here.wait_count; ++wait) {
        const auto& event = item(plan(rank).waits, here.first_wait + wait);
        if (event.previous_step || wait_at{rank, index, wait} == left_out) continue;
        for (int by = 0; by < index; ++by)
          if (at(rank, by).record == event.event) done[static_cast<std::size_t>(by)] = true;
      }
    }
    // Late, because it takes long: what a left-out wait was for is mostly found above.
    if (left_out.rank >= 0)
      if (const finding here = look_at_releases(rank, left_out); here.what != flaw::none)
        return here;
    for (int index = 0; index < end; ++index)
      if (const int gate = gate_of(rank, index); gate >= 0)
        if (!done_before_start(rank, gate, index, left_out)) return {flaw::lead, rank, index, gate};
    return {};
  }

  //! For a receive: the last job of the node that has as many others as the plan's lead between
  //! itself and the job that first uses what comes; -1: none.
  int gate_of(int rank, int index) const {
    const stretto::plan_view& here = plan(rank);
    if (here.receive_lead < 0 || at(rank, index).act != stretto::action::receive) return -1;
    const std::int32_t id = here.uses_of(at(rank, index)).front().buffer;
    std::vector<int> ends;
    for (int job = 0; job < count(rank); ++job) {
      if (!stretto::is_compute(at(rank, job).what.kind)) continue;
      const bool second = job > 0 && at(rank, job - 1).what.paired;
      if (!second) ends.push_back(job);
      else ends.back() = job;
      for (const auto& use : here.uses_of(at(rank, job)))
        if (job > index && use.buffer == id) {
          const int node = static_cast<int>(ends.size()) - 2 - here.receive_lead;
          return node < 0 ? -1 : item(ends, node);
        }
    }
    return -1;
  }

  //! A release writes the bytes once more: after whatever touches the buffer, before whatever
  //! touches the bytes later. Either the instruction before it does that, as its last deed, if it
  //! uses the buffer and is no send, or the one behind it, as its first.
  finding look_at_releases(int rank, wait_at left_out) {
    const stretto::plan_view& here = plan(rank);
    std::vector<std::vector<int>> users(here.buffers.size());  // instructions, ascending
    for (int index = 0; index < count(rank); ++index)
      for (const auto& use : here.uses_of(at(rank, index)))
        item(users, use.buffer).push_back(index);
    for (int free = 0; free < count(rank); ++free)
      for (const std::int32_t id : here.released_before(at(rank, free))) {
        const stretto::buffer& mine = item(here.buffers, id);
        if (mine.release != free) return {flaw::release, rank, free, -1};
        const auto& all = item(users, id);
        const auto end = std::lower_bound(all.begin(), all.end(), free);
        if (end == all.begin()) return {flaw::release, rank, free, -1};
        const bool as_ends = *(end - 1) == free - 1 &&
                             at(rank, free - 1).act != stretto::action::send;
        for (auto use = all.begin(); use != end; ++use)
          if (!(as_ends ? *use == free - 1 || done(rank, *use, free - 1)
                        : done_before_start(rank, *use, free, left_out)))
            return {flaw::release, rank, *use, free};
        for (std::size_t other = 0; other < here.buffers.size(); ++other) {
          const stretto::buffer& theirs = here.buffers[other];
          if (static_cast<std::int32_t>(other) == id ||
              theirs.offset >= mine.offset + mine.bytes ||
              mine.offset >= theirs.offset + theirs.bytes)
            continue;
          for (const int index : users[other])
            if (index >= free + (as_ends ? 0 : 1) &&
                !done(rank, as_ends ? free - 1 : free, index))
              return {flaw::release, rank, free, index};
        }
      }
    return {};
  }
  bool done(int rank, int earlier, int later) {
    return before(node(0, rank, earlier), node(0, rank, later));
  }
  //! Known on the stream of `later` when it starts, so not by a message that it is half of.
  bool done_before_start(int rank, int earlier, int later, wait_at left_out) {
    const auto& now = at(rank, later);
    bool first = true;
    for (int told = later - 1; told >= 0; --told) {
      const auto& by = at(rank, told);
      bool hears = first && by.stream == now.stream;
      if (hears) first = false;
      for (int wait = 0; wait < now.wait_count; ++wait) {
        const auto& event = item(plan(rank).waits, now.first_wait + wait);
        hears = hears || (!event.previous_step && by.record >= 0 && by.record == event.event &&
                          !(wait_at{rank, later, wait} == left_out));
      }
      if (hears && (told == earlier || done(rank, earlier, told))) return true;
    }
    return false;
  }

  std::span<const stretto::plan_view> plans_;
  carried how_;
  std::vector<int> first_{};
  int total_ = 0;
  int streams_ = 1;
  int chains_ = 0;
  std::vector<int> joint_{};  // of every instruction of both steps: the one that stands for it
  std::vector<int> chain_{};
  std::vector<int> place_{};  // along its chain, from 1
  std::vector<std::vector<access_pair>> pairs_{};
  std::vector<edge> edges_{};
  std::vector<int> turns_{};
  std::vector<std::vector<int>> parts_{};
  std::vector<std::int32_t> clocks_{};
  std::vector<std::int32_t> whole_{};  // with no wait left out
  bool ticked_ = false;
  finding still_{};
};

}  // namespace oracle
