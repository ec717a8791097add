// Our schedules beside the makespans, bubbles and peaks of the systems that they come from, as the
// golden files of the tests record them, under the same costs and limits and by one evaluator.
//
//   golden [FOLDER]     the folder of the *_figures.txt
//
// Ratios are ours over theirs; distances are to the lower bound of makespans for the placement and
// the limit. Exits with 1 when any of ours is longer, or needs more memory than theirs, or than the
// limit where there is one.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>

#include "golden/figures.hpp"
#include "stretto/model/verdict_text.hpp"

namespace {

//! Figures of one schedule and system, cell by cell.
struct contender {
  golden::tally makespan;
  int only_ours = 0;  //!< theirs has no answer
  int neither = 0;    //!< nor has ours
  std::vector<double> times, bubbles, peaks, ours_above, theirs_above;
  std::vector<std::string> worse;
};

double ratio(std::int64_t ours, std::int64_t theirs) {
  return ours == theirs ? 1 : static_cast<double>(ours) / static_cast<double>(theirs);
}

double above(std::int64_t makespan, std::int64_t bound) {
  return 100 * (ratio(makespan, bound) - 1);
}

void compare(const golden::figure& theirs, const golden::outcome& ours, contender& of) {
  if (!ours.answer.ok()) {
    // No order within the limit: theirs must have none either.
    if (ours.answer.what == stretto::fault::over_limit && theirs.makespan < 0)
      ++of.neither;
    else
      of.worse.push_back(theirs.text + ": " + std::string(stretto::to_text(ours.answer).view()));
    return;
  }
  const std::int64_t most = theirs.limit > 0 ? theirs.limit : theirs.peak;
  if (most >= 0 && ours.peak > most)
    of.worse.push_back(theirs.text + ": peak " + std::to_string(ours.peak));
  if (theirs.makespan < 0) {
    ++of.only_ours;
    return;
  }
  of.makespan.count(ours.makespan, theirs.makespan);
  if (ours.makespan > theirs.makespan)
    of.worse.push_back(theirs.text + ": makespan " + std::to_string(ours.makespan));
  of.times.push_back(ratio(ours.makespan, theirs.makespan));
  // (makespan - busy) / makespan, of one order over that of the other.
  const std::int64_t idle[] = {ours.makespan - ours.busy, theirs.makespan - ours.busy};
  of.bubbles.push_back(
      idle[0] == idle[1] ? 1 : ratio(idle[0], idle[1]) / ratio(ours.makespan, theirs.makespan));
  if (theirs.peak >= 0) of.peaks.push_back(ratio(ours.peak, theirs.peak));
  if (ours.bound.flush > 0) {
    of.ours_above.push_back(above(ours.makespan, ours.bound.flush));
    of.theirs_above.push_back(above(theirs.makespan, ours.bound.flush));
  }
}

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  const std::size_t half = all.size() / 2;
  return all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2;
}

void print(const std::vector<double>& all, int decimals) {
  if (all.empty())
    std::printf(" %7s %7s", "-", "-");
  else
    std::printf(" %7.*f %7.*f", decimals, median(all), decimals,
                *std::max_element(all.begin(), all.end()));
}

}  // namespace

int main(int count, char** words) {
  const std::filesystem::path folder = count > 1 ? words[1] : STRETTO_GOLDEN_DIR;
  std::map<std::string, contender> contenders;
  int worse = 0;
  try {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().filename().string().ends_with("_figures.txt")) files.push_back(entry.path());
    for (const auto& file : files)
      for (const golden::figure& theirs : golden::read_figures(file.string())) {
        const std::string name =
            theirs.schedule + (theirs.system.empty() ? "" : " (" + theirs.system + ")");
        contender& of = contenders[name];
        if (!golden::with_schedule(theirs, [&](const auto& schedule) {
              compare(theirs, golden::run(schedule, theirs), of);
            }))
          of.worse.push_back(theirs.text + ": there is no such schedule");
      }
  } catch (const std::exception& wrong) {
    std::cerr << "golden: " << wrong.what() << '\n';
    return 2;
  }
  if (contenders.empty()) {
    std::cerr << "golden: " << folder.string() << " holds no *_figures.txt\n";
    return 2;
  }
  std::printf("%-26s %5s %5s %6s %5s %5s %7s %15s %15s %15s %15s %15s\n", "", "", "", "", "",
              "only", "", "makespan ratio", "bubble ratio", "peak ratio", "ours above",
              "theirs above");
  std::printf("%-26s %5s %5s %6s %5s %5s %7s", "schedule (system)", "cells", "equal", "better",
              "worse", "ours", "neither");
  for (int column = 0; column < 3; ++column) std::printf(" %7s %7s", "median", "worst");
  for (int column = 0; column < 2; ++column) std::printf(" %7s %7s", "med. %", "most %");
  std::printf("\n");
  for (const auto& [name, of] : contenders) {
    std::printf("%-26s %5d %5d %6d %5d %5d %7d", name.c_str(), of.makespan.cells(),
                of.makespan.equal, of.makespan.better, of.makespan.worse, of.only_ours, of.neither);
    for (const auto* ratios : {&of.times, &of.bubbles, &of.peaks}) print(*ratios, 3);
    for (const auto* distances : {&of.ours_above, &of.theirs_above}) print(*distances, 1);
    std::printf("\n");
  }
  for (const auto& [name, of] : contenders)
    for (const std::string& line : of.worse) {
      std::printf("worse: %s\n", line.c_str());
      ++worse;
    }
  std::printf("%s\n", worse == 0 ? "None of ours is worse." : "Some of ours are worse.");
  return worse == 0 ? 0 : 1;
}
