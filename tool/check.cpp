#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "command.hpp"
#include "errors.hpp"
#include "make_step.hpp"
#include "stretto/check/sharded.hpp"
#include "stretto/plan/csv_schedule.hpp"

namespace stretto::tool {

namespace {

//! On which rank weights of the most stages are there at once, and of how many.
std::string gathered_in_words(const step& made, const step_options& options) {
  const job_rows rows = made.input().rows;
  std::vector<int> most;
  for (int rank = 0; rank < rows.ranks; ++rank) most.push_back(check::most_gathered(rows, rank));
  const auto top = std::max_element(most.begin(), most.end());
  if (*top > 0)
    return "; rank " + std::to_string(top - most.begin()) + " holds the weights of " +
           count_of(*top, "stage") + " at once, and no rank of more";
  if (options.costs.gathered)
    throw bad_option("--gathered", std::to_string(*options.costs.gathered),
                     options.csv + " gathers no weights (UNSHARD)");
  return {};
}

//! How the file lays the stages over the ranks, where there is more than one way.
std::string placement_in_words(const imported_schedule& read) {
  const auto lies = read.lies_as();
  if (!lies) return ", neither looped nor wave";
  if (read.two_directions) return ", bidirectional";
  if (read.chunks == 1 || read.where().ranks == 1) return {};
  return *lies == placement_kind::wave ? ", wave" : ", looped";
}

}  // namespace

void add_check(CLI::App& app) {
  auto* command = app.add_subcommand(
      "check",
      "Hold a schedule in a file, PyTorch's CSV or `cells`, against every rule; exit 1 with the "
      "first fault");
  const auto mine = std::make_shared<step_options>();
  command
      ->add_option("FILE.csv", mine->csv,
                   "compute_only or compute_comms, as the file shows; - for standard input")
      ->required();
  mine->csv_option = "FILE.csv";
  command
      ->add_option("--gathered", mine->costs.gathered,
                   "Of how many stages at once a rank may hold the weights (between UNSHARD and "
                   "RESHARD; default: any number)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
  mine->costs.add(*command, {.windows = true, .pairs = true});
  mine->costs.replicas = true;  // what files of costs say of gathers counts against limits
  command->callback([mine] {
    const step made = make_step(*mine, true);
    const std::string gathered = gathered_in_words(made, *mine);
    std::cout << made.title << ", " << count_of(made.made.where.stages(), "stage")
              << placement_in_words(*made.imported)
              << (made.forward_only ? ", forwards only, " : ", ")
              << (made.messages ? "compute_comms" : "compute_only")
              << (made.imported->beyond_pytorch ? " beyond PyTorch's grammar" : "") << ": ok"
              << gathered << '\n';
  });
}

}  // namespace stretto::tool
