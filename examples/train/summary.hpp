// What is told at the end: memory and idle time of every rank, pictures, a line of text.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "model/corpus.hpp"
#include "pipeline/pipeline.hpp"

namespace train {

//! Writes one row for each rank: its layers, its arena and what was touched of it, the share of the
//! step that it is idle: by the model's multiply-adds, by a replay of the measured processor times,
//! and, only where every rank has a core of its own, as it was.
//! @param cores of this machine
void write_table(std::ostream& out, pipeline& from, int cores);

//! Writes the traced steps for Chrome or Perfetto.
void write_trace(std::ostream& out, pipeline& from);

//! Draws the last step as it was, or where ranks share cores the replay of the measured times.
//! @return in a few words what is drawn
std::string write_picture(std::ostream& out, pipeline& from, int cores);

//! A line that begins as a line of the held-back text does.
std::string sampled_line(const pipeline& from, const corpus& text, std::uint64_t seed);

}  // namespace train
