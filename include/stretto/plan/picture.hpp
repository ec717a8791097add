#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "stretto/model/memory_curve.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/plan/critical_path.hpp"
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
  //! Sums of gradients, and gathers of sharded weights, each beside all these.
  std::vector<picture_bar> sums{};
  std::vector<picture_bar> gathers{};
  //! What is outlined, in the order of time, with lines from one's end to the next one's start:
  //! bars of those above, a pair as one (picture_bar::half 0).
  std::vector<picture_bar> path{};
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

//! What a picture has beside the jobs: its name, where it stands, and of which kinds it is.
struct beside_jobs {
  const char* name;
  std::vector<picture_bar> timeline_picture::*bars;
  bool (*holds)(job_kind kind);
};
inline constexpr beside_jobs all_beside_jobs[] = {
    {"copies", &timeline_picture::copies, is_copy},
    {"sums", &timeline_picture::sums, [](job_kind kind) { return kind == job_kind::reduce_grad; }},
    {"gathers", &timeline_picture::gathers, is_gather}};

//! The same with a narrow lane for each that there is beside the jobs, below every rank's.
inline timeline_picture with_lanes_beside(timeline_picture picture) {
  std::vector<beside_jobs> there;
  for (const beside_jobs& one : all_beside_jobs)
    if (!(picture.*one.bars).empty()) there.push_back(one);
  for (int rank = 0; rank < picture.ranks; ++rank) {
    picture.lanes.push_back({"rank " + std::to_string(rank), false, true});
    for (const beside_jobs& one : there) picture.lanes.push_back({one.name, true, false});
  }
  const int each = 1 + static_cast<int>(there.size());
  for (picture_bar& bar : picture.bars) bar.rank *= each;
  for (int lane = 1; lane < each; ++lane) {
    std::vector<picture_bar>& bars = picture.*there[static_cast<std::size_t>(lane - 1)].bars;
    for (picture_bar& bar : bars) {
      bar.rank = each * bar.rank + lane;
      picture.bars.push_back(bar);
    }
    bars.clear();
  }
  for (picture_bar& bar : picture.path) {
    int lane = 0;
    for (std::size_t one = 0; one < there.size(); ++one)
      if (there[one].holds(bar.what.kind)) lane = 1 + static_cast<int>(one);
    bar.rank = each * bar.rank + lane;
  }
  picture.ranks *= each;
  return picture;
}

//! The picture of a simulated step: every job that takes time. Its title is the caller's to say.
//! @param timeline as `measure` filled it
//! @param with_memory whether to trace each rank's memory, too
//! @param parts of a unit that times count: see timeline_picture
//! @throws std::invalid_argument for parts below 1, or a timeline without a place for every job
inline timeline_picture draw_simulated(const replay_input& input, const report& measured,
                                       std::span<const job_time> timeline, bool with_memory,
                                       std::int64_t parts = 1) {
  if (parts < 1) throw std::invalid_argument("stretto::draw_simulated: a unit has no parts");
  detail::require_places(input.rows, timeline);
  timeline_picture made;
  made.subtitle = summary(measured, parts);
  made.parts = parts;
  if (input.where.kind == placement_kind::bidirectional)
    made.shades = input.where.chunks > 2 ? "direction, then chunk" : "direction";
  made.ranks = input.rows.ranks;
  made.end = measured.makespan;
  for (int rank = 0; rank < input.rows.ranks; ++rank) {
    memory_curve memory(input, rank);
    std::vector<memory_point> curve{{0, memory.level()}};
    bool second_half = false;
    for (int step = 0; step < input.rows.counts[rank]; ++step) {
      const job& work = input.rows.at(rank, step);
      const auto when =
          timeline[static_cast<std::size_t>(rank) * static_cast<std::size_t>(input.rows.stride) +
                   static_cast<std::size_t>(step)];
      if (work.kind == job_kind::reduce_grad && when.end > when.start)
        made.sums.push_back({rank, input.where.chunk_on(rank, work.stage), work, when, 0});
      if (is_gather(work.kind)) {
        if (when.end > when.start)
          made.gathers.push_back({rank, input.where.chunk_on(rank, work.stage), work, when, 0});
        memory.run(step);
        curve.push_back({std::max(curve.back().time, when.start), memory.level()});
        continue;
      }
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
      // A copy, or gather, that starts late takes its bytes where it stands in the list: before
      // this job.
      for (auto point = curve.rbegin(); point != curve.rend() && point->time > when.start; ++point)
        point->time = when.start;
      curve.push_back({when.start, memory.used()});
      curve.push_back({when.end, memory.level()});
    }
    if (with_memory) made.memory.push_back(std::move(curve));
  }
  return made;
}

//! The same with the step's critical path outlined, but for what takes no time.
inline timeline_picture with_critical_path(timeline_picture picture, const replay_input& input,
                                           std::span<const critical_job> path) {
  for (const critical_job& one : path) {
    if (one.when.end == one.when.start) continue;
    const job& work = input.rows.at(one.rank, one.step);
    const int chunk = is_of_stage(work.kind) ? input.where.chunk_on(one.rank, work.stage)
                                             : input.where.chunk_of(work);
    picture.path.push_back({one.rank, chunk, work, one.when, 0});
  }
  return picture;
}

}  // namespace stretto
