// What is told at the end: memory and idle time of every rank, pictures, a line of text.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "account.hpp"
#include "model/corpus.hpp"
#include "model/sample.hpp"
#include "pipeline/pipeline.hpp"

namespace train {

//! Writes one row for each rank: its layers, and the share of the step that it is idle: by the
//! model's multiply-adds, by a replay of the measured processor times, and, only where every worker
//! has a core of its own, as it was.
void write_table(std::ostream& out, const pipeline& from, const account& told);

//! Writes one row for each rank: what it holds by the plan, the most of its arena that was in use
//! at once, what was touched of it since it was painted; and what each process as a whole takes.
//! @param painted_over  by what, so that no paint shows what was touched; empty: by nothing
void write_memory(std::ostream& out, const pipeline& from, const account& told,
                  std::string_view painted_over);

//! Writes the traced steps for Chrome or Perfetto.
void write_trace(std::ostream& out, const pipeline& from, const account& told);

//! Draws the last step as it was, or where workers share cores, or clocks of several machines are
//! not one, the replay of the measured times.
//! @return in a few words what is drawn; empty: nothing, because GPUs of several machines have
//!         neither
std::string write_picture(std::ostream& out, const pipeline& from, const account& told);

//! A line that begins as a line of the held-back text does. Of several processes, all call it.
std::string sampled_line(pipeline& from, const corpus& text, const sampling& how);

}  // namespace train
