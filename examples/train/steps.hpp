// The steps of a run, from the first to the last.
#pragma once

#include <stdexcept>
#include <string>

#include "options.hpp"
#include "pipeline/pipeline.hpp"
#include "processes.hpp"
#include "step_log.hpp"

namespace train {

//! A signal has ended the run after one of its steps, in all processes; the checkpoint has it.
struct agreed_end : std::runtime_error {
  using std::runtime_error::runtime_error;
};

//! Shows how far they are, checks, logs and saves them, as the options say.
//! @param log      null: another process has it, or nobody
//! @param running  is told what runs, for an error
//! @throws agreed_end; bad_checkpoint where one cannot be written; what --check finds; else as
//!         pipeline::step()
void train_steps(pipeline& made, const options& with, const processes& all, step_log* log,
                 std::string& running);

}  // namespace train
