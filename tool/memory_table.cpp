#include "memory_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "table.hpp"

namespace stretto::tool {

std::string in_mib(std::int64_t bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.0f", std::ceil(static_cast<double>(bytes) / (1 << 20)));
  return text;
}

std::string memory_table::json() const {
  nlohmann::ordered_json text{{"schedule", schedule},
                              {"ranks", sizes.ranks},
                              {"microbatches", sizes.microbatches},
                              {"chunks", sizes.chunks},
                              {"slices", sizes.slices}};
  for (const rank_need& need : ranks) {
    text["need"].push_back({{"layers", need.layers},
                            {"state", need.state},
                            {"gathered", need.gathered},
                            {"saved", need.step.saved},
                            {"messages", need.step.messages},
                            {"sums", need.step.sums},
                            {"arena", need.step.arena},
                            {"working", need.step.working},
                            {"activations", need.activations()},
                            {"jobs", need.jobs},
                            {"total", need.total()}});
    if (in_pieces) text["need"].back()["head_pieces"] = need.head_pieces;
    if (offloads) text["need"].back()["host"] = need.step.host;
  }
  return text.dump(1) + "\n";
}

std::string memory_table::text() const {
  std::vector<std::vector<std::string>> rows{
      {"rank", "layers", "state", "saved", "messages", "working", "total"}};
  if (gathers) rows[0].insert(rows[0].begin() + 3, "gathered");
  if (in_pieces) rows[0].insert(rows[0].begin() + 2, "head pieces");
  if (sums) rows[0].insert(rows[0].end() - 2, "sums");
  if (offloads) rows[0].push_back("host");
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const rank_need& need = ranks[rank];
    rows.push_back({std::to_string(rank), std::to_string(need.layers), in_mib(need.state),
                    in_mib(need.step.saved), in_mib(need.step.messages), in_mib(need.step.working),
                    in_mib(need.total())});
    if (gathers) rows.back().insert(rows.back().begin() + 3, in_mib(need.gathered));
    if (in_pieces)
      rows.back().insert(rows.back().begin() + 2, std::to_string(need.head_pieces));
    if (sums) rows.back().insert(rows.back().end() - 2, in_mib(need.step.sums));
    if (offloads) rows.back().push_back(in_mib(need.step.host));
    most = std::max(most, need.total());
  }
  return schedule +
         ", MiB: " + (forward_only ? "weights alone" : "weights, gradients and optimizer state") +
         "; the most that " + (gathers ? "gathered weights take, that " : "") +
         "forwards save, that messages take, " +
         (sums ? "that copies of gradients take to be summed, " : "") +
         "that a job needs beside; all, as a plan lays it" +
         (offloads ? "; what the host keeps beside it\n" : "\n") + print_table(rows) +
         "the most: " + in_mib(most) + "\n";
}

}  // namespace stretto::tool
