#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "agreement.hpp"
#include "pipeline/plans.hpp"
#include "pipeline/stage_ops.hpp"
#include "tool/range_words.hpp"
#include "typed_options.hpp"

namespace train {
namespace {

//! The number that is typed, and nothing else; NaN: there is none.
double typed_number(const std::string& typed) {
  std::istringstream text(typed);
  double value = 0;
  text >> value;
  return text.fail() || text.peek() != std::istringstream::traits_type::eof() ? std::nan("")
                                                                              : value;
}

//! A number above 0, and not infinite.
CLI::Validator above_zero() {
  return {[](std::string& typed) {
            const double value = typed_number(typed);
            return value > 0 && std::isfinite(value)
                       ? std::string()
                       : "Value " + typed + " is not a finite number above 0";
          },
          "ABOVE 0"};
}

//! Of a gradient whose norm is smaller than what AdamW adds to a divisor, little is learnt, and at
//! last nothing.
CLI::Validator not_below_epsilon() {
  return {[](std::string& typed) {
            const double value = typed_number(typed);
            return value >= adamw{}.epsilon && std::isfinite(value)
                       ? std::string()
                       : "Value " + typed + " is not a finite number from 1e-8 on, AdamW's epsilon";
          },
          "FROM 1e-8"};
}

//! What CLI11 reads by itself may wrap around (-1) or stop at the largest number.
CLI::Validator whole_number() {
  return {[](std::string& typed) {
            std::uint64_t value = 0;
            const char* const end = typed.data() + typed.size();
            const auto read = std::from_chars(typed.data(), end, value);
            return read.ec == std::errc() && read.ptr == end
                       ? std::string()
                       : "Value " + typed + " is not a whole number below 2^64";
          },
          "BELOW 2^64"};
}

//! An empty value is mostly a variable of a script that is not set.
CLI::Validator filled() {
  return {[](std::string& typed) { return std::string(typed.empty() ? "its value is empty" : ""); },
          ""};
}

CLI::Range count_up_to(int most) {
  return {1, most};
}

//! CLI11 writes sentences on several lines, and "ranks: Value 0 ..." without what was typed before.
std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

void add_pipeline(CLI::App& app, options& made, typed_options& raw) {
  pipeline_settings& to = made.pipeline;
  app.add_option("--schedule", to.schedule, "One of " + training_schedules())
      ->capture_default_str();
  app.add_option("--ranks", to.ranks, "Ranks of the pipeline: threads of this process")
      ->check(count_up_to(64))
      ->capture_default_str();
  app.add_option("--microbatches", to.microbatches, "Micro-batches in a step, of each replica")
      ->check(count_up_to(100'000))
      ->capture_default_str();
  app.add_option("--slices", to.slices, "Parts of every sequence, if the schedule slices")
      ->check(count_up_to(1 << 14))
      ->capture_default_str();
  app.add_option("--slice-lengths", to.slice_lengths,
                 "Their tokens: equal; balanced, so that a block computes as much for each; "
                 "balanced:8, in multiples of that; or a list, first to last: 40,32,28,28")
      ->capture_default_str();
  app.add_option("--chunks", to.chunks,
                 "Stages per rank, of either direction where there are two [2, or 1 where the "
                 "schedule has one]")
      ->check(count_up_to(1000));
  app.add_option("--group", to.group,
                 "Micro-batches per group (" + training_schedules("group") +
                     "); with --remainder even at least [min(ranks, all); kfkb 2]")
      ->check(count_up_to(100'000));
  app.add_option("--remainder", raw.remainder,
                 "Where micro-batches go that fill no group (" + training_schedules("remainder") +
                     "): even, first or last [even]");
  app.add_option(
      "--warmup", raw.warmup,
      "Forwards before the first backward: standard, half or all (interleaved) [standard], half "
      "or standard (interleaved_zb) [half]");
  app.add_option("--backwards", raw.backwards,
                 "Of groups that are not all as long (" + training_schedules("backwards") +
                     "): groups, as forwards, or early, the last chunk's as soon as they can be "
                     "[groups]");
  app.add_option("--split", raw.split, "Which backwards are split (zb_h1): full or partial [full]");
  app.add_option("--objective", raw.objective,
                 "What a search (" + training_schedules("objective") +
                     ") makes short: flush (the makespan) or span (the longest rank's first to "
                     "last job) [flush]");
  app.add_option("--variant", to.options.variant, "One variant of a search, from 0 [the best]")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()).description(""));
  app.add_option("--merge", raw.merge,
                 "Backwards that a schedule splits and that are whole again: none, adjacent "
                 "(wherever both halves stand side by side) or shortest (as many as the shortest "
                 "step has that is found) [none]");
  app.add_option("--limit", to.limit,
                 "Micro-batches (or slices), of one chunk each, that no rank may keep more of for "
                 "their backwards; searches make the most of it [any number]")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()).description(""));
  auto* csv = app.add_option("--csv", raw.csv,
                             "An order in PyTorch's CSV, without messages, instead of a schedule; "
                             "ranks, micro-batches and chunks are the file's");
  for (const char* other :
       {"--schedule", "--ranks", "--microbatches", "--slices", "--chunks", "--group", "--remainder",
        "--warmup", "--backwards", "--split", "--objective", "--variant", "--merge"})
    csv->excludes(app.get_option(other));
  app.add_option("--layers-per-rank", raw.layers_per_rank,
                 "Layers of each rank, embedding and head included, dealt to its chunks in turn: "
                 "4,4,4,4 [even]");
  app.add_option(
         "--recompute", raw.recompute,
         "Forwards that run a second time and keep nothing meanwhile: none, all, or 2/3 for "
         "two of every three micro-batches")
      ->capture_default_str();
  app.add_option("--offload", raw.offload,
                 "What forwards save and the host keeps until shortly before their backward: none, "
                 "all, or 2/3; 2/3,lag=1,prefetch=1 also says for how many jobs the copy there may "
                 "take, and how many jobs ahead the copy back begins")
      ->capture_default_str();
  app.add_option("--overlap", to.overlap, "Streams: serial, separate or typed")
      ->capture_default_str();
  app.add_option(
         "--receive-lead", to.receive_lead,
         "How many jobs of its rank may still be to run before the one that a message is for "
         "when its receive is posted (-1: any number)")
      ->check(CLI::Range(-1, 1000000).description(""))
      ->capture_default_str();
  app.add_option("--tensor-parallel", to.tensor_parallel,
                 "Workers of each rank, each with its share of every block's heads and hidden "
                 "features")
      ->check(count_up_to(64))
      ->capture_default_str();
  app.add_option(
         "--data-parallel", to.data_parallel,
         "Replicas of all ranks, each with micro-batches of its own; every stage's gradients "
         "are summed over them as soon as all are there")
      ->check(count_up_to(64))
      ->capture_default_str();
  app.add_option(
      "--ops", to.ops,
      "The order in which a job's ops are issued: " + op_orders() +
          "; or whole, for jobs in one piece [whole, or look_ahead for several workers]");
  app.add_option(
         "--pieces", to.pieces,
         "Pieces of every op that --ops in_pieces may cut [as many as shorten the job by the "
         "ops' times, or none]")
      ->check(count_up_to(1 << 14));
  app.add_option(
      "--machine", raw.machine,
      "File of this machine as stretto calibrate measured it: schedules that ask what jobs "
      "cost, --ops in_pieces and what is predicted go by it [the model's multiply-adds]");
  app.add_option(
         "--device", made.device,
         "Where ranks compute: host; or cuda, or cuda:1 or cuda:0,1 by the GPUs' numbers: all "
         "workers on one GPU or in turn on several; with nccl, each on a GPU of its own, and "
         "cuda is that of the process's place on its machine (LOCAL_RANK)")
      ->capture_default_str();
  app.add_option(
         "--precision", raw.precision,
         "Of activations and their gradients, kept and sent, and of what matrix products read: "
         "fp32 or bf16; computed in fp32, as are weights, their gradients and the loss")
      ->capture_default_str();
  app.add_option(
         "--transport", made.transport,
         "loopback; mpi: workers are dealt to the processes that mpirun starts; nccl: on GPUs, "
         "to those that torchrun, srun or mpirun starts")
      ->capture_default_str();
  app.add_option("--join-timeout", raw.join_timeout,
                 "With nccl: seconds that the other processes may take to come, once one is there")
      ->check(count_up_to(86'400))
      ->capture_default_str();
  app.add_option(
         "--transport-capacity", to.transport_capacity,
         "Messages that a channel of one process on the host holds; 0: the sender waits for the "
         "receiver")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_flag("--poison,!--no-poison", to.poison,
               "Overwrite buffers with NaN where the plan releases them [builds for debugging]");
  app.add_flag("--checked", to.checked,
               "Hold every instruction, as it is issued, against all accesses to the same bytes "
               "before it; a race ends training before it can happen");
  app.add_flag(
      "--graph", to.graph,
      "On GPUs: issue the first step, record the second, and launch all others as one graph; "
      "without times, so neither trace.json nor timeline.svg");
  app.add_flag("--graph-progress,!--no-graph-progress", to.graph_progress,
               "Of a graph that fails or is late, tell the instruction; a small kernel behind each "
               "[yes]")
      ->needs("--graph");
  app.add_option("--deadline", raw.deadline, "Seconds that a step may take, or an evaluation")
      ->check(above_zero())
      ->capture_default_str();
}

void add_model(CLI::App& app, options& made, typed_options& raw) {
  app.add_option("--layers", raw.layers,
                 "Transformer blocks, without embedding and head, dealt evenly [14]; or all layers "
                 "and who holds them, as stretto assign takes it: balanced:16, 5,4,4,3 (of every "
                 "rank), table:3,3,... (of every stage), rank_list:0,0,..., Et*3|(tt|)*2...L");
  app.add_option("--width", made.model.width, "Features per token")
      ->check(count_up_to(1 << 14))
      ->capture_default_str();
  app.add_option("--heads", made.model.heads, "Attention heads; width is a multiple of it")
      ->check(count_up_to(1 << 14))
      ->capture_default_str();
  app.add_option("--context", made.model.context, "Bytes per sequence")
      ->check(count_up_to(1 << 16))
      ->capture_default_str();
  app.add_option("--batch", made.model.microbatch, "Sequences per micro-batch")
      ->check(count_up_to(1 << 16))
      ->capture_default_str();
  app.add_option("--head-pieces", made.model.head_pieces,
                 "Cuts the head's vocabulary in so many pieces, each a layer of its own: the last "
                 "ones")
      ->check(count_up_to(256))
      ->capture_default_str();
  app.add_flag("--untied", raw.untied, "The head has a table of its own");
}

void add_learning(CLI::App& app, options& made, typed_options& raw) {
  app.add_option("--steps", made.steps, "Training steps")
      ->check(count_up_to(std::numeric_limits<int>::max()))
      ->capture_default_str();
  app.add_option("--seed", made.learning.seed, "Of parameters, batches and the sample")
      ->check(whole_number())
      ->capture_default_str();
  app.add_option("--sample", made.sample,
                 "Bytes that the model adds to a beginning of held-back text; 0: none. Each is a "
                 "forward of a micro-batch")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  app.add_option("--learning-rate", raw.learning_rate, "Peak; falls to a tenth at the end")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option("--clip", made.learning.norm_limit, "Most that the gradient's global norm may be")
      ->check(not_below_epsilon())
      ->capture_default_str();
  app.add_option("--save", made.save,
                 "Checkpoint to write at the end; or after the step under way at the first SIGINT, "
                 "SIGTERM or SIGUSR1, which then is the last. What it held before is kept as "
                 "FILE.previous, in the place of the checkpoint that had this name");
  app.add_option("--save-every", made.save_every, "Write it also after every so many steps")
      ->check(count_up_to(std::numeric_limits<int>::max()))
      ->needs("--save");
  app.add_option("--resume", made.resume,
                 "Checkpoint to go on from: the same model and seed, any ranks, chunks, schedule, "
                 "workers, pieces of the head");
  app.add_option(
      "--log", made.log,
      "File of CSV that gets a line after each step: loss, gradient norm, learning rate, "
      "times; with --resume behind those that it has");
  app.add_flag(
      "--check", made.check,
      "Also train the unpipelined model and compare all bits after each step; where several "
      "workers sum, ops are in pieces or a GPU computes, losses, norms and gradients within "
      "rounding, and parameters with what AdamW makes of these gradients");
}

//! Not what concerns one process alone. Of checkpoints, whether there is one, and of a measured
//! machine, which: processes on several machines may have other paths to them.
std::vector<told_option> common_options(const CLI::App& app, const options& from) {
  static const std::set<std::string> own = {
      "--help", "--out", "--device", "--poison", "--deadline", "--join-timeout",
      "--graph-progress", "FILES"};
  std::vector<told_option> made;
  for (const CLI::Option* each : app.get_options()) {
    const std::string name = each->get_name();
    if (own.contains(name)) continue;
    const bool path = name == "--save" || name == "--resume" || name == "--csv" || name == "--log";
    const bool flag = each->get_items_expected() == 0;
    made.push_back({name, each->empty()         ? each->get_default_str()
                          : name == "--machine" ? told_machine(from)
                          : path                ? "FILE"
                          : flag                ? "set"
                                                : each->as<std::string>()});
  }
  return made;
}

//! Files that are not to be lost.
std::vector<told_option> named_files(const options& from, const typed_options& raw) {
  std::vector<told_option> made;
  const auto add = [&](const char* name, const std::string& file) {
    if (!file.empty()) made.push_back({name, file});
  };
  for (const std::filesystem::path& file : from.files) add("FILES", file.string());
  add("--csv", raw.csv.value_or(""));
  add("--machine", raw.machine.value_or(""));
  add("--resume", from.resume.string());
  add("--save", from.save.string());
  add("--log", from.log.string());
  return made;
}

}  // namespace

options read_options(int argc, const char* const* argv) {
  options made;
  typed_options raw;
  made.model = {.layers = 14, .width = 64, .heads = 4, .context = 64, .microbatch = 2};
  made.pipeline.evaluation_microbatches = 64;
  made.pipeline.trace_steps = 3;
  made.steps = 1000;
  made.out = "out";
  CLI::App app{"Trains a small transformer on text, byte by byte, in a pipeline of threads.",
               "train"};
  app.option_defaults()->always_capture_default(false);
  app.add_option("FILES", made.files, "Text to train on [what this repository ships]");
  add_pipeline(app, made, raw);
  add_model(app, made, raw);
  add_learning(app, made, raw);
  app.add_option("--out", made.out, "Folder for trace.json and timeline.svg, or failure.txt")
      ->capture_default_str();
  for (CLI::Option* option : app.get_options())
    if (option->get_items_expected() > 0) option->check(filled());
  app.footer(
      "Exit: 0 when all is well, 1 when training fails or what it has come to cannot be written, 2 "
      "for wrong input, 3 when a signal has ended it and --save has what it came to.");
  try {
    app.parse(argc, argv);
    raw.complete(made);
    made.named = named_files(made, raw);
    made.common = common_options(app, made);
  } catch (const CLI::CallForHelp&) {
    throw early_exit(0, app.help());
  } catch (const CLI::ParseError& wrong) {
    throw early_exit(2, stretto::tool::range_words(one_line(wrong.what())));
  } catch (const bad_setting& wrong) {
    throw early_exit(2, wrong.what());
  }
  return made;
}

}  // namespace train
