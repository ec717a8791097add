// What is told at the end: memory and idle time of every rank, pictures, a line of text.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "model/corpus.hpp"
#include "pipeline/pipeline.hpp"

namespace train {

//! Writes one row for each rank: its layers, the share of the step that it is idle: by the model's multiply-adds, by a replay of the measured processor times,
//! and, only where every rank has a core of its own, as it was.
//! @param cores of this machine
void write_table(std::ostream& out, pipeline& from, int cores);

//! What the operating system says, in bytes.
struct process_memory {
  std::optional<std::int64_t> before{};  //!< in memory before the model was made
  std::int64_t absent_code = 0;          //!< of the program, not in memory then
  std::optional<std::int64_t> most{};    //!< at any time
  bool poisoned = false;                 //!< so the paint does not show what was touched
};

//! Writes one row for each rank: what it holds by the plan, the most of its arena that was in use at
//! once, what was touched of it since it was painted; and what the process as a whole takes.
void write_memory(std::ostream& out, pipeline& from, const process_memory& process);

//! Writes the traced steps for Chrome or Perfetto.
void write_trace(std::ostream& out, pipeline& from);

//! Draws the last step as it was, or where ranks share cores the replay of the measured times.
//! @return in a few words what is drawn
std::string write_picture(std::ostream& out, pipeline& from, int cores);

//! A line that begins as a line of the held-back text does. Of several processes, all call it, and
//! the one that leads gets it.
std::string sampled_line(const pipeline& from, const corpus& text, std::uint64_t seed);

}  // namespace train
