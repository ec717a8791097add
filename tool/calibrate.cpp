#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "command.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "machine_file.hpp"
#include "table.hpp"
#include "whole_file.hpp"

#ifdef STRETTO_WITH_KERNELS
#include "model/calibrate.hpp"
#include "model/kernels.hpp"
#include "model/program.hpp"
#endif

namespace stretto::tool {

namespace {

#ifdef STRETTO_WITH_KERNELS

constexpr const char* caveat =
    "Medians of repeated runs, in processor time; still, what else runs on this machine takes its\n"
    "share of caches and memory: measure on a quiet one.\n";

//! Nanoseconds until a thread that waits goes on: what every collective takes.
std::int64_t handover() {
  using clock = std::chrono::steady_clock;
  std::atomic<int> turn{0};
  constexpr int rounds = 301;
  std::thread other([&] {
    for (int round = 0; round < rounds; ++round) {
      turn.wait(2 * round);
      turn.store(2 * round + 2);
      turn.notify_one();
    }
  });
  std::vector<std::int64_t> taken;
  for (int round = 0; round < rounds; ++round) {
    const auto start = clock::now();
    turn.store(2 * round + 1);
    turn.notify_one();
    turn.wait(2 * round + 1);
    taken.push_back(std::chrono::nanoseconds(clock::now() - start).count() / 2);
  }
  other.join();
  std::ranges::nth_element(taken, taken.begin() + rounds / 2);
  return std::max(std::int64_t{1}, taken[rounds / 2]);
}

measured_machine measured_here(const std::string& name, int rounds, bool few) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  int told = -1;
  const train::calibration_settings with{
      .rounds = rounds, .few = few, .progress = [&](const std::string& kernel, int done, int all) {
        const int percent = 100 * done / all;
        if (percent / (terminal ? 1 : 10) == told) return;
        told = percent / (terminal ? 1 : 10);
        std::cerr << (terminal ? "\r" : "") << percent << " %  " << kernel
                  << (terminal ? std::string(24, ' ') : "") << (terminal && done < all ? "" : "\n")
                  << std::flush;
      }};
  measured_machine made;
  made.name = name;
  for (train::kernel_times& one : train::calibrate(with))
    made.kernels.push_back({std::move(one.name), std::move(one.axes), std::move(one.times)});
  // For what is not among the kernels: the rates at their largest sizes.
  const auto rate = [&](const char* kernel, std::int64_t factor) {
    double amount = static_cast<double>(factor);
    for (const measured_machine::kernel& one : made.kernels) {
      if (one.name != kernel) continue;
      for (const auto& axis : one.axes) amount *= static_cast<double>(axis.back());
      return std::max(std::int64_t{1}, static_cast<std::int64_t>(
                                           amount / static_cast<double>(one.times.back())));
    }
    return std::int64_t{1};
  };
  made.rates.flops = rate("product", 2);
  made.rates.memory = rate("move", 1);
  made.rates.link = rate("sum", 1);
  made.rates.latency = handover();
  return made;
}

#else

[[noreturn]] void refuse_without_kernels(const char* command) {
  throw bad_input(std::string(command) +
                  ": this tool was built without the trainer, whose kernels are measured");
}

#endif

struct calibrate_command {
  std::string path;
  std::string name = "host";
  std::string format = "json";
  std::string out = "-";
  int rounds = 3;
  bool few = false;

  void run() const {
    measured_machine made;
    std::string line = "stretto calibrate --emit header";
    if (!path.empty()) {
      made = measured_machine::read("--machine", path);
      line += " --machine " + shell_word(path);
    } else {
      if (!is_identifier(name)) throw bad_option("--name", name, identifier_rule);
      // Not told only when a minute's measurements would be lost.
      if (const std::string why = out == "-" ? "" : why_not_written(out); !why.empty())
        throw bad_option("-o", out, "cannot be written: " + why);
      made = measure();
    }
    write_file("-o", out, format == "header" ? made.header(line) : made.json());
  }
  measured_machine measure() const {
#ifdef STRETTO_WITH_KERNELS
    measured_machine made = measured_here(name, rounds, few);
    std::cerr << caveat;
    return made;
#else
    refuse_without_kernels("calibrate");
#endif
  }
};

struct predict_command {
  std::string path;
  int width = 96, heads = 4, context = 96, microbatch = 2, layers = 2;
  int microbatches = 50;
  std::string format = "table";

  void run() const {
#ifdef STRETTO_WITH_KERNELS
    measured_machine known = measured_machine::read("--machine", path);
    const machine& on = known.view();
    if (const std::string_view kernel = train::missing_kernel(on); !kernel.empty())
      throw bad_option("--machine", path,
                       "it lacks the kernel \"" + std::string(kernel) +
                           "\", which stretto calibrate measures");
    const train::config model{.layers = layers,
                              .width = width,
                              .heads = heads,
                              .context = context,
                              .microbatch = microbatch};
    if (width % heads != 0)
      throw bad_option("--heads", std::to_string(heads),
                       "--width " + std::to_string(width) + " is no multiple of it");
    try {
      model.check();
    } catch (const std::invalid_argument& wrong) {  // each size is one, but all of them too many
      throw bad_input("--width " + std::to_string(width) + " --heads " + std::to_string(heads) +
                      " --context " + std::to_string(context) + " --batch " +
                      std::to_string(microbatch) + ": " + wrong.what());
    }
    const program_chain chain =
        train::stage_chain(model, 0, model.layer_count(), {.split = true, .on = &on});
    nlohmann::ordered_json text;
    std::vector<std::vector<std::string>> rows{{"op", "predicted us", "measured us", "error"}};
    std::vector<double> errors;
    for (const train::op_time& one : train::measure_ops(model, microbatches)) {
      const std::string_view name = train::name(one.code);
      const auto op = std::ranges::find(chain.ops, name, &stretto::op::name);
      const double error = static_cast<double>(op->time) / static_cast<double>(one.time) - 1;
      errors.push_back(std::fabs(error));
      text["ops"].push_back(
          {{"op", name}, {"predicted_ns", op->time}, {"measured_ns", one.time}, {"error", error}});
      rows.push_back(
          {std::string(name), us(op->time), us(one.time), (error < 0 ? "" : "+") + percent(error)});
    }
    std::ranges::sort(errors);
    const double median = errors[errors.size() / 2];
    text["median_error"] = median;
    if (format == "json") {
      std::cout << text.dump(1) << '\n';
      return;
    }
    std::cout << "The ops of " << layers << " layers of width " << width << " with " << heads
              << " heads, " << microbatch << " sequences of " << context << ", on " << known.name
              << "\n\n"
              << print_table(rows) << "\nMedian error " << percent(median) << ", largest "
              << percent(errors.back()) << ".\n"
              << caveat;
#else
    refuse_without_kernels("predict");
#endif
  }

 private:
  static std::string us(std::int64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", static_cast<double>(ns) / 1e3);
    return text;
  }
};

}  // namespace

void add_calibrate(CLI::App& app) {
  auto* command = app.add_subcommand(
      "calibrate", "Measure the trainer's kernels on this machine, for predictions of ops' times");
  command->footer(exit_codes);
  const auto mine = std::make_shared<calibrate_command>();
  auto* file = command->add_option("--machine", mine->path,
                                   "File of a machine that was measured, to convert");
  command->add_option("--name", mine->name, "Of the machine: a C++ identifier")
      ->capture_default_str();
  command->add_option("--rounds", mine->rounds, "Times that every size is measured, apart in time")
      ->check(CLI::Range(1, 1000).description(""))
      ->capture_default_str();
  command->add_flag("--few", mine->few, "A few small sizes, once: to try it");
  for (const char* of_measuring : {"--name", "--rounds", "--few"})
    file->excludes(command->get_option(of_measuring));
  command->add_option("--format,--emit", mine->format, "json, or header: C++, a constant machine")
      ->check(CLI::IsMember({"json", "header"}));
  command->add_option("-o,--output", mine->out, "File to write (default standard output)");
  command->callback([mine] { mine->run(); });
}

void add_predict(CLI::App& app) {
  auto* command = app.add_subcommand(
      "predict", "The trainer's ops as a calibration predicts them, and as they are measured");
  command->footer(exit_codes);
  const auto mine = std::make_shared<predict_command>();
  command->add_option("--machine", mine->path, "File that calibrate has written")->required();
  const auto count = [&](const char* option, int& value, const char* says) {
    command->add_option(option, value, says)
        ->check(CLI::Range(1, 65536).description(""))
        ->capture_default_str();
  };
  count("--width", mine->width, "Features of a token");
  count("--heads", mine->heads, "Of attention");
  count("--context", mine->context, "Tokens of a sequence");
  count("--batch", mine->microbatch, "Sequences of a micro-batch");
  count("--layers", mine->layers, "Blocks");
  count("--microbatches", mine->microbatches, "That are measured");
  command->add_option("--format", mine->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
