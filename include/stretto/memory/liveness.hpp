#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stretto/base/reason_text.hpp"
#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/program_sound.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/model/verdict_text.hpp"

namespace stretto::memory {

//! What each job of a chain takes: its time, and from the lives of its buffers the change of memory
//! and the peak above the level at its start. A buffer lives from the op that first writes it to
//! the last op of the whole chain that touches it: what a later job still needs is kept by all
//! between. Persistent buffers are not counted.
//! @param made  one entry for each program
//! @return as sound_program; fault::unsound_program: an op reads what nothing has written, or
//!         touches what is freed.
//!         `where` names the job (its stage is the chunk), `step` the op in it, `amount` the buffer
constexpr verdict measure_chain(const program_chain& chain, std::span<job_cost> made) {
  const auto ops = static_cast<std::int64_t>(chain.ops.size());
  const auto buffers = static_cast<std::int64_t>(chain.buffers.size());
  if (made.size() < chain.programs.size()) return refuse(fault::capacity, reason::buffer_full);
  if (const verdict sound = sound_program(chain); !sound.ok()) return sound;
  // 1. Lives, by storage: the ops that begin and end them, plus one.
  scratch<std::int64_t> first(buffers);
  scratch<std::int64_t> last(buffers);
  scratch<char> freed(buffers);
  std::int64_t now = 0;
  for (const program& job : chain.programs) {
    for (const op& one : chain.ops_of(job)) {
      ++now;
      for (const op_use& use : chain.uses_of(one)) {
        const auto refused = [&](reason why, std::int64_t buffer) {
          return stretto::detail::refuse_op(why, job, now - 1 - job.first_op, buffer);
        };
        const std::int32_t storage = chain.storage_of(use.buffer);
        if (chain.buffers[static_cast<std::size_t>(use.buffer)].persistent) continue;
        if (freed[storage] != 0) return refused(reason::used_after_free, use.buffer);
        if (use.how == touch::writes) {
          if (first[storage] == 0) first[storage] = now;
        } else if (first[storage] == 0) {
          return refused(reason::read_unwritten, use.buffer);
        }
        if (use.how != touch::shape_only) last[storage] = now;
        if (use.how == touch::frees) freed[storage] = 1;
      }
    }
  }
  // 2. Levels.
  scratch<std::int64_t> comes(ops + 1);
  scratch<std::int64_t> goes(ops + 1);
  for (std::int64_t at = 0; at < buffers; ++at) {
    if (first[at] == 0) continue;
    comes[first[at]] += chain.buffers[static_cast<std::size_t>(at)].bytes;
    goes[last[at]] += chain.buffers[static_cast<std::size_t>(at)].bytes;
  }
  now = 0;
  std::size_t next = 0;
  for (const program& job : chain.programs) {
    job_cost cost;
    for (const op& one : chain.ops_of(job)) {
      ++now;
      cost.time += one.time;
      cost.change += comes[now];
      if (cost.change > cost.peak) cost.peak = cost.change;
      cost.change -= goes[now];
    }
    made[next++] = cost;
  }
  return {};
}

//! A refusal of measure_chain with names: `op "scores" of F, chunk 1: an op reads a buffer that
//! nothing has written: "keys"`.
constexpr verdict_text explain(const verdict& answer, const program_chain& chain) {
  if (answer.what != fault::unsound_program || answer.step < 0 || answer.amount < 0)
    return to_text(answer);
  verdict_text text;
  for (const program& job : chain.programs) {
    if (job.chunk != answer.where.stage || job.kind != answer.where.kind) continue;
    text << std::string_view("op \"")
         << chain.ops_of(job)[static_cast<std::size_t>(answer.step)].name
         << std::string_view("\" of ") << letters(job.kind) << std::string_view(", chunk ")
         << job.chunk << std::string_view(": ") << describe(answer.why) << std::string_view(": ");
    if (answer.why == reason::unknown_buffer) return text << answer.amount;
    return text << '"' << chain.buffers[static_cast<std::size_t>(answer.amount)].name << '"';
  }
  return to_text(answer);
}

}  // namespace stretto::memory
