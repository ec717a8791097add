#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "stretto/model/job.hpp"

//! Random small programs of 2 to 4 ranks, sound and spoilt.
namespace oracle {

using stretto::job;
using stretto::job_kind;

//! A random program: job lists with messages, and where the stages lie.
struct lists {
  std::vector<std::vector<job>> ranks{};
  std::vector<std::int32_t> rank_of{};  // of every stage
  int microbatches = 1;
  int slices = 1;
  std::vector<std::vector<std::int32_t>> groups{};

  int stages() const { return static_cast<int>(rank_of.size()); }
  int holder(int stage) const { return rank_of[static_cast<std::size_t>(stage)]; }
};

class generator {
 public:
  explicit generator(unsigned seed) : random_(seed) {}

  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  bool one_in(int count) { return below(count) == 0; }

  //! Stages, micro-batches, slices and groups, with nothing to do yet.
  lists empty() {
    lists made;
    made.ranks.resize(static_cast<std::size_t>(2 + below(3)));
    const int ranks = static_cast<int>(made.ranks.size());
    const int stages = 2 + below(ranks + 1);
    for (int stage = 0; stage < stages; ++stage)
      made.rank_of.push_back(one_in(2) ? below(ranks) : stage % ranks);
    made.slices = one_in(4) ? 2 : 1;
    made.microbatches = 1 + below(made.slices == 2 ? 2 : 3);
    for (int group = below(5) - 2; group > 0; --group) {
      auto& members = made.groups.emplace_back();
      while (members.size() < 2) {
        members.clear();
        for (int rank = 0; rank < ranks; ++rank)
          if (!one_in(3)) members.push_back(rank);
      }
    }
    return made;
  }

  //! Something that ranks do together, after what it needs.
  struct node {
    std::vector<std::pair<int, job>> halves{};
    std::vector<std::size_t> after{};
  };
  //! All jobs, messages and collectives; each message is one node, each collective is one.
  std::vector<node> graph(const lists& in) {
    const int style = below(3);  // 0: forwards, 1: and whole backwards, 2: and split ones
    std::vector<node> nodes;
    std::vector<std::size_t> forward(cells(in)), arrived(cells(in)), backward(cells(in));
    const auto add = [&](node made) {
      nodes.push_back(std::move(made));
      return nodes.size() - 1;
    };
    const auto message = [&](job sent, int to, std::size_t maker) {
      if (in.holder(sent.stage) == in.holder(to)) return maker;
      return add({{{in.holder(sent.stage), sent}, {in.holder(to), matching_receive(sent)}},
                  {maker}});
    };
    for_cells(in, [&](job work) {
      node made{{{in.holder(work.stage), work}}, {}};
      if (work.stage > 0) made.after.push_back(arrived[cell(in, work, -1)]);
      if (work.slice > 0) made.after.push_back(forward[cell(in, work) - 1]);
      forward[cell(in, work)] = add(made);
      if (work.stage + 1 == in.stages()) return;
      const std::size_t maker = forward[cell(in, work)];
      work.kind = job_kind::send_forward;
      arrived[cell(in, work)] = message(work, work.stage + 1, maker);
    });
    for_cells(in, [&](job work) {
      if (style == 0) return;
      work.stage = in.stages() - 1 - work.stage;
      work.slice = static_cast<std::int16_t>(in.slices - 1 - work.slice);
      work.kind = style == 1 ? job_kind::backward : job_kind::backward_input;
      const int here = in.holder(work.stage);
      node made{{{here, work}}, {forward[cell(in, work)]}};
      if (work.stage + 1 < in.stages()) made.after.push_back(arrived[cell(in, work, 1)]);
      if (work.slice + 1 < in.slices) made.after.push_back(backward[cell(in, work) + 1]);
      backward[cell(in, work)] = add(made);
      const std::size_t maker = backward[cell(in, work)];
      if (style == 2) {
        work.kind = job_kind::backward_weight;
        add({{{here, work}}, {maker}});
      }
      work.kind = job_kind::send_backward;
      if (work.stage > 0) arrived[cell(in, work)] = message(work, work.stage - 1, maker);
    });
    for (std::size_t group = 0; group < in.groups.size(); ++group) {
      node made;
      for (std::int32_t member : in.groups[group])
        made.halves.push_back(
            {member, {0, static_cast<std::int32_t>(group), 0, job_kind::all_reduce}});
      add(made);
    }
    return nodes;
  }

  //! Any order in which nothing stands before what it needs.
  std::vector<std::size_t> order(const std::vector<node>& nodes) {
    std::vector<std::size_t> made, ready, missing(nodes.size());
    for (std::size_t at = 0; at < nodes.size(); ++at) {
      missing[at] = nodes[at].after.size();
      if (missing[at] == 0) ready.push_back(at);
    }
    const bool hasty = one_in(2);  // what has just become possible first
    while (!ready.empty()) {
      const int pick = hasty && !one_in(3) ? static_cast<int>(ready.size()) - 1
                                           : below(static_cast<int>(ready.size()));
      const std::size_t done = ready[static_cast<std::size_t>(pick)];
      ready.erase(ready.begin() + pick);
      made.push_back(done);
      for (std::size_t at = 0; at < nodes.size(); ++at)
        for (std::size_t needed : nodes[at].after)
          if (needed == done && --missing[at] == 0) ready.push_back(at);
    }
    return made;
  }

  //! Every rank issues its part of one global order.
  void from_one_order(lists& into) {
    const auto nodes = graph(into);
    for (std::size_t at : order(nodes))
      for (const auto& [rank, work] : nodes[at].halves)
        into.ranks[static_cast<std::size_t>(rank)].push_back(work);
  }
  //! Every rank issues its part of another order.
  void from_own_orders(lists& into) {
    const auto nodes = graph(into);
    for (int rank = 0; rank < static_cast<int>(into.ranks.size()); ++rank)
      for (std::size_t at : order(nodes))
        for (const auto& [holder, work] : nodes[at].halves)
          if (holder == rank) into.ranks[static_cast<std::size_t>(rank)].push_back(work);
  }

  //! One thing is put elsewhere, lost, doubled, or becomes another message; or two jobs become one
  //! node.
  void scramble(lists& spoiled) {
    const int ranks = static_cast<int>(spoiled.ranks.size());
    auto& row = spoiled.ranks[static_cast<std::size_t>(below(ranks))];
    if (row.size() < 2) return;
    const int count = static_cast<int>(row.size());
    const auto one = row.begin() + below(count);
    switch (below(8)) {
      case 0:
      case 1: {
        const auto next = row.begin() + below(count - 1);
        std::iter_swap(next, next + 1);
        break;
      }
      case 2: std::iter_swap(one, row.begin() + below(count)); break;
      case 3: {
        const auto other = row.begin() + below(count);
        if (one < other) std::rotate(one, one + 1, other + 1);
        else std::rotate(other, one, one + 1);
        break;
      }
      case 4: row.erase(one); break;
      case 5: row.insert(row.begin() + below(count + 1), job(*one)); break;
      case 6:
        if (is_message(one->kind)) one->microbatch = below(spoiled.microbatches);
        break;
      case 7:
        for (std::size_t at = 0; at + 1 < row.size(); ++at)
          if (is_compute(row[at].kind) && is_compute(row[at + 1].kind) && one_in(2)) {
            row[at].paired = true;
            break;
          }
        break;
    }
    // A pair that lost its second half, or got a message for one, is no pair.
    for (std::size_t at = 0; at < row.size(); ++at)
      if (row[at].paired && (at + 1 == row.size() || !is_compute(row[at + 1].kind)))
        row[at].paired = false;
  }

  static std::size_t cells(const lists& in) {
    return static_cast<std::size_t>(in.stages() * in.microbatches * in.slices);
  }
  static std::size_t cell(const lists& in, const job& work, int stages_on = 0) {
    return static_cast<std::size_t>(
        ((work.stage + stages_on) * in.microbatches + work.microbatch) * in.slices + work.slice);
  }

 private:
  template <class Visitor>
  static void for_cells(const lists& in, Visitor&& visit) {
    for (int stage = 0; stage < in.stages(); ++stage)
      for (int microbatch = 0; microbatch < in.microbatches; ++microbatch)
        for (int slice = 0; slice < in.slices; ++slice)
          visit(job{stage, microbatch, static_cast<std::int16_t>(slice), job_kind::forward});
  }

  std::mt19937 random_;
};

}  // namespace oracle
