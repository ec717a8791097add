#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "stretto/check/bounded.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/plan/report.hpp"

namespace stretto {

//! One job on a picture of a timeline.
struct picture_bar {
  int rank = 0;
  int chunk = 0;
  job what{};
  job_time when{};
  int half = 0;  //!< of a pair: 1 the first job, 2 the second; 0: no pair
};

//! Memory in use from `time` on, until the next point.
struct memory_point {
  std::int64_t time = 0;
  std::int64_t level = 0;
};

//! A lane of bars, where they are not one a rank.
struct picture_lane {
  std::string name;
  bool narrow = false;  //!< for what is beside the jobs; its bars have no text
  bool opens = false;   //!< a group of lanes
};

//! What a drawn timeline shows: bars on one lane per rank, by simulation or as measured. `memory`
//! is empty or holds one curve per rank.
struct timeline_picture {
  std::string title;
  std::string subtitle;
  std::string unit;  //!< of time, for the axis; empty: none
  std::int64_t parts = 1;  //!< times count parts of a unit, so many of which are one
  std::string shades = "chunk";  //!< what a bar's chunk is called
  int ranks = 0;
  std::int64_t end = 0;  //!< of the axis
  std::vector<picture_bar> bars;
  //! Copies to the host and back, which run beside the jobs of their rank.
  std::vector<picture_bar> copies{};
  //! Sums of gradients, beside these and the jobs.
  std::vector<picture_bar> sums{};
  std::vector<std::vector<memory_point>> memory;
  //! Empty, or `ranks` lanes, which the bars' ranks are then numbers of.
  std::vector<picture_lane> lanes{};
};

//! A time that counts parts of a unit, so many of which are one, in units: `27.75`.
inline std::string in_units(std::int64_t time, std::int64_t parts) {
  if (time % parts == 0) return std::to_string(time / parts);
  char made[40];
  std::snprintf(made, sizeof made, "%.2f",
                static_cast<double>(time) / static_cast<double>(parts));
  return made;
}

//! `makespan 33, bubble 27.3 %`; where sums of gradients are longer than the jobs, by how much
inline std::string summary(const report& measured, std::int64_t parts = 1) {
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.1f", 100 * measured.bubble.value());
  const std::int64_t behind = measured.makespan - measured.jobs_end;
  return "makespan " + in_units(measured.makespan, parts) + ", bubble " + percent + " %" +
         (behind > 0 ? ", sums " + in_units(behind, parts) + " behind the jobs" : "");
}

//! The same with narrow lanes for copies and for sums, where there are such, below every rank's.
inline timeline_picture with_lanes_beside(timeline_picture picture) {
  const int of_sums = picture.copies.empty() ? 1 : 2;  // behind the rank's
  const int each = of_sums + (picture.sums.empty() ? 0 : 1);
  for (int rank = 0; rank < picture.ranks; ++rank) {
    picture.lanes.push_back({"rank " + std::to_string(rank), false, true});
    if (!picture.copies.empty()) picture.lanes.push_back({"copies", true, false});
    if (!picture.sums.empty()) picture.lanes.push_back({"sums", true, false});
  }
  for (picture_bar& bar : picture.bars) bar.rank *= each;
  const auto put = [&](std::vector<picture_bar>& bars, int lane) {
    for (picture_bar& bar : bars) {
      bar.rank = each * bar.rank + lane;
      picture.bars.push_back(bar);
    }
    bars.clear();
  };
  put(picture.copies, 1);
  put(picture.sums, of_sums);
  picture.ranks *= each;
  return picture;
}

//! The picture of a simulated step: every job that takes time.
//! @param timeline as `measure` filled it
//! @param with_memory whether to trace each rank's memory, too
//! @param parts of a unit that times count: see timeline_picture
inline timeline_picture draw_simulated(const replay_input& input, const report& measured,
                                       std::span<const job_time> timeline, bool with_memory,
                                       std::int64_t parts = 1) {
  timeline_picture made;
  made.subtitle = summary(measured, parts);
  made.parts = parts;
  if (input.where.kind == placement_kind::bidirectional) made.shades = "direction";
  made.ranks = input.rows.ranks;
  made.end = measured.makespan;
  for (int rank = 0; rank < input.rows.ranks; ++rank) {
    check::memory_curve memory(input, rank);
    std::vector<memory_point> curve{{0, memory.level()}};
    bool second_half = false;
    for (int step = 0; step < input.rows.counts[rank]; ++step) {
      const job& work = input.rows.at(rank, step);
      const auto when =
          timeline[static_cast<std::size_t>(rank) * static_cast<std::size_t>(input.rows.stride) +
                   static_cast<std::size_t>(step)];
      if (work.kind == job_kind::reduce_grad && when.end > when.start)
        made.sums.push_back({rank, 0, work, when, 0});
      if (!has_cost(work.kind)) continue;
      const bool first_half = work.paired && step + 1 < input.rows.counts[rank];
      if (is_copy(work.kind)) {
        if (when.end > when.start)
          made.copies.push_back({rank, input.where.chunk_of(work), work, when, 0});
        memory.run(step);
        const std::int64_t change = work.kind == job_kind::offload ? when.end : when.start;
        curve.push_back({std::max(curve.back().time, change), memory.level()});
        continue;
      }
      const int chunk = input.where.chunk_of(work);
      const int half = first_half ? 1 : second_half ? 2 : 0;
      second_half = first_half;
      if (when.end > when.start) made.bars.push_back({rank, chunk, work, when, half});
      if (half == 2) continue;
      memory.run(step);
      // A copy that starts late takes its bytes where it stands in the list: before this job.
      for (auto point = curve.rbegin(); point != curve.rend() && point->time > when.start; ++point)
        point->time = when.start;
      curve.push_back({when.start, memory.used()});
      curve.push_back({when.end, memory.level()});
    }
    if (with_memory) made.memory.push_back(std::move(curve));
  }
  return made;
}

}  // namespace stretto
