#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/stream_type.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto {

namespace detail {

//! Of a job's program, the op as `step`, and the buffer that it is wrong about; -1: about none.
constexpr verdict refuse_op(reason why, const program& job, std::int64_t op,
                            std::int64_t buffer = -1) {
  verdict answer = refuse(fault::unsound_program, why);
  answer.where = {job.chunk, 0, 0, job.kind};
  answer.has_job = true;
  answer.step = static_cast<int>(op);
  answer.amount = buffer;
  return answer;
}
constexpr verdict refuse_buffer(reason why, std::int64_t buffer) {
  verdict answer = refuse(fault::unsound_program, why);
  answer.amount = buffer;
  return answer;
}

}  // namespace detail

//! Whether a chain is one at all, so that whoever reads it may follow its numbers: every buffer's
//! bytes are its own or another's, are not below 0, and together stay in 64 bits; each job has one
//! program, of one op at least, whose ops are there and use buffers and streams that are there;
//! times and multiprocessors are not below 0. What ops read and write says memory::measure_chain.
//! @return fault::unsound_program: `where` names the job (its stage is the chunk), `step` the op in
//!         it, `amount` the buffer (-1: none is at fault)
constexpr verdict sound_program(const program_chain& chain) {
  constexpr std::int64_t most_bytes = job_table_view::most_memory;
  constexpr std::int64_t most_together = std::int64_t{1} << 60;
  constexpr std::int64_t most_ops = std::numeric_limits<std::int16_t>::max();  // as op_part counts
  const auto buffers = static_cast<std::int64_t>(chain.buffers.size());
  const auto ops = static_cast<std::int64_t>(chain.ops.size());
  const auto uses = static_cast<std::int64_t>(chain.uses.size());
  std::int64_t together = 0;
  for (std::int64_t at = 0; at < buffers; ++at) {
    const program_buffer& one = chain.buffers[static_cast<std::size_t>(at)];
    if (one.storage < 0 || one.storage >= buffers ||
        chain.storage_of(one.storage) != one.storage)
      return detail::refuse_buffer(reason::unknown_buffer, at);
    if (one.bytes < 0 || one.bytes > most_bytes || one.rows < 0 || one.rows > most_bytes ||
        (together += one.bytes) > most_together)
      return detail::refuse_buffer(reason::buffer_out_of_range, at);
  }
  scratch<char> owned(ops);
  for (std::size_t at = 0; at < chain.programs.size(); ++at) {
    const program& job = chain.programs[at];
    const auto refused = [&](reason why, std::int64_t op = -1) {
      return detail::refuse_op(why, job, op);
    };
    if (job.chunk < 0) return refused(reason::program_of_no_chunk);
    if (!is_compute(job.kind)) return refused(reason::program_twice);
    for (std::size_t before = 0; before < at; ++before)
      if (chain.programs[before].kind == job.kind && chain.programs[before].chunk == job.chunk)
        return refused(reason::program_twice);
    if (job.first_op < 0 || job.op_count < 0 || job.op_count > ops - job.first_op)
      return refused(reason::ops_elsewhere);
    if (job.op_count == 0) return refused(reason::no_ops);
    if (job.op_count > most_ops) return refused(reason::too_many_ops, most_ops);
    for (std::int64_t op = 0; op < job.op_count; ++op) {
      const auto number = job.first_op + op;
      const stretto::op& one = chain.ops[static_cast<std::size_t>(number)];
      if (owned[number] != 0) return refused(reason::ops_elsewhere, op);
      owned[number] = 1;
      if (one.stream >= max_streams) return refused(reason::no_such_stream, op);
      if (one.time < 0 || one.time > job_table_view::most_time || one.holds < 0 || one.parts < 0 ||
          one.link > max_links)
        return refused(reason::op_out_of_range, op);
      if (one.first_use < 0 || one.use_count < 0 || one.use_count > uses - one.first_use)
        return refused(reason::unknown_buffer, op);
      for (const op_use& use : chain.uses_of(one))
        if (use.buffer < 0 || use.buffer >= buffers)
          return detail::refuse_op(reason::unknown_buffer, job, op, use.buffer);
    }
  }
  return {};
}

//! What a policy may leave of a graph of ops: its nodes in their order, each of them whole or,
//! where it may be cut, in no more pieces than it has parts, on whichever streams, and edges
//! between these. (Which piece is which, rule `cut` looks at.)
constexpr bool is_cut_of(const op_graph& graph, std::span<const op_node> whole) {
  std::size_t at = 0;
  for (const op_node& node : whole) {
    const int pieces = at < graph.nodes.size() ? graph.nodes[at].pieces : 0;
    if (pieces < 1 || static_cast<std::size_t>(pieces) > graph.nodes.size() - at) return false;
    if (pieces > 1 && (node.cut == pieces_of::whole || (node.parts > 0 && pieces > node.parts)))
      return false;
    for (int piece = 0; piece < pieces; ++piece, ++at) {
      const op_node& part = graph.nodes[at];
      if (part.op != node.op || part.job != node.job || part.collective != node.collective ||
          part.cut != node.cut || part.pieces != pieces)
        return false;
    }
  }
  const auto has = [&](std::int32_t number) {
    return number >= 0 && static_cast<std::size_t>(number) < graph.nodes.size();
  };
  for (const op_edge& edge : graph.edges)
    if (!has(edge.before) || !has(edge.after)) return false;
  return at == graph.nodes.size();
}

}  // namespace stretto
