#include <iostream>
#include <memory>

#include "command.hpp"
#include "step.hpp"

namespace stretto::tool {

void add_check(CLI::App& app) {
  auto* command = app.add_subcommand(
      "check", "Hold a schedule in PyTorch's CSV against every rule; exit 1 with the first fault");
  const auto mine = std::make_shared<step_options>();
  command->add_option("FILE.csv", mine->csv, "compute_only or compute_comms, as the file shows; - for standard input")
      ->required();
  mine->csv_option = "FILE.csv";
  mine->costs.add(*command, {.copies = false, .pairs = true});
  command->callback([mine] {
    const step made = make_step(*mine, true);
    std::cout << made.title << ", " << count_of(made.made.where.stages(), "stage") << ", "
              << (made.messages ? "compute_comms" : "compute_only") << ": ok\n";
  });
}

}  // namespace stretto::tool
