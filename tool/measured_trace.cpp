#include "measured_trace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "errors.hpp"
#include "json_file.hpp"
#include "stretto/model/job_text.hpp"

namespace stretto::tool {

namespace {

using nlohmann::json;

//! Processes of a trace that share its first rank's work: those that have the first job.
std::int64_t workers_of(const json& events) {
  std::set<json> processes;
  std::string_view first;
  for (const json& event : events) {
    if (!event.is_object() || event.value("cat", json()) != "compute") continue;
    const auto name = event.find("name"), process = event.find("pid");
    if (name == event.end() || !name->is_string() || process == event.end()) continue;
    const std::string& whole = name->get_ref<const std::string&>();
    const std::string_view work = std::string_view(whole).substr(0, whole.find(" op "));
    if (first.empty()) first = work;
    if (work == first) processes.insert(*process);
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(processes.size()));
}

}  // namespace

measured_trace::measured_trace(const std::string& option, const std::string& path, int ranks,
                               int worker, int stages)
    : option_(option), path_(path), worker_(worker) {
  const json_file from{option, path};
  const json all = from.parse();
  if (!all.is_object() || !all.contains("traceEvents") || !all["traceEvents"].is_array())
    from.fail("there is no array \"traceEvents\"");
  constexpr std::int64_t most = 1'000'000'000;
  std::int64_t processes = 0;
  for (const json& event : all["traceEvents"])
    if (event.is_object() && event.contains("pid"))
      processes = std::max(processes, 1 + from.integer(event["pid"], "\"pid\"", 0, 1 << 20));
  if (processes == 0) from.fail("it has no events of jobs");
  const std::int64_t workers = workers_ = workers_of(all["traceEvents"]);
  if (processes % workers != 0)
    from.fail("it has " + std::to_string(processes) + " processes, no multiple of the " +
              std::to_string(workers) + " that do the same jobs");
  if (worker >= workers)
    throw bad_option("--worker", std::to_string(worker),
                     path + " has " + std::to_string(workers) +
                         (workers == 1 ? " of each rank" : " of each rank, counted from 0"));
  const std::int64_t found = processes / workers;
  if (ranks == 0) ranks = static_cast<int>(found);
  if (found != ranks)
    from.fail("it has the jobs of " + std::to_string(found) +
              (found == 1 ? " rank, not of " : " ranks, not of ") + std::to_string(ranks));
  streams_.resize(static_cast<std::size_t>(ranks));
  std::size_t number = 0;
  for (const json& event : all["traceEvents"]) {
    const std::string place = "traceEvents[" + std::to_string(number++) + "]";
    const auto field = [&](const json& of, const char* name) -> const json& {
      const auto at = of.find(name);
      if (!of.is_object() || at == of.end())
        from.fail(place + ": there is no field \"" + name + "\"");
      return *at;
    };
    const auto word = [&](const json& of, const char* name) {
      const json& value = field(of, name);
      if (!value.is_string()) from.fail(place + "." + name + " must be a string");
      return value.get<std::string>();
    };
    const auto integer = [&](const json& of, const char* name) {
      return from.integer(field(of, name), place + "." + name, 0, most);
    };
    const auto step_of = [&](const json& of) {
      const json& args = field(of, "args");
      if (args.is_object() && !args.contains("step"))
        from.fail(place +
                  ".args has no \"step\", which what the executor measured has (what "
                  "stretto trace writes is simulated)");
      return integer(args, "step");
    };
    if (!event.is_object()) from.fail(place + " must be an object");
    const std::string phase = word(event, "ph"), name = word(event, "name");
    if (phase != "X" && (phase != "M" || name != "thread_name")) continue;
    const std::int64_t process = integer(event, "pid");
    const auto stream = static_cast<std::size_t>(integer(event, "tid"));
    if (stream >= 256) from.fail(place + ".tid is " + std::to_string(stream) + ", at most 255");
    if (process % workers != worker) continue;
    const int rank = static_cast<int>(process / workers);
    auto& names = streams_[static_cast<std::size_t>(rank)];
    if (names.size() <= stream) names.resize(stream + 1);
    if (phase == "M") {
      names[stream] = word(field(event, "args"), "name");
      continue;
    }
    const parsed_job read = parse_job(std::string_view(name).substr(0, name.find(" op ")));
    if (!read.answer.ok()) from.fail(place + ".name is \"" + name + "\", which is no job");
    if (has_cost(read.job.kind) && read.job.stage >= stages)
      from.fail(place + ".name is \"" + name + "\", and the schedule has " +
                std::to_string(stages) + " stages");
    const auto time = [&](const char* called) {
      const json& value = field(event, called);
      if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > 1e13)
        from.fail(place + "." + called + " must be microseconds from 0 on");
      return std::llround(value.get<double>() * 1000);
    };
    traced made{.rank = rank,
                .stream = static_cast<int>(stream),
                .what = read.job,
                .computes = word(event, "cat") == "compute",
                .step = step_of(event),
                .when = {}};
    made.when.start = time("ts");
    made.when.end = made.when.start + time("dur");
    events_.push_back(made);
  }
  if (events_.empty()) from.fail("it has no events of jobs");
  std::ranges::stable_sort(events_, {}, &traced::step);
  for (const traced& one : events_)
    if (steps_.empty() || steps_.back() != one.step) steps_.push_back(one.step);
}

void measured_trace::fail(const std::string& words) const {
  throw bad_option(option_, path_, words);
}

const std::string& measured_trace::stream_name(int rank, int stream) const {
  return streams_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stream)];
}

std::vector<traced> measured_trace::step(std::int64_t number) const {
  std::vector<traced> made;
  std::map<std::pair<int, work_key>, std::size_t> jobs;
  for (const traced& one : std::ranges::equal_range(events_, number, {}, &traced::step)) {
    // Sums between a job's ops are no jobs; the ops are one, from the first to the last.
    if (is_job(one)) {
      const auto [at, first] = jobs.try_emplace({one.rank, key_of(one.what)}, made.size());
      if (!first) {
        job_time& when = made[at->second].when;
        when = {std::min(when.start, one.when.start), std::max(when.end, one.when.end)};
        continue;
      }
    }
    made.push_back(one);
  }
  std::ranges::sort(
      made, {}, [](const traced& one) { return std::tuple(one.when.start, one.rank, one.stream); });
  return made;
}

std::vector<traced> measured_trace::last_step() const {
  return step(steps_.back());
}

std::int64_t median(std::vector<std::int64_t>& times) {
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

job_table measured_trace::medians(const placement& where) const {
  job_table made(where.ranks, where.chunks);
  const auto cell = [&](int rank, int chunk, job_kind kind) {
    return static_cast<std::size_t>(&made.at(rank, chunk, kind) - made.entries.data());
  };
  std::vector<std::vector<std::int64_t>> times(made.entries.size());
  for (const std::int64_t number : steps_)
    for (const traced& one : step(number))
      if (is_job(one) || is_copy(one.what.kind))
        times[cell(one.rank, where.chunk_of(one.what), one.what.kind)].push_back(one.when.end -
                                                                                 one.when.start);
  for (std::size_t at = 0; at < times.size(); ++at) made.entries[at].time = median(times[at]);
  return made;
}

job_time jobs_of(const std::vector<traced>& step) {
  job_time all{std::numeric_limits<std::int64_t>::max(), 0};
  for (const traced& one : step)
    if (is_job(one)) all = {std::min(all.start, one.when.start), std::max(all.end, one.when.end)};
  return {std::min(all.start, all.end), all.end};
}

timeline_picture beside_measured(const timeline_picture& predicted, const measured_trace& trace,
                                 const placement& where) {
  timeline_picture made = predicted;
  made.unit = "µs";
  made.bars.clear();
  made.copies.clear();  // what was measured has streams of its own
  made.memory.clear();
  std::vector<traced> all = trace.last_step();
  const std::int64_t origin = jobs_of(all).start;
  for (traced& one : all)  // what waited since before the first job is drawn from there
    one.when = {std::max<std::int64_t>(0, one.when.start - origin) / 1000,
                (one.when.end - origin + 999) / 1000};
  std::erase_if(all, [](const traced& one) {
    return one.when.end <= one.when.start || one.what.kind == job_kind::end_step;
  });
  for (int rank = 0; rank < predicted.ranks; ++rank) {
    const int first = static_cast<int>(made.lanes.size());
    made.lanes.push_back({"rank " + std::to_string(rank) + " predicted", false, true});
    made.lanes.push_back({"measured", false, false});
    std::map<work_key, int> halves;
    for (picture_bar bar : predicted.bars) {
      if (bar.rank != rank) continue;
      halves[key_of(bar.what)] = bar.half;
      bar.rank = first;
      made.bars.push_back(bar);
    }
    std::map<int, int> lane_of;  // by stream
    for (const traced& one : all)
      if (one.rank == rank && !one.computes) lane_of[one.stream] = 0;
    for (auto& [stream, lane] : lane_of) {
      lane = static_cast<int>(made.lanes.size());
      made.lanes.push_back({trace.stream_name(rank, stream), true, false});
    }
    for (const traced& one : all) {
      if (one.rank != rank) continue;
      picture_bar bar{one.computes ? first + 1 : lane_of[one.stream], 0, one.what, one.when, 0};
      if (is_job(one)) {
        bar.chunk = where.chunk_of(one.what);
        bar.half = halves[key_of(one.what)];
      }
      made.bars.push_back(bar);
      made.end = std::max(made.end, one.when.end);
    }
  }
  made.ranks = static_cast<int>(made.lanes.size());
  return made;
}

}  // namespace stretto::tool
