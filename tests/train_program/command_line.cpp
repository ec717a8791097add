// The program `train` as a shell runs it: what it prints and leaves behind, its exit codes, and one
// line for everything wrong that names the option, the value and the rule.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "support/free_port.hpp"
#include "support/run_program.hpp"
#include "train_program/desk.hpp"

using program_test::desk;
using program_test::has;
using program_test::losses;
using program_test::small;
using test_support::contents;
using test_support::outcome;
using test_support::temporary;

TEST_CASE("small models train, equal to the unpipelined one; a trace and a picture are left") {
  for (const std::string arguments :
       {"", "--schedule 1f1b --untied", "--schedule seq_1f1b --slices 4 --batch 1",
        "--schedule seq_1f1b --slices 3 --slice-lengths balanced",
        "--schedule dualpipe", "--schedule zbv --recompute 1/2", "--schedule zbv --offload all",
        "--schedule 1f1b --offload 2/3,prefetch=2 --overlap serial",
        "--schedule zb_h1 --overlap serial --transport-capacity 2",
        "--schedule zbv --merge shortest --microbatches 5",
        "--layers-per-rank 2,4 --chunks 1 --group 3", "--layers balanced:6", "--precision bf16",
        "--layers 'Et|t|t|tL' --schedule zbv", "--layers 2,4 --chunks 1"}) {
    INFO(arguments);
    const desk here;
    const outcome ran = here.train(small("--check " + arguments));
    INFO(ran.err);
    CHECK(ran.exit == 0);
    CHECK(ran.err.empty());
    CHECK(has(ran.out, "4 blocks of width 16"));
    CHECK(has(ran.out, " bytes in 3 slices of 6, 5, 5\n") == has(arguments, "--slice-lengths"));
    CHECK(has(ran.out, "step 4/4  loss "));
    CHECK(has(ran.out, "equal to the unpipelined model after each step"));
    CHECK(has(ran.out, "held-back text: "));
    CHECK(has(ran.out, "\nheld-back beginning | what the model makes of it:\n"));
    CHECK(has(ran.out, "\nbubble: "));
    for (const char* rank : {"\n   0  ", "\n   1  "}) CHECK(has(ran.out, rank));
    CHECK(has(ran.out, "\nprocess: "));
    CHECK(has(ran.out, " plans + "));
    const std::string trace = here.left("trace.json");
    CHECK(has(trace, "\"traceEvents\""));
    CHECK(std::ranges::count(trace, '{') == std::ranges::count(trace, '}'));
    CHECK(has(here.left("timeline.svg"), "</svg>"));
  }
}

TEST_CASE("jobs in ops, and several workers a rank: as the unpipelined model, saved for any") {
  const desk here;
  const std::string file = here.left_path("model.checkpoint");
  const outcome ops = here.train(small("--check --schedule zb_h1 --ops input_gradient_first"));
  INFO(ops.err);
  CHECK(ops.exit == 0);
  CHECK(has(ops.out, "equal to the unpipelined model after each step"));
  const outcome two =
      here.train(small("--check --tensor-parallel 2 --ops in_pieces --pieces 3 --save " + file));
  INFO(two.err);
  CHECK(two.exit == 0);
  CHECK(has(two.out, "2 ranks of 2 chunks, 2 workers each, on "));
  CHECK(has(two.out, "as the unpipelined model in each step: loss, norm and gradients, within "));
  CHECK(has(two.out, "; parameters and moments as AdamW makes them of these gradients\n"));
  CHECK(has(two.out,
            "All 2 workers of a rank together; in the trace they are ranks 2 r, 2 r + 1..."));
  CHECK(has(two.out, "sums over 2 shards: "));
  CHECK(has(here.left("trace.json"), "tensor_parallel"));
  CHECK(has(here.left("trace.json"), " piece 3/3"));
  CHECK(has(here.left("timeline.svg"), "</svg>"));
  const outcome one =
      here.train(small("--steps 6 --check --schedule 1f1b --precision bf16 --resume " + file));
  INFO(one.err);
  CHECK(one.exit == 0);
  CHECK(has(one.out, "goes on after step 4 of " + file));
  CHECK(has(one.out, "equal to the unpipelined model after each step"));
}

TEST_CASE("data-parallel replicas: equal to the unpipelined model, saved for one") {
  const desk here;
  const std::string file = here.left_path("model.checkpoint");
  const outcome two = here.train(small("--check --no-poison --data-parallel 2 --save " + file));
  INFO(two.err);
  CHECK(two.exit == 0);
  CHECK(has(two.out, "2 ranks of 2 chunks, 2 workers each, on "));
  CHECK(has(two.out, ", 2 x 4 micro-batches of "));
  CHECK(has(two.out, "equal to the unpipelined model after each step"));
  CHECK(has(two.out, "\nsums over 2 replicas: "));
  CHECK(has(two.out, "\ntouched: 0 bytes less than planned.\n"));
  CHECK(has(here.left("trace.json"), "data_parallel"));
  const outcome one =
      here.train(small("--steps 6 --check --microbatches 8 --schedule 1f1b --resume " + file));
  INFO(one.err);
  CHECK(one.exit == 0);
  CHECK(has(one.out, "equal to the unpipelined model after each step"));
  const outcome none = here.train(small("--data-parallel 0"));
  CHECK(none.exit == 2);
  CHECK(none.err == "train: --data-parallel 0: expected a whole number from 1 to 64\n");
  const outcome many = here.train(small("--data-parallel 33"));
  CHECK(many.exit == 2);
  CHECK(many.err ==
        "train: --data-parallel 33: replicas of 2 workers each are more than 64 workers\n");
}

TEST_CASE("memory: every byte of the arenas is touched, and poison changes no bit") {
  for (const std::string schedule : {"1f1b", "interleaved", "zbv", "dualpipe"}) {
    INFO(schedule);
    const desk here;
    const outcome plain = here.train(small("--no-poison --schedule " + schedule));
    CHECK(plain.exit == 0);
    CHECK(has(plain.out, "\nmemory, KiB: "));
    CHECK(has(plain.out, "\ntouched: 0 bytes less than planned.\n"));
    const outcome poisoned = here.train(small("--poison --check --schedule " + schedule));
    CHECK(poisoned.exit == 0);
    CHECK(has(poisoned.out, "\ntouched: hidden by the poison.\n"));
    CHECK(has(poisoned.out, "equal to the unpipelined model after each step"));
    const outcome checked = here.train(small("--no-poison --checked --schedule " + schedule));
    CHECK(has(checked.out, "\ntouched: hidden by what --checked puts behind buffers.\n"));
    CHECK(has(poisoned.out, "process: with the unpipelined model of --check, not estimated"));
    CHECK(losses(poisoned.out) == losses(plain.out));
  }
}

TEST_CASE("what is issued is checked for races when asked for, and there are none") {
  for (const std::string more :
       {"--schedule dualpipe", "--tensor-parallel 2 --transport-capacity 2", "--offload all"}) {
    INFO(more);
    const desk here;
    const outcome checked = here.train(small("--checked --check " + more));
    CHECK(checked.err.empty());
    CHECK(checked.exit == 0);
    CHECK(has(checked.out, "process: with the clocks of --checked, not estimated"));
  }
}

TEST_CASE("no text is sampled where none is asked for") {
  const desk here;
  const outcome ran = here.train(small("--sample 0"));
  CHECK(ran.exit == 0);
  CHECK(has(ran.out, "\nbubble: "));
  CHECK_FALSE(has(ran.out, "held-back beginning"));
}

TEST_CASE("the same seed learns the same, on one rank, too; another seed other things") {
  const desk here;
  const std::string once = losses(here.train(small()).out);
  CHECK(std::ranges::count(once, '\n') == 4);
  CHECK(losses(here.train(small("--seed 1")).out) == once);  // what it is without
  CHECK(losses(here.train(small("--seed 2")).out) != once);
  CHECK(losses(here.train(small("--schedule 1f1b --ranks 1 --overlap serial")).out) == once);
}

TEST_CASE("what was saved is gone on with, on other ranks and chunks") {
  const desk here;
  const std::string file = here.left_path("model.checkpoint");
  const outcome first = here.train(small("--save " + file + " --save-every 2"));
  REQUIRE(first.exit == 0);
  CHECK(std::filesystem::exists(file + ".previous"));
  // From where the second step ended the next two are what they were, and say so.
  const std::string again = losses(
      here.train(small("--schedule zbv --ranks 2 --chunks 2 --resume " + file + ".previous")).out);
  CHECK(again.starts_with("step 3/4  loss "));
  CHECK(losses(first.out).ends_with("\n" + again));
  const outcome ran =
      here.train(small("--steps 6 --check --schedule zbv --ranks 2 --chunks 2 --resume " + file));
  INFO(ran.err);
  CHECK(ran.exit == 0);
  CHECK(has(ran.out, "goes on after step 4 of " + file + "\n  but with --steps 6, which was 4\n"));
  CHECK(has(ran.out, "\nstep 5/6  loss "));
  CHECK(!has(ran.out, "\nstep 4/6  loss "));
  CHECK(has(ran.out, "equal to the unpipelined model after each step"));
  for (const char* wrong : {"", "--steps 6 --seed 9"}) {
    const outcome refused = here.train(small(std::string(wrong) + " --resume " + file));
    CHECK(refused.exit == 2);
    CHECK(std::ranges::count(refused.err, '\n') == 1);
    CHECK(has(refused.err, *wrong == 0 ? "--steps 4: the checkpoint has 4 behind it"
                                       : "seed is 1 there and 9 here"));
  }
}

#ifdef STRETTO_TOOL_PATH
TEST_CASE("a measured machine foretells the step; one that lacks a kernel is refused") {
  const desk here;
  const temporary file("host.json");
  REQUIRE(test_support::run(STRETTO_TOOL_PATH, "calibrate --few -o " + file.path()).exit == 0);
  const std::string asked = small("--check --schedule zb_auto --machine " + file.path());
  const outcome ran = here.train(asked);
  INFO(ran.err);
  CHECK(ran.exit == 0);
  CHECK(has(ran.out, "equal to the unpipelined model after each step"));
  CHECK(has(ran.out, "\npredicted: by what ops take on host. "));
  std::string text = contents(file.path());
  file.write(text.replace(text.find("row sums"), 8, "row sons"));
  const outcome refused = here.train(asked);
  CHECK(refused.exit == 2);
  CHECK(has(refused.err, "--machine " + file.path() + ": it lacks the kernel \"row sums\""));
}
#endif

//! The most micro-batches that a rank keeps in a step of a trace, by the order of its instructions.
int most_kept(const std::string& trace, int rank) {
  const auto number = [](const std::string& line, const std::string& key) {
    return std::stod(line.substr(line.find(key) + key.size()));
  };
  std::map<double, int> changes;  // by instruction
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    const std::string stage = "\"name\":\"" + std::to_string(rank);
    if (!has(line, "\"cat\":\"compute\"") || number(line, "\"step\":") != 3) continue;
    const std::size_t at = line.find(stage);
    if (at == std::string::npos) continue;
    const char kind = line[at + stage.size()];
    if (kind == 'F') changes[number(line, "\"instruction\":")] = 1;
    if (kind == 'W' || kind == 'B') changes[number(line, "\"instruction\":")] = -1;
  }
  int kept = 0, most = 0;
  for (const auto& [instruction, change] : changes) most = std::max(most, kept += change);
  return most;
}

TEST_CASE("within a limit, a search trains with less, and learns the same") {
  const desk here;
  const std::string all = small("--schedule zb_auto --ranks 4 --microbatches 7 --check");
  const outcome free = here.train(all);
  REQUIRE(free.exit == 0);
  CHECK(most_kept(here.left("trace.json"), 0) > 2);
  const outcome tight = here.train(all + " --limit 2");
  REQUIRE(tight.exit == 0);
  CHECK(most_kept(here.left("trace.json"), 0) == 2);
  CHECK(losses(tight.out) == losses(free.out));
}

#ifdef STRETTO_TOOL_PATH
TEST_CASE("the order that trains is that of the schedule as it is told") {
  const struct {
    std::string schedule, option;
  } cases[] = {{"zb_h1 --ranks 4 --microbatches 7", " --split partial"},
               {"interleaved --ranks 2 --chunks 2 --group 3 --microbatches 7", " --remainder last"},
               {"interleaved --ranks 2 --chunks 2 --microbatches 7", " --warmup all"},
               {"interleaved --ranks 2 --chunks 2 --microbatches 7", " --warmup half"},
               {"interleaved --ranks 2 --chunks 2 --microbatches 7", " --backwards early"},
               {"zb_h1 --ranks 3 --microbatches 7", " --merge adjacent"}};
  for (const auto& one : cases) {
    INFO(one.schedule, one.option);
    const desk here;
    const std::string trace = here.left_path("trace.json");
    REQUIRE(here.train(small("--schedule " + one.schedule + one.option)).exit == 0);
    const auto drawn = [&](const std::string& schedule) {
      return test_support::run(STRETTO_TOOL_PATH,
                               "plot " + schedule + " --trace " + trace + " -o /dev/null");
    };
    CHECK(drawn(one.schedule + one.option).exit == 0);
    CHECK(drawn(one.schedule).exit != 0);
  }
}

TEST_CASE("what stages took is read from the trace") {
  // In one piece, in slices, in ops of two workers, and on ranks that have two directions.
  const struct {
    std::string options, words;
  } cases[] = {{"zbv --ranks 2 --microbatches 4", "4 stages of 2 ranks"},
               {"seq_1f1b --ranks 2 --microbatches 4 --slices 2 --slice-lengths 11,5",
                "--slices 2"},
               {"zb_h1 --ranks 2 --microbatches 4 --tensor-parallel 2", "2 stages of 2 ranks"},
               {"1f1b --ranks 2 --microbatches 4 --data-parallel 2", "2 stages of 2 ranks"},
               {"dualpipe --ranks 2 --microbatches 8", "2 stages of 2 ranks"}};
  for (const auto& one : cases) {
    INFO(one.options);
    const desk here;
    REQUIRE(here.train(small("--schedule " + one.options)).exit == 0);
    const test_support::outcome told =
        test_support::run(STRETTO_TOOL_PATH, "costs --trace " + here.left_path("trace.json"));
    CHECK_MESSAGE(told.exit == 0, told.err);
    CHECK_MESSAGE(told.out.find(one.words) != std::string::npos, told.out);
  }
}

#endif

TEST_CASE("help names every option, and is no error") {
  const outcome ran = test_support::run(STRETTO_TRAIN_PATH, "--help");
  CHECK(ran.exit == 0);
  CHECK(ran.err.empty());
  for (const char* option : {"FILES",
                             "--schedule",
                             "--ranks",
                             "--microbatches",
                             "--slices",
                             "--slice-lengths",
                             "--chunks",
                             "--group",
                             "--layers-per-rank",
                             "--limit",
                             "--objective",
                             "--variant",
                             "--merge",
                             "--split",
                             "--csv",
                             "--warmup",
                             "--backwards",
                             "--remainder",
                             "--overlap",
                             "--transport-capacity",
                             "--ops",
                             "--tensor-parallel",
                             "--pieces",
                             "in_pieces",
                             "--poison",
                             "--checked",
                             "--deadline",
                             "--layers",
                             "--width",
                             "--heads",
                             "--context",
                             "--batch",
                             "--untied",
                             "--steps",
                             "--seed",
                             "--learning-rate",
                             "--sample",
                             "--clip",
                             "--check",
                             "--save ",
                             "--save-every",
                             "FILE.previous",
                             "--log ",
                             "--resume",
                             "--precision",
                             "--machine",
                             "--out",
                             "interleaved, ",
                             "Exit: 0"}) {
    INFO(option);
    CHECK(has(ran.out, option));
  }
  const outcome lost =
      test_support::run("sh", std::string("-c '\"") + STRETTO_TRAIN_PATH + "\" --help >/dev/full'");
  CHECK(lost.exit == 1);
  CHECK(lost.err == "train: standard output cannot be written\n");
}

TEST_CASE("wrong input: exit 2, one line with option, value and rule; nothing is left behind") {
  const struct {
    const char* arguments;
    const char* says;
  } cases[] = {
      {"--schedule zigzag", "--schedule zigzag: no such schedule trains; there are gpipe, 1f1b"},
      {"--schedule inference", "--schedule inference: no such schedule trains"},
      {"--schedule dualpipe --ranks 3",
       "--ranks 3: dualpipe: this schedule needs an even number of ranks"},
      {"--schedule 1f1b --chunks 2", "--chunks 2: 1f1b: this schedule has one chunk per rank"},
      {"--schedule grouped --group 3",
       "--group 3: a group of this schedule cannot exceed the ranks"},
      {"--schedule zbv --chunks 3", "--chunks 3: zbv: this schedule has two chunks per rank"},
      {"--ranks 0", "--ranks 0: expected a whole number from "},
      {"--ranks two", "--ranks two: expected a whole number from "},
      {"--microbatches 1.5", "--microbatches 1.5: expected a whole number from "},
      {"--schedule hanayo --slices 2",
       "--slices 2: hanayo: this schedule does not slice micro-batches"},
      {"--schedule seq_1f1b --slices 3", "--slices 3: the context, 16, is no multiple of it"},
      {"--schedule seq_1f1b --slices 0", "--slices 0: expected a whole number from "},
      {"--schedule seq_1f1b --slices 2 --slice-lengths 9,8",
       "--slice-lengths 9,8: these are 2 slices of 17 tokens, and wanted are 2 slices of a "
       "sequence of 16 tokens"},
      {"--schedule seq_1f1b --slices 2 --slice-lengths 8+8",
       "--slice-lengths 8+8: expected balanced, balanced:N, equal, or the tokens of each slice"},
      {"--schedule 1f1b --slice-lengths balanced",
       "--slice-lengths balanced: sequences are whole: there is one slice"},
      {"--group 1", "--group 1: a group of fewer micro-batches, or slices of them, than ranks"},
      {"--schedule gpipe --group 4", "--group 4: the schedule gpipe has no such option"},
      {"--schedule gpipe --split full", "--split full: the schedule gpipe has no such option"},
      {"--schedule zb_h1 --split none", "--split none: expected full or partial"},
      {"--pieces 3", "--pieces 3: ops are cut in the order in_pieces alone, and --ops is whole"},
      {"--remainder middle", "--remainder middle: expected even, first or last"},
      {"--warmup 3", "--warmup 3: expected standard, half or all"},
      {"--backwards late", "--backwards late: expected groups or early"},
      {"--schedule interleaved_zb --warmup all",
       "--warmup all: interleaved_zb has the warm-ups half and standard"},
      {"--merge all", "--merge all: expected none, adjacent or shortest"},
      {"--objective time", "--objective time: expected flush or span"},
      {"--schedule zb_auto --variant 100000", "--variant 100000: "},
      {"--limit -1", "--limit -1: expected a whole number from "},
      {"--schedule zb_auto --limit 0", "--limit 0: zb_auto needs 1"},
      {"--schedule 1f1b --ranks 2 --limit 1",
       "--limit 1: 1f1b needs more: rule bounded broken on rank 0"},
      {"--save /proc/none/x",
       "--save /proc/none/x: no checkpoint can be written there: No such file"},
      {"--save-every 3", "--save-every requires --save"},
      {"--resume /proc/none", "--resume /proc/none: cannot be read: No such file"},
      {"--recompute 3/2", "--recompute 3/2: expected none, all, or a part"},
      {"--recompute half", "--recompute half: expected none, all, or a part"},
      {"--schedule seq_1f1b --slices 2 --recompute all", "--recompute all: a slice cannot be"},
      {"--offload 3/2", "--offload 3/2: expected none, all, or a part"},
      {"--offload all,lag", "--offload all,lag: expected none, all, or a part"},
      {"--schedule seq_1f1b --slices 2 --offload all", ": a slice cannot be offloaded"},
      {"--recompute all --offload 1/2", "--offload 1/2,lag=1,prefetch=1: what a recompute saves"},
      {"--tensor-parallel 3", "--tensor-parallel 3: the heads, 2, are no multiple of it"},
      {"--tensor-parallel 0", "--tensor-parallel 0: expected a whole number from "},
      {"--tensor-parallel 2 --ops whole",
       "--ops whole: the sums of --tensor-parallel 2 lie between"},
      {"--ops backwards", "--ops backwards: no such order; there are whole, program, input_"},
      {"--heads 3", "--heads 3: the width, 16, is no multiple of it"},
      {"--chunks 4", "--layers 4: with embedding and head that makes 6 layers, 8 stages need one"},
      {"--layers-per-rank 3,2", "--layers-per-rank 3,2: they sum to 5, but --layers 4"},
      {"--layers-per-rank 3,,3", "--layers-per-rank 3,,3: numbers from 1 to 65536 with commas"},
      {"--layers-per-rank 3,3,", "--layers-per-rank 3,3,: numbers from 1 to 65536 with commas"},
      {"--layers-per-rank 3,-3", "--layers-per-rank 3,-3: numbers from 1 to 65536 with commas"},
      {"--layers-per-rank ''", "--layers-per-rank"},
      {"--layers -3", "--layers -3: from 1 to 4096 blocks"},
      {"--layers 0", "--layers 0: from 1 to 4096 blocks"},
      {"--layers 99999999999", "--layers 99999999999: from 1 to 4096 blocks"},
      {"--layers balanced:2", "--layers balanced:2: embedding, blocks and head are from 3 to 4098"},
      {"--layers skewed:9", "--layers skewed:9: no such assignment; there are even:N"},
      {"--layers 5,1", "--layers 5,1: misassigned on rank 1: a stage would hold no layer"},
      {"--layers 3,3,", "--layers 3,3,: expected numbers between commas"},
      {"--layers 'Et|(t|tL'", "--layers Et|(t|tL: misassigned: a layout is made of"},
      {"--layers 3,3 --layers-per-rank 3,3", "--layers 3,3 says already who holds what"},
      {"--overlap sometimes",
       "--overlap sometimes: no such policy; there are serial, separate, typed"},
      {"--device gpu", "--device gpu: it is host, cuda, or cuda:1 for the GPU with this number"},
      {"--device cuda:-1", "--device cuda:-1: it is host, cuda, or cuda:1"},
#ifdef STRETTO_TOOL_PATH
      {"--machine /no/host.json", "--machine /no/host.json: cannot be read: No such file"},
      {"--machine ''", "--machine: its value is empty"},
      {"--machine /dev/null", "--machine /dev/null: the file is empty"},
#endif
      {"--machine host.json --device cuda", "--machine host.json: its kernels are the host's"},
      {"--precision fp8", "--precision fp8: expected fp32 or bf16"},
      {"--device cuda:0,", "--device cuda:0,: it is host, cuda, or cuda:1"},
      {"--device cuda --transport mpi", "--device cuda: --transport mpi is between hosts"},
      {"--transport nccl", "--transport nccl: it is between GPUs, and --device host has none"},
      {"--transport tcp", "--transport tcp: it is loopback, mpi or nccl"},
      {"--graph", "--graph with --device host: only a GPU's calls can be recorded"},
      {"--no-graph-progress", "--graph-progress requires --graph"},
      {"--learning-rate nan", "--learning-rate: Value nan is not a finite number above 0"},
      {"--learning-rate 0.1x", "--learning-rate: Value 0.1x is not a finite number above 0"},
      {"--clip 1e-9", "--clip: Value 1e-9 is not a finite number from 1e-8 on, AdamW's epsilon"},
      {"--deadline 0", "--deadline: Value 0 is not a finite number above 0"},
      {"--seed -1", "--seed: Value -1 is not a whole number below 2^64"},
      {"--sample -1", "--sample -1: expected a whole number from "},
      {"--context 2000", "a context of 2000 needs at least 20010"},
      {"/nonexistent/text", "cannot read '/nonexistent/text': No such file or directory"},
      {"--frobnicate", "--frobnicate"}};
  for (const auto& one : cases) {
    INFO(one.arguments);
    const desk here;
    const outcome ran = here.train(small(one.arguments));
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    INFO(ran.err);
    CHECK(ran.err.starts_with("train: "));
    CHECK(has(ran.err, one.says));
    CHECK(std::ranges::count(ran.err, '\n') == 1);
    CHECK(ran.err.back() == '\n');
    CHECK_FALSE(std::filesystem::exists(here.out.path()));
  }
}

TEST_CASE("one of several processes does not train by itself") {
  const desk here;
  const auto launched = [&](const std::string& set, const std::string& more) {
    const std::string program = " \"" + std::string(STRETTO_TRAIN_PATH) + "\" --out=";
    return test_support::run(
        "env", set + program + here.out.path() + " " + small(more) + " " + here.text.path());
  };
  for (const std::string name :
       {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    for (const char* more : {"", "--transport loopback"}) {
      const outcome ran = launched(name + "=2", more);
      CHECK(ran.exit == 2);
      CHECK(ran.out.empty());
      CHECK(has(ran.err, "train: --transport loopback: it is for one process, and " + name +
                             " is 2: " +
                             (name[0] == 'S' ? "srun" : "torchrun, mpirun or mpiexec") +
                             " started several"));
      CHECK(std::ranges::count(ran.err, '\n') == 1);
      CHECK_FALSE(std::filesystem::exists(here.out.path()));
    }
  CHECK(launched("OMPI_COMM_WORLD_SIZE=1", "").exit == 0);
  // As a batch script has it, and as who wants it says.
  CHECK(launched("SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=7", "").exit == 0);
  CHECK(launched("WORLD_SIZE=1 OMPI_COMM_WORLD_SIZE=4 SLURM_STEP_NUM_TASKS=4", "").exit == 0);
}

TEST_CASE("where there are no files to open, that is what is said") {
  const outcome ran = test_support::run(
      "sh", std::string("-c 'ulimit -n 5; exec \"") + STRETTO_TRAIN_PATH + "\" " + small() + "'");
  CHECK(ran.exit == 2);
  CHECK(ran.err.starts_with("train: FILES: "));
  CHECK(ran.err.ends_with(" cannot be read: Too many open files\n"));
}

TEST_CASE("where there is no memory, what must be less is named") {
  const outcome ran = test_support::run(
      "sh", std::string("-c 'ulimit -v 4000000; \"") + STRETTO_TRAIN_PATH +
                "\" --layers 48 --width 2048 --heads 16 --context 512 --batch 3 --steps 1'");
  CHECK(ran.exit == 2);
  CHECK(
      ran.err ==
      "train: not enough memory: --layers 48 of --width 2048, on --batch 3 sequences of --context "
      "512\n");
}

TEST_CASE("a folder that cannot be made is wrong input, a training that diverges a failure") {
  const desk here;
  const outcome folder = test_support::run(
      STRETTO_TRAIN_PATH, "--out=/dev/null/out " + small() + " " + here.text.path());
  CHECK(folder.exit == 2);
  CHECK(has(folder.err, "--out /dev/null/out: trace.json cannot be written there: "));

  const outcome diverged = here.train(small("--learning-rate 1e30"));
  CHECK(diverged.exit == 1);
  CHECK(has(diverged.err, "the gradient's global norm is not finite: training has diverged"));
  CHECK(std::ranges::count(diverged.err, '\n') == 1);
  CHECK(has(diverged.err, "; how far each rank came: " + here.left_path("failure.txt") + "\n"));
  const std::string record = here.left("failure.txt");
  CHECK(has(record, "rank 1: "));
  CHECK(has(record, "OPTIMIZER      started     named by the error\n"));
  // The step by the number that progress has, after --resume too.
  CHECK(has(diverged.err, "train: training step 2: the executor's step 1, rank "));
  const std::string file = here.left_path("model.checkpoint");
  REQUIRE(here.train(small("--save " + file)).exit == 0);
  const outcome later = here.train(small("--steps 8 --learning-rate 1e30 --resume " + file));
  CHECK(has(later.err, "train: training step 6: the executor's step 1, rank "));
  // What the last update makes of the model is part of it.
  const std::string unsaved = here.left_path("unsaved.checkpoint");
  for (const std::string& save : {std::string(), " --save " + unsaved}) {
    const outcome last = here.train(small("--steps 1 --learning-rate 1e39" + save));
    CHECK(last.exit == 1);
    CHECK(has(last.err, save.empty()
                            ? "train: after step 1 the loss of the held-back text is not finite: "
                              "training has diverged"
                            : unsaved + ": is not written: after step 1 layer 0's "));
    CHECK(std::ranges::count(last.err, '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(unsaved));
  }
  // An evaluation is held to the deadline, too, and is no step of training.
  const outcome late = here.train(small("--deadline 1e-9"));
  CHECK(late.exit == 1);
  CHECK(late.err.starts_with("train: evaluation before training: the executor's step 0"));
  // That of an earlier run does not stay.
  CHECK(here.train(small()).exit == 0);
  CHECK_FALSE(std::filesystem::exists(here.left_path("failure.txt")));
}

#ifdef STRETTO_TRAIN_WITH_NCCL
TEST_CASE("processes of GPUs: what a launcher has not set, and GPUs that are not there") {
  const desk here;
  const std::string train = std::string("\"") + STRETTO_TRAIN_PATH + "\" --device cuda " +
                            small("--transport nccl") + " --out " + here.out.path();
  std::string plain = "CUDA_VISIBLE_DEVICES=";
  for (const char* name : {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                           "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
                           "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"})
    plain = "-u " + (name + (' ' + plain));
  const struct {
    const char* set;
    const char* says;
  } cases[] = {
      {"", "--transport nccl: RANK and WORLD_SIZE are not set, nor what mpirun, mpiexec or srun"},
      {"RANK=0", "--transport nccl: RANK is set, but WORLD_SIZE is not; one process alone sets"},
      {"RANK=1 WORLD_SIZE=2", "--transport nccl: MASTER_ADDR and MASTER_PORT are not set"},
      {"RANK=0 WORLD_SIZE=1", "--device cuda: process 0: it finds no GPU (cudaGetDeviceCount)"}};
  for (const auto& one : cases) {
    INFO(one.set);
    const outcome ran = test_support::run("env", plain + ' ' + one.set + ' ' + train);
    CHECK(ran.exit == 2);
    INFO(ran.err);
    CHECK(has(ran.err, std::string("train: ") + one.says));
    CHECK(std::ranges::count(ran.err, '\n') == 1);
  }
  // Who comes alone waits for as long as he was told.
  const std::string port = std::to_string(test_support::free_port());
  const outcome alone = test_support::run(
      "timeout", "60 env " + plain + " WORLD_SIZE=3 RANK=0 MASTER_ADDR=127.0.0.1 " +
                     "MASTER_PORT=" + port + ' ' + train + " --join-timeout 1");
  INFO(alone.err);
  CHECK(alone.exit == 1);
  CHECK(has(alone.err, "is not complete in time: process 1 has not come, process 2 has not come"));
  // What is wrong with all is told by all, and nobody waits for the others.
  const auto process = [&](int number, const char* more) {
    return "env " + plain + " WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
           " RANK=" + std::to_string(number) + ' ' + train + more + " & ";
  };
  for (const auto& [more, says] :
       {std::pair("", "--transport nccl: 3 processes are more than the 2 workers"),
        std::pair(" --seed 2", "process 0 has --seed 1, process 2 has --seed 2: all processes")}) {
    const outcome ran = test_support::run(
        "timeout", "60 sh -c '" + process(0, "") + process(1, "") + process(2, more) + "wait'");
    INFO(ran.err);
    CHECK(ran.exit == 0);
    for (std::size_t at = 0, told = 0; told < 3; ++told, ++at) {
      at = ran.err.find(says, at);
      CHECK(at != std::string::npos);
      if (at == std::string::npos) break;
    }
  }
}
#endif
