#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/lowering/streams/input_gradient_first.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/op_replay.hpp"

namespace stretto::overlap {

struct look_ahead_options {
  int multiprocessors = 0;  //!< see op_times
  int outstanding = 0;      //!< most collectives issued whose results are still awaited; 0: any
  int width = 12;           //!< orders begun that are kept side by side
};

//! An order of issue, and what it takes.
struct op_order {
  std::vector<std::int32_t> nodes;
  std::int64_t makespan = 0;
  bool optimal = false;  //!< no order of these ops on these streams is shorter

  constexpr ~op_order() = default;  // nvcc does not find it constexpr by itself
};

namespace detail {

//! How good an order is that has been begun.
struct prefix_score {
  std::int64_t left[max_streams]{};  // of each stream's work
  std::int64_t lost = 0;             // time times multiprocessors of communication not issued
  std::int64_t bound = 0;            // what this can become at best
  std::int64_t ends = 0;             // sum of all ends: the smaller the better
  std::uint64_t set = 0;             // names the ops issued, whatever their order
};

//! An order that has been begun.
struct op_prefix {
  op_times times;
  std::vector<std::int16_t> missing;  // of what a node needs; -1: issued
  std::vector<std::int16_t> awaited;  // of what waits for a node
  std::vector<std::int32_t> order;
  prefix_score score{};
  int outstanding = 0;

  constexpr op_prefix(int nodes, int multiprocessors) : times(nodes, multiprocessors) {}
  constexpr ~op_prefix() = default;  // nvcc does not find it constexpr by itself
};

//! One that may be begun: the same, and a node behind it. Most of these are not kept, and what is to
//! be known of them is known without a copy of what all have in common.
struct longer_prefix {
  const op_prefix* from = nullptr;
  std::int32_t node = 0;
  op_times::run when{};
  std::uint8_t stream = 0;
  prefix_score score{};

  constexpr bool issued(std::int32_t other) const {
    return other == node || from->missing[static_cast<std::size_t>(other)] < 0;
  }
  constexpr std::int64_t end(std::int32_t other) const {
    return other == node ? when.end : from->times.end(other);
  }
  constexpr std::int64_t stream_end(int other) const {
    return other == stream ? when.end : from->times.stream_end(other);
  }
};

class look_ahead_search {
 public:
  constexpr look_ahead_search(const op_graph& graph, const look_ahead_options& with)
      : graph_(graph),
        with_(with),
        needs_(graph, true),
        waiting_(graph, false),
        tail_(filled<std::int64_t>(graph.nodes.size())) {
    // Longest way from a node's end to the end of everything. Edges lead ahead, so backwards works.
    for (std::int32_t node = graph.size(); node-- > 0;)
      for (const std::int32_t next : waiting_.of(node)) {
        const std::int64_t way = tail_[index(next)] + at(next).time;
        if (way > tail_[index(node)]) tail_[index(node)] = way;
      }
    for (const op_node& node : graph.nodes)
      if (node.communicates() && node.holds > held_on_[node.stream])
        held_on_[node.stream] = node.holds;
  }

  constexpr ~look_ahead_search() = default;  // nvcc does not find it constexpr by itself

  constexpr op_order run() const {
    op_prefix empty(graph_.size(), with_.multiprocessors);
    for (std::int32_t node = 0; node < graph_.size(); ++node) {
      empty.missing.push_back(static_cast<std::int16_t>(needs_.of(node).size()));
      empty.awaited.push_back(static_cast<std::int16_t>(waiting_.of(node).size()));
      empty.score.left[at(node).stream] += at(node).time;
      if (at(node).communicates()) empty.score.lost += at(node).time * at(node).holds;
    }
    std::vector<op_prefix> kept{empty};
    bool all_kept = with_.multiprocessors == 0;  // else a later start may be better
    for (int depth = 0; depth < graph_.size(); ++depth) {
      std::vector<longer_prefix> longer;
      for (const op_prefix& one : kept) extend(one, longer, all_kept);
      if (longer.empty()) return {};  // the bound on collectives lets nothing go on
      std::vector<std::int32_t> chosen = without_doubles(longer, all_kept);
      if (chosen.size() > index(with_.width)) {
        all_kept = false;
        keep_best(longer, chosen);
      }
      // Copied, not assigned: nvcc cannot assign vectors in constant expressions.
      std::vector<op_prefix> next;
      for (const std::int32_t one : chosen) next.push_back(extended(longer[index(one)]));
      kept.swap(next);
    }
    const op_prefix* best = &kept.front();
    for (const op_prefix& one : kept)
      if (one.times.makespan() < best->times.makespan()) best = &one;
    return {best->order, best->times.makespan(), all_kept};
  }

 private:
  static constexpr std::size_t index(std::int32_t of) { return static_cast<std::size_t>(of); }
  constexpr const op_node& at(std::int32_t node) const { return graph_.nodes[index(node)]; }
  static constexpr int choices = 8;  // computing ops tried behind an order that is not kept whole

  constexpr void extend(const op_prefix& one, std::vector<longer_prefix>& longer,
                        bool everything) const {
    std::int32_t best[choices];
    int found = 0;
    for (std::int32_t node = 0; node < graph_.size(); ++node) {
      if (one.missing[index(node)] != 0) continue;
      if (at(node).communicates()) {
        const bool counted = !waiting_.of(node).empty();
        if (!counted || with_.outstanding == 0 || one.outstanding < with_.outstanding)
          longer.push_back(scored(one, node));
      } else if (everything) {
        longer.push_back(scored(one, node));
      } else {
        // Those with the longest way to the end; of equals the first.
        int place = found < choices ? found++ : choices;
        for (; place > 0 && tail_[index(best[place - 1])] < tail_[index(node)]; --place)
          if (place < choices) best[place] = best[place - 1];
        if (place < choices) best[place] = node;
      }
    }
    for (int place = 0; place < found; ++place) longer.push_back(scored(one, best[place]));
  }

  constexpr longer_prefix scored(const op_prefix& one, std::int32_t node) const {
    const op_node& what = at(node);
    longer_prefix made{&one, node, one.times.run_of(what, needs_.of(node)), what.stream, one.score};
    prefix_score& score = made.score;
    score.left[what.stream] -= what.time;
    score.ends += made.when.end;
    // A number for each node, as good as random.
    std::uint64_t name = (static_cast<std::uint64_t>(node) + 1) * 0x9e3779b97f4a7c15U;
    name = (name ^ (name >> 29)) * 0xbf58476d1ce4e5b9U;
    score.set += name ^ (name >> 32);
    const std::int64_t way = made.when.end + tail_[index(node)];
    if (way > score.bound) score.bound = way;
    score.lost -= what.communicates() ? what.time * what.holds : 0;
    std::int64_t lost = score.lost;  // and what is under way still holds behind what was computed
    for (int stream = 1; stream < max_streams; ++stream) {
      const std::int64_t end = made.stream_end(stream);
      const std::int64_t beyond = end - made.stream_end(0);
      if (beyond > 0) lost += beyond * held_on_[stream];
      if (score.left[stream] > 0 && end + score.left[stream] > score.bound)
        score.bound = end + score.left[stream];
    }
    std::int64_t computed = made.stream_end(0) + score.left[0];
    if (with_.multiprocessors > 0) computed += lost / with_.multiprocessors;
    if (computed > score.bound) score.bound = computed;
    return made;
  }

  constexpr op_prefix extended(const longer_prefix& by) const {
    op_prefix made = *by.from;
    const op_node& what = at(by.node);
    made.times.issue(by.node, what, by.when);
    made.missing[index(by.node)] = -1;
    for (const std::int32_t next : waiting_.of(by.node)) --made.missing[index(next)];
    for (const std::int32_t need : needs_.of(by.node))
      if (--made.awaited[index(need)] == 0 && at(need).communicates()) --made.outstanding;
    if (what.communicates() && !waiting_.of(by.node).empty()) ++made.outstanding;
    made.order.push_back(by.node);
    made.score = by.score;
    return made;
  }

  //! Whether whatever follows cannot end later behind `one` than behind `other`: the same ops were
  //! issued, and streams and all that is still awaited are no later.
  constexpr bool as_good(const longer_prefix& one, const longer_prefix& other) const {
    for (int stream = 0; stream < max_streams; ++stream)
      if (one.stream_end(stream) > other.stream_end(stream)) return false;
    for (std::int32_t node = 0; node < graph_.size(); ++node)
      if (one.issued(node) && one.end(node) > other.end(node) && is_awaited(one, node))
        return false;
    return true;
  }
  constexpr bool is_awaited(const longer_prefix& one, std::int32_t node) const {
    for (const std::int32_t next : waiting_.of(node))
      if (!one.issued(next)) return true;
    return false;
  }
  constexpr bool same_ops(const longer_prefix& one, const longer_prefix& other) const {
    if (one.score.set != other.score.set) return false;
    for (std::int32_t node = 0; node < graph_.size(); ++node)
      if (one.issued(node) != other.issued(node)) return false;
    return true;
  }
  //! Of equal bounds, who has more left to put beside communication.
  static constexpr bool better(const prefix_score& one, const prefix_score& other) {
    return one.bound != other.bound       ? one.bound < other.bound
           : one.left[0] != other.left[0] ? one.left[0] > other.left[0]
                                          : one.ends < other.ends;
  }
  //! Of orders of the same ops all but those that another is as good as; where not all can be kept,
  //! the best. By number.
  constexpr std::vector<std::int32_t> without_doubles(const std::vector<longer_prefix>& orders,
                                                      bool everything) const {
    std::vector<std::int32_t> kept;
    for (std::size_t one = 0; one < orders.size(); ++one) {
      const longer_prefix& mine = orders[one];
      bool needed = true;
      for (std::size_t other = 0; other < kept.size() && needed; ++other) {
        const longer_prefix& theirs = orders[index(kept[other])];
        if (!same_ops(mine, theirs)) continue;
        if (everything ? as_good(theirs, mine) : !better(mine.score, theirs.score)) {
          needed = false;
        } else if (!everything || as_good(mine, theirs)) {
          kept[other] = static_cast<std::int32_t>(one);
          needed = false;
        }
      }
      if (needed) kept.push_back(static_cast<std::int32_t>(one));
    }
    return kept;
  }
  constexpr void keep_best(const std::vector<longer_prefix>& orders,
                           std::vector<std::int32_t>& chosen) const {
    const std::size_t width = index(with_.width);
    for (std::size_t place = 0; place < width; ++place)
      for (std::size_t one = place + 1; one < chosen.size(); ++one)
        if (better(orders[index(chosen[one])].score, orders[index(chosen[place])].score)) {
          const std::int32_t held = chosen[place];
          chosen[place] = chosen[one];
          chosen[one] = held;
        }
    while (chosen.size() > width) chosen.pop_back();
  }

  const op_graph& graph_;
  look_ahead_options with_;
  op_neighbours needs_;
  op_neighbours waiting_;
  std::vector<std::int64_t> tail_;
  std::int64_t held_on_[max_streams]{};  // the most that a stream's communication holds
};

}  // namespace detail

//! Orders the ops of a job, or of two that run as one, so that communication lies behind
//! computation: list scheduling that keeps the most promising orders side by side, judged by a
//! lower bound of what each can still become. Where all orders can be kept (few ops, communication
//! that holds no multiprocessors) the result is optimal and says so. Never longer than the order of
//! the programs or that of input_gradient_first, within the bound on collectives under way.
//! @return an empty order when that bound is negative
constexpr op_order look_ahead(const op_graph& graph, const look_ahead_options& with = {}) {
  op_order best;
  if (with.outstanding < 0 || with.width < 1) return best;
  best = detail::look_ahead_search(graph, with).run();
  if (with.outstanding > 0 || best.optimal) return best;
  std::vector<op_span> spans = filled<op_span>(graph.nodes.size());
  const auto offer = [&](const std::vector<std::int32_t>& order) {
    if (!replay_ops(graph, viewed(order), with.multiprocessors, {spans.data(), spans.size()}).ok()) return;
    const std::int64_t makespan = measure_ops(graph, viewed(spans)).makespan;
    if (best.nodes.empty() || makespan < best.makespan) best = {order, makespan, false};
  };
  offer(program_order(graph));
  offer(input_gradient_first(graph));
  return best;
}

}  // namespace stretto::overlap
