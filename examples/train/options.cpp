#include "options.hpp"

#include <zlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>
#include <sstream>

#include "model/kernels.hpp"
#include "pipeline/plans.hpp"
#include "pipeline/stage_ops.hpp"
#include "stretto/assignment/described.hpp"
#include "stretto/memory/window_text.hpp"
#ifdef STRETTO_TRAIN_WITH_MACHINES
#include "tool/command.hpp"
#include "tool/machine_file.hpp"
#endif

namespace train {
namespace {

//! A number above 0, and not infinite.
CLI::Validator above_zero() {
  return {[](std::string& typed) {
            std::istringstream text(typed);
            double value = 0;
            text >> value;
            return !text.fail() && value > 0 && std::isfinite(value)
                       ? std::string()
                       : "Value " + typed + " is not a finite number above 0";
          },
          "ABOVE 0"};
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

CLI::Range count_up_to(int most) {
  return {1, most};
}

//! CLI11 writes sentences on several lines, and "ranks: Value 0 ..." without what was typed before.
std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

//! Values as typed, where they are not those of the library's structs.
struct raw_options {
  std::optional<std::string> layers;
  std::optional<std::string> layers_per_rank;
  std::string recompute = "none";
  std::string offload = "none";
  std::string precision = "fp32";
  std::optional<std::string> machine;
  double deadline = 300;
  double learning_rate = 3e-3;
  bool untied = false;
};

//! "4,4,4,4". CLI11's own lists pass over what is empty between two commas.
std::vector<std::int32_t> read_layers(const std::string& typed) {
  constexpr std::int32_t most = 1 << 16;
  std::vector<std::int32_t> made;
  for (const char* at = typed.data();; ++at) {
    std::int32_t value = 0;
    const auto read = std::from_chars(at, typed.data() + typed.size(), value);
    at = read.ptr;
    const bool end = at == typed.data() + typed.size();
    if (read.ec != std::errc() || value < 1 || value > most || (!end && *at != ','))
      throw bad_setting("layers-per-rank", typed,
                        "numbers from 1 to " + std::to_string(most) + " with commas between them");
    made.push_back(value);
    if (end) return made;
  }
}

constexpr int most_blocks = 4096;

//! "14".
int read_blocks(const std::string& typed) {
  int blocks = 0;
  const char* const end = typed.data() + typed.size();
  const auto read = std::from_chars(typed.data(), end, blocks);
  if (read.ec != std::errc() || read.ptr != end || blocks < 1 || blocks > most_blocks)
    throw bad_setting("layers", typed, "from 1 to " + std::to_string(most_blocks) + " blocks");
  return blocks;
}

//! "none", "all", "2/3".
stretto::memory::recompute_window read_recompute(const std::string& typed) {
  if (const auto made = stretto::memory::read_window(typed)) return *made;
  throw bad_setting("recompute", typed, "expected none, all, or a part of micro-batches as in 2/3");
}

//! "none", "all", "2/3,lag=1,prefetch=2".
stretto::memory::offload_window read_offload(const std::string& typed) {
  if (const auto made = stretto::memory::read_offload(typed)) return *made;
  throw bad_setting("offload", typed,
                    "expected none, all, or a part of micro-batches as in 2/3; behind it, if wanted, "
                    ",lag=1 and ,prefetch=1");
}

//! "fp32", "bf16".
precision read_precision(const std::string& typed) {
  if (typed == "bf16") return precision::bf16;
  if (typed == "fp32") return precision::fp32;
  throw bad_setting("precision", typed, "expected fp32 or bf16");
}

//! Of the host, whose kernels are what `stretto calibrate` measures.
void read_machine(const std::string& path, options& made) {
  if (made.device != "host")
    throw bad_setting("machine", path,
                      "its kernels are the host's, and --device is " + made.device);
#ifdef STRETTO_TRAIN_WITH_MACHINES
  try {
    made.machine = std::make_shared<stretto::tool::measured_machine>(
        stretto::tool::measured_machine::read("--machine", path));
  } catch (const stretto::tool::bad_input& wrong) {
    throw early_exit(2, wrong.what());
  }
  made.pipeline.machine = &made.machine->view();
  for (const kernel& each : kernels(true))
    if (made.pipeline.machine->find_kernel(each.name) == nullptr)
      throw bad_setting("machine", path,
                        "it lacks the kernel \"" + std::string(each.name) +
                            "\", which stretto calibrate measures");
#else
  throw bad_setting("machine", path, "this trainer was built without the tool that writes it");
#endif
}

//! A machine by its name and checksum: wherever each process finds it.
std::string told_machine([[maybe_unused]] const options& of) {
#ifdef STRETTO_TRAIN_WITH_MACHINES
  if (of.machine == nullptr) return {};
  const std::string text = of.machine->json();
  char value[32];
  std::snprintf(value, sizeof value, " with checksum %08lx",
                crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(text.data()),
                        text.size()));
  return of.machine->name + value;
#else
  return {};
#endif
}

void add_pipeline(CLI::App& app, options& made, raw_options& raw) {
  pipeline_settings& to = made.pipeline;
  app.add_option("--schedule", to.schedule, "One of " + training_schedules())
      ->capture_default_str();
  app.add_option("--ranks", to.ranks, "Ranks of the pipeline: threads of this process")
      ->check(count_up_to(64))
      ->capture_default_str();
  app.add_option("--microbatches", to.microbatches, "Micro-batches in a step, of each replica")
      ->check(count_up_to(100'000))
      ->capture_default_str();
  app.add_option("--slices", to.slices, "Equal parts of every sequence (seq_1f1b)")
      ->check(count_up_to(1 << 14))
      ->capture_default_str();
  app.add_option("--chunks", to.chunks, "Stages per rank [2, or 1 where the schedule has one]")
      ->check(count_up_to(1000));
  app.add_option("--group", to.group, "Micro-batches per group (interleaved) [min(ranks, all)]")
      ->check(count_up_to(100'000));
  app.add_option("--layers-per-rank", raw.layers_per_rank,
                 "Layers of each rank, embedding and head included, dealt to its chunks in turn: "
                 "4,4,4,4 [even]");
  app.add_option("--recompute", raw.recompute,
                 "Forwards that run a second time and keep nothing meanwhile: none, all, or 2/3 for "
                 "two of every three micro-batches")
      ->capture_default_str();
  app.add_option("--offload", raw.offload,
                 "What forwards save and the host keeps until shortly before their backward: none, "
                 "all, or 2/3; 2/3,lag=1,prefetch=1 also says for how many jobs the copy there may "
                 "take, and how many jobs ahead the copy back begins")
      ->capture_default_str();
  app.add_option("--overlap", to.overlap, "Streams: serial, separate or typed")->capture_default_str();
  app.add_option("--receive-lead", to.receive_lead,
                 "How many jobs of its rank may still be to run before the one that a message is for "
                 "when its receive is posted (-1: any number)")
      ->check(CLI::Range(-1, 1000000).description(""))
      ->capture_default_str();
  app.add_option("--tensor-parallel", to.tensor_parallel,
                 "Workers of each rank, each with its share of every block's heads and hidden "
                 "features")
      ->check(count_up_to(64))
      ->capture_default_str();
  app.add_option("--data-parallel", to.data_parallel,
                 "Replicas of all ranks, each with micro-batches of its own; every stage's gradients "
                 "are summed over them as soon as all are there")
      ->check(count_up_to(64))
      ->capture_default_str();
  app.add_option("--ops", to.ops,
                 "The order in which a job's ops are issued: " + op_orders() +
                     "; or whole, for jobs in one piece [whole, or look_ahead for several workers]");
  app.add_option("--pieces", to.pieces,
                 "Pieces of every op that --ops in_pieces may cut [as many as shorten the job by the "
                 "ops' times, or none]")
      ->check(count_up_to(1 << 14));
  app.add_option("--machine", raw.machine,
                 "File of this machine as stretto calibrate measured it: schedules that ask what jobs "
                 "cost, --ops in_pieces and what is predicted go by it [the model's multiply-adds]");
  app.add_option("--device", made.device,
                 "Where ranks compute: host; or cuda, or cuda:1 or cuda:0,1 by the GPUs' numbers: all "
                 "workers on one GPU or in turn on several; with nccl, each on a GPU of its own, and "
                 "cuda is that of the process's place on its machine (LOCAL_RANK)")
      ->capture_default_str();
  app.add_option("--precision", raw.precision,
                 "Of activations and their gradients, kept and sent, and of what matrix products read: "
                 "fp32 or bf16; computed in fp32, as are weights, their gradients and the loss")
      ->capture_default_str();
  app.add_option("--transport", made.transport,
                 "loopback; mpi: workers are dealt to the processes that mpirun starts; nccl: on GPUs, "
                 "to those that torchrun, srun or mpirun starts")
      ->capture_default_str();
  app.add_option("--transport-capacity", to.transport_capacity,
                 "Messages that a channel holds; 0: the sender waits for the receiver")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_flag("--poison,!--no-poison", to.poison,
               "Overwrite buffers with NaN where the plan releases them [builds for debugging]");
  app.add_flag("--checked", to.checked,
               "Hold every instruction, as it is issued, against all accesses to the same bytes "
               "before it; a race ends training before it can happen");
  app.add_flag("--graph", to.graph,
               "On GPUs: issue the first step, record the second, and launch all others as one graph; "
               "without times, so neither trace.json nor timeline.svg");
  app.add_option("--deadline", raw.deadline, "Seconds that a step may take")
      ->check(above_zero())
      ->capture_default_str();
}

void add_model(CLI::App& app, options& made, raw_options& raw) {
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
  app.add_flag("--untied", raw.untied, "The head has a table of its own");
}

void add_learning(CLI::App& app, options& made, raw_options& raw) {
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
      ->check(above_zero())
      ->capture_default_str();
  app.add_option("--save", made.save, "Checkpoint to write at the end");
  app.add_option("--save-every", made.save_every, "Write it also after every so many steps")
      ->check(count_up_to(std::numeric_limits<int>::max()))
      ->needs("--save");
  app.add_option("--resume", made.resume,
                 "Checkpoint to go on from: the same model and seed, any ranks, chunks, schedule, "
                 "workers");
  app.add_flag("--check", made.check,
               "Also train the unpipelined model and compare all bits after each step; losses, norms "
               "and gradients within rounding where several workers sum or ops are in pieces");
}

void complete(options& made, const raw_options& raw) {
  made.pipeline.recompute = read_recompute(raw.recompute);
  made.pipeline.offload = read_offload(raw.offload);
  made.pipeline.products = read_precision(raw.precision);
  if (raw.layers_per_rank) made.pipeline.layers_per_rank = read_layers(*raw.layers_per_rank);
  // Told the layers of every rank, nobody need say how many that makes.
  const auto& per_rank = made.pipeline.layers_per_rank;
  std::int64_t sum = -2;
  for (const std::int32_t count : per_rank) sum += count;
  if (raw.layers && raw.layers->find_first_not_of("-0123456789") == std::string::npos) {
    made.model.layers = read_blocks(*raw.layers);
  } else if (raw.layers) {
    if (raw.layers_per_rank)
      throw bad_setting("layers-per-rank", *raw.layers_per_rank,
                        "--layers " + *raw.layers + " says already who holds what");
    const stretto::assignment::described how(*raw.layers);
    if (!how.complaint().empty()) throw bad_setting("layers", *raw.layers, how.complaint());
    if (how.layers() < 3 || how.layers() > most_blocks + 2)
      throw bad_setting("layers", *raw.layers,
                        "embedding, blocks and head are from 3 to " +
                            std::to_string(most_blocks + 2) + " layers");
    made.pipeline.layers = *raw.layers;
    made.model.layers = how.layers() - 2;
  } else if (!per_rank.empty()) {
    made.model.layers = static_cast<int>(std::clamp<std::int64_t>(sum, 1, 1 << 16));
  }
  made.model.tied = !raw.untied;
  if (made.pipeline.graph) made.pipeline.trace_steps = 0;
  made.learning.rate = {.peak = raw.learning_rate,
                        .floor = raw.learning_rate / 10,
                        .warmup = std::min(20L, made.steps / 10),
                        .steps = made.steps};
  // Also what "never" may look like fits into nanoseconds.
  made.pipeline.deadline =
      std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(raw.deadline, 1e9) * 1e9) + 1);
  if (made.model.width % made.model.heads != 0)
    throw bad_setting("heads", std::to_string(made.model.heads),
                      "the width, " + std::to_string(made.model.width) + ", is no multiple of it");
  if (raw.machine) read_machine(*raw.machine, made);
}

//! Not what concerns one process alone. Of checkpoints, whether there is one, and of a measured
//! machine, which: processes on several machines may have other paths to them.
std::vector<told_option> common_options(const CLI::App& app, const options& from) {
  static const std::set<std::string> own = {"--help",  "--out",    "--device",
                                            "--poison", "--deadline", "FILES"};
  std::vector<told_option> made;
  for (const CLI::Option* each : app.get_options()) {
    const std::string name = each->get_name();
    if (own.contains(name)) continue;
    const bool path = name == "--save" || name == "--resume";
    const bool flag = each->get_items_expected() == 0;
    made.push_back({name, each->empty()         ? each->get_default_str()
                          : name == "--machine" ? told_machine(from)
                          : path                ? "FILE"
                          : flag                ? "set"
                                                : each->as<std::string>()});
  }
  return made;
}

}  // namespace

options read_options(int argc, const char* const* argv) {
  options made;
  raw_options raw;
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
  app.footer("Exit: 0 when all is well, 1 when training fails, 2 for wrong input.");
  try {
    app.parse(argc, argv);
    complete(made, raw);
    made.common = common_options(app, made);
  } catch (const CLI::CallForHelp&) {
    throw early_exit(0, app.help());
  } catch (const CLI::ParseError& wrong) {
    throw early_exit(2, one_line(wrong.what()));
  } catch (const bad_setting& wrong) {
    throw early_exit(2, wrong.what());
  }
  return made;
}

}  // namespace train
