#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}

namespace stretto::tool {

//! What was measured, and of whom.
struct trace_options {
  std::string file;
  int worker = 0;  //!< see measured_trace

  //! --trace, a file that the executor has written, and what goes with it.
  //! @param says  what it is for
  //! @return --trace
  CLI::Option* add(CLI::App& command, const std::string& says);
};

}  // namespace stretto::tool
