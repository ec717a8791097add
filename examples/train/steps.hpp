// The steps of a run, from the first to the last.
#pragma once

#include <stdexcept>
#include <string>

#include "early_end.hpp"
#include "options.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/saves.hpp"
#include "processes.hpp"
#include "step_log.hpp"

namespace train {

//! A signal has ended the run in all processes: after one of its steps, which the checkpoint has,
//! or before the first.
struct agreed_end : std::runtime_error {
  using std::runtime_error::runtime_error;
};

//! What goes beside the steps; null: nothing does.
struct beside_steps {
  step_log* log = nullptr;  //!< another process may have it
  saves* kept = nullptr;
  const early_end* asked = nullptr;
};

//! Before the first step; all processes call it.
//! @throws agreed_end where one of them has been asked to end
void end_if_asked(const pipeline& made, const options& with, const processes& all,
                  const early_end* asked);

//! Shows how far they are, checks, logs and saves them, as the options say.
//! @param running  is told what runs, for an error
//! @throws agreed_end; early_exit where that was not saved; diverged_checkpoint; what --check
//!         finds; else as pipeline::step()
void train_steps(pipeline& made, const options& with, const processes& all,
                 const beside_steps& beside, std::string& running);

}  // namespace train
