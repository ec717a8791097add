#pragma once

#include <string>

#include "measured_trace.hpp"
#include "step.hpp"
#include "step_options.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stretto::tool {

//! A step, and what was measured of it.
struct traced_step {
  step predicted;  //!< in microseconds: by the costs that options give, or by what each kind of job
                   //!< took
  std::string by;  //!< which of both
  measured_trace trace;
  std::string broken;  //!< broken_order
};

//! --trace, a file that the executor has written, of a command with the options of a step.
//! @param says  what it is for
CLI::Option* add_traced(CLI::App& command, std::string& file, const std::string& says);
//! @throws bad_input also for options that go with given costs alone where there are none
traced_step read_traced(const CLI::App& command, step_options& options, const std::string& file);

}  // namespace stretto::tool
