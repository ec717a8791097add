#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "support/run_program.hpp"

// STRETTO_TOOL_PATH: the built tool. STRETTO_CSV_DIR: the folder that holds csv/ and csv_invalid/.

namespace tool_tests {

using test_support::contents;
using test_support::outcome;
using test_support::temporary;

//! Runs the tool with arguments as a shell reads them.
inline outcome run(const std::string& arguments) {
  return test_support::run(STRETTO_TOOL_PATH, arguments);
}

inline nlohmann::json run_json(const std::string& arguments) {
  const outcome ran = run(arguments);
  return ran.exit == 0 ? nlohmann::json::parse(ran.out) : nlohmann::json{{"failed", ran.err}};
}

}  // namespace tool_tests
