#include "compare_csv.hpp"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

namespace stretto::tool {

namespace {

//! As RFC 4180 has it.
std::string cell(const std::string& words) {
  if (words.find_first_of(",\"\n\r") == std::string::npos) return words;
  std::string quoted = "\"";
  for (const char letter : words) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

//! Of a row as JSON has it, where a list is one number for each rank.
std::string number_of(const nlohmann::ordered_json& row, const std::string& key) {
  const auto found = row.find(key);
  if (found == row.end()) return key == "slices" ? "1" : "";
  if (found->is_string()) return cell(found->get<std::string>());
  return (found->is_array() ? *std::max_element(found->begin(), found->end()) : *found).dump();
}

constexpr const char* columns[] = {
    "ranks",      "microbatches", "schedule", "file",       "chunks",      "slices",  "limit",
    "made_for",   "makespan",     "span",     "bubble",     "span_bubble", "peak",    "bound",
    "span_bound", "busiest_link", "jobs_end", "by_gathers", "recompute",   "offload", "refused"};

}  // namespace

std::string csv_titles() {
  std::string line;
  for (const char* title : columns) line += (line.empty() ? "" : ",") + std::string(title);
  return line + "\n";
}

std::string csv_lines(const comparison& common, std::optional<std::int64_t> limit,
                      const comparison_run& made) {
  std::string lines;
  for (nlohmann::ordered_json row : common.rows_of(made)) {
    if (limit) row["limit"] = *limit;
    std::string line;
    for (const char* title : columns)
      line += (title == columns[0] ? "" : ",") + number_of(row, title);
    lines += line + "\n";
  }
  return lines;
}

std::string to_csv(const comparison& common, const std::vector<std::int64_t>& limits,
                   const std::vector<comparison_run>& runs) {
  std::string text = csv_titles();
  for (std::size_t at = 0; at < runs.size(); ++at)
    text += csv_lines(
        common, limits.empty() ? std::nullopt : std::optional<std::int64_t>(limits[at]), runs[at]);
  return text;
}

}  // namespace stretto::tool
