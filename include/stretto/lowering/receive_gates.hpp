#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! Counts the nodes, jobs or pairs of them, of lists that are walked one job after the other.
class node_counter {
 public:
  //! @param ranks  zero: nothing is counted
  constexpr explicit node_counter(int ranks) : nodes_(ranks), open_(ranks) {}
  constexpr ~node_counter() = default;  // nvcc does not find it constexpr by itself

  //! The next job of `rank`, which computes. @return the number of its node
  constexpr std::int32_t come(int rank, const job& work) {
    const std::int32_t node = open_[rank] ? nodes_[rank] - 1 : nodes_[rank]++;
    open_[rank] = work.paired && !open_[rank];
    return node;
  }
  constexpr std::int32_t count(int rank) const { return nodes_[rank]; }

 private:
  scratch<std::int32_t> nodes_;
  scratch<bool> open_;  // the first half of a pair has come
};

//! The node of its rank behind which a message's receive is posted (replay_input::receive_lead).
class receive_gates {
 public:
  static constexpr std::int32_t none = -1;  //!< it may be posted as the step begins

  //! @param input  lists with or without messages; nothing is kept when there is no lead
  constexpr explicit receive_gates(const replay_input& input)
      : microbatches_(input.microbatches),
        slices_(input.slices),
        stages_(input.where.stages()),
        gates_(input.receive_lead < 0
                   ? 0
                   : 2 * std::int64_t{stages_} * input.microbatches * input.slices) {
    if (input.receive_lead < 0) return;
    node_counter nodes(input.rows.ranks);
    for (int rank = 0; rank < input.rows.ranks; ++rank)
      for (std::int32_t at = 0; at < input.rows.counts[rank]; ++at) {
        const job& work = input.rows.at(rank, at);
        if (work.kind > job_kind::recompute) continue;
        const std::int32_t node = nodes.come(rank, work);
        if (node > input.receive_lead && input.receives(work))
          gates_[place(work.stage, work, work.kind == job_kind::forward)] =
              node - input.receive_lead;
      }
  }
  constexpr ~receive_gates() = default;  // nvcc does not find it constexpr by itself

  //! Of the input (`ahead`) or the output gradient of `stage`, for the micro-batch of `work`: the
  //! number of the node, or none.
  constexpr std::int32_t of(int stage, const job& work, bool ahead) const {
    return gates_.size() == 0 ? none : gates_[place(stage, work, ahead)] - 1;
  }

 private:
  constexpr std::int64_t place(int stage, const job& work, bool ahead) const {
    return ((std::int64_t{ahead ? 0 : stages_} + stage) * microbatches_ + work.microbatch) *
               slices_ +
           work.slice;
  }

  int microbatches_;
  int slices_;
  int stages_;
  scratch<std::int32_t> gates_;  // plus one
};

}  // namespace stretto::lowering
