#include "sweep_grid.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <utility>

#include "step_options.hpp"
#include "table.hpp"

namespace stretto::tool {

namespace {

double units(std::int64_t value, const finer_unit& of) {
  return static_cast<double>(value) / static_cast<double>(of.times);
}

}  // namespace

std::string sweep_measure::text(double of) const {
  if (part) return percent(of);
  if (of == std::floor(of) && std::abs(of) < 1e15)
    return std::to_string(static_cast<std::int64_t>(of));
  char made[40];
  std::snprintf(made, sizeof made, "%.2f", of);
  return made;
}

const std::vector<sweep_measure>& sweep_measures() {
  using given = std::optional<double>;
  static const std::vector<sweep_measure> all{
      {"bubble", "bubble", true,
       [](const comparison&, const compared& one) -> given { return one.all.all.bubble.value(); }},
      {"makespan", "makespan", false,
       [](const comparison& common, const compared& one) -> given {
         return units(one.all.all.makespan, common.time);
       }},
      {"span", "span", false,
       [](const comparison& common, const compared& one) -> given {
         return units(one.all.all.span, common.time);
       }},
      {"span_bubble", "idle part of the span", true,
       [](const comparison&, const compared& one) -> given {
         return one.all.all.span_bubble.value();
       }},
      {"pace", "makespan per micro-batch", false,
       [](const comparison& common, const compared& one) -> given {
         return units(one.all.all.makespan, common.time) / common.wanted.microbatches;
       }},
      {"peak", "memory of the fullest rank", false,
       [](const comparison& common, const compared& one) -> given {
         return units(one.peak(), common.memory);
       }},
      {"above", "how far above what no order beats", true,
       [](const comparison& common, const compared& one) -> given {
         const std::int64_t bound = common.bound(one);
         if (one.forward_only || bound <= 0) return {};
         return static_cast<double>(common.length(one) - bound) / static_cast<double>(bound);
       }}};
  return all;
}

std::string swept::in_words(bool with_chunks) const {
  return name + (with_chunks ? " of " + count_of(chunks, "chunk") : "") +
         (slices > 1 ? " in " + count_of(slices, "slice") : "");
}

sweep_grid::sweep_grid(const sweep_measure& of, std::vector<int> ranks,
                       std::vector<int> microbatches)
    : measure_(of), ranks_(std::move(ranks)), microbatches_(std::move(microbatches)) {}

swept& sweep_grid::line_of(const compared& one) {
  const auto found = std::ranges::find_if(lines_, [&](const swept& line) {
    return line.name == one.name && line.chunks == one.chunks && line.slices == one.slices;
  });
  if (found != lines_.end()) return *found;
  lines_.push_back({one.name, one.chunks, one.slices, one.forward_only, {}, {}});
  lines_.back().values.resize(shapes());
  lines_.back().refused.resize(shapes());
  return lines_.back();
}

void sweep_grid::add(std::size_t shape, const comparison& common, const comparison_run& made) {
  several_chunks_ = several_chunks_ || common.several_chunks;
  sliced_ = sliced_ || common.wanted.slices > 1;
  for (const compared& one : made.all) line_of(one).values[shape] = measure_.value(common, one);
  for (const compared& one : made.absent) line_of(one).refused[shape] = common.reason_of(one);
}

std::vector<sweep_panel> sweep_grid::panels() const {
  std::vector<sweep_panel> all;
  if (microbatches_.size() == 1) {
    all.push_back({"", "ranks", ranks_, {}, {}});
    for (std::size_t shape = 0; shape < shapes(); ++shape) all.back().shapes.push_back(shape);
  } else {
    for (std::size_t at = 0; at < ranks_.size(); ++at) {
      all.push_back({ranks_.size() > 1 ? count_of(ranks_[at], "rank") : "",
                     "micro-batches",
                     microbatches_,
                     {},
                     {}});
      for (std::size_t of = 0; of < microbatches_.size(); ++of)
        all.back().shapes.push_back(at * microbatches_.size() + of);
    }
  }
  for (sweep_panel& panel : all) {
    for (const swept& line : lines_)
      if (std::ranges::any_of(panel.shapes,
                              [&](std::size_t shape) { return line.values[shape].has_value(); }))
        panel.lines.push_back(&line);
    std::ranges::stable_sort(panel.lines, {}, [&](const swept* line) {
      return std::pair(line->forward_only, line->values[panel.shapes.back()].value_or(
                                               std::numeric_limits<double>::infinity()));
    });
  }
  return all;
}

std::string sweep_grid::table() const {
  std::string text;
  for (const sweep_panel& panel : panels()) text += (text.empty() ? "" : "\n") + table_of(panel);
  return text;
}

std::string sweep_grid::table_of(const sweep_panel& panel) const {
  const std::string only = panel.title.empty() && microbatches_.size() == 1
                               ? count_of(microbatches_.front(), "micro-batch")
                               : count_of(ranks_of(panel.shapes.front()), "rank");
  std::string text = std::string(measure_.title) + ", " + only + ", by " + panel.axis + "\n";
  std::vector<std::vector<std::string>> rows{{"schedule", "chunks"}};
  if (sliced_) rows.front().push_back("slices");
  for (const int count : panel.counts) rows.front().push_back(std::to_string(count) + " ");
  for (const swept* line : panel.lines) {
    rows.push_back({line->name, std::to_string(line->chunks)});
    if (sliced_) rows.back().push_back(std::to_string(line->slices));
    for (const std::size_t shape : panel.shapes) {
      const std::optional<double> value = line->values[shape];
      const bool best =
          value && !line->forward_only &&
          std::ranges::none_of(panel.lines, [&](const swept* other) {
            return !other->forward_only && other->values[shape].value_or(*value) < *value;
          });
      rows.back().push_back((value ? measure_.text(*value) : "-") + (best ? "*" : " "));
    }
  }
  const bool trained_only = std::ranges::none_of(panel.lines, &swept::forward_only);
  if (!panel.lines.empty())
    text +=
        print_table(rows) + (trained_only ? "* the least of its column\n"
                                          : "* the least of its column, but for forwards alone\n");
  return text + reasons_of(panel);
}

std::string sweep_grid::reasons_of(const sweep_panel& panel) const {
  std::string text;
  for (const swept& line : lines_) {
    // Each with the counts that it is of.
    std::vector<std::pair<std::string, std::vector<std::string>>> all;
    for (std::size_t at = 0; at < panel.shapes.size(); ++at) {
      const std::string& why = line.refused[panel.shapes[at]];
      if (why.empty()) continue;
      auto same = std::ranges::find(all, why, &decltype(all)::value_type::first);
      if (same == all.end()) same = all.insert(all.end(), {why, {}});
      same->second.push_back(std::to_string(panel.counts[at]));
    }
    for (const auto& [why, counts] : all) {
      text += line.in_words(several_chunks_);
      for (const std::string& count : counts)
        if (counts.size() < panel.shapes.size())
          text += (&count == counts.data() ? " at " : ", ") + count;
      text += ": " + why + "\n";
    }
  }
  return text;
}

}  // namespace stretto::tool
