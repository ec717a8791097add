#pragma once

// What an H200 is to reach, and what was measured of it.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "page_results.hpp"

namespace stretto::bench {

//! To four digits, without an exponent.
inline std::string shown(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.10g", rounded(value));
  return text;
}
inline std::string percent(double part) {
  char text[40];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part);
  return text;
}

enum class reached { met, missed, not_measured };
constexpr const char* name_of(reached what) {
  return what == reached::met ? "met" : what == reached::missed ? "**missed**" : "not measured";
}

//! One line of the table of targets.
struct target {
  std::string what;
  std::string wanted;
  std::string measured;  //!< or why it was not
  reached verdict = reached::not_measured;
};

//! The layer whose weight gradient is to hide an all-reduce: a linear one of f columns, cut among t
//! GPUs, in bf16. A token takes 2 h f / t operations, and of its h gradients each GPU sends and
//! gets 2 (t - 1) / t times 2 h bytes: h cancels out.
struct hidden_layer {
  static constexpr double columns = 16384;
  static constexpr double shared_by = 4;
  static constexpr double pace = 370;  //!< GB/s
  static constexpr double most_blocks = 8;
  static constexpr double least_part = 0.9;  //!< of min(1, r)

  //! The matmul's time over the all-reduce's, by what a row's matmul does in a second.
  static double r(const fields& row) {
    const double operations = 2 * row.number("m") * row.number("n") * row.number("k");
    const double per_second = operations / (row.number("matmul_us") * 1e-6);
    return columns * pace * 1e9 / (2 * (shared_by - 1) * per_second);
  }
};

//! How much longer a row's matmul takes while the communication runs; minus one. Not while it does
//! not, before or behind it.
inline double slowdown_beside(const fields& row, const fields& way) {
  const double alone = row.number("matmul_us");
  const double beside = alone * way.number("matmul_slowdown");
  const double communication =
      row.number("communication_us") * way.number("communication_slowdown");
  const double lead = way.number("lead_us");
  const double together = way.text("order") == "matmul first"
                              ? std::min(communication, beside - lead)
                              : std::min(communication - lead, beside);
  const double lost = beside - alone;
  if (lost <= 0 || together <= 0) return lost / alone;
  return lost < together ? lost / (together - lost) : std::numeric_limits<double>::infinity();
}

//! What the margin alone does to a row's matmul: its tiles share out less well.
inline double slowdown_in_margin(const fields& row) {
  return row.number("matmul_in_margin_us") / row.number("matmul_us") - 1;
}

//! A row of overlap, and the way to run it that is judged.
struct judged_overlap {
  fields row;
  fields way;
  double hidden, least_hidden;
  double slowdown, most_slowdown;
};

//! The rows that come closest to the layer, one of each size of matmul. Judged is a way that hides
//! enough and slows least, or where none does, the one that hides most.
inline std::vector<judged_overlap> judge_overlap(const results& from) {
  struct candidate {
    std::string size;
    double off;
    judged_overlap what;
  };
  const double multiprocessors = from.about("overlap").number("multiprocessors");
  std::vector<candidate> best;
  for (const fields& row : from.rows("overlap")) {
    const double blocks = row.number("blocks");
    if (row.text("type") != "bf16" || row.text("communication") != "stand-in" ||
        row.number("pace_gb_s") != hidden_layer::pace || blocks > hidden_layer::most_blocks)
      continue;
    const double r = row.number("r");
    const double off = std::abs(std::log(r / hidden_layer::r(row)));
    if (!(off < std::log(1.5))) continue;
    const double least = hidden_layer::least_part * std::min(1.0, r);
    const double most = blocks / (multiprocessors - blocks) + 0.03;
    std::optional<judged_overlap> chosen;
    for (const fields& way : row.list("ways", "way")) {
      const judged_overlap next{row, way, way.number("hidden"), least, slowdown_beside(row, way),
                                most};
      const bool enough = next.hidden >= least;
      if (!chosen || (chosen->hidden < least ? next.hidden > chosen->hidden
                                             : enough && next.slowdown < chosen->slowdown))
        chosen = next;
    }
    if (!chosen) continue;
    const std::string size =
        shown(row.number("m")) + " " + shown(row.number("n")) + " " + shown(row.number("k"));
    const auto same = std::find_if(best.begin(), best.end(),
                                   [&](const candidate& each) { return each.size == size; });
    if (same == best.end())
      best.push_back({size, off, *chosen});
    else if (off < same->off)
      *same = {size, off, *chosen};
  }
  std::vector<judged_overlap> made;
  for (const candidate& each : best) made.push_back(each.what);
  return made;
}

//! By the results of tests: all of them have passed.
inline target judge_tests_of(const results& from, const std::vector<std::string>& tests,
                             std::string what, std::string wanted) {
  target made{std::move(what), std::move(wanted), "", reached::not_measured};
  if (!from.has("tests")) {
    made.measured = "there is no tests.json";
    return made;
  }
  int passed = 0;
  bool failed = false;
  for (const std::string& test : tests) {
    std::string result = "has not run";
    for (const fields& row : from.rows("tests"))
      if (row.text("test") == test) result = row.text("result");
    made.measured += (made.measured.empty() ? "" : "; ") + test + ": " + result;
    if (result == "Passed")
      ++passed;
    else if (result != "Skipped" && result != "has not run")
      failed = true;
  }
  if (failed)
    made.verdict = reached::missed;
  else if (passed == static_cast<int>(tests.size()))
    made.verdict = reached::met;
  return made;
}

inline target judge_tests(const results& from) {
  target made{"tests that need a GPU", "all pass", "there is no tests.json", reached::not_measured};
  if (!from.has("tests")) return made;
  int passed = 0;
  int skipped = 0;
  int others = 0;
  for (const fields& row : from.rows("tests")) {
    const std::string result = row.text("result");
    ++(result == "Passed" ? passed : result == "Skipped" ? skipped : others);
  }
  made.measured = std::to_string(passed) + " passed, " + std::to_string(others) + " failed, " +
                  std::to_string(skipped) + " skipped";
  // A note tells of what was not built or has not run.
  const bool all = from.notes("tests").empty();
  if (!all) made.measured += ", and not all have run";
  if (others > 0)
    made.verdict = reached::missed;
  else if (passed > 0 && all)
    made.verdict = reached::met;
  return made;
}

//! The largest value of a key in overhead's rows.
inline target judge_most(const results& from, const std::string& key, std::string what,
                         double most) {
  target made{std::move(what), "at most " + shown(most) + " µs", "", reached::not_measured};
  if (!from.has("overhead")) {
    made.measured = "there is no overhead.json";
    return made;
  }
  std::optional<double> seen;
  std::string plan;
  for (const fields& row : from.rows("overhead")) {
    if (!row.has(key) || (seen && row.number(key) <= *seen)) continue;
    seen = row.number(key);
    plan = row.text("plan");
  }
  if (!seen) {
    made.measured = "overhead.json has no '" + key + "'";
    return made;
  }
  made.measured = shown(*seen) + " µs (" + plan + ")";
  made.verdict = *seen <= most ? reached::met : reached::missed;
  return made;
}

//! Beside what the host takes for a job, by the plan that takes most: CUDA's calls take most of it,
//! and more on some hosts.
inline std::string cost_of_calls(const results& from) {
  const fields* seen = nullptr;
  for (const fields& row : from.rows("overhead"))
    if (row.has("issued_host_us_by_job") && row.has("calls_us_by_job") &&
        (seen == nullptr ||
         row.number("issued_host_us_by_job") > seen->number("issued_host_us_by_job")))
      seen = &row;
  if (seen == nullptr) return "";
  return "; its calls of CUDA alone take " + shown(seen->number("calls_us_by_job")) + " µs";
}

//! All of them, in the order of the page.
inline std::vector<target> judge(const results& from) {
  std::vector<target> made = {
      judge_tests(from),
      judge_tests_of(from, {"gpu/soak"}, "1000 steps, issued and replayed, end as the first did",
                     "the same bits and free memory"),
      judge_tests_of(from,
                     {"gpu/loopback_memcheck", "gpu/nccl_memcheck", "train_gpu/pipeline_memcheck"},
                     "compute-sanitizer's memcheck", "no error"),
      judge_tests_of(from, {"gpu/loopback"}, "a peer that hangs",
                     "the error names what holds it up"),
      judge_most(from, "issued_host_us_by_job",
                 "host's time for a job that is issued, with its messages", 5),
      judge_most(from, "followed_host_us", "host's time for a step that is replayed", 10),
      judge_tests_of(from, {"gpu/soak"}, "allocations and synchronisations in a step", "none"),
      judge_tests_of(from, {"gpu/soak"}, "bytes of GPU memory that the executor takes",
                     "those of the plan's arenas")};
  for (target& each : made)
    if (each.what.starts_with("host's time for a job") && each.verdict != reached::not_measured)
      each.measured += cost_of_calls(from);
  target hidden{
      "hidden part of an all-reduce at 370 GB/s behind a weight's gradient (f = 16384, "
      "t = 4)",
      "at least 0.9 min(1, r), with at most 8 blocks", "", reached::not_measured};
  target slow{
      "slowdown of the matmul meanwhile",
      "at most n / (" + shown(from.about().number("multiprocessors")) + " - n) + 3 %, n blocks", "",
      reached::not_measured};
  const auto judged = from.has("overlap") ? judge_overlap(from) : std::vector<judged_overlap>();
  if (judged.empty())
    hidden.measured = slow.measured =
        from.has("overlap")
            ? "overlap.json has no row of bf16 at 370 GB/s, by at most 8 blocks, whose r "
              "is near that of such a layer"
            : "there is no overlap.json";
  bool hides = true;
  bool keeps = true;
  for (const judged_overlap& each : judged) {
    const std::string of = " (" + shown(each.row.number("m")) + " x " +
                           shown(each.row.number("n")) + " x " + shown(each.row.number("k"));
    const std::string between = hidden.measured.empty() ? "" : "; ";
    hidden.measured += between + shown(each.hidden) + ", wanted " + shown(each.least_hidden) + of +
                       ", r = " + shown(each.row.number("r")) + "; such a layer's is " +
                       shown(hidden_layer::r(each.row)) + ")";
    slow.measured += between +
                     (std::isinf(each.slowdown) ? "it stands still" : percent(each.slowdown)) +
                     ", wanted " + percent(each.most_slowdown) + of +
                     ", n = " + shown(each.row.number("blocks")) +
                     "; without any communication, "
                     "with the margin, " +
                     percent(slowdown_in_margin(each.row)) + ")";
    hides = hides && each.hidden >= each.least_hidden;
    keeps = keeps && each.slowdown <= each.most_slowdown;
  }
  if (!judged.empty()) {
    hidden.verdict = hides ? reached::met : reached::missed;
    slow.verdict = keeps ? reached::met : reached::missed;
  }
  made.push_back(std::move(hidden));
  made.push_back(std::move(slow));
  return made;
}

}  // namespace stretto::bench
