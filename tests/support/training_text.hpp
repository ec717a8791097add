#pragma once

#include <string>

#include "support/run_program.hpp"

namespace test_support {

//! A text to train on that stays the same from run to run, as the sources, which the trainer takes
//! by itself, do not while somebody works at them.
struct training_text : temporary {
  training_text() : temporary("train_text") {
    std::string bytes;
    for (int line = 0; line < 200; ++line)
      bytes += "line " + std::to_string(line * line) + " follows from its number\n";
    write(bytes);
  }
};

}  // namespace test_support
