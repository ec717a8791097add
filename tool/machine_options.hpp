#pragma once

#include <string>

#include "machine_file.hpp"
#include "stretto/model/machine.hpp"

namespace CLI {
class App;
}

namespace stretto::tool {

//! --device, --machine, --network, --copy-engine: where ops run.
struct machine_options {
  std::string device = "h200";  //!< once settled, what the machine is called
  std::string path;
  int network = 0;
  bool copy_engine = false;

  //! @param others  what else the network carries than what goes to experts, for the help
  void add(CLI::App& command, const std::string& others = "");
  //! Valid as long as this.
  //! @throws bad_input naming the option
  machine settle();

 private:
  measured_machine measured_;
};

}  // namespace stretto::tool
