#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/base/viewed.hpp"
#include "stretto/lowering/local_places.hpp"
#include "stretto/lowering/op_sequence.hpp"
#include "stretto/lowering/step_waits.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/program_sound.hpp"
#include "stretto/model/stream_type.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::lowering {

namespace detail {

class sequence_writer {
 public:
  constexpr sequence_writer(const program_chain& chain, const op_graph& graph,
                            std::span<const std::int32_t> order, std::span<const program> jobs,
                            op_sequence& out)
      : chain_(chain),
        rows_(chain.rows_of_storages()),
        graph_(graph),
        order_(order),
        jobs_(jobs),
        out_(out),
        place_(filled<std::int32_t>(graph.nodes.size(), -1)),
        local_(filled<std::int32_t>(jobs.size() * chain.buffers.size(), -1)),
        waits_(graph, order, out) {}

  constexpr ~sequence_writer() = default;  // nvcc does not find it constexpr by itself

  constexpr verdict write() {
    if (const verdict sound = place(); !sound.ok()) return sound;
    if (const verdict sound = find_local(); !sound.ok()) return sound;
    touched_ = filled<std::int32_t>(out_.buffers.size() * max_streams);
    for (std::int32_t at = 0; at < size(); ++at)
      if (const verdict sound = write_step(at); !sound.ok()) return sound;
    waits_.write(op_neighbours(graph_, true), viewed(place_));
    for (std::int32_t at = 0; at < size(); ++at)
      if (const verdict sound = joined(at); !sound.ok()) return sound;
    for (std::int32_t at = 0; at < size(); ++at)
      if (const verdict sound = written_first(at); !sound.ok()) return sound;
    // Anew, without what a policy's edges alone order: nothing else asks for those, and what they
    // imply would be lost with them.
    op_graph needed;
    for (const op_edge& edge : graph_.edges)
      if (meet(edge.before, edge.after)) needed.edges.push_back(edge);
    needed.nodes = graph_.nodes;
    for (std::size_t buffer = 0; buffer < out_.buffers.size(); ++buffer)
      if (const verdict sound = end_life(buffer, needed); !sound.ok()) return sound;
    waits_.write(op_neighbours(needed, true), viewed(place_));
    for (std::int32_t at = 0; at < size(); ++at)
      if (node(at).communicates() && waits_.known(at, 0) == 0)
        return refused(at, reason::needs_nothing);
    place_locals(out_);
    return {};
  }

 private:
  static constexpr std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }
  constexpr std::int32_t size() const { return static_cast<std::int32_t>(order_.size()); }
  constexpr const op_node& node(std::int32_t at) const {
    return graph_.nodes[index(order_[index(at)])];
  }
  constexpr std::span<const op_use> uses_of(const op_node& what) const {
    return chain_.uses_of(chain_.ops[index(what.op)]);
  }
  //! Shapes are known at any time, and what is freed is given back by who knows of all its uses.
  static constexpr bool touches(const op_use& use) {
    return use.how == touch::reads || use.how == touch::writes;
  }
  constexpr std::int32_t& local(std::int32_t half, std::int32_t storage) {
    return local_[index(half) * chain_.buffers.size() + index(storage)];
  }
  constexpr std::int32_t local(std::int32_t half, std::int32_t storage) const {
    return local_[index(half) * chain_.buffers.size() + index(storage)];
  }
  constexpr verdict refused(std::int32_t at, reason why, std::int32_t buffer = -1) const {
    const program& job = jobs_[index(node(at).job)];
    return stretto::detail::refuse_op(why, job, node(at).op - job.first_op, buffer);
  }

  constexpr verdict place() {
    for (std::int32_t at = 0; at < size(); ++at) {
      const std::int32_t node = order_[index(at)];
      if (node < 0 || node >= graph_.size())
        return stretto::detail::refuse_op(reason::ops_misordered, jobs_[0], -1);
      if (place_[index(node)] >= 0) return refused(at, reason::ops_misordered);
      place_[index(node)] = at;
      if (this->node(at).stream >= max_streams) return refused(at, reason::no_such_stream);
    }
    if (size() != graph_.size()) {
      std::int32_t absent = 0;
      while (place_[index(absent)] >= 0) ++absent;
      const op_node& of = graph_.nodes[index(absent)];
      const program& job = jobs_[index(of.job)];
      return stretto::detail::refuse_op(reason::ops_misordered, job, of.op - job.first_op);
    }
    for (const op_edge& edge : graph_.edges)
      if (place_[index(edge.before)] >= place_[index(edge.after)])
        return refused(place_[index(edge.after)], reason::op_needs_earlier);
    return {};
  }

  //! What an op on another stream touches, or a sum over the ranks that share the stage wherever it
  //! runs, must be the job's own: its life is between its ops. Parameters that nobody writes are
  //! there at any time.
  constexpr verdict find_local() {
    for (std::int32_t at = 0; at < size(); ++at) {
      if (!node(at).communicates() && !node(at).collective) continue;
      const std::int32_t half = node(at).job;
      bool any = false;
      for (const op_use& use : uses_of(node(at))) {
        if (!touches(use)) continue;
        const std::int32_t storage = chain_.storage_of(use.buffer);
        const program_buffer& of = chain_.buffers[index(storage)];
        if (of.persistent && !written(storage)) continue;
        any = true;
        if (local(half, storage) >= 0) continue;
        if (of.persistent || touched_elsewhere(jobs_[index(half)], storage))
          return refused(at, reason::outlives_its_job, use.buffer);
        local(half, storage) = static_cast<std::int32_t>(out_.buffers.size());
        out_.buffers.push_back(
            {.offset = -1, .bytes = of.bytes, .half = half, .first = size(), .last = -1});
      }
      if (!any) return refused(at, reason::needs_nothing);
    }
    return {};
  }
  constexpr bool written(std::int32_t storage) const {
    for (const op_use& use : chain_.uses)
      if (use.how == touch::writes && chain_.storage_of(use.buffer) == storage) return true;
    return false;
  }
  constexpr bool touched_elsewhere(const program& job, std::int32_t storage) const {
    for (std::int32_t at = 0; at < static_cast<std::int32_t>(chain_.ops.size()); ++at) {
      if (at >= job.first_op && at < job.first_op + job.op_count) continue;
      for (const op_use& use : chain_.uses_of(chain_.ops[index(at)]))
        if (chain_.storage_of(use.buffer) == storage && use.how != touch::shape_only) return true;
    }
    return false;
  }

  constexpr verdict write_step(std::int32_t at) {
    const op_node& what = node(at);
    op_sequence::step made;
    made.part = {.op = static_cast<std::int16_t>(what.op - jobs_[index(what.job)].first_op),
                 .piece = what.piece,
                 .pieces = what.pieces,
                 .holds = what.holds,
                 .ends = 0};
    made.half = what.job;
    made.stream = what.stream;
    made.collective = what.collective;
    made.first_use = static_cast<std::int32_t>(out_.uses.size());
    for (const op_use& use : uses_of(what)) {
      if (!touches(use)) continue;
      if (!in_rows(what, chain_.storage_of(use.buffer)))
        return refused(at, reason::no_whole_rows, use.buffer);
      touch_local(at, use, static_cast<std::size_t>(made.first_use));
    }
    made.uses = static_cast<std::int32_t>(out_.uses.size()) - made.first_use;
    out_.steps.push_back(made);
    return {};
  }
  //! Whether a piece's bytes of a buffer of the job's own can be told. What stages compute may lie
  //! elsewhere than in rows; a sum is of the bytes of its piece.
  constexpr bool in_rows(const op_node& what, std::int32_t storage) const {
    if (what.pieces == 1 || local(what.job, storage) < 0) return true;
    const program_buffer& of = chain_.buffers[index(storage)];
    if (!by_rows(what, storage)) return !what.collective;
    return what.pieces <= of.rows && of.bytes % of.rows == 0;
  }
  //! A buffer of the job's own is written by the first step that touches it.
  constexpr verdict written_first(std::int32_t at) const {
    for (const op_use& use : uses_of(node(at))) {
      const std::int32_t id = local(node(at).job, chain_.storage_of(use.buffer));
      if (!touches(use) || id < 0 || out_.buffers[index(id)].first != at) continue;
      const op_sequence::step& mine = out_.steps[index(at)];
      for (std::int32_t other = mine.first_use; other < mine.first_use + mine.uses; ++other)
        if (const buffer_use& same = out_.uses[index(other)];
            same.buffer == id && same.mode != access::write)
          return refused(at, reason::read_unwritten, use.buffer);
    }
    return {};
  }
  constexpr void touch_local(std::int32_t at, const op_use& use, std::size_t first) {
    const std::int32_t storage = chain_.storage_of(use.buffer);
    const std::int32_t id = local(node(at).job, storage);
    if (id < 0) return;
    op_sequence::local_buffer& bytes = out_.buffers[index(id)];
    if (at < bytes.first) bytes.first = at;
    bytes.last = at;
    touched_[index(id) * max_streams + node(at).stream] = at + 1;
    const access mode = use.how == touch::reads ? access::read : access::write;
    for (std::size_t other = first; other < out_.uses.size(); ++other)
      if (buffer_use& same = out_.uses[other]; same.buffer == id) {
        // What an op has written itself it may read; a sum reads what was there.
        if (same.mode == access::read || node(at).collective)
          same.mode = same.mode == mode ? mode : access::read_write;
        return;
      }
    out_.uses.push_back({id, buffer_role::workspace, mode});
    out_.ranges.push_back(range_of(node(at), storage));
    out_.cut = out_.cut || out_.ranges.back().bytes != bytes.bytes;
  }
  //! What a piece touches of a buffer: its own rows, where both are of rows.
  constexpr byte_range range_of(const op_node& what, std::int32_t storage) const {
    const program_buffer& of = chain_.buffers[index(storage)];
    if (!by_rows(what, storage)) return {0, of.bytes};
    const cut_part mine = piece_of(of.rows, what.piece, what.pieces);
    const std::int64_t row = of.bytes / of.rows;
    return {mine.first * row, mine.count * row};
  }
  constexpr bool by_rows(const op_node& what, std::int32_t storage) const {
    return what.pieces > 1 && what.cut == pieces_of::rows && rows_[index(storage)] > 0;
  }

  //! Whether two ops of a job touch the same, and one of them writes it.
  constexpr bool meet(std::int32_t one, std::int32_t other) const {
    const op_node& before = graph_.nodes[index(one)];
    const op_node& after = graph_.nodes[index(other)];
    if (before.job != after.job) return false;
    for (const op_use& first : uses_of(before))
      for (const op_use& second : uses_of(after))
        if (touches(first) && touches(second) &&
            (first.how == touch::writes || second.how == touch::writes) &&
            chain_.storage_of(first.buffer) == chain_.storage_of(second.buffer))
          return true;
    return false;
  }

  //! A buffer's life ends with the first step behind all that touch it that computes for its job
  //! and knows that they are over. It needs them, then, and has the buffer even if it touches none
  //! of its bytes.
  constexpr verdict end_life(std::size_t buffer, op_graph& needed) {
    const std::int32_t* const touched = &touched_[buffer * max_streams];
    op_sequence::local_buffer& mine = out_.buffers[buffer];
    for (std::int32_t at = mine.last; at < size(); ++at) {
      if (node(at).job != mine.half || node(at).communicates() || node(at).collective) continue;
      bool knows = true;
      for (int stream = 0; stream < max_streams; ++stream)
        knows = knows && waits_.known(at, stream) >= touched[stream];
      if (!knows) continue;
      for (int stream = 1; stream < max_streams; ++stream)
        if (touched[stream] > 0)
          needed.edges.push_back({order_[index(touched[stream] - 1)], order_[index(at)]});
      if (touched[0] != at + 1) out_.held_uses.push_back({at, static_cast<std::int32_t>(buffer)});
      mine.last = at;
      return {};
    }
    // Of its job nothing that computes is behind the last on another stream, or behind a sum.
    std::int32_t behind = 0;
    for (int stream = 1; stream < max_streams; ++stream)
      if (touched[stream] > behind) behind = touched[stream];
    return refused(behind > 0 ? behind - 1 : mine.last, reason::needed_by_nothing);
  }

  //! Communication comes after something that computes, and before: so that the stream that
  //! computes speaks for the whole job.
  constexpr verdict joined(std::int32_t at) const {
    if (!node(at).communicates()) {
      if (!node(at).collective) return {};
      // What the job touches is held by what computes first, and last.
      if (at == 0) return refused(at, reason::needs_nothing);
      return at + 1 == size() ? refused(at, reason::needed_by_nothing) : verdict{};
    }
    if (waits_.known(at, 0) == 0) return refused(at, reason::needs_nothing);
    const std::int32_t last = waits_.last_on(0);
    if (last < 0 || waits_.known(last, node(at).stream) <= at)
      return refused(at, reason::needed_by_nothing);
    return {};
  }

  const program_chain& chain_;
  std::vector<std::int64_t> rows_;  // of each storage
  const op_graph& graph_;
  std::span<const std::int32_t> order_;
  std::span<const program> jobs_;
  op_sequence& out_;
  std::vector<std::int32_t> place_;    // of each node in the order
  std::vector<std::int32_t> local_;    // of each half's storages
  std::vector<std::int32_t> touched_;  // of each local buffer, by stream the last step, plus one
  step_waits waits_;
};

}  // namespace detail

//! Writes the sequence of a job's ops, or of a pair's, from an order of issue.
//! @param graph  of these programs, maybe cut; its jobs are the programs in turn
//! @param jobs   one program, or the two of a pair in the order in which the list has them
//! @return fault::unsound_program, with the job (its stage is the chunk) and the op as `step`: it
//!         does not stand once in the order, or before what it needs; or one on another stream
//!         needs no op that computes, or none needs it, or touches what other jobs touch, too; or
//!         one is cut into more pieces than what it has in common with such a one has rows, or
//!         reads of that (the buffer as `amount`) what no op has written
constexpr verdict write_sequence(const program_chain& chain, const op_graph& graph,
                                 std::span<const std::int32_t> order, std::span<const program> jobs,
                                 op_sequence& out) {
  return detail::sequence_writer(chain, graph, order, jobs, out).write();
}

}  // namespace stretto::lowering
