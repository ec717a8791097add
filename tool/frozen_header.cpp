#include "frozen_header.hpp"

#include <cctype>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "errors.hpp"
#include "simulated.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/options.hpp"

namespace stretto::tool {

namespace {

constexpr std::size_t width = 100;

const char* enumerator(job_kind kind) {
  switch (kind) {
    case job_kind::forward:
      return "forward";
    case job_kind::backward:
      return "backward";
    case job_kind::backward_input:
      return "backward_input";
    case job_kind::backward_weight:
      return "backward_weight";
    case job_kind::offload:
      return "offload";
    case job_kind::reload:
      return "reload";
    case job_kind::recompute:
      return "recompute";
    default:
      throw std::logic_error("a header holds no jobs of kind " + std::string(letters(kind)));
  }
}

//! Words in lines of at most `width`, `indent` in from the left.
std::string wrapped(const std::vector<std::string>& words, const std::string& indent) {
  std::string text;
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      text += line + '\n';
      line.clear();
    }
    line += (line.empty() ? indent : " ") + word;
  }
  return line.empty() ? text : text + line + '\n';
}

std::string spelt(const job& work) {
  std::string text = "{" + std::to_string(work.stage) + ", " + std::string(letters(work.kind)) +
                     ", " + std::to_string(work.microbatch);
  if (work.slice != 0 || work.paired) text += ", " + std::to_string(work.slice);
  return text + (work.paired ? ", true}," : "},");
}

//! A schedule's name, or what there is of letters and digits in that of a file.
std::string name_of(const step& made) {
  if (!made.imported) return made.schedule;
  std::string name;
  for (const char letter : std::filesystem::path(made.schedule).stem().string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    if (plain)
      name += letter;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name.empty() ? "order" : name;
}

//! `frozen_zb_auto_8x64`, with chunks and slices when there are more than one of them.
std::string type_name(const std::string& name_of_order, const shape& sizes) {
  std::string name = "frozen_" + name_of_order + "_" + std::to_string(sizes.ranks) + "x" +
                     std::to_string(sizes.microbatches);
  if (sizes.chunks > 1 || sizes.slices > 1) name += "x" + std::to_string(sizes.chunks);
  if (sizes.slices > 1) name += "x" + std::to_string(sizes.slices);
  return name;
}

//! The costs of every job, where a memory policy can say them: the same for all ranks and chunks.
//! @param kinds  of the order's jobs: what others would take says nothing
std::optional<unit_costs> same_for_all(job_table table, const std::set<job_kind>& kinds) {
  const auto of = [&](job_kind kind) { return table.view().at(0, 0, kind); };
  unit_costs all;
  all.forward = of(job_kind::forward).time;
  all.backward_input = of(job_kind::backward_input).time;
  all.backward_weight = of(job_kind::backward_weight).time;
  all.communication = table.communication;
  all.node_ranks = table.node_ranks;
  all.between_nodes = table.between_nodes;
  all.serial_links = table.serial_links;
  all.memory_forward = of(job_kind::forward).change;
  all.memory_backward_input = of(job_kind::backward_input).change;
  all.memory_backward_weight = of(job_kind::backward_weight).change;
  if (kinds.contains(job_kind::recompute)) {
    all.recompute_saves = all.forward - of(job_kind::recompute).time;
    all.memory_recompute = of(job_kind::recompute).change;
  }
  if (kinds.contains(job_kind::offload)) {
    all.offload = of(job_kind::offload).time;
    all.memory_offload = of(job_kind::reload).change;
  }
  all.memory_weights = table.view().base_of(0) / table.chunks;
  all.pair_hides = table.pair_hides;
  all.whole_saves =
      all.backward_input + all.backward_weight - of(job_kind::backward).time;
  const job_table same(table.ranks, table.chunks, all);
  if (table.entries.size() != same.entries.size()) return std::nullopt;
  for (std::size_t at = 0; at < same.entries.size(); ++at)
    if (kinds.count(static_cast<job_kind>(at % cost_kinds)) == 0)
      table.entries[at] = same.entries[at];
  if (same.entries != table.entries) return std::nullopt;
  for (int rank = 0; rank < table.ranks; ++rank)
    if (table.view().base_of(rank) != all.memory_weights * table.chunks ||
        table.view().limit_of(rank) != table.view().limit_of(0))
      return std::nullopt;
  return all;
}

//! The costs that differ from those of `unit_costs{}`, as designated initialisers spell them.
std::vector<std::string> initialisers(const unit_costs& costs) {
  constexpr unit_costs usual;
  std::vector<std::string> words;
  const auto say = [&](const char* name, std::int64_t value, std::int64_t by_default) {
    if (value == by_default) return;
    if (!words.empty()) words.back() += ",";
    words.push_back("." + std::string(name) + " = " + std::to_string(value));
  };
  say("forward", costs.forward, usual.forward);
  say("backward_input", costs.backward_input, usual.backward_input);
  say("backward_weight", costs.backward_weight, usual.backward_weight);
  say("communication", costs.communication, usual.communication);
  say("memory_forward", costs.memory_forward, usual.memory_forward);
  say("memory_backward_input", costs.memory_backward_input, usual.memory_backward_input);
  say("memory_backward_weight", costs.memory_backward_weight, usual.memory_backward_weight);
  say("memory_recompute", costs.memory_recompute, usual.memory_recompute);
  say("offload", costs.offload, usual.offload);
  say("memory_offload", costs.memory_offload, usual.memory_offload);
  say("memory_weights", costs.memory_weights, usual.memory_weights);
  say("pair_hides", costs.pair_hides, usual.pair_hides);
  say("whole_saves", costs.whole_saves, usual.whole_saves);
  say("recompute_saves", costs.recompute_saves, usual.recompute_saves);
  say("node_ranks", costs.node_ranks, usual.node_ranks);
  say("between_nodes", costs.between_nodes, usual.between_nodes);
  if (costs.serial_links) {
    if (!words.empty()) words.back() += ",";
    words.emplace_back(".serial_links = true");
  }
  return words;
}

//! What a table was made for, as the memory policy that its proof takes; empty: the default.
std::string memory_policy(const unit_costs& costs, std::int64_t limit) {
  const std::vector<std::string> words = initialisers(costs);
  if (words.empty() && limit == unlimited) return {};
  std::string text =
      "  // What it was made for, and is proven under.\n"
      "  struct memory : stretto::memory::release_early {\n";
  if (!words.empty())
    text += "    constexpr stretto::unit_costs costs() const {\n      return {\n" +
            wrapped(words, "          ") + "      };\n    }\n";
  if (limit != unlimited)
    text += "    constexpr std::int64_t limit() const { return " + std::to_string(limit) + "; }\n";
  return text + "  };\n";
}

}  // namespace

std::string print_header(const step& made, const std::string& command) {
  const placement& where = made.made.where;
  if (made.messages)
    throw bad_option("--csv", made.schedule, "holds messages; a header holds compute jobs alone");
  const auto lies = made.imported ? made.imported->lies_as() : std::optional(where.kind);
  if (!lies)
    throw bad_option("--csv", made.schedule,
                     "its stages are neither looped over the ranks nor in a wave, of which alone a "
                     "header can speak");
  const shape sizes{where.ranks, made.microbatches, made.chunks, made.slices};
  const job_rows rows = made.input().rows;
  const simulated all = simulate(made);
  const std::string name = name_of(made);
  const std::string type = type_name(name, sizes);
  std::vector<std::string> counts;
  std::vector<std::string> lists;
  std::set<job_kind> kinds;
  for (int rank = 0; rank < rows.ranks; ++rank) {
    const auto list = rows.row(rank);
    counts.push_back(std::to_string(list.size()) + (rank + 1 < rows.ranks ? "," : "};"));
    std::vector<std::string> words;
    for (const job& work : list) {
      kinds.insert(work.kind);
      words.push_back(spelt(work));
    }
    lists.push_back("      // rank " + std::to_string(rank) + "\n" + wrapped(words, "      "));
  }

  const job_table& table = made.made.costs;
  const std::optional<unit_costs> costs = same_for_all(table, kinds);
  const std::string memory = costs ? memory_policy(*costs, table.view().limit_of(0)) : "";
  std::string text = "#pragma once\n\n// clang-format off\n// Written by\n//   " + command +
                     "\n// makespan " + std::to_string(all.all.makespan) + ", bubble " +
                     std::to_string(all.all.bubble.numerator) + " of " +
                     std::to_string(all.all.makespan) + ". Proven where it is used";
  if (!costs)
    text +=
        ", for its order alone: costs or\n// limits differ by rank, chunk, micro-batch or slice, "
        "or "
        "a job needs more while it runs";
  text += ":\n//   static_assert(stretto::valid<stretto::pipeline<\n//       " + type +
          "::made_for, stretto::schedule::frozen<" + type + ">";
  if (!memory.empty()) text += ",\n//       stretto::assignment::unassigned, " + type + "::memory";
  text += ">>);\n\n#include <cstdint>\n#include <string_view>\n\n";
  if (!memory.empty()) text += "#include \"stretto/memory/release_early.hpp\"\n";
  text += "#include \"stretto/schedule/frozen.hpp\"\n\n";
  text += "struct " + type + " {\n";
  text += "  static constexpr std::string_view name = \"" + name + "\";\n";
  text += "  static constexpr stretto::shape made_for{" + std::to_string(sizes.ranks) + ", " +
          std::to_string(sizes.microbatches) + ", " + std::to_string(sizes.chunks) + ", " +
          std::to_string(sizes.slices) + "};\n";
  text += std::string("  static constexpr stretto::placement_kind placement = ") +
          "stretto::placement_kind::" + schedule::word_for(*lies) + ";\n";
  if (made.forward_only) text += "  static constexpr bool forward_only = true;\n";
  for (const job_kind kind : kinds)
    text += "  static constexpr stretto::job_kind " + std::string(letters(kind)) +
            " = stretto::job_kind::" + enumerator(kind) + ";\n";
  text += "  // Jobs of each rank.\n  static constexpr std::int32_t counts[" +
          std::to_string(rows.ranks) + "] = {\n" + wrapped(counts, "      ");
  text +=
      "  // {stage, kind, micro-batch}, then the slice and whether the job is paired with the "
      "next.\n  static constexpr stretto::schedule::frozen_job jobs[" +
      std::to_string(rows.total()) + "] = {\n";
  for (const std::string& list : lists) text += list;
  return text + "  };\n" + memory + "};\n";
}

}  // namespace stretto::tool
