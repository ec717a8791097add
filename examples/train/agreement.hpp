// What all processes of a run must have been told alike.
#pragma once

#include <span>
#include <string>

#include "model/corpus.hpp"
#include "options.hpp"
#include "stretto/executor/bootstrap.hpp"

namespace train {

//! Compares with what the others have, which call it, too.
//! @throws common_end naming an option, two values and two processes, in all of them;
//!         stretto::executor::bootstrap_error when a process does not come in time
void must_agree(std::span<const told_option> mine, stretto::executor::bootstrap& with);

//! The text by its size and checksum: wherever each process finds it.
told_option told(const corpus& text);

//! The measured machine by its name and checksum, likewise; empty: there is none.
std::string told_machine(const options& of);

}  // namespace train
