#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/base/filled.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/program_sound.hpp"
#include "stretto/model/stream_type.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::lowering {

//! The ops of a job, or of a pair, in order of issue, as plans have them: on streams, with what
//! they touch between themselves and whom they wait for.
struct op_sequence {
  struct step {
    op_part part{};
    std::int32_t half = 0;  //!< of a pair, as the list has them
    std::uint8_t stream = 0;
    bool collective = false;
    bool recorded = false;          //!< somebody waits for its end
    bool started_recorded = false;  //!< somebody waits for its start
    std::int32_t first_use = 0, uses = 0;
    std::int32_t first_wait = 0, waits = 0;
  };
  struct wait {
    std::int32_t step = 0;
    bool start = false;  //!< for its start; else for its end
  };
  //! Of the job's own: what ops on different streams have in common.
  struct local_buffer {
    std::int64_t offset = 0;  //!< in the workspace; of 64 bytes
    std::int64_t bytes = 0;
    std::int32_t half = 0;
    std::int32_t first = 0, last = 0;  //!< steps that touch it
  };
  std::vector<step> steps;
  std::vector<buffer_use> uses;    //!< of local buffers
  std::vector<byte_range> ranges;  //!< of each use
  bool cut = false;                //!< whether some are no whole buffers
  std::vector<wait> waits;
  std::vector<local_buffer> buffers;
  std::int64_t workspace_bytes = 0;

  constexpr ~op_sequence() = default;  // nvcc does not find it constexpr by itself
};

namespace detail {

class sequence_writer {
 public:
  constexpr sequence_writer(const program_chain& chain, const op_graph& graph,
                            std::span<const std::int32_t> order, std::span<const program> jobs,
                            op_sequence& out)
      : chain_(chain),
        graph_(graph),
        order_(order),
        jobs_(jobs),
        out_(out),
        place_(filled<std::int32_t>(graph.nodes.size(), -1)),
        local_(filled<std::int32_t>(jobs.size() * chain.buffers.size(), -1)) {}

  constexpr ~sequence_writer() = default;  // nvcc does not find it constexpr by itself

  constexpr verdict write() {
    if (const verdict sound = place(); !sound.ok()) return sound;
    if (const verdict sound = find_local(); !sound.ok()) return sound;
    const op_neighbours needs(graph_, true);
    known_ = filled<std::int32_t>(order_.size() * max_streams);
    for (std::int32_t at = 0; at < size(); ++at) write_step(at, needs.of(order_[index(at)]));
    for (std::int32_t at = 0; at < size(); ++at)
      if (const verdict sound = joined(at); !sound.ok()) return sound;
    lay_out();
    return {};
  }

 private:
  static constexpr std::size_t index(std::int64_t at) { return static_cast<std::size_t>(at); }
  constexpr std::int32_t size() const { return static_cast<std::int32_t>(order_.size()); }
  constexpr const op_node& node(std::int32_t at) const {
    return graph_.nodes[index(order_[index(at)])];
  }
  constexpr std::int32_t& local(std::int32_t half, std::int32_t storage) {
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
  //! runs, must be the job's own: its life is between its ops.
  constexpr verdict find_local() {
    for (std::int32_t at = 0; at < size(); ++at) {
      if (!node(at).communicates() && !node(at).collective) continue;
      const std::int32_t half = node(at).job;
      for (const op_use& use : chain_.uses_of(chain_.ops[index(node(at).op)])) {
        const std::int32_t storage = chain_.storage_of(use.buffer);
        if (const program_buffer& of = chain_.buffers[index(storage)];
            by_rows(node(at), of) && (node(at).pieces > of.rows || of.bytes % of.rows != 0))
          return refused(at, reason::no_whole_rows, use.buffer);
        if (local(half, storage) >= 0) continue;
        if (touched_elsewhere(jobs_[index(half)], storage))
          return refused(at, reason::outlives_its_job, use.buffer);
        local(half, storage) = static_cast<std::int32_t>(out_.buffers.size());
        out_.buffers.push_back({.offset = -1,
                                .bytes = chain_.buffers[index(storage)].bytes,
                                .half = half,
                                .first = size(),
                                .last = -1});
      }
    }
    return {};
  }
  constexpr bool touched_elsewhere(const program& job, std::int32_t storage) const {
    for (std::int32_t at = 0; at < static_cast<std::int32_t>(chain_.ops.size()); ++at) {
      if (at >= job.first_op && at < job.first_op + job.op_count) continue;
      for (const op_use& use : chain_.uses_of(chain_.ops[index(at)]))
        if (chain_.storage_of(use.buffer) == storage && use.how != touch::shape_only) return true;
    }
    return false;
  }

  constexpr void write_step(std::int32_t at, std::span<const std::int32_t> needs) {
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
    for (const op_use& use : chain_.uses_of(chain_.ops[index(what.op)]))
      touch_local(at, use, static_cast<std::size_t>(made.first_use));
    made.uses = static_cast<std::int32_t>(out_.uses.size()) - made.first_use;

    // What is done when it starts: by stream the latest step, plus one. Waits are for what its own
    // stream does not know, and no other wait implies.
    std::int32_t* const known = &known_[index(at) * max_streams];
    if (const std::int32_t before = last_on_[what.stream] - 1; before >= 0) join(known, before);
    last_on_[what.stream] = at + 1;
    if (what.holds > 0) holds_on_[what.stream] = at + 1;
    made.first_wait = static_cast<std::int32_t>(out_.waits.size());
    std::int32_t latest[max_streams]{};
    for (const std::int32_t need : needs) {
      std::int32_t& last = latest[graph_.nodes[index(need)].stream];
      if (place_[index(need)] >= last) last = place_[index(need)] + 1;
    }
    for (int stream = 0; stream < max_streams; ++stream) {
      const std::int32_t last = latest[stream];
      if (stream == what.stream || last <= known[stream]) continue;
      bool implied = false;
      for (int other = 0; other < max_streams && !implied; ++other)
        implied = other != stream && other != what.stream && latest[other] > 0 &&
                  known_[index(latest[other] - 1) * max_streams + index(stream)] >= last;
      if (implied) continue;
      out_.waits.push_back({last - 1, false});
      out_.steps[index(last - 1)].recorded = true;
    }
    for (auto wait = index(made.first_wait); wait < out_.waits.size(); ++wait)
      join(known, out_.waits[wait].step);
    known[what.stream] = at + 1;
    if (what.stream == 0) {
      // Not before what holds multiprocessors and was issued before it, by stream the last.
      for (int stream = 1; stream < max_streams; ++stream) {
        const std::int32_t last = holds_on_[stream];
        if (last == 0 || known[stream] >= last || begun_[stream] >= last) continue;
        out_.waits.push_back({last - 1, true});
        out_.steps[index(last - 1)].started_recorded = true;
        begun_[stream] = last;
      }
    }
    made.waits = static_cast<std::int32_t>(out_.waits.size()) - made.first_wait;
    out_.steps.push_back(made);
  }
  constexpr void join(std::int32_t* known, std::int32_t step) {
    const std::int32_t* const theirs = &known_[index(step) * max_streams];
    for (int stream = 0; stream < max_streams; ++stream)
      if (theirs[stream] > known[stream]) known[stream] = theirs[stream];
  }
  constexpr void touch_local(std::int32_t at, const op_use& use, std::size_t first) {
    if (use.how == touch::shape_only || use.how == touch::frees) return;
    const std::int32_t storage = chain_.storage_of(use.buffer);
    const std::int32_t id = local(node(at).job, storage);
    if (id < 0) return;
    op_sequence::local_buffer& bytes = out_.buffers[index(id)];
    if (at < bytes.first) bytes.first = at;
    bytes.last = at;
    const access mode = use.how == touch::reads ? access::read : access::write;
    for (std::size_t other = first; other < out_.uses.size(); ++other)
      if (out_.uses[other].buffer == id) {
        if (out_.uses[other].mode != mode) out_.uses[other].mode = access::read_write;
        return;
      }
    out_.uses.push_back({id, buffer_role::workspace, mode});
    out_.ranges.push_back(range_of(node(at), chain_.buffers[index(storage)]));
    out_.cut = out_.cut || out_.ranges.back().bytes != bytes.bytes;
  }
  //! What a piece touches of a buffer: its own rows, where both are of rows.
  static constexpr byte_range range_of(const op_node& what, const program_buffer& of) {
    if (!by_rows(what, of)) return {0, of.bytes};
    const cut_part mine = piece_of(of.rows, what.piece, what.pieces);
    const std::int64_t row = of.bytes / of.rows;
    return {mine.first * row, mine.count * row};
  }
  static constexpr bool by_rows(const op_node& what, const program_buffer& of) {
    return what.pieces > 1 && what.cut == pieces_of::rows && of.rows > 0;
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
    if (known_[index(at) * max_streams] == 0) return refused(at, reason::needs_nothing);
    const std::int32_t last = last_on_[0] - 1;
    if (last < 0 || known_[index(last) * max_streams + node(at).stream] <= at)
      return refused(at, reason::needed_by_nothing);
    return {};
  }

  //! Local buffers in their workspace: each in the lowest place that nobody has at the same time. A
  //! place is left when a step that computes was the last to touch it, and taken by one: streams
  //! alone then order who was there.
  constexpr void lay_out() {
    for (std::size_t one = 0; one < out_.buffers.size(); ++one) {
      op_sequence::local_buffer& mine = out_.buffers[one];
      mine.offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t other = 0; other < out_.buffers.size(); ++other) {
          const op_sequence::local_buffer& theirs = out_.buffers[other];
          if (other == one || theirs.offset < 0 || other > one) continue;
          if (after(theirs, mine) || after(mine, theirs)) continue;
          if (theirs.offset < mine.offset + mine.bytes &&
              mine.offset < theirs.offset + theirs.bytes) {
            mine.offset = (theirs.offset + theirs.bytes + 63) / 64 * 64;
            moved = true;
          }
        }
      }
      if (mine.offset + mine.bytes > out_.workspace_bytes)
        out_.workspace_bytes = (mine.offset + mine.bytes + 63) / 64 * 64;
    }
  }
  constexpr bool after(const op_sequence::local_buffer& one,
                       const op_sequence::local_buffer& other) const {
    return one.last < other.first && node(one.last).stream == 0 && node(other.first).stream == 0;
  }

  const program_chain& chain_;
  const op_graph& graph_;
  std::span<const std::int32_t> order_;
  std::span<const program> jobs_;
  op_sequence& out_;
  std::vector<std::int32_t> place_;  // of each node in the order
  std::vector<std::int32_t> local_;  // of each half's storages
  std::vector<std::int32_t> known_;
  std::int32_t last_on_[max_streams]{};
  std::int32_t holds_on_[max_streams]{};  // the last that holds multiprocessors
  std::int32_t begun_[max_streams]{};  // known to the stream that computes
};

}  // namespace detail

//! Writes the sequence of a job's ops, or of a pair's, from an order of issue.
//! @param graph  of these programs, maybe cut; its jobs are the programs in turn
//! @param jobs   one program, or the two of a pair in the order in which the list has them
//! @return fault::unsound_program, with the job (its stage is the chunk) and the op as `step`: it
//!         does not stand once in the order, or before what it needs; or one on another stream needs
//!         no op that computes, or none needs it, or touches what other jobs touch, too, or is cut
//!         into more pieces than what it touches has rows
constexpr verdict write_sequence(const program_chain& chain, const op_graph& graph,
                                 std::span<const std::int32_t> order, std::span<const program> jobs,
                                 op_sequence& out) {
  return detail::sequence_writer(chain, graph, order, jobs, out).write();
}

}  // namespace stretto::lowering
