#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "stretto/base/saturated.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/shape.hpp"

namespace stretto {

//! What one job takes. Integers in any unit, per chunk job.
struct job_cost {
  std::int64_t time = 0;
  //! Memory that is in use after the job and was not before it; below zero where it frees more than
  //! it takes. Counted from the start of a forward, a recompute, a reload or an unshard, from the
  //! end of every other job. A forward that is recomputed keeps its own change less that of the
  //! recompute.
  std::int64_t change = 0;
  //! Most memory in use while the job runs, above what was at its start; 0: `change`, also of a
  //! forward that is recomputed.
  std::int64_t peak = 0;

  constexpr bool operator==(const job_cost&) const = default;
};

//! What a message takes from one rank to another. Ranks 0 to n - 1 are of one node, n to 2 n - 1 of
//! the next, and so on.
struct hop_times {
  std::int64_t within = 0;   //!< a node
  std::int64_t between = 0;  //!< two nodes
  int node_ranks = 0;        //!< n; 0: all ranks are of one

  constexpr bool operator==(const hop_times&) const = default;
  constexpr std::int64_t operator()(int from, int to) const {
    return node_ranks == 0 || from / node_ranks == to / node_ranks ? within : between;
  }
  //! The longest that there is among so many ranks.
  constexpr std::int64_t longest(int ranks) const {
    return node_ranks > 0 && node_ranks < ranks && between > within ? between : within;
  }
};

//! The kinds of jobs that have an entry in the job table are the first so many.
inline constexpr int cost_kinds = static_cast<int>(job_kind::unshard) + 1;
//! A limit of memory that is none.
inline constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

//! The job table that schedules and simulations read: one job_cost per (rank, chunk, kind with a
//! cost), the times of hops between different ranks, and per rank a base and a limit of memory
//! (empty: 0 and unlimited).
struct job_table_view {
  std::span<const job_cost> entries;
  int ranks = 0;
  int chunks = 0;
  std::int64_t communication = 0;
  std::span<const std::int64_t> base;
  std::span<const std::int64_t> limit;
  int pair_hides = 0;  //!< see unit_costs
  //! Micro-batches of different lengths, or slices of one, are of different classes: which each is
  //! of, by microbatch * slices + slice; empty: all are of class 0. `entries` then has a table for
  //! each class, one behind another. Passes of searches plan by that of class 0, which is best the
  //! largest; times, memory, bounds and the choice between orders go by each job's own.
  std::span<const std::int32_t> classes{};
  int slices = 1;  //!< of a micro-batch, in `classes`
  std::int64_t between_nodes = 0;  //!< see unit_costs
  int node_ranks = 0;
  bool serial_links = false;

  //! No time is longer, and with more than 2^14 jobs of a kind none than 2^60 over their number:
  //! sums over all jobs, of whatever kind, and their messages then stay in 64 bits.
  static constexpr std::int64_t most_time = std::int64_t{1} << 46;
  //! And no job changes memory by more, up or down.
  static constexpr std::int64_t most_memory = most_time;

  //! Whether every job of so many ranks' lists has an entry: there is its class, too.
  constexpr bool serves(int ranks_of, int chunks_of, int microbatches, int slices_of) const {
    if (ranks < ranks_of || chunks < chunks_of ||
        static_cast<std::int64_t>(entries.size()) < class_entries())
      return false;
    if (classes.empty()) return true;
    const std::int64_t count = class_count();
    for (const std::int32_t one : classes)
      if (one < 0 || one >= count) return false;
    return slices == slices_of &&
           static_cast<std::int64_t>(classes.size()) == std::int64_t{microbatches} * slices_of;
  }
  //! Entries of one class.
  constexpr std::int64_t class_entries() const { return std::int64_t{ranks} * chunks * cost_kinds; }
  constexpr std::int64_t class_count() const {
    const std::int64_t each = class_entries();
    return classes.empty() || each <= 0 ? 1 : static_cast<std::int64_t>(entries.size()) / each;
  }
  //! The table of one class, as if all were of it.
  constexpr job_table_view of_class(std::int64_t number) const {
    job_table_view made = *this;
    made.entries = entries.subspan(static_cast<std::size_t>(number * class_entries()),
                                   static_cast<std::size_t>(class_entries()));
    made.classes = {};
    return made;
  }
  //! As if links carried any number of messages at once.
  constexpr job_table_view at_once() const {
    job_table_view made = *this;
    made.serial_links = false;
    return made;
  }
  //! What a message takes from rank to rank.
  constexpr hop_times hops() const { return {communication, between_nodes, node_ranks}; }
  //! Time of a pair whose halves take so long alone.
  constexpr std::int64_t pair_time(std::int64_t one, std::int64_t other) const {
    const std::int64_t shorter = one < other ? one : other;
    return one + other - shorter * pair_hides / 100;
  }
  constexpr const job_cost& at(int rank, int chunk, job_kind kind) const {
    return entries.data()[(rank * chunks + chunk) * cost_kinds + static_cast<int>(kind)];
  }
  //! What a job takes, by the class of its micro-batch and slice, which there are.
  constexpr const job_cost& of(int rank, int chunk, const job& work) const {
    const job_cost& first = at(rank, chunk, work.kind);
    return classes.empty() ? first : (&first)[class_offset(work)];
  }
  //! From the entries of class 0 to those of the job's.
  constexpr std::int64_t class_offset(const job& work) const {
    return classes.data()[std::int64_t{work.microbatch} * slices + work.slice] * class_entries();
  }
  constexpr std::int64_t base_of(int rank) const {
    return static_cast<std::size_t>(rank) < base.size() ? base[static_cast<std::size_t>(rank)] : 0;
  }
  constexpr std::int64_t limit_of(int rank) const {
    return static_cast<std::size_t>(rank) < limit.size() ? limit[static_cast<std::size_t>(rank)]
                                                         : unlimited;
  }
};

//! The same costs for every rank and chunk. A whole backward costs, and releases, what its halves
//! do one after the other, less `whole_saves`; a recompute costs a forward, less `recompute_saves`.
struct unit_costs {
  std::int64_t forward = 1;
  std::int64_t backward_input = 1;
  std::int64_t backward_weight = 1;
  std::int64_t communication = 0;
  std::int64_t memory_forward = 1;
  std::int64_t memory_backward_input = 0;
  std::int64_t memory_backward_weight = -1;
  //! What a forward does not keep when it runs a second time, and that second run brings back.
  std::int64_t memory_recompute = 1;
  //! Time of one copy to the host or back, which runs beside the jobs, and what it moves.
  std::int64_t offload = 1;
  std::int64_t memory_offload = 1;
  //! Time of the sum of one stage's gradients over all replicas of it, beside the jobs.
  std::int64_t reduce_grad = 0;
  //! Time of gathering one stage's weights where its data-parallel replicas hold a part each,
  //! beside the jobs, and the room that they take, from its start until they are dropped.
  std::int64_t unshard = 0;
  std::int64_t memory_unshard = 0;
  //! Of one stage: weights, their gradients, what the optimizer keeps. In use from beginning to
  //! end, for every stage that a rank holds, replicas too.
  std::int64_t memory_weights = 0;
  //! How much of the shorter half of a pair the longer one hides, in percent. Measured, not
  //! assumed: nothing by default; 100 makes a pair as long as its longer half.
  int pair_hides = 0;
  //! Time that a whole backward takes less than its halves one after the other: what both read is
  //! read once. Measured, not assumed: nothing by default.
  std::int64_t whole_saves = 0;
  //! Time that a forward takes less when it runs a second time: what it kept it does not do again.
  std::int64_t recompute_saves = 0;
  //! How many ranks a node has, in their order (0: all are of one), and what a message takes
  //! between ranks of different nodes; `communication` is then what it takes within one.
  int node_ranks = 0;
  std::int64_t between_nodes = 0;
  //! Whether a rank's messages to another one follow one another, as on one stream: each leaves
  //! when the one before is there. Otherwise any number are on their way at once. Replays and
  //! bounds go by it, and what emit_jobs (so the pipeline, too) takes of the orders of a search,
  //! some of which are made with an eye to it; a schedule's own emit() knows nothing of it. A
  //! message that waits for its receive (a receive lead) holds up none behind it.
  bool serial_links = false;

  constexpr bool operator==(const unit_costs&) const = default;
  //! A micro-batch's forward and whole backward.
  constexpr std::int64_t both_ways() const {
    return saturated_sum(forward, of(job_kind::backward).time);
  }
  constexpr job_cost of(job_kind kind) const {
    switch (kind) {
      case job_kind::forward: return {forward, memory_forward, 0};
      case job_kind::backward_input: return {backward_input, memory_backward_input, 0};
      case job_kind::backward_weight: return {backward_weight, memory_backward_weight, 0};
      case job_kind::backward:
        return {saturated_sum(saturated_sum(backward_input, backward_weight),
                              saturated_negative(whole_saves)),
                saturated_sum(memory_backward_input, memory_backward_weight),
                memory_backward_input > 0 ? memory_backward_input : 0};
      case job_kind::recompute:
        return {saturated_sum(forward, saturated_negative(recompute_saves)), memory_recompute, 0};
      case job_kind::offload: return {offload, saturated_negative(memory_offload), 0};
      case job_kind::reload: return {offload, memory_offload, 0};
      case job_kind::reduce_grad: return {reduce_grad, 0, 0};
      case job_kind::unshard: return {unshard, memory_unshard, 0};
      default: return {};
    }
  }
};

//! A job table sized at compile time.
template <int Ranks, int Chunks>
struct fixed_job_table {
  std::array<job_cost, static_cast<std::size_t>(Ranks * Chunks * cost_kinds)> entries{};
  std::array<std::int64_t, static_cast<std::size_t>(Ranks)> base{};
  std::int64_t communication = 0;
  int pair_hides = 0;
  std::int64_t between_nodes = 0;
  int node_ranks = 0;
  bool serial_links = false;

  constexpr fixed_job_table() : fixed_job_table(unit_costs{}) {}
  constexpr explicit fixed_job_table(const unit_costs& costs)
      : communication(costs.communication),
        pair_hides(costs.pair_hides),
        between_nodes(costs.between_nodes),
        node_ranks(costs.node_ranks),
        serial_links(costs.serial_links) {
    for (std::int64_t& one : base) one = saturated_product(Chunks, costs.memory_weights);
    for (std::size_t at = 0; at < entries.size(); ++at)
      entries[at] = costs.of(static_cast<job_kind>(at % cost_kinds));
  }
  constexpr job_table_view view() const {
    return {entries, Ranks, Chunks, communication, base,         {},
            pair_hides, {},  1,      between_nodes, node_ranks, serial_links};
  }
};

//! A job table sized at run time; `base` and `limit` are empty or hold one entry per rank.
struct job_table {
  std::vector<job_cost> entries;
  int ranks = 0;
  int chunks = 0;
  std::int64_t communication = 0;
  std::vector<std::int64_t> base;
  std::vector<std::int64_t> limit;
  int pair_hides = 0;
  std::vector<std::int32_t> classes;  //!< see job_table_view; add_class() makes room for one
  int slices = 1;
  std::int64_t between_nodes = 0;  //!< see unit_costs
  int node_ranks = 0;
  bool serial_links = false;

  constexpr job_table() = default;
  //! Of sizes below 1, or of more stages than a step can have, it has no entries: whoever is given
  //! the shape says what is wrong with it.
  constexpr job_table(int ranks_, int chunks_, const unit_costs& costs = {})
      : entries(ranks_ < 1 || chunks_ < 1 || chunks_ > 2 * shape::most_jobs / ranks_
                    ? 0
                    : static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(chunks_) *
                          cost_kinds),
        ranks(ranks_),
        chunks(chunks_),
        communication(costs.communication),
        pair_hides(costs.pair_hides),
        between_nodes(costs.between_nodes),
        node_ranks(costs.node_ranks),
        serial_links(costs.serial_links) {
    for (std::size_t at = 0; at < entries.size(); ++at)
      entries[at] = costs.of(static_cast<job_kind>(at % cost_kinds));
    if (costs.memory_weights != 0 && !entries.empty())
      base.assign(static_cast<std::size_t>(ranks), saturated_product(chunks, costs.memory_weights));
  }
  constexpr job_cost& at(int rank, int chunk, job_kind kind) {
    return entries[static_cast<std::size_t>((rank * chunks + chunk) * cost_kinds +
                                            static_cast<int>(kind))];
  }
  //! A class more, which takes what class 0 does until its entries say otherwise. @return its
  //! number
  constexpr int add_class() {
    const auto each = static_cast<std::size_t>(ranks * chunks * cost_kinds);
    const std::size_t before = entries.size();
    for (std::size_t at = 0; at < each; ++at) entries.push_back(job_cost{entries[at]});
    return static_cast<int>(before / each);
  }
  constexpr job_cost& at(int of_class, int rank, int chunk, job_kind kind) {
    return entries[static_cast<std::size_t>(
        ((of_class * ranks + rank) * chunks + chunk) * cost_kinds + static_cast<int>(kind))];
  }
  constexpr job_table_view view() const {
    return {viewed(entries), ranks,           chunks, communication, viewed(base), viewed(limit),
            pair_hides,      viewed(classes), slices, between_nodes, node_ranks,   serial_links};
  }
};

}  // namespace stretto
