#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "stretto/model/job.hpp"

namespace stretto {

//! What an op does with a buffer.
enum class touch : std::uint8_t {
  reads,
  writes,
  frees,       //!< ends its life, also where something later could still use it
  shape_only,  //!< needs to know its shape, not its contents: does not keep it alive
};

//! A buffer that ops touch.
struct program_buffer {
  std::string_view name;
  std::int64_t bytes = 0;
  //! The buffer whose bytes these are, which itself has its own: this one is a view of it, or what
  //! an op that works in place makes of it. Its own index: bytes of its own.
  std::int32_t storage = -1;
  bool persistent = false;  //!< a parameter or its gradient: always there, not counted
  //! Of how many rows of equal bytes it is: a piece of an op that is cut by rows touches its own.
  //! 0: it touches all, also of what this is a view of.
  std::int64_t rows = 0;

  constexpr bool operator==(const program_buffer&) const = default;
};

//! What an op does with one buffer of its program; the four below make one, by how.
struct op_use {
  std::int32_t buffer = -1;
  touch how = touch::reads;

  constexpr bool operator==(const op_use&) const = default;
};
constexpr op_use reads(std::int32_t buffer) {
  return {buffer, touch::reads};
}
constexpr op_use writes(std::int32_t buffer) {
  return {buffer, touch::writes};
}
constexpr op_use frees(std::int32_t buffer) {
  return {buffer, touch::frees};
}
constexpr op_use shape_of(std::int32_t buffer) {
  return {buffer, touch::shape_only};
}

//! Whether an op may run in pieces, one after the other, with the same result.
enum class pieces_of : std::uint8_t {
  whole,   //!< it may not
  rows,    //!< by rows (tokens): a piece needs only the same rows of what is cut by rows, too
  result,  //!< by parts of its result: each piece needs all that the op reads
};

//! Some of what is cut: rows, columns or bytes.
struct cut_part {
  std::int64_t first = 0;
  std::int64_t count = 0;

  constexpr bool operator==(const cut_part&) const = default;
};
//! One of `pieces` pieces of `of` rows: each begins where the one before ends, the first at 0, and
//! the last ends at `of`; they differ by a row at most. Empty where there are more than rows.
constexpr cut_part piece_of(std::int64_t of, int piece, int pieces) {
  const std::int64_t first = of * piece / pieces;
  return {first, of * (piece + 1) / pieces - first};
}

//! The most links of a device that are told apart.
inline constexpr int max_links = 3;

//! What one op takes, and where it runs.
struct op_form {
  std::int64_t time = 0;    //!< in the unit of the job table
  std::uint8_t stream = 0;  //!< its stream type's enumerator; 0: where stages compute
  pieces_of cut = pieces_of::whole;
  std::int16_t holds = 0;   //!< multiprocessors (cores) that communication keeps from computation
  //! Sums what it writes over the ranks that share the stage: where there are several, one buffer,
  //! which it reads, too, of whole elements of 4 bytes (see stretto::shared).
  bool collective = false;
  std::int32_t parts = 0;   //!< rows, or parts of its result, and so the most pieces; 0: any number
  //! Which of a device's links it takes, up to max_links: each carries one message at a time, on
  //! whatever streams they are. 0: none that others take.
  std::uint8_t link = 0;

  constexpr bool operator==(const op_form&) const = default;
};

//! One piece of a job. A message is an op too: a receive writes its buffer, a send reads it.
struct op : op_form {
  std::string_view name;
  std::int32_t first_use = 0;
  std::int32_t use_count = 0;

  constexpr bool operator==(const op&) const = default;
};

//! The ops of one job, in the order in which they run.
struct program {
  job_kind kind = job_kind::forward;
  int chunk = 0;
  std::int32_t first_op = 0;
  std::int32_t op_count = 0;

  constexpr bool operator==(const program&) const = default;
};

//! The programs of all jobs of one micro-batch on one rank, in the order in which they run: the
//! forwards of its chunks, then their backwards from the last chunk on, each backward for the input
//! followed by that for the weights. Written with `begin` and `add`; works in constant expressions.
struct program_chain {
  std::vector<program_buffer> buffers;
  std::vector<op_use> uses;
  std::vector<op> ops;
  std::vector<program> programs;

  constexpr ~program_chain() = default;  // nvcc does not find it constexpr by itself
  //! A buffer with bytes of its own. @return its index
  constexpr std::int32_t buffer(std::string_view name, std::int64_t bytes, std::int64_t rows = 0) {
    const auto made = static_cast<std::int32_t>(buffers.size());
    buffers.push_back({name, bytes, made, false, rows});
    return made;
  }
  //! A parameter, or the gradient of one.
  constexpr std::int32_t parameter(std::string_view name, std::int64_t bytes) {
    const std::int32_t made = buffer(name, bytes);
    buffers.back().persistent = true;
    return made;
  }
  //! Another name for the bytes of `of`.
  constexpr std::int32_t view(std::string_view name, std::int32_t of) {
    if (of < 0 || of >= static_cast<std::int32_t>(buffers.size())) {  // told by sound_program
      buffers.push_back({name, 0, -1, false, 0});
      return static_cast<std::int32_t>(buffers.size()) - 1;
    }
    const program_buffer shared = buffers[static_cast<std::size_t>(of)];
    buffers.push_back({name, shared.bytes, shared.storage, shared.persistent, shared.rows});
    return static_cast<std::int32_t>(buffers.size()) - 1;
  }

  //! Begins the next job's program: `add` goes on with it.
  //! @throws std::logic_error (add) before the first one
  constexpr void begin(job_kind kind, int chunk) {
    programs.push_back({kind, chunk, static_cast<std::int32_t>(ops.size()), 0});
  }
  constexpr void add(std::string_view name, std::initializer_list<op_use> touched,
                     const op_form& form = {}) {
    add(name, std::span<const op_use>(touched.begin(), touched.size()), form);
  }
  constexpr void add(std::string_view name, std::span<const op_use> touched,
                     const op_form& form) {
    if (programs.empty())
      throw std::logic_error("stretto::program_chain: an op is added before a job has begun");
    ops.push_back({form, name, static_cast<std::int32_t>(uses.size()),
                   static_cast<std::int32_t>(touched.size())});
    for (const op_use& one : touched) uses.push_back(one);
    ++programs.back().op_count;
  }

  constexpr std::span<const op> ops_of(const program& one) const {
    return {ops.data() + one.first_op, static_cast<std::size_t>(one.op_count)};
  }
  constexpr std::span<const op_use> uses_of(const op& one) const {
    return {uses.data() + one.first_use, static_cast<std::size_t>(one.use_count)};
  }
  constexpr std::int32_t storage_of(std::int32_t buffer) const {
    return buffers[static_cast<std::size_t>(buffer)].storage;
  }
  //! Of how many rows the bytes of each storage are; 0 where a view sees them in others: whatever
  //! touches any of them then touches all.
  constexpr std::vector<std::int64_t> rows_of_storages() const {
    std::vector<std::int64_t> rows;
    for (const program_buffer& one : buffers) rows.push_back(one.rows);
    for (const program_buffer& one : buffers)
      if (one.rows != buffers[static_cast<std::size_t>(one.storage)].rows)
        rows[static_cast<std::size_t>(one.storage)] = 0;
    return rows;
  }
};

}  // namespace stretto
