#include "steps.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>

#include "early_end.hpp"
#include "pipeline/checkpoint.hpp"
#include "progress.hpp"
#include "shadow.hpp"

namespace train {
namespace {

//! What each process tells all others after a step.
struct step_news {
  int signal = 0;  //!< that has asked it to end
  std::int64_t busy = 0;  //!< nanoseconds of its workers' jobs
};

struct all_news {
  int signal = 0;
  std::size_t of = 0;  //!< the process that it came to
  std::int64_t busy = 0;
};

all_news exchanged(const pipeline& between, const step_news& mine) {
  all_news made;
  const auto all = between.exchange(
      "end of a step", {reinterpret_cast<const char*>(&mine), sizeof mine});
  for (std::size_t process = 0; process < all.size(); ++process) {
    step_news theirs;
    std::memcpy(&theirs, all[process].data(), sizeof theirs);
    made.busy += theirs.busy;
    if (made.signal == 0 && theirs.signal != 0) made.signal = theirs.signal, made.of = process;
  }
  return made;
}

[[noreturn]] void end_early(const pipeline& made, const options& with, const all_news& of,
                            bool alone) {
  throw agreed_end(std::string(name_of_signal(of.signal)) +
                   (alone ? "" : " to process " + std::to_string(of.of)) + " ends it after step " +
                   std::to_string(made.steps_done()) + " of " + std::to_string(with.steps) +
                   "; " + with.save.string() + " has it, for --resume");
}

}  // namespace

void train_steps(pipeline& made, const options& with, const processes& all, step_log* log,
                 std::string& running) {
  using clock = std::chrono::steady_clock;
  std::unique_ptr<shadow> unpipelined;
  if (with.check) unpipelined = std::make_unique<shadow>(with, made, made.text());
  const double tokens = static_cast<double>(made.model().microbatch) * made.model().context *
                        made.sizes().microbatches * made.copies();
  const bool alone = all.count() == 1;
  const long first = made.steps_done() + 1;
  // Without a checkpoint there is nothing to wait for.
  std::optional<early_end> asked;
  if (!with.save.empty()) asked.emplace();
  // What mpirun gives processes is a terminal, whatever its own output is.
  progress shown(std::cout, alone && isatty(STDOUT_FILENO) != 0, first, with.steps, tokens);
  for (long number = first; number <= with.steps; ++number) {
    if (unpipelined) unpipelined->prepare(made);
    running = "training step " + std::to_string(number);
    const std::int64_t busy = made.busy_time();
    const clock::time_point start = clock::now();
    const step_result result = made.step();
    const std::chrono::duration<double> took = clock::now() - start;
    all_news news;
    if (asked || !with.log.empty())
      news = exchanged(made, {asked ? asked->signal() : 0, made.busy_time() - busy});
    // The first step touches memory for the first time, which costs more than the work.
    if (number == first && with.steps > first) made.forget_times();
    if (unpipelined) unpipelined->compare(made, number, result);
    const bool last = number == with.steps;
    shown.update(number, result, last || news.signal != 0);
    if (log != nullptr) {
      logged_step line{.number = number,
                       .result = result,
                       .learning_rate = with.learning.rate.at(number),
                       .seconds = took.count(),
                       .tokens = tokens};
      if (made.on_host())
        line.idle = 1 - static_cast<double>(news.busy) * 1e-9 /
                            (took.count() * static_cast<double>(made.plans().size()));
      if (const std::string why = log->add(line); !why.empty())
        std::cerr << "train: " + why + '\n';
    }
    const bool due = with.save_every > 0 && number % with.save_every == 0;
    if (!with.save.empty() && (last || due || news.signal != 0)) save_checkpoint(with.save, made);
    if (news.signal != 0) end_early(made, with, news, alone);
  }
  if (unpipelined) std::cout << shadow::praise(made, with);
}

}  // namespace train
