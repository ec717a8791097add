#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "stretto/model/replay.hpp"

//! What the rules must find, worked out from their definitions alone and as slowly as need be:
//! every pair of jobs is asked whether one needs the other. Shares no code with the rules.
namespace oracle {

using stretto::job;
using stretto::job_kind;

//! Lists that own their memory and are easy to spoil.
struct lists {
  std::vector<std::vector<job>> ranks{};
  stretto::placement where{};
  int slices = 1;
  bool messages = false;
  stretto::job_table table{};
  std::vector<stretto::rank_group> groups{};
};

//! The lists as the rules read them; alive as long as this is.
class packed {
 public:
  explicit packed(const lists& from) : from_(from) {
    for (const auto& row : from.ranks) stride_ = std::max(stride_, row.size());
    items_.resize(from.ranks.size() * stride_);
    for (std::size_t rank = 0; rank < from.ranks.size(); ++rank) {
      std::copy(from.ranks[rank].begin(), from.ranks[rank].end(),
                items_.begin() + static_cast<std::ptrdiff_t>(rank * stride_));
      counts_.push_back(static_cast<std::int32_t>(from.ranks[rank].size()));
    }
  }
  stretto::replay_input input() const {
    return {.rows = {items_.data(), counts_.data(), static_cast<int>(counts_.size()),
                     static_cast<int>(stride_)},
            .where = from_.where,
            .microbatches = from_.where.microbatches,
            .slices = from_.slices,
            .costs = from_.table.view(),
            .messages = from_.messages,
            .groups = from_.groups};
  }

 private:
  const lists& from_;
  std::size_t stride_ = 1;
  std::vector<job> items_;
  std::vector<std::int32_t> counts_;
};

inline bool makes_gradient(const job& work) {
  return work.kind == job_kind::backward || work.kind == job_kind::backward_input;
}
inline bool same_cell(const job& one, const job& other) {
  return one.stage == other.stage && one.microbatch == other.microbatch && one.slice == other.slice;
}

//! Whether `later` takes what `earlier` makes, or what it brings, within one rank or between two.
inline bool needs(const lists& in, const job& later, const job& earlier) {
  if (later.microbatch != earlier.microbatch) return false;
  const bool here = later.stage == earlier.stage && later.slice == earlier.slice;
  const bool forward = earlier.kind == job_kind::forward;
  const auto neighbour = [&](int stage, job_kind received) {
    if (later.slice != earlier.slice) return false;
    const bool remote = in.where.rank_of(stage, later.microbatch) !=
                        in.where.rank_of(later.stage, later.microbatch);
    if (in.messages && remote) return here && earlier.kind == received;
    return earlier.stage == stage && (stage < later.stage ? forward : makes_gradient(earlier));
  };
  switch (later.kind) {
    case job_kind::forward:
      if (forward && later.stage == earlier.stage && earlier.slice == later.slice - 1) return true;
      return later.stage > 0 && neighbour(later.stage - 1, job_kind::receive_forward);
    case job_kind::backward:
    case job_kind::backward_input:
      if (here && (forward || earlier.kind == job_kind::reload)) return true;
      if (makes_gradient(earlier) && later.stage == earlier.stage &&
          earlier.slice == later.slice + 1)
        return true;
      return later.stage + 1 < in.where.stages() &&
             neighbour(later.stage + 1, job_kind::receive_backward);
    case job_kind::backward_weight:
      return here && earlier.kind == job_kind::backward_input;
    case job_kind::recompute:
    case job_kind::offload:
    case job_kind::send_forward:
      return here && forward;
    case job_kind::reload:
      return here && earlier.kind == job_kind::offload;
    case job_kind::send_backward:
      return here && makes_gradient(earlier);
    default:
      return false;
  }
}

//! Rule `complete`, for lists of F, B, I, W, R, copies and messages: counts every job that should
//! be there.
inline bool complete(const lists& in) {
  std::map<std::tuple<int, int, int, job_kind>, int> count;
  bool any_backward = false;
  for (std::size_t rank = 0; rank < in.ranks.size(); ++rank)
    for (const job& work : in.ranks[rank]) {
      if (work.stage < 0 || work.stage >= in.where.stages() || work.microbatch < 0 ||
          work.microbatch >= in.where.microbatches || work.slice < 0 || work.slice >= in.slices)
        return false;
      if (in.where.rank_of(work.stage, work.microbatch) != static_cast<int>(rank)) return false;
      if (++count[{work.stage, work.microbatch, work.slice, work.kind}] > 1) return false;
      any_backward = any_backward || makes_gradient(work) || work.kind == job_kind::backward_weight;
    }
  for (int stage = 0; stage < in.where.stages(); ++stage)
    for (int microbatch = 0; microbatch < in.where.microbatches; ++microbatch)
      for (int slice = 0; slice < in.slices; ++slice) {
        const auto has = [&](job_kind kind) { return count[{stage, microbatch, slice, kind}]; };
        const int whole = has(job_kind::backward);
        const int input = has(job_kind::backward_input);
        const int weight = has(job_kind::backward_weight);
        if (has(job_kind::forward) != 1 || input != weight) return false;
        if (whole + input != (any_backward ? 1 : 0)) return false;
        if (has(job_kind::recompute) > whole + input) return false;
        const int copied = has(job_kind::offload);
        if (copied != has(job_kind::reload) || copied > whole + input) return false;
        if (copied + has(job_kind::recompute) > 1) return false;
      }
  // Two jobs as one node: a forward and a backward of different micro-batches.
  for (const auto& row : in.ranks)
    for (std::size_t at = 0; at < row.size(); ++at) {
      if (!row[at].paired) continue;
      if (at + 1 == row.size() || row[at + 1].paired) return false;
      const job& one = row[at];
      const job& other = row[at + 1];
      const bool there = one.kind == job_kind::forward && makes_gradient(other);
      const bool back = makes_gradient(one) && other.kind == job_kind::forward;
      if (one.microbatch == other.microbatch || !(there || back)) return false;
    }
  // A recompute that comes after its backward is as good as none.
  for (const auto& row : in.ranks)
    for (std::size_t at = 0; at < row.size(); ++at)
      for (std::size_t before = 0; before < at; ++before)
        if (row[at].kind == job_kind::recompute && makes_gradient(row[before]) &&
            row[before].stage == row[at].stage && row[before].microbatch == row[at].microbatch &&
            row[before].slice == row[at].slice)
          return false;
  return true;
}

//! Which node of its list a job belongs to: the halves of a pair share one.
inline std::vector<std::size_t> nodes(const std::vector<job>& row) {
  std::vector<std::size_t> node(row.size());
  for (std::size_t at = 0, next = 0; at < row.size(); ++at, ++next) {
    node[at] = next;
    if (row[at].paired && at + 1 < row.size()) node[++at] = next;
  }
  return node;
}

//! Rule `ordered`, for complete lists: nothing stands before, or in one node with, what it needs.
inline bool ordered(const lists& in) {
  for (const auto& row : in.ranks) {
    const auto node = nodes(row);
    for (std::size_t at = 0; at < row.size(); ++at)
      for (std::size_t other = 0; other < row.size(); ++other)
        if (needs(in, row[at], row[other]) && node[other] >= node[at]) return false;
  }
  return true;
}

//! Rule `live`, for complete lists without messages: the graph of list order and needs has no
//! circle. Takes away nodes that wait for nothing until none is left, or none can be taken.
inline bool live(const lists& in) {
  struct place {
    std::size_t rank, node;
    bool operator<(const place& other) const {
      return std::tie(rank, node) < std::tie(other.rank, other.node);
    }
  };
  std::map<place, std::set<place>> waits;
  std::vector<std::pair<job, place>> all;
  for (std::size_t rank = 0; rank < in.ranks.size(); ++rank) {
    const auto node = nodes(in.ranks[rank]);
    for (std::size_t at = 0; at < node.size(); ++at) {
      all.push_back({in.ranks[rank][at], {rank, node[at]}});
      auto& before = waits[{rank, node[at]}];
      if (node[at] > 0) before.insert({rank, node[at] - 1});
    }
  }
  for (const auto& [later, at] : all)
    for (const auto& [earlier, from] : all)
      if (needs(in, later, earlier)) waits[at].insert(from);
  while (!waits.empty()) {
    const auto free = std::find_if(waits.begin(), waits.end(),
                                   [](const auto& entry) { return entry.second.empty(); });
    if (free == waits.end()) return false;
    const place gone = free->first;
    waits.erase(free);
    for (auto& [at, before] : waits) before.erase(gone);
  }
  return true;
}

//! The most memory that a rank uses down to job `end` of its list, by adding up everything before
//! each job again.
inline std::int64_t highest(const lists& in, std::size_t rank, std::size_t end = ~std::size_t{0}) {
  const auto& row = in.ranks[rank];
  const auto node = nodes(row);
  const auto of = [&](const job& work, job_kind kind) {
    return in.table.view().at(static_cast<int>(rank), in.where.chunk_of(work), kind);
  };
  // A forward that runs again leaves to that run what that brings back.
  const auto cost = [&](const job& work) {
    auto found = of(work, work.kind);
    for (const job& again : row)
      if (work.kind == job_kind::forward && again.kind == job_kind::recompute &&
          again.stage == work.stage && again.microbatch == work.microbatch &&
          again.slice == work.slice)
        found.change -= of(work, job_kind::recompute).change;
    return found;
  };
  const std::int64_t base = in.table.view().base_of(static_cast<int>(rank));
  std::int64_t most = base;
  for (std::size_t at = 0; at < std::min(end, row.size()); ++at) {
    std::int64_t before = base, during = 0, after = 0;
    for (std::size_t other = 0; other < row.size(); ++other) {
      if (!has_cost(row[other].kind)) continue;
      const auto taken = cost(row[other]);
      if (node[other] < node[at]) before += taken.change;
      if (node[other] != node[at]) continue;
      after += taken.change;
      const bool at_once = row[other].kind == job_kind::forward ||
                           row[other].kind == job_kind::recompute ||
                           row[other].kind == job_kind::reload;
      const auto all = of(row[other], row[other].kind).change;
      during += std::max(!at_once ? 0 : taken.peak > 0 ? taken.change : all, taken.peak);
    }
    most = std::max({most, before + during, before + after});
  }
  return most;
}

}  // namespace oracle
