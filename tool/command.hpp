#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <stdexcept>
#include <string>

namespace stretto::tool {

//! On one line, and nothing that a terminal would act upon or that ends a C string: a message may
//! quote a file.
std::string shown(const std::string& words);

//! A wrong option, file or shape: exit 2. The text names the option, its value and the rule.
struct bad_input : std::runtime_error {
  explicit bad_input(const std::string& words) : std::runtime_error(shown(words)) {}
};

//! A schedule that breaks a rule: exit 1. The text is the verdict's sentence.
struct broken_schedule : std::runtime_error {
  explicit broken_schedule(const std::string& words) : std::runtime_error(shown(words)) {}
};

//! How the help of every command ends.
inline constexpr const char* exits =
    "Exit: 0 when all is well, 1 when a schedule breaks a rule or cannot be read, 2 for wrong input.\n"
    "Times are integers in any unit, per chunk job.";

//! The subcommands: each adds itself to `app` and runs as CLI11 calls it back.
void add_assign(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_check(CLI::App& app);
void add_compare(CLI::App& app);
void add_list(CLI::App& app);
void add_memory(CLI::App& app);
void add_overlap(CLI::App& app);
void add_plot(CLI::App& app);
void add_predict(CLI::App& app);
void add_schedule(CLI::App& app);
void add_simulate(CLI::App& app);
void add_trace(CLI::App& app);

//! A new subcommand. What makes a CLI::App compiles all of CLI11, so one file does it for all.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& what);

//! Whole files; std::string holds bytes. A path of "-" is standard input or output.
//! @throws bad_input when the file cannot be read or written; `option` is named in it
std::string read_file(const std::string& option, const std::string& path);
void write_file(const std::string& option, const std::string& path, const std::string& text);
//! The same for what is too long to be held at once.
void write_file(const std::string& option, const std::string& path,
                const std::function<void(std::ostream&)>& print);

//! `option` with its value as typed, a colon, the rule.
inline bad_input bad_option(const std::string& option, const std::string& value,
                            const std::string& rule) {
  return bad_input(option + " " + value + ": " + rule);
}

}  // namespace stretto::tool
