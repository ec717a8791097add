#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/lowering/streams/begun_order.hpp"
#include "stretto/lowering/streams/input_gradient_first.hpp"
#include "stretto/lowering/streams/under_way.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/op_replay.hpp"

namespace stretto::overlap {

//! What a look ahead may do, and on what.
struct look_ahead_options {
  int multiprocessors = 0;  //!< see op_times
  int outstanding = 0;      //!< most collectives issued whose results are still awaited; 0: any
  int width = 12;           //!< orders begun that are kept side by side
};

//! An order of issue, and what it takes.
struct op_order {
  std::vector<std::int32_t> nodes;
  std::int64_t makespan = 0;
  bool optimal = false;  //!< no order of these ops on these streams is shorter, within the bound on
                         //!< collectives under way

  constexpr ~op_order() = default;  // nvcc does not find it constexpr by itself
};

namespace detail {

class look_ahead_search {
 public:
  //! @param below  orders that take as long, or longer, are not looked for
  constexpr look_ahead_search(const op_graph& graph, const look_ahead_options& with,
                              std::int64_t below)
      : graph_(graph),
        with_(with),
        below_(below),
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
    begun_order empty(graph_.size(), with_.multiprocessors);
    for (std::int32_t node = 0; node < graph_.size(); ++node) {
      if (needs_.of(node).empty()) empty.ready.push_back(node);
      empty.nodes[index(node)] = {static_cast<std::int16_t>(needs_.of(node).size()),
                                  static_cast<std::int16_t>(waiting_.of(node).size())};
      empty.score.left[at(node).stream] += at(node).time;
      if (at(node).communicates()) empty.score.lost += at(node).time * at(node).holds;
    }
    std::vector<begun_order> kept{empty};
    std::vector<issued_node> history;
    bool all_kept = with_.multiprocessors == 0;  // else a later start may be better
    for (int depth = 0; depth < graph_.size(); ++depth) {
      std::vector<longer_order> longer;
      for (const begun_order& one : kept) extend(one, longer, all_kept);
      if (longer.empty()) return {};  // none is short enough, or within the bound on collectives
      std::vector<std::int32_t> chosen = without_doubles(longer, all_kept);
      if (chosen.size() > index(with_.width)) {
        if (all_kept) chosen = without_doubles(longer, false);
        all_kept = false;
        keep_best(longer, chosen);
      }
      // Copied, not assigned: nvcc cannot assign vectors in constant expressions.
      std::vector<begun_order> next;
      next.reserve(chosen.size());
      for (const std::int32_t one : chosen) next.push_back(extended(longer[index(one)], history));
      kept.swap(next);
    }
    const begun_order* best = &kept.front();
    for (const begun_order& one : kept)
      if (one.times.makespan() < best->times.makespan()) best = &one;
    std::vector<std::int32_t> order = filled<std::int32_t>(graph_.nodes.size());
    std::int32_t last = best->last;
    for (std::size_t place = order.size(); place-- > 0; last = history[index(last)].before)
      order[place] = history[index(last)].node;
    return {order, best->times.makespan(), all_kept};
  }

 private:
  static constexpr std::size_t index(std::int32_t of) { return static_cast<std::size_t>(of); }
  constexpr const op_node& at(std::int32_t node) const { return graph_.nodes[index(node)]; }
  static constexpr int choices = 8;  // computing ops tried behind an order that is not kept whole

  constexpr void extend(const begun_order& one, std::vector<longer_order>& longer,
                        bool everything) const {
    std::int32_t best[choices];
    int found = 0;
    for (const std::int32_t node : one.ready) {
      if (at(node).communicates()) {
        if (with_.outstanding == 0 || waiting_.of(node).empty() ||
            one.outstanding - last_awaited_by(one, node) < with_.outstanding)
          begin(one, node, longer);
      } else if (everything) {
        begin(one, node, longer);
      } else {
        // Those with the longest way to the end; of equals the first.
        int place = found < choices ? found++ : choices;
        for (; place > 0 && tail_[index(best[place - 1])] < tail_[index(node)]; --place)
          if (place < choices) best[place] = best[place - 1];
        if (place < choices) best[place] = node;
      }
    }
    for (int place = 0; place < found; ++place) begin(one, best[place], longer);
  }
  //! Communication under way that nothing else still awaits.
  constexpr int last_awaited_by(const begun_order& one, std::int32_t node) const {
    int count = 0;
    for (const std::int32_t need : needs_.of(node))
      if (at(need).communicates() && one.nodes[index(need)].awaited == 1) ++count;
    return count;
  }
  constexpr void begin(const begun_order& one, std::int32_t node,
                       std::vector<longer_order>& longer) const {
    const longer_order made = scored(one, node);
    if (made.score.least < below_) longer.push_back(made);
  }

  constexpr longer_order scored(const begun_order& one, std::int32_t node) const {
    const op_node& what = at(node);
    longer_order made{&one, node, one.times.run_of(what, needs_.of(node)), what.stream, what.link,
                      one.score};
    order_score& score = made.score;
    score.left[what.stream] -= what.time;
    score.ends += made.when.end;
    // A number for each node, as good as random.
    std::uint64_t name = (static_cast<std::uint64_t>(node) + 1) * 0x9e3779b97f4a7c15U;
    name = (name ^ (name >> 29)) * 0xbf58476d1ce4e5b9U;
    score.set += name ^ (name >> 32);
    const auto at_least = [&](std::int64_t time) {
      if (time > score.least) score.least = time;
    };
    at_least(made.when.end + tail_[index(node)]);
    score.lost -= what.communicates() ? what.time * what.holds : 0;
    std::int64_t lost = score.lost;  // and what is under way still holds behind what was computed
    for (int stream = 1; stream < max_streams; ++stream) {
      const std::int64_t end = made.stream_end(stream);
      const std::int64_t beyond = end - made.stream_end(0);
      if (beyond > 0) lost += beyond * held_on_[stream];
      if (score.left[stream] > 0) at_least(end + score.left[stream]);
    }
    const std::int64_t computed = made.stream_end(0) + score.left[0];
    at_least(computed);
    if (score.least > score.bound) score.bound = score.least;
    if (with_.multiprocessors > 0 && computed + lost / with_.multiprocessors > score.bound)
      score.bound = computed + lost / with_.multiprocessors;
    return made;
  }

  constexpr begun_order extended(const longer_order& by, std::vector<issued_node>& history) const {
    begun_order made = *by.from;
    const op_node& what = at(by.node);
    made.times.issue(by.node, what, by.when);
    made.issued[index(by.node) / 64] |= std::uint64_t{1} << index(by.node) % 64;
    drop(made.ready, by.node);
    for (const std::int32_t next : waiting_.of(by.node))
      if (--made.nodes[index(next)].missing == 0) put(made.ready, next);
    for (const std::int32_t need : needs_.of(by.node))
      if (--made.nodes[index(need)].awaited == 0 && at(need).communicates()) --made.outstanding;
    if (what.communicates() && !waiting_.of(by.node).empty()) ++made.outstanding;
    made.last = static_cast<std::int32_t>(history.size());
    history.push_back({by.node, by.from->last});
    made.score = by.score;
    return made;
  }

  static constexpr void drop(std::vector<std::int32_t>& ascending, std::int32_t node) {
    std::size_t place = 0;
    while (ascending[place] != node) ++place;
    for (; place + 1 < ascending.size(); ++place) ascending[place] = ascending[place + 1];
    ascending.pop_back();
  }
  static constexpr void put(std::vector<std::int32_t>& ascending, std::int32_t node) {
    ascending.push_back(node);
    for (std::size_t place = ascending.size() - 1; place > 0 && ascending[place - 1] > node;
         --place) {
      ascending[place] = ascending[place - 1];
      ascending[place - 1] = node;
    }
  }

  //! Whether whatever follows cannot end later behind `one` than behind `other`: the same ops were
  //! issued, and streams, links and all that is still awaited are no later.
  constexpr bool as_good(const longer_order& one, const longer_order& other) const {
    for (int stream = 0; stream < max_streams; ++stream)
      if (one.stream_end(stream) > other.stream_end(stream)) return false;
    for (int link = 1; link <= max_links; ++link)
      if (one.link_end(link) > other.link_end(link)) return false;
    for (std::int32_t node = 0; node < graph_.size(); ++node)
      if (one.issued(node) && one.end(node) > other.end(node) && is_awaited(one, node))
        return false;
    return true;
  }
  constexpr bool is_awaited(const longer_order& one, std::int32_t node) const {
    for (const std::int32_t next : waiting_.of(node))
      if (!one.issued(next)) return true;
    return false;
  }
  constexpr bool same_ops(const longer_order& one, const longer_order& other) const {
    if (one.score.set != other.score.set) return false;
    for (std::size_t word = 0; word < one.from->issued.size(); ++word)
      if (one.issued_word(word) != other.issued_word(word)) return false;
    return true;
  }
  //! Of equal bounds, who has more left to put beside communication.
  static constexpr bool better(const order_score& one, const order_score& other) {
    return one.bound != other.bound       ? one.bound < other.bound
           : one.left[0] != other.left[0] ? one.left[0] > other.left[0]
                                          : one.ends < other.ends;
  }
  //! Of orders of the same ops all but those that another is as good as; where not all can be kept,
  //! the best. By number.
  constexpr std::vector<std::int32_t> without_doubles(const std::vector<longer_order>& orders,
                                                      bool everything) const {
    std::vector<std::int32_t> kept;
    for (std::size_t one = 0; one < orders.size(); ++one) {
      const longer_order& mine = orders[one];
      bool needed = true;
      for (std::size_t other = 0; other < kept.size() && needed; ++other) {
        const longer_order& theirs = orders[index(kept[other])];
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
  constexpr void keep_best(const std::vector<longer_order>& orders,
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
  std::int64_t below_;
  op_neighbours needs_;
  op_neighbours waiting_;
  std::vector<std::int64_t> tail_;
  std::int64_t held_on_[max_streams]{};  // the most that a stream's communication holds
};

//! look_ahead's, if it takes less than `below`; else an empty order.
constexpr op_order look_ahead_below(const op_graph& graph, const look_ahead_options& with,
                                    std::int64_t below) {
  op_order best;
  if (with.outstanding < 0 || with.width < 1) return best;
  best = look_ahead_search(graph, with, below).run();
  if (best.optimal) return best;
  std::vector<op_span> spans = filled<op_span>(graph.nodes.size());
  const auto offer = [&](const std::vector<std::int32_t>& order) {
    if (!replay_ops(graph, viewed(order), with.multiprocessors, {spans.data(), spans.size()})
             .ok() ||
        (with.outstanding > 0 && most_under_way(graph, viewed(order)) > with.outstanding))
      return;
    const std::int64_t makespan = measure_ops(graph, viewed(spans)).makespan;
    if (makespan < (best.nodes.empty() ? below : best.makespan)) best = {order, makespan, false};
  };
  offer(program_order(graph));
  offer(input_gradient_first(graph));
  return best;
}

}  // namespace detail

//! Orders the ops of a job, or of two that run as one, so that communication lies behind
//! computation: list scheduling that keeps the most promising orders side by side, judged by a
//! lower bound of what each can still become. Where all orders can be kept (few ops, communication
//! that holds no multiprocessors) the result is optimal and says so. Never longer than the order of
//! the programs or that of input_gradient_first, within the bound on collectives under way.
//! @return an empty order when that bound is negative
constexpr op_order look_ahead(const op_graph& graph, const look_ahead_options& with = {}) {
  return detail::look_ahead_below(graph, with, std::numeric_limits<std::int64_t>::max());
}

}  // namespace stretto::overlap
