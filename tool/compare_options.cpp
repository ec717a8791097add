#include "compare_options.hpp"

#include <CLI/CLI.hpp>

#include "catalogue.hpp"

namespace stretto::tool {

std::vector<CLI::Option*> compare_options::add(CLI::App& command, several of, bool limits) {
  command.add_option("NAME", names,
                     "Schedules, each with options of its own where there are some, as in "
                     "interleaved:group=8,warmup=all (default all): " +
                         schedule_names());
  sizes.add(command, true, of);
  costs.add(command,
            {.windows = true, .pairs = true, .limits = limits, .sums = true, .gathers = true});
  command
      .add_option("--objective", objective,
                  "What is to be short: flush (the makespan) or span (the longest rank's first to "
                  "last job, for steps that no barrier separates)")
      ->check(CLI::IsMember({"flush", "span"}));
  std::vector<CLI::Option*> made{add_merge(command, merge)};
  for (CLI::Option* put_in : windows.add(command)) made.push_back(put_in);
  return made;
}

}  // namespace stretto::tool
