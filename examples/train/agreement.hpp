// What all processes of a run must have been told alike.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

#include "model/corpus.hpp"
#include "options.hpp"
#include "stretto/executor/bootstrap.hpp"

namespace train {

//! An option that one process has otherwise than another: what each of them says of it. All
//! processes throw it.
struct disagreement : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

//! Compares with what the others have, which call it, too.
//! @throws disagreement; stretto::executor::bootstrap_error when a process does not come in time
void must_agree(std::span<const told_option> mine, stretto::executor::bootstrap& with);

//! The text by its size and checksum: wherever each process finds it.
told_option told(const corpus& text);

}  // namespace train
