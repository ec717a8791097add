#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/lowering/kept_edges.hpp"
#include "stretto/lowering/sequence_writer.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/program_sound.hpp"

namespace stretto {

//! What expands jobs into ops:
//! - `programs(rank)`: the program_chain of one micro-batch's jobs on the rank's chunks; jobs that
//!   it has no program for stay whole. Some may be for more chunks than there are, if those that
//!   there are have programs of the same kinds.
//! - `order(graph)`: the order in which the ops of a job, or of a pair, are issued, such as
//!   overlap::look_ahead's. May cut the graph first.
template <class Ops>
concept OpPolicy = requires(const Ops& made, int rank, op_graph& graph) {
  { made.programs(rank) } -> std::same_as<program_chain>;
  { made.order(graph) } -> std::convertible_to<std::vector<std::int32_t>>;
};

namespace lowering {

//! The sequences of all jobs and pairs in a rank's plan, each kind once.
class rank_sequences {
 public:
  template <OpPolicy Ops>
  constexpr rank_sequences(const Ops& ops, const plan_view& plan, const placement& where)
      : where_(where), chain_(ops.programs(plan.rank)), answer_(sound_program(chain_)) {
    refuse_misplaced();
    for (std::size_t at = 0; at < plan.instructions.size() && answer_.ok(); ++at) {
      const instruction& work = plan.instructions[at];
      if (work.act != action::run || !is_compute(work.what.kind)) continue;
      const bool pair = work.what.paired && at + 1 < plan.instructions.size();
      const kind_of_node key = key_of(plan.instructions.subspan(at, pair ? 2 : 1));
      if (pair) ++at;
      if (key.one < 0 || find(key) != nullptr) continue;
      // The forward's buffers may have places that its backward ahead leaves: not while both run.
      if (pair && work.what.kind != job_kind::forward) {
        answer_ = refuse(fault::unsupported, reason::backward_ahead, plan.rank,
                         static_cast<int>(at) - 1, work.what);
        return;
      }
      keys_.push_back(key);
      sequences_.emplace_back();
      write(ops, key, sequences_.back());
    }
    // All its jobs would stay whole without a word.
    if (answer_.ok() && keys_.empty() && !chain_.programs.empty())
      answer_ = stretto::detail::refuse_op(reason::program_of_no_job, chain_.programs[0], -1);
    answer_.rank = answer_.ok() ? -1 : plan.rank;
  }

  constexpr ~rank_sequences() = default;  // nvcc does not find it constexpr by itself

  //! @param node  a job, or the two of a pair
  //! @return null where the chain has no program
  constexpr const op_sequence* operator()(std::span<const instruction> node) const {
    return find(key_of(node));
  }
  //! Whether all could be written: see write_sequence. A pair's forward stands ahead of its
  //! backward.
  constexpr const verdict& answer() const { return answer_; }

 private:
  //! Programs of a node's jobs, by number; `other` is -1 for a job alone.
  struct kind_of_node {
    std::int32_t one = -1;
    std::int32_t other = -1;
    constexpr bool operator==(const kind_of_node&) const = default;
  };

  //! Of a chunk that no rank has nobody would hear. Who serves schedules of several chunks may give
  //! more than one has; but a chunk that lacks what one that is not there has was probably meant.
  constexpr void refuse_misplaced() {
    for (const program& one : chain_.programs) {
      if (!answer_.ok() || one.chunk < where_.chunks) continue;
      int there = 0;
      for (const program& other : chain_.programs)
        if (other.kind == one.kind && other.chunk < where_.chunks) ++there;
      if (there < where_.chunks)
        answer_ = stretto::detail::refuse_op(reason::program_of_no_chunk, one, -1);
    }
  }
  constexpr std::int32_t program_of(const job& work) const {
    const int chunk = where_.chunk_of(work);
    for (std::size_t at = 0; at < chain_.programs.size(); ++at)
      if (chain_.programs[at].kind == work.kind && chain_.programs[at].chunk == chunk)
        return static_cast<std::int32_t>(at);
    return -1;
  }
  constexpr kind_of_node key_of(std::span<const instruction> node) const {
    const bool pair = node.size() == 2;
    const kind_of_node made{program_of(node[0].what), pair ? program_of(node[1].what) : -1};
    return pair && made.other < 0 ? kind_of_node{} : made;
  }
  constexpr const op_sequence* find(const kind_of_node& key) const {
    for (std::size_t at = 0; at < keys_.size(); ++at)
      if (keys_[at] == key) return &sequences_[at];
    return nullptr;
  }
  template <class Ops>
  constexpr void write(const Ops& ops, const kind_of_node& key, op_sequence& out) {
    const auto program_at = [&](std::int32_t at) {
      return chain_.programs[static_cast<std::size_t>(at)];
    };
    std::vector<program> jobs = filled<program>(1, program_at(key.one));
    op_graph graph = graph_of(chain_, viewed(jobs));
    if (key.other >= 0) {
      jobs.push_back(program_at(key.other));
      graph = side_by_side(graph, graph_of(chain_, viewed(jobs).subspan(1)));
    }
    const op_graph whole = graph;
    const std::vector<std::int32_t> order = ops.order(graph);
    if (!is_cut_of(graph, viewed(whole.nodes))) {
      answer_ = stretto::detail::refuse_op(reason::graph_of_others, jobs[0], -1);
      return;
    }
    answer_ = write_sequence(chain_, graph, viewed(order), viewed(jobs), out);
    if (answer_.ok()) answer_ = keeps_edges(whole, graph, viewed(order), viewed(jobs));
  }

  placement where_;
  program_chain chain_;
  std::vector<kind_of_node> keys_;
  std::vector<op_sequence> sequences_;
  verdict answer_{};
};

}  // namespace lowering
}  // namespace stretto
