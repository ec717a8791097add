#include "program.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "account.hpp"
#include "agreement.hpp"
#include "cores.hpp"
#include "default_text.hpp"
#include "devices.hpp"
#include "early_end.hpp"
#include "model/corpus.hpp"
#include "options.hpp"
#include "pipeline/checkpoint.hpp"
#include "pipeline/footprint.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/saves.hpp"
#include "pipeline/slice_ends.hpp"
#include "processes.hpp"
#include "resident.hpp"
#include "step_log.hpp"
#include "steps.hpp"
#include "stretto/executor/error.hpp"
#include "summary.hpp"
#include "tool/whole_file.hpp"

namespace train {
namespace {

constexpr const char* trace_name = "trace.json";
constexpr const char* picture_name = "timeline.svg";

int complain(const std::string& words, int code) {
  std::cerr << "train: " + words + '\n';  // in one piece, beside those of other processes
  return code;
}

bad_setting unwritable(const options& with, const char* name, const std::string& why) {
  return {"out", with.out.string(), std::string(name) + " cannot be written there: " + why};
}

//! Before training, so that a folder that cannot be written is no surprise after it.
void refuse_unwritable(const options& with, const char* name) {
  std::error_code error;
  std::filesystem::create_directories(with.out, error);
  const std::string why = error ? error.message() : stretto::tool::why_not_written(with.out / name);
  if (!why.empty()) throw unwritable(with, name, why);
}

//! In the place of an earlier run's, which stays until then.
//! @return whether it is there; else it has complained
bool write(const options& with, const char* name, const std::function<void(std::ostream&)>& print) {
  const std::string why = stretto::tool::write_whole(with.out / name, print);
  if (why.empty()) return true;
  std::cout.flush();
  complain(unwritable(with, name, why).what(), 1);
  return false;
}

corpus read(const options& with) {
  try {
    return {with.files.empty() ? repository_text() : with.files, with.model.context};
  } catch (const std::runtime_error& wrong) {
    throw early_exit(2, std::string("FILES: ") + wrong.what());
  }
}

//! @param changes  since the checkpoint, see load_checkpoint()
void introduce(std::ostream& out, const pipeline& made, const options& with,
               const std::vector<std::string>& changes, int cores) {
  const auto& sizes = made.sizes();
  out << with.model.layers << " blocks of width " << with.model.width << ", "
      << (made.parameter_count() + 500) / 1000 << " k parameters; text of "
      << (made.text().training().size() + made.text().held_back().size() + 500) / 1000 << " kB\n"
      << with.pipeline.schedule << ": " << sizes.ranks
      << (sizes.ranks == 1 ? " rank of " : " ranks of ") << sizes.chunks
      << (sizes.chunks == 1 ? " chunk" : " chunks");
  if (made.workers() > 1) out << ", " << made.workers() << " workers each,";
  out << " on " << cores << (cores == 1 ? " core, " : " cores, ")
      << (made.copies() > 1 ? std::to_string(made.copies()) + " x " : "") << sizes.microbatches
      << (sizes.microbatches == 1 ? " micro-batch of " : " micro-batches of ")
      << with.model.microbatch << " x " << with.model.context << " bytes";
  out << slice_words(made.model());
  if (with.pipeline.products == precision::bf16) out << ", in bf16";
  if (with.pipeline.graph) out << ", steps as a graph";
  out << '\n';
  if (!with.resume.empty())
    out << "goes on after step " << made.steps_done() << " of " << with.resume.string() << '\n';
  for (const std::string& each : changes) out << "  but with " << each << '\n';
}

//! Training cannot go on from what it has come to.
//! @throws common_end, in all processes: each has found it
void refuse_divergence(const pipeline& made, double loss) {
  if (std::isfinite(loss)) return;
  throw common_end(1, "after step " + std::to_string(made.steps_done()) +
                          " the loss of the held-back text is not finite: training has diverged "
                          "(try a lower learning rate)");
}

//! @return what has changed since it was saved
std::vector<std::string> resume(pipeline& made, const options& with) {
  if (with.resume.empty()) return {};
  std::vector<std::string> changes;
  try {
    changes = load_checkpoint(with.resume, made);
  } catch (const bad_checkpoint& wrong) {
    throw common_end(2, std::string("--resume ") + wrong.what());
  }
  if (made.steps_done() >= with.steps)
    throw bad_setting("steps", std::to_string(with.steps),
                      "the checkpoint has " + std::to_string(made.steps_done()) + " behind it");
  return changes;
}

//! Tells of the traced steps, in files and where these are. @return whether all are there
bool write_times(const pipeline& made, const account& told, const options& with) {
  std::cout << '\n';
  const bool traced =
      write(with, trace_name, [&](std::ostream& to) { write_trace(to, made, told); });
  if (traced) {
    std::cout << (with.out / trace_name).string() << ": the last steps, for ui.perfetto.dev";
    if (told.machines > 1) std::cout << "; times of each machine from its own first instruction on";
    std::cout << '\n';
  }
  std::string drawn;
  if (!write(with, picture_name, [&](std::ostream& to) { drawn = write_picture(to, made, told); }))
    return false;
  std::cout << (with.out / picture_name).string() << ": "
            << (drawn.empty() ? "empty, because the clocks of several machines are not compared"
                              : drawn)
            << '\n';
  return traced;
}

//! From the first evaluation to the last word.
//! @param running  as train_steps() has it
//! @return the exit code: not 0 where something is lost, which it has told
int train_and_tell(pipeline& made, const options& with, const processes& all,
                   process_memory process, const early_end* asked, std::string& running) {
  const int cores = core_set::own().count();
  const std::vector<std::string> changes = resume(made, with);
  if (made.traced() && all.speaks())
    for (const char* name : {trace_name, picture_name}) refuse_unwritable(with, name);
  for (std::size_t worker = 0; made.on_host() && worker < made.workers_here(); ++worker)
    paint(made.engine().arena(worker));

  std::optional<step_log> log;
  if (!with.log.empty() && all.speaks()) log.emplace(with.log, !with.resume.empty());

  std::optional<saves> kept;
  if (!with.save.empty()) kept.emplace(with.save);

  end_if_asked(made, with, all, asked);
  introduce(std::cout, made, with, changes, cores);
  running = "evaluation before training";
  const double before = made.evaluate();
  train_steps(made, with, all,
              {.log = log ? &*log : nullptr, .kept = kept ? &*kept : nullptr, .asked = asked},
              running);
  running = "evaluation after training";
  const double after = made.evaluate();
  refuse_divergence(made, after);
  char line[100];
  std::snprintf(line, sizeof line, "held-back text: %.3f nats per byte before, %.3f after\n\n",
                before, after);
  std::cout << line;
  const sampling how{.length = with.sample, .temperature = 0.5, .seed = with.learning.seed};
  running = "sampling";
  const std::string sampled =
      with.sample > 0 ? sampled_line(made, made.text(), how) : std::string();
  if (made.on_host()) process.most = most_resident_bytes().value_or(-1);
  const account told = take_account(made, process);
  if (!all.speaks()) return 0;
  write_table(std::cout, made, told);
  std::cout << '\n';
  write_memory(std::cout, made, told,
               with.pipeline.poison    ? "the poison"
               : with.pipeline.checked ? "what --checked puts behind buffers"
                                       : "");
  if (with.check && made.on_host())
    std::cout << "process: with the unpipelined model of --check, not estimated\n";
  if (with.pipeline.checked) std::cout << "process: with the clocks of --checked, not estimated\n";
  int code = made.traced() && !write_times(made, told, with) ? 1 : 0;
  if (with.sample > 0)
    std::cout << "\nheld-back beginning | what the model makes of it:\n" << sampled << '\n';
  std::cout.flush();
  if (const std::string lost = log ? log->complaint() : ""; !lost.empty()) code = complain(lost, 1);
  // What was saved later has all that was to be saved earlier.
  if (const std::string lost = kept ? kept->complaint() : ""; !lost.empty())
    code = complain(lost, kept->lacks_last() ? 1 : code);
  return code;
}

//! Each process tells of its own ranks.
std::filesystem::path failure_file(const options& with, const processes& all) {
  return with.out / (all.count() > 1 ? "failure-" + std::to_string(all.number()) + ".txt"
                                     : std::string("failure.txt"));
}

//! What it is to read, and its checkpoint, which what it leaves behind would take the place of.
void refuse_own_inputs(const options& with, const processes& all) {
  std::vector<std::filesystem::path> left{failure_file(with, all)};
  if (with.pipeline.trace_steps > 0)
    for (const char* name : {trace_name, picture_name}) left.push_back(with.out / name);
  for (const told_option& one : with.named)
    for (const std::filesystem::path& file : left)
      if (stretto::tool::same_file(one.value, file))
        throw early_exit(2, one.name + " " + one.value + ": would be lost where --out " +
                                with.out.string() + " has its " + file.filename().string());
  for (const told_option& one : with.named)
    if (!with.log.empty() && one.name != "--log" && stretto::tool::same_file(one.value, with.log))
      throw early_exit(2, "--log " + with.log.string() + ": " + one.name + " is the same file");
  // A checkpoint may make way there, also the one that it goes on from.
  const std::filesystem::path previous =
      with.save.empty() ? std::filesystem::path() : previous_of(with.save);
  for (const told_option& one : with.named)
    if (!previous.empty() && one.name != "--save" && one.name != "--resume" &&
        stretto::tool::same_file(one.value, previous))
      throw early_exit(2, one.name + " " + one.value + ": would be lost where --save " +
                              with.save.string() + " keeps its " + previous.filename().string());
}

//! Leaves how far each rank came. @return where that is, for the end of a line
std::string keep_record(const std::string& record, const std::filesystem::path& where) {
  if (record.empty()) return {};
  std::error_code error;  // which the file has, too
  std::filesystem::create_directories(where.parent_path(), error);
  std::ofstream file(where);
  file << record << std::flush;
  return file ? "; how far each rank came: " + where.string() : std::string();
}

//! Of a step that has failed, while all that ran in it is still there.
//! @param running  what it was a step of: the executor counts from 0, and from where this run began
//! @throws common_end
[[noreturn]] void tell_failure(const stretto::executor::execution_error& failed,
                               const std::string& running, const options& with, processes& all) {
  // Behind the line that names the culprit; below it stands how far others are.
  std::string words = running + ": the executor's " + failed.what();
  words.insert(std::min(words.find('\n'), words.size()),
               keep_record(failed.flight_record(), failure_file(with, all)));
  constexpr std::chrono::seconds patience(3);  // who has died does not come
  if (failed.threads_left() == 0) throw common_end(1, words, patience);
  // Work goes on that does not end, and whatever gives memory back would wait for it.
  std::cout.flush();
  const int code = complain(words, 1);
  all.wait_for_others(patience);
  std::_Exit(all.end(code));
}

//! What must be less where there is no memory, and how much it is.
std::string no_memory_for(const options& with) {
  const auto& model = with.model;
  return "not enough memory: --layers " + std::to_string(model.layers) + " of --width " +
         std::to_string(model.width) + ", on --batch " + std::to_string(model.microbatch) +
         " sequences of --context " + std::to_string(model.context);
}

//! @return the exit code of what is told already
//! @throws common_end
int run(const options& with, processes& all, const early_end* asked) try {
  refuse_own_inputs(with, all);
  std::error_code absent;
  std::filesystem::remove(failure_file(with, all), absent);  // of an earlier run
  const corpus text = read(with);
  const told_option found[] = {told(text)};
  all.agree(found);
  if (const std::string why = with.save.empty() ? "" : why_not_saved(with.save); !why.empty())
    throw bad_setting("save", with.save.string(), "no checkpoint can be written there: " + why);
  const process_memory process{.before = resident_bytes().value_or(-1),
                               .absent_code = absent_code_bytes()};
  pipeline made(with.model, text, with.pipeline, with.learning);
  std::string running;
  try {
    return train_and_tell(made, with, all, process, asked, running);
  } catch (const stretto::executor::execution_error& failed) {
    tell_failure(failed, running, with, all);
  }
} catch (const std::bad_alloc&) {
  throw early_exit(2, no_memory_for(with));
}

//! What was printed has arrived, or there is a complaint; @return the exit code.
int printed() {
  return std::cout.flush() ? 0 : complain("standard output cannot be written", 1);
}

//! Runs the program; @return its exit code.
//! @param asked  to be there for the rest of it
int train_in(processes& all, std::optional<early_end>& asked, int argc, char** argv) {
  try {
    options with = read_options(argc, argv);
    const device_choice device = read_device(with.device, with.transport);
    go_to(device, with.transport, argv);
    all.join(with.transport, with.join_timeout, with.pipeline);
    all.agree(with.common);
    // Who waits for other processes is ended at once; and without a checkpoint there is nothing to
    // wait for.
    if (!with.save.empty()) asked.emplace();
    use(device, all.local(), with.pipeline);
    if (!all.speaks()) std::cout.rdbuf(nullptr);
    const int lost = run(with, all, asked ? &*asked : nullptr);
    return std::max(lost, all.speaks() ? printed() : 0);
  } catch (const agreed_end& end) {
    std::cout.flush();
    return all.speaks() ? complain(end.what(), ended_early) : ended_early;
  } catch (const common_end& of) {
    complain(of.what(), of.code);
    all.wait_for_others(of.patience);
    return of.code;
  } catch (const early_exit& early) {
    if (early.code != 0) return complain(early.what(), early.code);
    std::cout << early.what();
    return printed();
  } catch (const std::invalid_argument& wrong) {
    return complain(wrong.what(), 2);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory to begin", 2);
  } catch (const std::exception& failed) {
    return complain(failed.what(), 1);
  }
}

}  // namespace

int program(int argc, char** argv) {
  std::optional<early_end> asked;
  processes all;
  return all.end(train_in(all, asked, argc, argv));
}

}  // namespace train
