// The command line of the trainer.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/config.hpp"
#include "pipeline/settings.hpp"

namespace stretto::tool {
class measured_machine;
}

namespace train {

//! What an option has been told, or its default; empty: nothing.
struct told_option {
  std::string name, value;
  bool operator==(const told_option&) const = default;
};

struct options {
  config model;
  pipeline_settings pipeline;
  learning_settings learning;
  long steps = 0;
  std::string device = "host";         //!< see devices.hpp
  std::shared_ptr<stretto::tool::measured_machine> machine;  //!< pipeline.machine, or null
  std::string transport = "loopback";  //!< see processes.hpp
  //! How long the others of several processes on GPUs may take to come, once one is there.
  std::chrono::seconds join_timeout = std::chrono::minutes(2);
  int sample = 76;     //!< bytes of text that the model adds at the end; 0: none
  bool check = false;  //!< run the reference beside the pipeline and compare
  std::filesystem::path out;
  std::filesystem::path save;    //!< checkpoint to write; empty: none
  long save_every = 0;           //!< steps; 0: at the end alone
  std::filesystem::path resume;  //!< checkpoint to go on from; empty: none
  std::filesystem::path log;     //!< a line for each step; empty: none
  std::vector<std::filesystem::path> files;  //!< empty: what the repository ships
  std::vector<told_option> named;            //!< all files that it reads or keeps, by their options
  std::vector<told_option> common;  //!< what all processes of a run must have alike
};

//! Ends the program with this code after printing the text: help, or what is wrong.
struct early_exit : std::runtime_error {
  early_exit(int code_, const std::string& text) : std::runtime_error(text), code(code_) {}
  int code;
};

//! The same where all processes end, and each of them has something to tell.
struct common_end : early_exit {
  common_end(int code_, const std::string& text,
             std::chrono::seconds patience_ = std::chrono::minutes(1))
      : early_exit(code_, text), patience(patience_) {}
  std::chrono::seconds patience;  //!< until all have told it, if none has died
};

//! @throws early_exit for --help (0) and for wrong options (2): one line that names the option, the
//!         value and the rule
options read_options(int argc, const char* const* argv);

}  // namespace train
