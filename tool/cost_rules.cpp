#include "cost_rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "errors.hpp"

namespace stretto::tool {

namespace {

//! ", of micro-batch 3 (and slice 1)": the first of a class, where there are several.
std::string one_of_class(const job_table& given, std::int64_t number) {
  if (given.classes.empty()) return "";
  const auto at =
      std::find(given.classes.begin(), given.classes.end(), number) - given.classes.begin();
  return ", of micro-batch " + std::to_string(at / given.slices) +
         (given.slices > 1 ? ", slice " + std::to_string(at % given.slices) : "");
}

}  // namespace

void refuse_long_sums(const cost_options& options, const job_table& given, const placement& where,
                      const cost_cut& cut, std::int64_t loss) {
  const double jobs = 1.0 * where.microbatches * cut.slices * cut.joined;  // of a stage and kind
  double longest = 0;  // what a micro-batch takes, or a slice of it
  double held = 0;
  for (std::int64_t number = 0; number < given.view().class_count(); ++number) {
    const job_table_view table = given.view().of_class(number);
    double each = 0;
    for (std::size_t at = 0; at < table.entries.size(); ++at) {
      const bool gather = static_cast<job_kind>(at % cost_kinds) == job_kind::unshard;
      each += (gather ? 3 : 1) * static_cast<double>(table.entries[at].time);
    }
    longest = std::max(longest, each);
    for (int rank = 0; rank < given.ranks; ++rank) {
      double sum = static_cast<double>(table.base_of(rank));
      for (int chunk = 0; chunk < given.chunks; ++chunk)
        for (int kind = 0; kind < cost_kinds; ++kind) {
          const job_cost& one = table.at(rank, chunk, static_cast<job_kind>(kind));
          sum += std::abs(static_cast<double>(one.change)) * jobs + static_cast<double>(one.peak);
        }
      held = std::max(held, sum);
    }
  }
  longest += 8.0 * static_cast<double>(loss);
  const hop_times hops = given.view().hops();
  const double messages = 2.0 * where.ranks * std::max(where.chunks, given.chunks) *
                          static_cast<double>(hops.longest(where.ranks));
  const auto refuse = [&](const char* what, const char* option, const std::string& typed,
                          std::int64_t parts) {
    const auto [name, value] =
        options.layers.given()        ? std::pair{"--layers", options.layers.text}
        : !options.costs_file.empty() ? std::pair{"--costs", options.costs_file}
                                      : std::pair{option, typed};
    throw bad_option(name, value,
                     "with so many jobs, " + std::string(what) +
                         (parts > 1 ? " of 1/" + std::to_string(parts) + " (lest parts be rounded)"
                                    : "") +
                         " sum to more than 64 bits hold; give smaller ones");
  };
  const auto fits = [](double sum, std::int64_t parts) {
    return sum * static_cast<double>(parts) < static_cast<double>(unlimited);
  };
  const bool by_nodes = hops.longest(where.ranks) > hops.within && !options.nodes.empty();
  if (by_nodes && fits(longest * jobs, cut.times) &&
      !fits((longest + messages) * jobs, cut.times))
    throw bad_option("--nodes", options.nodes,
                     "with so many jobs, the times of messages sum to more than 64 bits hold; give "
                     "smaller ones");
  if (!fits((longest + messages) * jobs, cut.times))
    refuse("times", "--cost", options.cost, cut.times);
  if (!fits(held, cut.amounts))
    refuse("amounts of memory", "--memory", options.memory, cut.amounts);
}

void refuse_saving_too_much(const cost_options& options, const job_table& given) {
  for (std::int64_t number = 0; number < given.view().class_count(); ++number)
    for (int rank = 0; rank < given.ranks; ++rank)
      for (int chunk = 0; chunk < given.chunks; ++chunk)
        if (const auto left =
                given.view().of_class(number).at(rank, chunk, job_kind::backward).time;
            left < 0)
          throw bad_option(
              "--whole-saves", std::to_string(options.whole_saves),
              "is more than both halves take, I+W = " + std::to_string(options.whole_saves + left) +
                  " on rank " + std::to_string(rank) + one_of_class(given, number));
}

}  // namespace stretto::tool
