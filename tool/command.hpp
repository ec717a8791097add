#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace stretto::tool {

//! How the help of a command ends whose times are its own.
inline constexpr const char* exit_codes =
    "Exit: 0 when all is well, 1 when a schedule breaks a rule or a file is no schedule, 2 for "
    "wrong input.";
//! How that of the others does.
inline const std::string exits =
    std::string(exit_codes) + "\nTimes are integers in any unit, per chunk job.";

//! The subcommands: each adds itself to `app` and runs as CLI11 calls it back.
void add_assign(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_check(CLI::App& app);
void add_compare(CLI::App& app);
void add_costs(CLI::App& app);
void add_list(CLI::App& app);
void add_measured(CLI::App& app);
void add_memory(CLI::App& app);
void add_overlap(CLI::App& app);
void add_plan(CLI::App& app);
void add_plot(CLI::App& app);
void add_predict(CLI::App& app);
void add_schedule(CLI::App& app);
void add_simulate(CLI::App& app);
void add_sweep(CLI::App& app);
void add_trace(CLI::App& app);

}  // namespace stretto::tool
