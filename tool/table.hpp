#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace stretto::tool {

//! Rows of cells as text: the first column left-aligned, the others right-aligned.
inline std::string print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t at = 0; at < row.size(); ++at) {
      if (at == widths.size()) widths.push_back(0);
      widths[at] = std::max(widths[at], row[at].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t at = 0; at < row.size(); ++at) {
      const std::string fill(widths[at] - row[at].size(), ' ');
      if (at > 0) line += "  ";
      line += at == 0 ? row[at] + fill : fill + row[at];
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

//! `27.3 %`
inline std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part);
  return text;
}

}  // namespace stretto::tool
