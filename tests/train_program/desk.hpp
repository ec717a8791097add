// What tests of the program `train` work with: a text, a folder, sizes that are quick everywhere.
#pragma once

#include <filesystem>
#include <sstream>
#include <string>

#include "support/run_program.hpp"
#include "support/training_text.hpp"

// STRETTO_TRAIN_PATH: the built program; STRETTO_TOOL_PATH: the tool, if it is built.

namespace program_test {

using test_support::contents;
using test_support::outcome;
using test_support::temporary;

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

//! The arguments, and sizes small enough for a step to be quick everywhere: those that they do not
//! give, for no option may be given twice.
inline std::string small(const std::string& arguments = "") {
  std::string made = arguments;
  for (const char* option : {"--layers 4", "--width 16", "--heads 2", "--context 16", "--ranks 2",
                             "--microbatches 4", "--steps 4", "--sample 9"}) {
    const std::string with_value = option;
    const std::string name = with_value.substr(0, with_value.find(' ') + 1);
    const bool of_the_file =
        has(arguments, "--csv ") && (name == "--ranks " || name == "--microbatches ");
    if (!has(arguments, name) && !of_the_file) made += " " + with_value;
  }
  return made;
}

//! A text to train on and a folder for what is left behind.
struct desk {
  outcome train(const std::string& arguments) const {
    return test_support::run(STRETTO_TRAIN_PATH,
                             "--out=" + out.path() + " " + arguments + " " + text.path());
  }
  //! As where a disk is full when files have a few lines. @return all that it says, and behind that
  //! "ended with 0"
  std::string train_on_full_disk(const std::string& arguments) const {
    return test_support::run(
               "sh",
               "-c '{ trap \"\" XFSZ; ulimit -f 1; \"" STRETTO_TRAIN_PATH "\" --out=" + out.path() +
                   " " + arguments + " " + text.path() + "; echo ended with $?; } 2>&1 | cat'")
        .out;
  }
  std::string left(const char* name) const {
    return contents(std::filesystem::path(out.path()) / name);
  }

  std::string left_path(const char* name) const {
    std::filesystem::create_directories(out.path());
    return (std::filesystem::path(out.path()) / name).string();
  }

  test_support::training_text text;
  temporary out{"train_out"};
};

//! What a run learns, without what depends on the machine: the losses of its steps.
inline std::string losses(const std::string& printed) {
  std::istringstream lines(printed);
  std::string line, made;
  while (std::getline(lines, line))
    if (line.starts_with("step ")) made += line.substr(0, line.rfind("  ")) + '\n';
  return made;
}

}  // namespace program_test
