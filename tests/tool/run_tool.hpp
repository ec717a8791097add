#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

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

//! What is refused, in one line that says so.
struct refusal {
  const char* arguments;
  const char* says;
};
inline void check_refused(const std::string& command, std::initializer_list<refusal> cases) {
  for (const refusal& one : cases) {
    INFO(one.arguments);
    const outcome ran = run(command + " " + one.arguments);
    INFO(ran.err);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.find(one.says) != std::string::npos);
    CHECK(std::ranges::count(ran.err, '\n') == 1);
  }
}

//! All that a pattern finds: its groups, of each place.
inline std::vector<std::vector<std::string>> found(const std::string& text,
                                                   const std::string& pattern) {
  std::vector<std::vector<std::string>> all;
  const std::regex each(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), each), end; at != end; ++at) {
    all.emplace_back();
    for (std::size_t group = 1; group < at->size(); ++group) all.back().push_back((*at)[group]);
  }
  return all;
}

}  // namespace tool_tests
