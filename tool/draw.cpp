#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "command.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "make_step.hpp"
#include "simulated.hpp"
#include "step_messages.hpp"
#include "step_replicas.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/plan/svg.hpp"
#include "trace_orders.hpp"
#include "trace_path.hpp"
#include "traced_step.hpp"

namespace stretto::tool {

namespace {

using nlohmann::ordered_json;

//! Chrome/Perfetto trace events of a simulated step: a process per rank with its jobs, an arrow per
//! message, a counter for the memory; each that there is beside the jobs on a track of its own, and
//! the critical path, where it is asked for, as one more process. One unit of time is one
//! microsecond. Written event by event: held at once they take fifteen times the text.
class trace_writer {
 public:
  trace_writer(const step& from, const timeline_picture& picture, const job_rows& with_messages,
               std::ostream& to)
      : from_(from), to_(to) {
    to_ << "{\"displayTimeUnit\":\"ms\",\"otherData\":" << ordered_json{{"title", from.title}}
        << ",\"traceEvents\":[";
    for (int rank = 0; rank < picture.ranks; ++rank) {
      put({{"ph", "M"},
           {"name", "process_name"},
           {"pid", rank},
           {"args", {{"name", "rank " + std::to_string(rank)}}}});
      put({{"ph", "M"},
           {"name", "process_sort_index"},
           {"pid", rank},
           {"args", {{"sort_index", rank}}}});
      // The second half of a pair has a track of its own: events of one track must nest.
      const auto name_track = [&](int track, const char* name) {
        put({{"ph", "M"},
             {"name", "thread_name"},
             {"pid", rank},
             {"tid", track},
             {"args", {{"name", name}}}});
      };
      name_track(0, "compute");
      name_track(1, "compute, paired");
      int track = first_beside;
      for (const beside_jobs& one : all_beside_jobs) {
        if (!(picture.*one.bars).empty()) name_track(track, one.name);
        ++track;
      }
    }
    for (const picture_bar& bar : picture.bars) add(bar, bar.half == 2 ? 1 : 0);
    int track = first_beside;
    for (const beside_jobs& one : all_beside_jobs) {
      for (const picture_bar& bar : picture.*one.bars) add(bar, track);
      ++track;
    }
    for (std::size_t rank = 0; rank < picture.memory.size(); ++rank)
      for (const memory_point& point : picture.memory[rank])
        put({{"ph", "C"},
             {"name", "memory"},
             {"pid", rank},
             {"ts", from_.time.json(point.time)},
             {"args", {{"in use", point.level}}}});
    for (int rank = 0; rank < with_messages.ranks; ++rank)
      for (const job& work : with_messages.row(rank))
        if (is_send(work.kind)) connect(work);
    if (!picture.path.empty()) add_path(picture);
    to_ << "]}\n";
  }

 private:
  static constexpr int first_beside = 2;  // behind the tracks of jobs

  void put(const ordered_json& event) {
    to_ << (first_ ? "" : ",") << event;
    first_ = false;
  }

  //! Where a forward (0) or the backward for the input (1) of a stage and micro-batch is drawn.
  struct drawn {
    int rank, track;
    job_time when;
  };
  using place_of_work = std::array<int, 4>;

  static place_of_work key(bool ahead, int stage, const job& work) {
    return {ahead ? 0 : 1, stage, work.microbatch, work.slice};
  }

  void add(const picture_bar& bar, int track) {
    ordered_json args{
        {"stage", bar.what.stage}, {"chunk", bar.chunk}, {"microbatch", bar.what.microbatch}};
    if (from_.slices > 1) args["slice"] = bar.what.slice;
    put({{"ph", "X"},
         {"name", to_text(bar.what).view()},
         {"cat", words(bar.what.kind)},
         {"pid", bar.rank},
         {"tid", track},
         {"ts", from_.time.json(bar.when.start)},
         {"dur", from_.time.json(bar.when.end - bar.when.start)},
         {"args", std::move(args)}});
    const bool ahead = bar.what.kind == job_kind::forward;
    if (ahead || is_input_gradient(bar.what.kind))
      places_[key(ahead, bar.what.stage, bar.what)] = {bar.rank, track, bar.when};
  }

  //! Behind the ranks, on one track.
  void add_path(const timeline_picture& picture) {
    put({{"ph", "M"},
         {"name", "process_name"},
         {"pid", picture.ranks},
         {"args", {{"name", "critical path"}}}});
    put({{"ph", "M"},
         {"name", "process_sort_index"},
         {"pid", picture.ranks},
         {"args", {{"sort_index", picture.ranks}}}});
    for (const picture_bar& bar : picture.path)
      put({{"ph", "X"},
           {"name", to_text(bar.what).view()},
           {"cat", "critical path"},
           {"pid", picture.ranks},
           {"tid", 0},
           {"ts", from_.time.json(bar.when.start)},
           {"dur", from_.time.json(bar.when.end - bar.when.start)},
           {"args", {{"rank", bar.rank}}}});
  }

  //! An arrow from the job that made a message to the job that takes it; none where one of them
  //! takes no time and so is not drawn.
  void connect(const job& send) {
    const bool ahead = send.kind == job_kind::send_forward;
    const auto from = places_.find(key(ahead, send.stage, send));
    const auto to = places_.find(key(ahead, matching_receive(send).stage, send));
    if (from == places_.end() || to == places_.end()) return;
    const int id = ++messages_;
    const auto end = [&](const drawn& at, const char* phase, double time) {
      ordered_json event{{"ph", phase},      {"name", to_text(send).view()},
                         {"cat", "message"}, {"id", id},
                         {"pid", at.rank},   {"tid", at.track},
                         {"ts", time}};
      if (phase[0] == 'f') event["bp"] = "e";
      put(event);
    };
    // Within the events, so that a viewer knows which ones the arrow joins.
    const auto middle = [&](const job_time& when) {
      return 0.5 * (static_cast<double>(when.start) + static_cast<double>(when.end)) /
             static_cast<double>(from_.time.times);
    };
    end(from->second, "s", middle(from->second.when));
    end(to->second, "f", middle(to->second.when));
  }

  const step& from_;
  std::ostream& to_;
  bool first_ = true;
  std::map<place_of_work, drawn> places_;
  int messages_ = 0;
};

// Beyond this no viewer opens the file.
constexpr std::int64_t most_jobs = 200'000;

struct draw_command {
  step_options options;
  std::string out = "-";
  trace_options measured;
  bool show_memory = false;
  bool critical = false;

  timeline_picture picture(const step& made, bool with_memory) const {
    if (made.input().rows.total() > most_jobs)
      throw bad_input(made.title + ": " + std::to_string(made.input().rows.total()) +
                      " jobs, at most " + std::to_string(most_jobs) + " can be drawn");
    const simulated all = simulate(made);
    timeline_picture drawn =
        draw_simulated(made.input(), all.all, all.timeline, with_memory, made.time.times);
    drawn.title = made.title;
    if (!critical || !measured.file.empty()) return drawn;
    return with_critical_path(std::move(drawn), made.input(),
                              critical_path(made.input(), all.timeline));
  }
  void plot(const CLI::App& command) {
    if (!measured.file.empty()) return plot_measured(command);
    const step made = make_step(options, true);
    refuse_nothing_gathered(options, made);
    write_svg("-o", out, to_svg(picture(made, show_memory)));
  }
  //! What was measured below what is predicted.
  void plot_measured(const CLI::App& command) {
    const traced_step both = read_traced(command, options, measured, false);
    const step& made = both.predicted;
    const std::string broken = broken_order(both.trace, made.input().rows);
    timeline_picture drawn = beside_measured(picture(made, false), both.trace, made.made.where);
    drawn.subtitle = "predicted, by " + both.by + ": " + drawn.subtitle + "; measured, step " +
                     std::to_string(both.trace.last()) + ": makespan " +
                     std::to_string(makespan_of(both.trace.last_step()) / 1000) + "; " +
                     (broken.empty() ? "every order was kept" : "broken: " + broken);
    if (critical && broken.empty())
      outline_measured(drawn, made.input(), measured_path(both.trace.last_step(), made.input()));
    write_svg("-o", out, to_svg(drawn));
    if (!broken.empty()) throw broken_schedule(measured.file + ": " + broken);
  }
  void trace() const {
    const step made = make_step(options, true);
    refuse_nothing_gathered(options, made);
    const timeline_picture drawn = picture(made, true);
    const job_lists lowered = with_messages(made);
    write_file("-o", out, [&](std::ostream& to) { trace_writer(made, drawn, lowered.rows(), to); });
  }
};

}  // namespace

void add_plot(CLI::App& app) {
  auto* command = app.add_subcommand("plot", "Draw a simulated step as SVG");
  const auto mine = std::make_shared<draw_command>();
  mine->options.add(*command, true, true);
  auto* memory = command->add_flag("--show-memory", mine->show_memory,
                                   "With each rank's memory below its lane");
  command->add_flag(
      "--critical-path", mine->critical,
      "With the chain of jobs and messages that the step, or with --trace the measured "
      "one, is as long as");
  command->add_option("-o,--output", mine->out, "File to write (default standard output)");
  add_traced(
      *command, mine->measured,
      "its last step below the predicted one, whose costs then are microseconds, or by default "
      "what jobs took there; its order held against the schedule's")
      ->excludes(memory);
  command->callback([mine, command] { mine->plot(*command); });
}

void add_trace(CLI::App& app) {
  auto* command =
      app.add_subcommand("trace", "Write a simulated step as a Chrome/Perfetto trace (JSON)");
  const auto mine = std::make_shared<draw_command>();
  mine->options.add(*command, true, true);
  command->add_flag("--critical-path", mine->critical,
                    "With the chain of jobs that the step is as long as on a track of its own");
  command->add_option("-o,--output", mine->out, "File to write (default standard output)");
  command->callback([mine] { mine->trace(); });
}

}  // namespace stretto::tool
