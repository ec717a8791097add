#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

//! An executor in the small: ranks whose hosts issue entries to streams in order, streams that run
//! them in order, messages whose halves meet, collectives that join. It knows nothing of schedules,
//! and shares no code with the rules: what it says of a program is found by running it.
namespace oracle {

enum class op_kind { work, send, receive, collective };

//! One entry of a rank's program. It starts when it is at the head of its stream and every value
//! that it needs is on its rank, and puts what it makes there when it is done.
struct op {
  op_kind kind = op_kind::work;
  int stream = 0;
  int peer = -1;  //!< the rank at the other end; the group of a collective
  int tag = 0;    //!< what a message carries
  std::vector<int> needs{};
  std::vector<int> makes{};
};

struct program {
  std::vector<std::vector<op>> ranks{};  //!< in the order in which each host issues
  std::vector<std::vector<int>> groups{};
  int streams = 1;
  int values = 0;
};

inline constexpr int unlimited_depth = 1 << 20;

//! How entries reach the device.
struct launch_model {
  const char* name = "";
  int depth = unlimited_depth;  //!< entries that a queue holds before the host has to wait
  bool blocking = false;        //!< the host waits for every entry to be done
  bool one_queue = false;       //!< all streams of a rank share one hardware queue
  int slots = 0;                //!< messages that a channel holds; 0: send and receive must meet
};

enum class outcome { completes, hangs, mismatched };

//! Runs a program under one model. Ranks and queues get their turns in an order drawn from `seed`:
//! whether a program ends must not depend on it.
class launch {
 public:
  launch(const program& of, const launch_model& model, unsigned seed)
      : of_(of), model_(model), random_(seed), ranks_(of.ranks.size()) {
    std::map<std::pair<int, int>, std::vector<place>> sent, received;
    std::map<int, std::map<int, std::vector<place>>> joined;
    for (int rank = 0; rank < static_cast<int>(of.ranks.size()); ++rank) {
      auto& here = ranks_[static_cast<std::size_t>(rank)];
      here.state.resize(of.ranks[static_cast<std::size_t>(rank)].size());
      here.meets.resize(here.state.size());
      here.queues.resize(static_cast<std::size_t>(model.one_queue ? 1 : of.streams));
      here.has.resize(static_cast<std::size_t>(of.values));
      for (int at = 0; at < static_cast<int>(here.state.size()); ++at) {
        const op& entry = op_at({rank, at});
        if (entry.kind == op_kind::send) sent[{rank, entry.peer}].push_back({rank, at});
        if (entry.kind == op_kind::receive) received[{entry.peer, rank}].push_back({rank, at});
        if (entry.kind == op_kind::collective) joined[entry.peer][rank].push_back({rank, at});
      }
    }
    // The k-th send of a channel meets its k-th receive; so for the collectives of a group.
    for (auto& [channel, sends] : sent) {
      auto& receives = received[channel];
      for (std::size_t k = 0; k < std::min(sends.size(), receives.size()); ++k) {
        ranks_[index(sends[k].rank)].meets[index(sends[k].at)] = {receives[k]};
        ranks_[index(receives[k].rank)].meets[index(receives[k].at)] = {sends[k]};
      }
    }
    for (auto& [group, members] : joined)
      for (auto& [rank, entries] : members)
        for (std::size_t k = 0; k < entries.size(); ++k)
          for (int member : of.groups[index(group)]) {
            auto& others = members[member];
            auto& meets = ranks_[index(rank)].meets[index(entries[k].at)];
            meets.push_back(k < others.size() ? others[k] : place{});
          }
  }

  outcome run() {
    std::vector<int> turns(ranks_.size());
    for (std::size_t rank = 0; rank < turns.size(); ++rank) turns[rank] = static_cast<int>(rank);
    for (bool moved = true; moved && !mismatched_;) {
      moved = false;
      std::shuffle(turns.begin(), turns.end(), random_);
      for (int rank : turns) moved = turn(rank) || moved;
    }
    if (mismatched_) return outcome::mismatched;
    for (const auto& here : ranks_)
      for (phase at : here.state)
        if (at != phase::done) return outcome::hangs;
    return outcome::completes;
  }

 private:
  enum class phase : unsigned char { waiting, started, done };
  struct place {
    int rank = -1;
    int at = -1;
  };
  struct rank_state {
    std::vector<phase> state{};
    std::vector<std::vector<place>> meets{};
    std::vector<std::vector<int>> queues{};  // issued entries in order
    std::vector<bool> has{};
    std::size_t issued = 0;
  };

  static std::size_t index(int at) { return static_cast<std::size_t>(at); }
  const op& op_at(place at) const { return of_.ranks[index(at.rank)][index(at.at)]; }
  phase& state_of(place at) { return ranks_[index(at.rank)].state[index(at.at)]; }

  //! One sweep over a rank: the host issues what it may, the head of every queue goes on.
  bool turn(int rank) {
    rank_state& here = ranks_[index(rank)];
    bool moved = false;
    while (here.issued < here.state.size()) {
      auto& queue = here.queues[queue_of(rank, static_cast<int>(here.issued))];
      const auto pending = std::count_if(queue.begin(), queue.end(), [&](int at) {
        return here.state[index(at)] != phase::done;
      });
      const bool all_done = here.issued == 0 || here.state[here.issued - 1] == phase::done;
      if (model_.blocking ? !all_done : pending >= model_.depth) break;
      queue.push_back(static_cast<int>(here.issued++));
      moved = true;
      if (random_() % 4 == 0) break;
    }
    const std::size_t first = random_() % here.queues.size();
    for (std::size_t k = 0; k < here.queues.size(); ++k) {
      auto& queue = here.queues[(first + k) % here.queues.size()];
      const auto head = std::find_if(queue.begin(), queue.end(), [&](int at) {
        return here.state[index(at)] != phase::done;
      });
      if (head != queue.end()) moved = advance({rank, *head}) || moved;
    }
    return moved;
  }
  std::size_t queue_of(int rank, int at) const {
    return model_.one_queue ? 0 : index(op_at({rank, at}).stream);
  }

  bool advance(place at) {
    const op& entry = op_at(at);
    bool moved = false;
    if (state_of(at) == phase::waiting) {
      for (int value : entry.needs)
        if (!ranks_[index(at.rank)].has[index(value)]) return false;
      state_of(at) = phase::started;
      moved = true;
    }
    const auto& meets = ranks_[index(at.rank)].meets[index(at.at)];
    if (entry.kind == op_kind::work) return finish(at), true;
    if (meets.empty() && entry.kind != op_kind::send) return moved;
    if (entry.kind == op_kind::collective) {
      for (place other : meets)
        if (other.rank < 0 || state_of(other) != phase::started) return moved;
      for (place other : meets) finish(other);
      return true;
    }
    if (entry.kind == op_kind::receive) {
      if (state_of(meets[0]) == phase::waiting) return moved;
      if (state_of(meets[0]) == phase::done) --held_[{entry.peer, at.rank}];
      return meet(meets[0], at), true;
    }
    if (!meets.empty() && state_of(meets[0]) == phase::started) return meet(at, meets[0]), true;
    if (held_[{at.rank, entry.peer}] >= model_.slots) return moved;
    ++held_[{at.rank, entry.peer}];
    return finish(at), true;
  }
  void meet(place send, place receive) {
    if (op_at(send).tag != op_at(receive).tag) mismatched_ = true;
    if (state_of(send) != phase::done) finish(send);
    finish(receive);
  }
  void finish(place at) {
    state_of(at) = phase::done;
    for (int value : op_at(at).makes) ranks_[index(at.rank)].has[index(value)] = true;
  }

  const program& of_;
  launch_model model_;
  std::minstd_rand random_;
  std::vector<rank_state> ranks_;
  std::map<std::pair<int, int>, int> held_{};
  bool mismatched_ = false;
};

inline outcome run(const program& of, const launch_model& model, unsigned seed = 1) {
  return launch(of, model, seed).run();
}

}  // namespace oracle
