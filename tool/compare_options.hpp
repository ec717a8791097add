#pragma once

#include <string>
#include <vector>

#include "cost_options.hpp"
#include "step_options.hpp"

namespace CLI {
class App;
class Option;
}

namespace stretto::tool {

//! What is to be compared, and on what model.
struct compare_options {
  shape_options sizes;
  cost_options costs;
  window_options windows;
  std::vector<std::string> names;  //!< of schedules; empty: all
  std::vector<std::string> csv;    //!< orders of one's own
  std::string objective = "flush";
  std::string merge = "none";

  //! All but the orders of one's own.
  //! @param of      the numbers of which the command takes several
  //! @param limits  whether it takes several of these
  //! @return those options that do not go together with such orders
  std::vector<CLI::Option*> add(CLI::App& command, several of, bool limits);
};

}  // namespace stretto::tool
