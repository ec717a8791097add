#include "trace_options.hpp"

#include <CLI/CLI.hpp>

namespace stretto::tool {

CLI::Option* trace_options::add(CLI::App& command, const std::string& says) {
  CLI::Option* const trace = command.add_option("--trace", file, says);
  command
      .add_option("--worker", worker,
                  "Where several workers share a rank's jobs, the number of the one whose are read")
      ->check(CLI::Range(0, 1 << 20).description(""))
      ->capture_default_str()
      ->needs(trace);
  return trace;
}

}  // namespace stretto::tool
