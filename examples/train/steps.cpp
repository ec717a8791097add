#include "steps.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>

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

all_news exchanged(const pipeline& between, const char* when, const step_news& mine) {
  all_news made;
  const auto all = between.exchange(when, {reinterpret_cast<const char*>(&mine), sizeof mine});
  for (std::size_t process = 0; process < all.size(); ++process) {
    step_news theirs;
    std::memcpy(&theirs, all[process].data(), sizeof theirs);
    made.busy += theirs.busy;
    if (made.signal == 0 && theirs.signal != 0) made.signal = theirs.signal, made.of = process;
  }
  return made;
}

//! "SIGTERM to process 1 ends it "
std::string words(const all_news& of, const processes& all) {
  return std::string(name_of_signal(of.signal)) +
         (all.count() == 1 ? "" : " to process " + std::to_string(of.of)) + " ends it ";
}

[[noreturn]] void end_early(const pipeline& made, const options& with, const processes& all,
                            const all_news& of, const saves& kept) {
  const std::string after = words(of, all) + "after step " + std::to_string(made.steps_done()) +
                            " of " + std::to_string(with.steps) + "; ";
  if (kept.lacks_last()) throw early_exit(1, after + kept.complaint());
  const std::string lost = kept.complaint();
  throw agreed_end(after + with.save.string() + " has it, for --resume" +
                   (lost.empty() ? "" : "; " + lost));
}

void tell(const std::string& why) {
  if (!why.empty()) std::cerr << "train: " + why + '\n';
}

}  // namespace

void end_if_asked(const pipeline& made, const options& with, const processes& all,
                  const early_end* asked) {
  if (asked == nullptr) return;
  const all_news news = exchanged(made, "before the first step", {.signal = asked->signal()});
  if (news.signal != 0)
    throw agreed_end(words(news, all) + "before step " + std::to_string(made.steps_done() + 1) +
                     " of " + std::to_string(with.steps) + "; " + with.save.string() +
                     " is as it was");
}

void train_steps(pipeline& made, const options& with, const processes& all,
                 const beside_steps& beside, std::string& running) {
  using clock = std::chrono::steady_clock;
  std::unique_ptr<shadow> unpipelined;
  if (with.check) unpipelined = std::make_unique<shadow>(with, made, made.text());
  const double tokens = static_cast<double>(made.model().microbatch) * made.model().context *
                        made.sizes().microbatches * made.copies();
  const bool alone = all.count() == 1;
  const long first = made.steps_done() + 1;
  end_if_asked(made, with, all, beside.asked);
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
    if (beside.asked != nullptr || !with.log.empty())
      news = exchanged(made, "end of a step",
                       {.signal = beside.asked != nullptr ? beside.asked->signal() : 0,
                        .busy = made.busy_time() - busy});
    // The first step touches memory for the first time, which costs more than the work.
    if (number == first && with.steps > first) made.forget_times();
    if (unpipelined) unpipelined->compare(made, number, result);
    const bool last = number == with.steps;
    shown.update(number, result, last || news.signal != 0);
    if (beside.log != nullptr) {
      logged_step line{.number = number,
                       .result = result,
                       .learning_rate = with.learning.rate.at(number),
                       .seconds = took.count(),
                       .tokens = tokens};
      if (made.on_host())
        line.idle = 1 - static_cast<double>(news.busy) * 1e-9 /
                            (took.count() * static_cast<double>(made.plans().size()));
      tell(beside.log->add(line));
    }
    if (beside.kept == nullptr) continue;
    const bool ends = last || news.signal != 0;
    const bool due = with.save_every > 0 && number % with.save_every == 0;
    if (ends || due) tell(beside.kept->add(made, ends));
    // Behind the last one there is nothing to go on with: the run ends as it would without.
    if (news.signal != 0 && !last) end_early(made, with, all, news, *beside.kept);
  }
  if (unpipelined) std::cout << shadow::praise(made, with);
}

}  // namespace train
