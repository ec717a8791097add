// The program `train` in several processes, each with simulated GPUs of its own and a simulated
// NCCL between them: program/main.cpp.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "support/free_port.hpp"
#include "support/run_program.hpp"
#include "support/training_text.hpp"

// STRETTO_TRAIN_PATH: the program with simulated libraries beneath.

namespace {

using test_support::outcome;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

//! Of processes that share a folder: what they exchange is there, and what they leave.
class launcher {
 public:
  launcher() { std::filesystem::create_directories(desk_.path() + "/nccl"); }

  //! The command of one process, as torchrun would set its environment.
  //! @param gpus  that it sees
  std::string process(int rank, int processes, int gpus, const std::string& arguments) const {
    const auto set = [](const char* name, const std::string& value) {
      return name + ('=' + value) + ' ';
    };
    return "env -u OMPI_COMM_WORLD_SIZE -u PMI_SIZE " + set("RANK", std::to_string(rank)) +
           set("LOCAL_RANK", std::to_string(rank)) + set("WORLD_SIZE", std::to_string(processes)) +
           set("MASTER_ADDR", "127.0.0.1") + set("MASTER_PORT", port_) +
           set("SIMULATED_GPUS", std::to_string(gpus)) +
           set("SIMULATED_NCCL", desk_.path() + "/nccl") + '"' + STRETTO_TRAIN_PATH +
           "\" --device cuda --transport nccl --width 16 --heads 2 --context 16 --out " +
           desk_.path() + ' ' + arguments + ' ' + text_.path();
  }
  //! All of them. What one says on standard error is one line; ends with the sum of their codes.
  outcome run(int processes, int gpus, const std::string& arguments) const {
    std::string all;
    for (int rank = 0; rank < processes; ++rank)
      all += process(rank, processes, gpus, arguments) + " & p" + std::to_string(rank) + "=$!; ";
    all += "sum=0; ";
    for (int rank = 0; rank < processes; ++rank)
      all += "wait $p" + std::to_string(rank) + "; sum=$((sum + $?)); ";
    return shell(all + "exit $sum");
  }
  //! Of a script: starts them, for hours, as $p0, $p1 and so on, and waits for the end of the first
  //! step, behind which nothing but steps follows.
  std::string begin(int processes, const std::string& arguments) const {
    std::string script;
    for (int rank = 0; rank < processes; ++rank) {
      const std::string number = std::to_string(rank);
      script += process(rank, processes, processes, arguments + " --steps 1000000") + " >said" +
                number + " 2>told" + number + " & p" + number + "=$!\n";
    }
    return script + "until grep -q 1/1000000 said0; do kill -0 $p0 || break; sleep 0.05; done\n";
  }
  //! As a shell reads it. What does not end is ended, and with it the test.
  outcome shell(const std::string& script) const {
    const test_support::temporary file("processes.sh");
    file.write("cd " + desk_.path() + '\n' + script + '\n');
    return test_support::run("timeout", "-k 5 100 sh " + file.path());
  }
  std::string left(const std::string& name) const { return desk_.path() + '/' + name; }
  std::string contents(const std::string& name) const { return test_support::contents(left(name)); }

 private:
  test_support::temporary desk_{"train_nccl"};
  test_support::training_text text_;
  std::string port_ = std::to_string(test_support::free_port());
};

//! One tells of all, and each step was as the unpipelined model's.
void trained(int processes, int gpus, const std::string& arguments) {
  CAPTURE(processes);
  CAPTURE(arguments);
  const launcher here;
  const outcome ended = here.run(processes, gpus, arguments + " --steps 3 --sample 9 --check");
  INFO(ended.err);
  CHECK(ended.exit == 0);
  CHECK(ended.err.empty());
  CHECK(has(ended.out, "step 3/3  loss "));
  CHECK(has(ended.out, "as the unpipelined model in each step: loss, norm and gradients"));
  CHECK(has(ended.out, "held-back beginning | "));
  const auto once = ended.out.find("step 1/3");
  CHECK(ended.out.find("step 1/3", once + 1) == std::string::npos);
}

}  // namespace

TEST_CASE("processes train on GPUs as the unpipelined model does") {
  trained(2, 2, "--layers 4 --microbatches 4 --ranks 2");
  trained(3, 3, "--layers 6 --microbatches 6 --ranks 3 --schedule dualpipe_v --precision bf16");
  trained(4, 4, "--layers 4 --microbatches 4 --ranks 2 --chunks 1 --tensor-parallel 2");
  trained(2, 4, "--layers 4 --microbatches 4 --ranks 2 --chunks 1 --data-parallel 2 --offload all");
}

TEST_CASE("so they do with a step recorded as a graph, each process one worker's") {
  trained(2, 2, "--layers 4 --microbatches 4 --ranks 2 --schedule zbv --graph");
  trained(2, 2, "--layers 4 --microbatches 2 --ranks 1 --chunks 1 --tensor-parallel 2 --graph");
}

TEST_CASE("to the bit what one process of all GPUs trains, also from its checkpoint") {
  const launcher here;
  const auto arguments = [&](const char* checkpoint, int steps) {
    return "--layers 4 --microbatches 4 --ranks 2 --chunks 2 --sample 0 --steps " +
           std::to_string(steps) + " --save " + here.left(checkpoint);
  };
  const auto same = [&](int steps, const std::string& more) {
    CAPTURE(steps);
    const outcome one = here.run(1, 2, arguments("one", steps) + more);
    CHECK_MESSAGE(one.exit == 0, one.err);
    const outcome two = here.run(2, 2, arguments("two", steps) + more);
    CHECK_MESSAGE(two.exit == 0, two.err);
    CHECK(here.contents("one").size() > 10000);
    CHECK(here.contents("one") == here.contents("two"));
  };
  same(3, "");
  std::filesystem::copy_file(here.left("one"), here.left("begun"));
  same(5, " --resume " + here.left("begun"));
}

TEST_CASE("a process that dies ends the others at once, which name it and what they have done") {
  for (const char* more : {"", " --graph"}) {
    CAPTURE(more);
    const launcher here;
    const outcome ended = here.shell(
        here.begin(
            3,
            std::string("--deadline 60 --layers 4 --microbatches 4 --ranks 3 --chunks 1") + more) +
        "kill -KILL $p1\nwait $p0; echo $?\nwait $p2; echo $?\n");
    CHECK(ended.exit == 0);
    CHECK(ended.out == "1\n1\n");
    for (const std::string rank : {"0", "2"}) {
      const std::string told = here.contents("told" + rank);
      INFO(told);
      CHECK(has(told, "train: training step "));
      CHECK(has(told, "rank " + rank + ": process 1 has ended, or its connection is broken"));
      CHECK(has(told, "\nrank " + rank + " has sent "));
      CHECK(has(told, " messages to rank 1, "));
      const std::string record = here.contents("failure-" + rank + ".txt");
      CHECK(has(record, "rank " + rank + ": "));
      CHECK(has(record, "; first missing: "));
    }
  }
}

TEST_CASE("a process that stops is missed at the deadline, by whoever waits for it") {
  const launcher here;
  const outcome ended = here.shell(
      here.begin(2, "--deadline 8 --layers 4 --microbatches 4 --ranks 2 --chunks 1") +
      "kill -STOP $p1\n"
      "until grep -q train: told0; do kill -0 $p0 || break; sleep 0.05; done\n"
      "kill -CONT $p1\nwait $p0; echo $?\nwait $p1; echo $?\n");
  CHECK(ended.exit == 0);
  CHECK(ended.out == "1\n1\n");
  const std::string waited = here.contents("told0");
  INFO(waited);
  CHECK(has(waited, " has not ended in time: rank 0, instruction "));
  CHECK(has(waited, " waits for rank 1, in another process: "));
  // Awake again, it hears of that, or finds its own deadline over.
  CHECK(has(here.contents("told1"), "train: training step "));
}

TEST_CASE(
    "work of a GPU that does not end is told of, and ends the process, which cannot free memory") {
  const launcher here;
  const outcome ended = here.shell(
      "SIMULATED_HANG=20000 " +
      here.process(0, 1, 2, "--steps 1000000 --deadline 8 --layers 4 --microbatches 4 --ranks 2"));
  INFO(ended.err);
  CHECK(ended.exit == 1);
  CHECK(has(ended.err, "train: training step "));
  CHECK(has(ended.err, " has not ended in time: rank "));
  CHECK(has(ended.err, "; threads and streams of devices whose work has not ended: "));
  CHECK(has(ended.err, "; how far each rank came: "));
  CHECK(has(here.contents("failure.txt"), "; first missing: "));
}

TEST_CASE("GPUs that two processes would share are refused by both, before NCCL is asked") {
  const launcher here;
  const outcome ended = here.run(2, 1, "--layers 4 --microbatches 4 --ranks 2 --steps 1");
  CHECK(ended.exit == 4);
  const std::string says =
      "train: --device cuda: process 1 has a worker on the GPU 0000:10:00.0, where process 0 has "
      "one";
  const auto once = ended.err.find(says);
  INFO(ended.err);
  REQUIRE(once != std::string::npos);
  CHECK(ended.err.find(says, once + 1) != std::string::npos);
}
