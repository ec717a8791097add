#include "summary.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <string_view>

#include "model/sample.hpp"
#include "model/tensor.hpp"
#include "pipeline/footprint.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/plan/svg.hpp"
#include "timeline.hpp"

namespace train {
namespace {

std::string format(const char* how, auto... values) {
  char text[200];
  std::snprintf(text, sizeof text, how, values...);
  return text;
}

bool one_core_each(const pipeline& from, int cores) {
  return from.where().ranks * from.workers() <= cores;
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
  for (auto& bar : picture.bars) bar.when = {shorter(bar.when.start), shorter(bar.when.end)};
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

void write_table(std::ostream& out, pipeline& from, int cores) {
  const step_timeline predicted = replay(from, from.predicted_costs());
  // A GPU's jobs take no time of the processor, and each rank has streams of its own.
  std::optional<step_timeline> replayed, real;
  if (from.on_host()) replayed = replay(from, from.measured_costs());
  if (!from.on_host() || one_core_each(from, cores)) real = measured(from);

  out << "rank  layers            idle: predicted   replayed   measured\n";
  for (int rank = 0; rank < from.where().ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    out << format("%4d  %-15.15s%7s", rank, layers_of(from, rank).c_str(), "")
        << percent(predicted.idle[at]) << percent(replayed ? std::optional(replayed->idle[at]) : std::nullopt)
        << percent(real ? std::optional(real->idle[at]) : std::nullopt) << '\n';
  }
  out << format("%-28s", "bubble: the largest of them") << percent(predicted.bubble)
      << percent(replayed ? std::optional(replayed->bubble) : std::nullopt) << percent(real ? std::optional(real->bubble) : std::nullopt)
      << "\npredicted: by the model's multiply-adds. replayed: by the processor time of each kind "
         "of job.\n";
  if (const auto sums = measured_sums(from, sums_over::replicas))
    out << format("sums over %d replicas: %.2f ms a step on each worker, %.1f %% before its last job "
                  "ends, %.1f %% beside its jobs\n",
                  from.copies(), sums->milliseconds, 100 * sums->in_time, 100 * sums->hidden);
  if (const auto sums = measured_sums(from, sums_over::shards))
    out << format("sums over %d shards: %.2f ms a step on each worker, %.1f %% beside its ops\n",
                  from.model().shards, sums->milliseconds, 100 * sums->hidden);
  if (!from.traced())
    out << "measured: not, because a graph tells no times of its instructions.\n";
  else if (!real)
    out << "measured: not, because " << from.where().ranks * from.workers()
        << (from.workers() == 1 ? " ranks share " : " workers share ") << cores
        << (cores == 1 ? " core.\n" : " cores.\n");
}

void write_memory(std::ostream& out, pipeline& from, const process_memory& process) {
  out << format("%-81s", "memory, KiB: by the plan, before the first step")
      << " | the arena's\n"
         "rank    weights  gradients  optimizer      arena       host workspaces        sum |     "
         "in use    "
         "touched\n";
  std::int64_t sum = 0, arenas = 0, touched = 0;
  const bool hidden = process.poisoned || !from.on_host();
  for (int rank = 0; rank < from.where().ranks; ++rank) {
    const rank_memory here = from.memory(rank);
    sum += here.sum();
    arenas += here.arena;
    out << format("%4d", rank);
    for (const std::int64_t bytes : {here.weights, here.gradients, here.optimizer, here.arena,
                                     here.host, here.workspaces, here.sum()})
      out << format("%11.1f", kibibytes(bytes));
    std::int64_t in_use = 0, marked = 0;
    for (int worker = 0; worker < from.workers(); ++worker) {
      const auto at = static_cast<std::size_t>(rank * from.workers() + worker);
      in_use += from.engine().most_in_use(at).bytes;
      if (!hidden) marked += touched_bytes(from.engine().arena(at));
    }
    out << format(" |%11.1f", kibibytes(in_use));
    if (hidden) {
      out << format("%11s\n", "-");
      continue;
    }
    touched += marked;
    out << format("%11.1f\n", kibibytes(marked));
  }
  out << "host: what waits there (--offload). workspaces: evaluation's arena, batch, messages, "
         "queues, instructions, what products read in bf16. in use: the most at once.\n";
  if (from.workers() > 1)
    out << "All " << from.workers() << " workers of a rank together; in the trace they are ranks "
        << from.workers() << " r, " << from.workers() << " r + 1...\n";
  if (!from.on_host())
    out << "touched: unknown, the arena is the GPU's; a GPU has cuBLAS's workspaces besides.\n";
  else if (process.poisoned)
    out << "touched: hidden by the poison.\n";
  else
    out << "touched: " << arenas - touched << " bytes less than planned.\n";
  if (!process.before || !process.most) return;
  const shared_memory beside = from.memory();
  const std::int64_t estimated =
      *process.before + sum + beside.plans + beside.stacks + process.absent_code;
  out << format("process: %.1f before the model was made + %.1f of all ranks\n",
                kibibytes(*process.before), kibibytes(sum))
      << format("  + %.1f plans + %.1f stacks of %d threads, %d with jobs + %.1f of the program\n",
                kibibytes(beside.plans), kibibytes(beside.stacks), beside.threads,
                beside.computing, kibibytes(process.absent_code))
      << format("  = %.1f; at most %.1f resident, %+.1f %%\n", kibibytes(estimated),
                kibibytes(*process.most),
                100 * (kibibytes(*process.most) / kibibytes(estimated) - 1));
}

void write_trace(std::ostream& out, pipeline& from) {
  stretto::executor::write_chrome_trace(out, from.plans(), from.trace());
}

std::string write_picture(std::ostream& out, pipeline& from, int cores) {
  std::optional<step_timeline> shown;
  const bool real = !from.on_host() || one_core_each(from, cores);
  if (real) shown = measured(from);
  if (!shown) shown = replay(from, from.measured_costs());
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

std::string sampled_line(const pipeline& from, const corpus& text, std::uint64_t seed) {
  std::vector<aligned_array<float>> layers;
  std::vector<std::span<const float>> parameters;
  for (int layer = 0; layer < from.model().layer_count(); ++layer) {
    const std::vector<float> one = from.whole(layer, layer_part::parameters);
    if (!from.leads()) continue;
    layers.emplace_back(one.size());
    std::ranges::copy(one, layers.back().span().begin());
    parameters.push_back(layers.back().span());
  }
  if (!from.leads()) return {};
  forward_only logits(from.model(), std::move(parameters));
  const std::string prompt = prompt_from(text.held_back());
  const sampling how{.length = 76, .temperature = 0.5, .seed = seed};
  return printable(prompt) + "|" + printable(sample(logits, prompt, how));
}

}  // namespace train
