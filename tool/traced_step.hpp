#pragma once

#include <string>

#include "measured_trace.hpp"
#include "step.hpp"
#include "step_options.hpp"
#include "trace_options.hpp"

namespace stretto::tool {

//! A step, and what was measured of it.
struct traced_step {
  step predicted;  //!< in microseconds: by the costs that options give, or by what jobs took there
  std::string by;  //!< which of both
  measured_trace trace;
};

//! trace_options of a command with the options of a step.
CLI::Option* add_traced(CLI::App& command, trace_options& given, const std::string& says);
//! @param finer  times may be parts of a microsecond (step::time); else they are rounded
//! @throws bad_input also for options that go with given costs alone where there are none
traced_step read_traced(const CLI::App& command, step_options& options,
                        const trace_options& measured, bool finer);

}  // namespace stretto::tool
