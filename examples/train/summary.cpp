#include "summary.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>

#include "model/sample.hpp"
#include "pipeline/timeline.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/plan/svg.hpp"

namespace train {
namespace {

std::string format(const char* how, auto... values) {
  char text[200];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}

//! Whether times are those of workers that wait for nobody but one another.
bool is_real(const pipeline& from, const account& told) {
  return from.traced() && (!from.on_host() || !told.crowded());
}

//! "2+1": of each chunk.
std::string layers_of(const pipeline& from, int rank) {
  std::string text;
  for (int chunk = 0; chunk < from.where().chunks; ++chunk) {
    const auto stage = static_cast<std::size_t>(from.where().stage_of(rank, chunk));
    if (chunk > 0) text += '+';
    text += std::to_string(from.layers()[stage].count);
  }
  return text;
}

std::string percent(const std::optional<double>& part) {
  return part ? format("%9.1f %%", 100 * *part) : format("%11s", "-");
}

double kibibytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1024;
}

//! From nanoseconds to microseconds.
void shorten(stretto::timeline_picture& picture) {
  const auto shorter = [](std::int64_t time) { return (time + 500) / 1000; };
  picture.end = shorter(picture.end);
  for (auto* const bars : {&picture.bars, &picture.path})
    for (auto& bar : *bars) bar.when = {shorter(bar.when.start), shorter(bar.when.end)};
  picture.unit = "µs";
}

//! The first bytes of a line that is long enough to be worth continuing.
std::string prompt_from(std::span<const std::uint8_t> held_back) {
  const std::string_view text(reinterpret_cast<const char*>(held_back.data()), held_back.size());
  constexpr std::size_t long_enough = 40, taken = 20;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (end - start >= long_enough) return std::string(text.substr(start, taken));
    start = end + 1;
  }
  return std::string(text.substr(0, std::min(taken, text.size())));
}

}  // namespace

void write_table(std::ostream& out, const pipeline& from, const account& told) {
  const step_timeline predicted = replay(from, from.predicted_costs());
  // A GPU's jobs take no time of the processor, and each rank has streams of its own.
  std::optional<step_timeline> replayed, real;
  if (from.on_host()) replayed = replay(from, told.costs);
  if (is_real(from, told)) real = measured(from, told.trace, told.machines == 1);

  out << "rank  layers            idle: predicted   replayed   measured\n";
  for (int rank = 0; rank < from.where().ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    out << format("%4d  %-15.15s%7s", rank, layers_of(from, rank).c_str(), "")
        << percent(predicted.idle[at])
        << percent(replayed ? std::optional(replayed->idle[at]) : std::nullopt)
        << percent(real ? std::optional(real->idle[at]) : std::nullopt) << '\n';
  }
  out << format("%-28s", "bubble: the largest of them") << percent(predicted.bubble)
      << percent(replayed ? std::optional(replayed->bubble) : std::nullopt)
      << percent(real ? std::optional(real->bubble) : std::nullopt) << "\npredicted: by "
      << (from.machine().empty() ? "the model's multiply-adds"
                                 : "what ops take on " + from.machine())
      << ". replayed: by the processor time of each kind "
         "of job.\n";
  if (real && told.machines == 1) {
    const stretto::path_shares& path = real->critical;
    const auto part = [&](std::int64_t time) {
      return 100 * static_cast<double>(time) /
             static_cast<double>(std::max<std::int64_t>(1, path.sum()));
    };
    out << format(
        "critical path: jobs %.1f %%, messages %.1f %%, lost between a rank's jobs %.1f %%\n",
        part(path.jobs), part(path.messages), part(path.lost));
  }
  if (told.machines == 1) {
    if (const auto sums = measured_sums(from, told.trace, sums_over::replicas))
      out << format("sums over %d replicas: %.2f ms a step on each worker, %.1f %% before its last "
                    "job ends, %.1f %% beside its jobs\n",
                    from.copies(), sums->milliseconds, 100 * sums->in_time, 100 * sums->hidden);
    if (const auto sums = measured_sums(from, told.trace, sums_over::shards))
      out << format("sums over %d shards: %.2f ms a step on each worker, %.1f %% beside its ops\n",
                    from.model().shards, sums->milliseconds, 100 * sums->hidden);
  }
  if (!from.traced()) {
    out << "measured: not, because a graph tells no times of its instructions.\n";
  } else if (const auto there = told.crowded(); there && from.on_host()) {
    out << "measured: not, because " << there->workers
        << (from.workers() == 1 ? " ranks share " : " workers share ") << there->cores
        << (there->cores == 1 ? " core.\n" : " cores.\n");
  } else if (told.machines > 1) {
    out << "measured: of each rank's own step, from its first instruction to its last, because the "
           "clocks of "
        << told.machines << " machines are not compared.\n";
  }
}

namespace {

//! Of a process all of whose workers hold `sum` bytes.
void write_process(std::ostream& out, const process_account& of, std::int64_t sum,
                   const std::string& name, const char* whose) {
  if (of.memory.before < 0 || of.memory.most < 0) return;
  const std::int64_t estimated =
      of.memory.before + sum + of.beside.plans + of.beside.stacks + of.memory.absent_code;
  out << name
      << format(": %.1f before the model was made + %.1f of %s\n", kibibytes(of.memory.before),
                kibibytes(sum), whose)
      << format("  + %.1f plans + %.1f stacks of %d threads, %d with jobs + %.1f of the program\n",
                kibibytes(of.beside.plans), kibibytes(of.beside.stacks), of.beside.threads,
                of.beside.computing, kibibytes(of.memory.absent_code))
      << format("  = %.1f; at most %.1f resident, %+.1f %%\n", kibibytes(estimated),
                kibibytes(of.memory.most),
                100 * (kibibytes(of.memory.most) / kibibytes(estimated) - 1));
}

}  // namespace

void write_memory(std::ostream& out, const pipeline& from, const account& told,
                  std::string_view painted_over) {
  out << format("%-81s", "memory, KiB: by the plan, before the first step")
      << " | the arena's\n"
         "rank    weights  gradients  optimizer      arena       host workspaces        sum |     "
         "in use    "
         "touched\n";
  std::int64_t arenas = 0, touched = 0;
  const bool hidden = !painted_over.empty() || !from.on_host();
  const auto workers = static_cast<std::size_t>(from.workers());
  for (std::size_t rank = 0; rank * workers < told.workers.size(); ++rank) {
    worker_account here;
    for (const worker_account& each : std::span(told.workers).subspan(rank * workers, workers)) {
      here.planned += each.planned;
      here.in_use += each.in_use;
      here.touched += each.touched;
    }
    const rank_memory& planned = here.planned;
    arenas += planned.arena;
    out << format("%4d", static_cast<int>(rank));
    for (const std::int64_t bytes :
         {planned.weights, planned.gradients, planned.optimizer, planned.arena, planned.host,
          planned.workspaces, planned.sum()})
      out << format("%11.1f", kibibytes(bytes));
    out << format(" |%11.1f", kibibytes(here.in_use));
    if (hidden) {
      out << format("%11s\n", "-");
      continue;
    }
    touched += here.touched;
    out << format("%11.1f\n", kibibytes(here.touched));
  }
  out << "host: what waits there (--offload). workspaces: evaluation's arena, batch, messages, "
         "queues, instructions, what bf16 takes beside it, a GPU's room for scores. in use: the "
         "most at "
         "once.\n";
  if (from.workers() > 1)
    out << "All " << from.workers() << " workers of a rank together; in the trace they are ranks "
        << from.workers() << " r, " << from.workers() << " r + 1...\n";
  if (!from.on_host())
    out << "touched: unknown, the arena is the GPU's; a GPU has cuBLAS's workspaces besides.\n";
  else if (!painted_over.empty())
    out << "touched: hidden by " << painted_over << ".\n";
  else
    out << "touched: " << arenas - touched << " bytes less than planned.\n";
  const bool alone = told.processes.size() == 1;
  std::size_t first = 0;
  for (std::size_t number = 0; number < told.processes.size(); ++number) {
    const process_account& each = told.processes[number];
    std::int64_t sum = 0;
    for (int worker = 0; worker < each.workers; ++worker)
      sum += told.workers[first++].planned.sum();
    write_process(out, each, sum, alone ? "process" : "process " + std::to_string(number),
                  alone ? "all ranks" : "its workers");
  }
  if (!alone && from.on_host()) out << "processes: with what the transport takes, not estimated\n";
}

void write_trace(std::ostream& out, const pipeline& from, const account& told) {
  stretto::executor::write_chrome_trace(out, from.plans(), told.trace);
}

std::string write_picture(std::ostream& out, const pipeline& from, const account& told) {
  const bool real = is_real(from, told) && told.machines == 1;
  if (!real && !from.on_host()) return {};
  std::optional<step_timeline> shown;
  if (real) shown = measured(from, told.trace);
  if (!shown) shown = replay(from, told.costs);
  const std::string what = real ? "the last step as measured" : "a replay of measured job times";
  shorten(shown->picture);
  const auto& sizes = from.sizes();
  shown->picture.title = std::to_string(sizes.ranks) + " ranks, " + std::to_string(sizes.chunks) +
                         (sizes.chunks == 1 ? " chunk, " : " chunks, ") +
                         std::to_string(sizes.microbatches) + " micro-batches";
  shown->picture.subtitle =
      what + format(": %.1f ms, bubble %.1f %%", static_cast<double>(shown->picture.end) / 1000,
                    100 * shown->drawn_bubble);
  out << stretto::to_svg(shown->picture);
  return what;
}

std::string sampled_line(pipeline& from, const corpus& text, const sampling& how) {
  const auto next = [&](auto before, const auto& choose) { return from.next(before, choose); };
  const std::string prompt = prompt_from(text.held_back());
  return printable(prompt) + "|" + printable(sample(next, prompt, how));
}

}  // namespace train
