#include "compare_table.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "refusals.hpp"
#include "step_options.hpp"
#include "stretto/memory/window_text.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "table.hpp"

namespace stretto::tool {

std::int64_t compared::peak() const {
  std::int64_t greatest = 0;
  for (const rank_report& rank : all.ranks) greatest = std::max(greatest, rank.peak);
  return greatest;
}

void compared::find_bound() {
  if (forward_only) return;
  const std::int64_t sums_take = least_gradient_sum(parts, costs.view());
  const std::int64_t gathers_take = least_gather(parts, costs.view());
  const auto bound_with = [&](const memory::windows& some) {
    step_bound made = lower_bound(parts, costs.view(), some, slices);
    made.flush += sums_take + gathers_take;
    made.span += sums_take;
    made.flush = std::max(made.flush, own_work);
    made.span = std::max(made.span, own_work);
    return made;
  };
  bound = least_bound = bound_with(put);
  for (const memory::windows& other : choices) {
    const step_bound one = bound_with(other);
    least_bound.flush = std::min(least_bound.flush, one.flush);
    least_bound.span = std::min(least_bound.span, one.span);
  }
}

//! `1/2`: its job's cost over that of a job of the shape.
std::string comparison::scale(const compared& one) const {
  const int above = wanted.chunks * (wanted.slices / one.slices);
  const int common = std::gcd(above, one.chunks);
  const int below = one.chunks / common;
  return std::to_string(above / common) + (below == 1 ? "" : "/" + std::to_string(below));
}

std::string comparison::reason_of(const compared& one) const {
  const verdict& found = one.why.found;
  if (found.what == fault::unsupported) return std::string(describe(found.why));
  if (found.what != fault::over_limit) return std::string(to_text(found).view());
  const amount_text amount = [&](std::int64_t bytes) { return memory.text(bytes); };
  const std::string limit =
      "the limit of rank " + std::to_string(found.rank) + ", " + amount(found.limit);
  switch (one.why.searched.value_or(least_limit::smallest)) {
    case least_limit::smallest:
      break;
    case least_limit::enough:
      return "needs more than " + limit + "; a limit of " + amount(found.amount) + " is enough";
    case least_limit::unknown:
      return "needs more than " + limit;
  }
  return needs_in_words(found, amount);
}

std::string comparison::in_slices(const compared& one) const {
  if (one.slices == 1) return "";
  return slices.size() > 1 ? " in " + count_of(one.slices, "slice") : " in slices";
}

std::string comparison::name_of(const compared& one) const {
  return one.name + (several_chunks ? " of " + count_of(one.chunks, "chunk") : "") + in_slices(one);
}

std::string comparison::put_name() const {
  return put.recompute.any() ? "recompute" : "offload";
}

std::string comparison::put_text(const memory::windows& of) const {
  return put.recompute.any() ? memory::window_text(of.recompute) : memory::window_text(of.offload);
}

std::vector<std::string> comparison::name_titles() const {
  std::vector<std::string> titles{"schedule", "chunks"};
  if (wanted.slices > 1) titles.push_back("slices");
  // Dealt layers are not cut anew: the sum of all jobs is the model's whatever the chunks.
  if (!layers) titles.push_back("job");
  return titles;
}

std::vector<std::string> comparison::name_cells(const compared& one) const {
  std::vector<std::string> cells{one.name, std::to_string(one.chunks)};
  if (wanted.slices > 1) cells.push_back(std::to_string(one.slices));
  if (!layers) cells.push_back("x " + scale(one));
  return cells;
}

std::string comparison::table_of(const comparison_run& made) const {
  std::vector<std::vector<std::string>> rows{name_titles()};
  const auto add = [&](std::initializer_list<std::string> cells) {
    rows.back().insert(rows.back().end(), cells);
  };
  add({"makespan"});
  if (spans) add({"span"});
  const auto any = [&](bool compared::*has) {
    return std::any_of(made.all.begin(), made.all.end(), std::mem_fn(has));
  };
  const bool gathers = any(&compared::gathers);
  const bool sums = any(&compared::sums);
  if (gathers) add({"by gathers"});
  if (sums) add({"sums behind"});
  if (put_searched) add({put_name()});
  add({"bubble", "peak", "bound", "above it"});
  for (const compared& one : made.all) {
    const bool bounded = !one.forward_only && bound(one) > 0;
    const double above = static_cast<double>(length(one) - bound(one)) /
                         static_cast<double>(std::max<std::int64_t>(1, bound(one)));
    rows.push_back(name_cells(one));
    add({time.text(one.all.all.makespan)});
    if (spans) add({time.text(one.all.all.span)});
    if (gathers) add({one.gathers ? time.text(one.by_gathers) : "-"});
    if (sums) add({one.sums ? time.text(one.all.all.makespan - one.all.all.jobs_end) : "-"});
    if (put_searched) add({one.forward_only ? "-" : put_text(one.put)});
    add({percent(bubble(one)), memory.text(one.peak()), bounded ? time.text(bound(one)) : "-",
         bounded ? percent(above) : "-"});
  }
  return print_table(rows) + line_of_links(made) + lines_of_absent(made);
}

std::string comparison::line_of_links(const comparison_run& made) const {
  std::string names;
  for (const compared& one : made.all)
    if (one.link.time > one.all.all.makespan) names += (names.empty() ? "" : ", ") + name_of(one);
  if (names.empty()) return {};
  return "longer than the step, one after the other, are the messages of one link: " + names +
         " (see --serial-links)\n";
}

std::string comparison::lines_of_absent(const comparison_run& made) const {
  std::string lines;
  for (const compared& one : made.absent) lines += name_of(one) + ": " + reason_of(one) + "\n";
  return lines;
}

std::string comparison::table(const std::vector<std::int64_t>& limits,
                              const std::vector<comparison_run>& runs) const {
  if (runs.size() == 1) return table_of(runs[0]);
  // Of forwards alone the shortest is no answer.
  std::vector<std::int64_t> shortest;
  for (const comparison_run& made : runs) {
    shortest.push_back(std::numeric_limits<std::int64_t>::max());
    for (const compared& one : made.all)
      if (!one.forward_only) shortest.back() = std::min(shortest.back(), length(one));
  }
  std::vector<std::vector<std::string>> rows{name_titles()};
  for (const std::int64_t limit : limits)
    rows[0].push_back("limit " + std::to_string(limit) + " ");
  const auto within = [](const comparison_run& made, const compared& row) {
    return std::find_if(made.all.begin(), made.all.end(), [&](const compared& other) {
      return other.name == row.name && other.file == row.file && other.chunks == row.chunks &&
             other.slices == row.slices;
    });
  };
  std::vector<std::string> for_less;
  // What fits a limit is there within all greater ones.
  for (const compared& row : runs.back().all) {
    rows.push_back(name_cells(row));
    for (std::size_t at = 0; at < runs.size(); ++at) {
      const auto one = within(runs[at], row);
      const bool fits = one != runs[at].all.end();
      const bool best = fits && !one->forward_only && length(*one) == shortest[at];
      rows.back().push_back((fits ? time.text(length(*one)) : "-") + (best ? "*" : " "));
      if (fits && one->made_for)
        for_less.push_back(name_of(row) + " of limit " + std::to_string(limits[at]) + " from " +
                           std::to_string(*one->made_for));
    }
  }
  std::string text = print_table(rows);
  if (rows.size() > 1)
    text += std::string("* the shortest ") + (spans ? "span" : "makespan") +
            " within this limit; - does not fit\n";
  if (!for_less.empty()) {
    text += "shorter as made for a smaller limit:";
    for (const std::string& one : for_less) text += (&one == for_less.data() ? " " : ", ") + one;
    text += '\n';
  }
  return text + line_of_links(runs.back()) + lines_of_absent(runs.back());
}

std::string comparison::json(const std::vector<std::int64_t>& limits,
                             const std::vector<comparison_run>& runs) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (runs.size() == 1)
    list = rows_of(runs[0]);
  else
    for (std::size_t at = 0; at < runs.size(); ++at)
      list.push_back({{"limit", limits[at]}, {"schedules", rows_of(runs[at])}});
  return list.dump(1) + "\n";
}

nlohmann::ordered_json comparison::rows_of(const comparison_run& made) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const auto entry_of = [&](const compared& one) {
    return nlohmann::ordered_json{{"schedule", one.name},
                                  {"ranks", wanted.ranks},
                                  {"microbatches", wanted.microbatches},
                                  {"chunks", one.chunks}};
  };
  for (const compared& one : made.all) {
    nlohmann::ordered_json entry = entry_of(one);
    entry["makespan"] = time.json(one.all.all.makespan);
    entry["span"] = time.json(one.all.all.span);
    entry["bubble"] = one.all.all.bubble.value();
    entry["span_bubble"] = one.all.all.span_bubble.value();
    entry["busiest_link"] = time.json(one.link.time);
    if (!one.file.empty()) entry["file"] = one.file;
    if (wanted.slices > 1) entry["slices"] = one.slices;
    if (one.gathers) entry["by_gathers"] = time.json(one.by_gathers);
    if (one.sums) entry["jobs_end"] = time.json(one.all.all.jobs_end);
    if (!one.layers.empty()) entry["layers"] = one.layers;
    if (one.made_for) entry["made_for"] = *one.made_for;
    if (!one.forward_only && put.recompute.any())
      entry["recompute"] = memory::window_text(one.put.recompute);
    if (!one.forward_only && put.offload.any())
      entry["offload"] = memory::window_text(one.put.offload);
    if (!one.forward_only) {
      entry["bound"] = time.json(one.bound.flush);
      entry["span_bound"] = time.json(one.bound.span);
    }
    for (const rank_report& rank : one.all.ranks) {
      entry["idle"].push_back(time.json(rank.idle));
      entry["peak"].push_back(memory.json(rank.peak));
    }
    list.push_back(std::move(entry));
  }
  for (const compared& one : made.absent) {
    list.push_back(entry_of(one));
    list.back()["refused"] = reason_of(one);
    if (!one.file.empty()) list.back()["file"] = one.file;
    if (wanted.slices > 1) list.back()["slices"] = one.slices;
  }
  return list;
}

}  // namespace stretto::tool
