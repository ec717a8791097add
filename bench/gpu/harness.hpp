#pragma once

// What the benchmarks of a GPU share and what needs none: how samples are taken until they are
// sure, and how results are written.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stretto::bench {

//! The value that the part (0 to 1) of the values lie below; interpolated.
inline double quantile(std::vector<double> values, double part) {
  if (values.empty()) throw std::invalid_argument("no value was measured");
  std::sort(values.begin(), values.end());
  const double place = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

struct summary {
  double median = 0;
  double spread = 0;  //!< between the quartiles, over the median
  int count = 0;
  //! How far the median may be off, over itself: the standard error, by the quartiles of a normal
  //! distribution.
  double error() const { return 0.93 * spread / std::sqrt(static_cast<double>(count)); }
};

inline summary summarize(const std::vector<double>& values) {
  const double middle = quantile(values, 0.5);
  const double between = quantile(values, 0.75) - quantile(values, 0.25);
  return {middle, middle == 0 ? 0 : between / middle, static_cast<int>(values.size())};
}

//! When there are samples enough: once every variant's median is sure, or time or rounds are up.
struct stop_rule {
  int warmups = 3;  //!< rounds that are not counted
  int least = 15;
  int most = 60;
  double error = 0.005;  //!< of a median, over itself
  double seconds = 2;    //!< after the least rounds no further one begins then
};

//! Takes a sample, in microseconds.
using sampler = std::function<double()>;

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

//! Samples of all variants, in turn in every round, so that what drifts drifts for all of them.
//! @param now  seconds
inline std::vector<summary> alternate(const std::vector<sampler>& variants, const stop_rule& rule,
                                      const std::function<double()>& now = seconds_now) {
  if (rule.least < 1 || rule.most < rule.least || rule.warmups < 0)
    throw std::invalid_argument("a stop rule needs 1 <= least <= most rounds");
  std::vector<std::vector<double>> samples(variants.size());
  for (int round = 0; round < rule.warmups; ++round)
    for (const sampler& each : variants) each();
  std::vector<summary> made(variants.size());
  const double begin = now();
  for (int round = 1; round <= rule.most; ++round) {
    for (std::size_t at = 0; at < variants.size(); ++at) samples[at].push_back(variants[at]());
    if (round < rule.least) continue;
    bool sure = true;
    for (std::size_t at = 0; at < variants.size(); ++at) {
      made[at] = summarize(samples[at]);
      sure = sure && made[at].error() <= rule.error;
    }
    if (sure || now() - begin >= rule.seconds) break;
  }
  return made;
}

//! The most of a communication that can hide behind a matmul when it takes `blocks` of the GPU's
//! `multiprocessors`, and the matmul alone takes r times as long as the communication alone:
//! because the matmul runs on the others while the communication does.
inline double most_hidden(double r, int blocks, int multiprocessors) {
  return std::min(r, 1 - static_cast<double>(blocks) / multiprocessors);
}
//! The same when the matmul leaves them alone from its begin to its end.
inline double most_hidden_with_margin(double r, int blocks, int multiprocessors) {
  const double slowed = r * multiprocessors / (multiprocessors - blocks);
  return r + 1 - std::max(slowed, 1.0);
}

//! The clocks, in MHz, that multiprocessors were seen to run at: as long as anything was measured,
//! and beside figures that are compared with one another, which those of a row are.
class clocks_seen {
 public:
  void begin_row() { row_ = {}; }
  void add(double clock) {
    all_.add(clock);
    row_.add(clock);
    if (row_.steadiness() < worst_.steadiness()) worst_ = row_;
  }
  double least() const { return all_.least; }
  double most() const { return all_.most; }
  //! Empty: the clock did not move within a row.
  std::string doubt() const {
    if (worst_.steadiness() >= 0.95) return {};
    char text[160];
    std::snprintf(text, sizeof text,
                  "among figures that are compared the clock moved between %.0f and %.0f MHz",
                  worst_.least, worst_.most);
    return text;
  }

 private:
  struct range {
    double least = 0, most = 0;
    void add(double clock) {
      least = least == 0 ? clock : std::min(least, clock);
      most = std::max(most, clock);
    }
    double steadiness() const { return most == 0 ? 1 : least / most; }
  };
  range all_, row_, worst_;
};

//! Of a GPU's timer that goes on by steps, in nanoseconds, by which a link's kernel paces its
//! chunks; empty: they are small enough.
inline std::string doubt_of_timer(double step) {
  if (step <= 2000) return {};
  char text[160];
  std::snprintf(text, sizeof text,
                "the GPU's timer goes on by %.0f ns at a time: the stand-in's pace, chunk by "
                "chunk, and the delays between what is issued are no finer",
                step);
  return text;
}

//! Of a stand-in of a link, by what it moves alone, in GB/s, at its pace and without one; empty: it
//! keeps its pace, with something to spare for when memory is slow beside a matmul, for which no
//! link would be late.
inline std::string doubt_of_pace(int blocks, double pace, double paced, double unpaced) {
  if (paced >= 0.95 * pace && unpaced >= 1.3 * pace) return {};
  char text[200];
  std::snprintf(
      text, sizeof text,
      "the stand-in's %d blocks, at a pace of %.0f GB/s, move %.0f alone, and %.0f without "
      "a pace: that %s, so more --blocks are needed for a link of that rate",
      blocks, pace, paced, unpaced,
      paced < 0.95 * pace ? "is short of it" : "leaves little to spare");
  return text;
}

inline std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? "unknown" : value;
}

//! What a benchmark measured, row by row, as JSON: {"name", "about", "rows", "notes"}.
class report {
 public:
  report(std::string_view name, nlohmann::ordered_json about) {
    about["commit"] = from_environment("STRETTO_COMMIT");
    about["driver"] = from_environment("STRETTO_DRIVER");
    all_["name"] = name;
    all_["about"] = std::move(about);
    all_["rows"] = nlohmann::ordered_json::array();
    all_["notes"] = nlohmann::ordered_json::array();
  }
  void row(nlohmann::ordered_json values) { all_["rows"].push_back(std::move(values)); }
  //! Of whatever casts doubt on the figures; shown at once, too, beside what others may read.
  void note(const std::string& text) {
    std::fprintf(stderr, "note: %s\n", text.c_str());
    all_["notes"].push_back(text);
  }
  nlohmann::ordered_json& about() { return all_["about"]; }
  const nlohmann::ordered_json& all() const { return all_; }

  //! Without a path nothing is written.
  void write(const std::string& path) const {
    if (path.empty()) return;
    std::ofstream file(path);
    // A line a row, so that versions of a file can be compared.
    file << "{\n";
    for (const auto& [key, value] : all_.items()) {
      file << "\"" << key << "\": ";
      if (value.is_array()) {
        file << "[";
        for (std::size_t at = 0; at < value.size(); ++at)
          file << (at == 0 ? "\n" : ",\n") << value[at].dump();
        file << "\n]";
      } else {
        file << value.dump();
      }
      file << (key == "notes" ? "\n}\n" : ",\n");
    }
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path);
  }

 private:
  nlohmann::ordered_json all_;
};

//! The word behind an option, which is taken from the words; else the given one.
inline std::string take_option(std::vector<std::string>& words, std::string_view option,
                               std::string otherwise = {}) {
  const auto found = std::find(words.begin(), words.end(), option);
  if (found == words.end()) return otherwise;
  if (found + 1 == words.end()) throw std::invalid_argument(std::string(option) + " needs a value");
  std::string value = *(found + 1);
  words.erase(found, found + 2);
  return value;
}

//! To four digits, which is more than a measurement has.
inline double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double digits = 3 - std::floor(std::log10(std::abs(value)));
  // A power of ten below one is none that doubles have.
  const double unit = std::pow(10, std::abs(digits));
  return digits < 0 ? std::round(value / unit) * unit : std::round(value * unit) / unit;
}

}  // namespace stretto::bench
