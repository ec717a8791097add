#include "header.hpp"

#include <set>

#include "catalogue.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/plan/report.hpp"

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
    default:
      return "recompute";
  }
}

const char* enumerator(placement_kind kind) {
  switch (kind) {
    case placement_kind::wave:
      return "wave";
    case placement_kind::bidirectional:
      return "bidirectional";
    default:
      return "looped";
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

//! `frozen_zb_auto_8x64`, with chunks and slices when there are more than one of them.
std::string type_name(const std::string& schedule, const shape& sizes) {
  std::string name = "frozen_" + schedule + "_" + std::to_string(sizes.ranks) + "x" +
                     std::to_string(sizes.microbatches);
  if (sizes.chunks > 1 || sizes.slices > 1) name += "x" + std::to_string(sizes.chunks);
  if (sizes.slices > 1) name += "x" + std::to_string(sizes.slices);
  return name;
}

}  // namespace

std::string print_header(const step& made, const shape& sizes, const std::string& command) {
  const job_rows rows = made.input().rows;
  const simulated all = simulate(made);
  const std::string type = type_name(made.schedule, sizes);
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

  std::string text = "#pragma once\n\n// clang-format off\n// Written by\n//   " + command +
                     "\n// makespan " + std::to_string(all.all.makespan) + ", bubble " +
                     std::to_string(all.all.bubble.numerator) + " of " +
                     std::to_string(all.all.makespan) +
                     ". Proven where it is used:\n//   "
                     "static_assert(stretto::valid<stretto::pipeline<\n//       " +
                     type + "::made_for, stretto::schedule::frozen<" + type +
                     ">>>);\n\n#include <cstdint>\n#include <string_view>\n\n#include "
                     "\"stretto/schedule/frozen.hpp\"\n\n";
  text += "struct " + type + " {\n";
  text += "  static constexpr std::string_view name = \"" + made.schedule + "\";\n";
  text += "  static constexpr stretto::shape made_for{" + std::to_string(sizes.ranks) + ", " +
          std::to_string(sizes.microbatches) + ", " + std::to_string(sizes.chunks) + ", " +
          std::to_string(sizes.slices) + "};\n";
  text += std::string("  static constexpr stretto::placement_kind placement = ") +
          "stretto::placement_kind::" + enumerator(made.made.where.kind) + ";\n";
  if (is_forward_only(made.schedule))
    text += "  static constexpr bool forward_only = true;\n";
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
  return text + "  };\n};\n";
}

}  // namespace stretto::tool
