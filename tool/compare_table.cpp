#include "compare_table.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "limits.hpp"
#include "stretto/model/verdict_text.hpp"
#include "table.hpp"

namespace stretto::tool {

std::int64_t compared::peak() const {
  std::int64_t greatest = 0;
  for (const rank_report& rank : all.ranks) greatest = std::max(greatest, rank.peak);
  return greatest;
}

//! `1/2`: its job's cost over that of a job of the shape.
std::string comparison::scale(const compared& one) const {
  const int above = wanted.chunks * (wanted.slices / one.slices);
  const int common = std::gcd(above, one.chunks);
  const int below = one.chunks / common;
  return std::to_string(above / common) + (below == 1 ? "" : "/" + std::to_string(below));
}

std::string comparison::reason_of(const compared& one) const {
  if (one.why.what == fault::unsupported) return std::string(describe(one.why.why));
  if (one.why.what == fault::misassigned) return std::string(to_text(one.why).view());
  if (one.why.what == fault::over_limit)
    return needs_in_words(one.why, [&](std::int64_t amount) { return memory.text(amount); });
  return std::string(to_text(one.why).view());
}

void comparison::print(const std::vector<compared>& all,
                       const std::vector<compared>& absent) const {
  std::vector<std::vector<std::string>> rows{
      {"schedule", "chunks", "job", "makespan", "bubble", "peak", "bound", "above it"}};
  const bool sliced = wanted.slices > 1;
  if (spans) rows[0].insert(rows[0].begin() + 4, "span");
  if (sliced) rows[0].insert(rows[0].begin() + 2, "slices");
  // Dealt layers are not cut anew: the sum of all jobs is the model's whatever the chunks.
  const std::ptrdiff_t job = layers ? (sliced ? 3 : 2) : 0;
  if (job > 0) rows[0].erase(rows[0].begin() + job);
  for (const compared& one : all) {
    const bool bounded = !one.forward_only && bound(one) > 0;
    const double above = static_cast<double>(length(one) - bound(one)) /
                         static_cast<double>(std::max<std::int64_t>(1, bound(one)));
    rows.push_back({one.name, std::to_string(one.chunks), "x " + scale(one),
                    time.text(one.all.all.makespan), percent(one.all.all.bubble.value()),
                    memory.text(one.peak()), bounded ? time.text(bound(one)) : "-",
                    bounded ? percent(above) : "-"});
    if (spans) rows.back().insert(rows.back().begin() + 4, time.text(one.all.all.span));
    if (sliced) rows.back().insert(rows.back().begin() + 2, std::to_string(one.slices));
    if (job > 0) rows.back().erase(rows.back().begin() + job);
  }
  std::cout << print_table(rows);
  for (const compared& one : absent) std::cout << one.name << ": " << reason_of(one) << '\n';
}

void comparison::print_json(const std::vector<compared>& all,
                            const std::vector<compared>& absent) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const compared& one : all) {
    nlohmann::ordered_json entry{{"schedule", one.name},
                                 {"chunks", one.chunks},
                                 {"makespan", time.json(one.all.all.makespan)},
                                 {"span", time.json(one.all.all.span)},
                                 {"bubble", one.all.all.bubble.value()}};
    if (!one.file.empty()) entry["file"] = one.file;
    if (wanted.slices > 1) entry["slices"] = one.slices;
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
  for (const compared& one : absent) {
    list.push_back({{"schedule", one.name}, {"chunks", one.chunks}, {"refused", reason_of(one)}});
    if (!one.file.empty()) list.back()["file"] = one.file;
  }
  std::cout << list.dump(1) << '\n';
}

}  // namespace stretto::tool
