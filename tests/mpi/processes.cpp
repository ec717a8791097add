// The ranks of one pipeline in several processes: mpi/program/ranks.cpp says what they do.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "start.hpp"
#include "support/run_program.hpp"
#include "support/training_text.hpp"

namespace {

using mpi_test::expect;
using mpi_test::expect_failure;
using mpi_test::start;
using test_support::outcome;

}  // namespace

TEST_CASE("processes compute to the bit what one process computes") {
  for (const int processes : {2, 4}) {
    const outcome ended = start(processes, "equal");
    CHECK_MESSAGE(ended.exit == 0, ended.out, ended.err);
    for (int process = 0; process < processes; ++process)
      for (const char* name : {"interleaved on ", "zbv on ", "dualpipe on ", "sharded on "})
        expect(ended,
               name + std::to_string(name[0] == 'd' || name[0] == 's' ? 2 * processes : processes) +
                   " ranks: process " + std::to_string(process) + " equal");
  }
}

TEST_CASE("an engine that one process cannot make is told to the others at once") {
  const outcome ended = start(2, "nobody");
  expect_failure(ended);
  expect(ended, "process 1 refuses: rank 1 has no stage");
  expect(ended, "process 0 refuses: the MPI transport cannot be opened: exchange ");
  expect(ended, "is not complete: process 1 has failed: it could not begin: rank 1 has no stage");
}

TEST_CASE("plans that differ are refused before the first step, by every process") {
  const outcome sizes = start(2, "sizes");
  expect_failure(sizes);
  for (const char* process : {"process 0", "process 1"})
    expect(sizes,
           process + std::string(
                         " refuses: rank 1, in process 1, runs another schedule than "
                         "rank 0, in process 0: their digests differ; first in channel 0 -> 1: "));
  expect(sizes, "both message 0 of the channel: 256 bytes are sent, 128 received");
  const outcome schedules = start(2, "schedules");
  expect_failure(schedules);
  expect(schedules, "process 0 refuses: rank 1, in process 1, runs another schedule than rank 0");
}

TEST_CASE("a message of another size is refused where it meets its receive") {
  const outcome shorter = start(2, "shorter");
  expect_failure(shorter);
  expect(shorter, "process 1: step 0, rank 1, instruction ");
  expect(shorter, "channel 0 -> 1: sizes differ: send 0SEND_F1 of 255 bytes (rank 0, instruction ");
  expect(shorter, "meets receive 1RECV_F1 of 256 bytes (rank 1, instruction ");
  expect(shorter, "process 0: step 0, rank 0, instruction ");
  expect(shorter, ": process 1 has failed: step 0, rank 1, instruction ");
}

TEST_CASE("an MPI that serves one thread only is refused") {
  expect(start(1, "single"), "was initialised without MPI_THREAD_MULTIPLE");
}

TEST_CASE("a process that stops, dies or fails ends all of them, with a reason") {
  const outcome stopped = start(2, "stop");
  expect_failure(stopped);
  expect(stopped, "process 0: step 1 has not ended in time: rank 0, instruction ");
  expect(stopped, "waits for rank 1, in another process: message ");
  // The first line names who waits, for whom and for what; the counts stand below it.
  const auto first = stopped.out.find("process 0: step 1 has not ended in time: ");
  REQUIRE(first != std::string::npos);
  const std::string line = stopped.out.substr(first, stopped.out.find('\n', first) - first);
  CHECK_MESSAGE(line.ends_with(" in this step"), line);
  expect(stopped, "\nrank 0 has sent ");
  expect(stopped, " of 8 messages to rank 1, received ");
  expect(stopped, "; threads left 0");

  // Two steps instead of four: long before the deadline.
  const outcome left = start(2, "leave");
  expect_failure(left);
  expect(left, "process 0: step 2, rank 0, instruction ");
  expect(left, ": process 1 has left: it runs no further step\n");
  expect(left, "\nrank 0 has sent ");

  expect_failure(start(2, "die"));

  const outcome thrown = start(2, "throw");
  expect_failure(thrown);
  expect(thrown, "process 1: step 1, rank 1, instruction ");
  // mpirun may put what the other prints between two lines.
  expect(thrown, ": no more of this\n");
  expect(thrown, "\nrank 1 has sent ");
  // And the other has heard, long before its deadline.
  expect(thrown, "process 0: step 1, rank 0, instruction ");
  expect(thrown, ": process 1 has failed: step 1, rank 1, instruction ");
  expect(thrown, "; threads left 0");
}

TEST_CASE("who waits in an exchange hears who has failed, or left, long before the deadline") {
  const outcome failed = start(3, "gather");
  expect_failure(failed);
  for (const char* process : {"process 1", "process 2"})
    expect(failed,
           process + std::string(": exchange 'layer 3' is not complete: process 0 has failed: "
                                 "no room on the disk\n"));
  const outcome left = start(3, "gone");
  expect_failure(left);
  for (const char* process : {"process 0", "process 2"})
    expect(left, process + std::string(": exchange 'plans': process 1 has left before it\n"));
  const outcome names = start(1, "names");
  expect_failure(names);
  expect(names, "process 0: exchange 'one': its name has more behind a letter that is 0\n");
}

#ifdef STRETTO_TRAIN_PATH
TEST_CASE("processes train to the bit what one process trains") {
  const test_support::temporary desk("train_mpi");
  const test_support::training_text text;
  const auto left = [&](const char* name) { return desk.path() + "/" + name; };
  const auto arguments = [&](const char* checkpoint, int steps) {
    return "--layers 4 --width 16 --heads 2 --context 16 --microbatches 4 --ranks 2 --out " +
           desk.path() + " --sample 9 --steps " + std::to_string(steps) + " --save " +
           left(checkpoint) + ' ' + text.path();
  };
  std::filesystem::create_directories(desk.path());
  const auto same = [&](int processes, const std::string& more) {
    outcome run = test_support::run(STRETTO_TRAIN_PATH, arguments("one", 5) + more);
    CHECK_MESSAGE(run.exit == 0, run.err);
    const auto last_lines = run.out.find("\nheld-back beginning | ");
    REQUIRE(last_lines != std::string::npos);
    const std::string sampled = run.out.substr(last_lines);
    run = start(processes, arguments("all", 5) + more + " --check --transport mpi",
                STRETTO_TRAIN_PATH);
    CHECK_MESSAGE(run.exit == 0, run.err);
    // One tells of all.
    expect(run, "\nmemory, KiB: by the plan");
    expect(run, "\nbubble: the largest of them ");
    for (int process = 0; process < processes; ++process)
      expect(run, "\nprocess " + std::to_string(process) + ": ");
    expect(run, "timeline.svg: ");
    expect(run, sampled);
    CHECK(test_support::contents(left("timeline.svg")).find("</svg>") != std::string::npos);
    std::filesystem::remove(left("timeline.svg"));
    const std::string one = test_support::contents(left("one"));
    CHECK(one.size() > 10000);
    CHECK(one == test_support::contents(left("all")));
  };
  same(2, " --chunks 2 --head-pieces 4");
  same(4, " --chunks 1 --tensor-parallel 2");
  // And from a checkpoint.
  const std::string on = " --resume " + left("one") + " --chunks 1";
  outcome run = test_support::run(STRETTO_TRAIN_PATH, arguments("two", 8) + on);
  CHECK_MESSAGE(run.exit == 0, run.err);
  run = start(2, arguments("both", 8) + on + " --transport mpi", STRETTO_TRAIN_PATH);
  CHECK_MESSAGE(run.exit == 0, run.err);
  CHECK(test_support::contents(left("two")) == test_support::contents(left("both")));

  // Each reads its own layers alone, and none goes on when one cannot.
  {
    std::fstream file(left("one"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-20, std::ios::end);  // the last layer, behind which is its checksum
    file.put('?');
  }
  run = start(2, arguments("none", 8) + on + " --transport mpi", STRETTO_TRAIN_PATH);
  CHECK(run.exit == 2);
  const std::string damaged =
      left("one") + ": is damaged: the checksum of layer 5's square is not that of its contents";
  CHECK(run.err.find("train: --resume " + damaged) != std::string::npos);
  CHECK(run.err.find("train: --resume " + left("one") + ": step 5, crc32 ") != std::string::npos);
  CHECK(run.err.find(", but process 1 has " + damaged) != std::string::npos);

  run = start(3, arguments("none", 1) + " --transport mpi", STRETTO_TRAIN_PATH);
  CHECK(run.exit == 2);
  CHECK(run.err.find("--transport mpi: 3 processes are more than the 2 workers") !=
        std::string::npos);
  run = start(2, arguments("none", 1) + " --checked --transport mpi", STRETTO_TRAIN_PATH);
  CHECK(run.exit == 2);
  CHECK(run.err.find("--checked with --transport mpi: races are looked for where one process runs "
                     "all ranks, and there are 2") != std::string::npos);
}

TEST_CASE("processes that are told different things say so, and train nothing") {
  const test_support::temporary desk("train_told");
  std::filesystem::create_directories(desk.path());
  const test_support::temporary text("train_told.txt");
  text.write(std::string(1000, 'x'));
  const std::string usual =
      " --layers 4 --width 16 --heads 2 --context 16 --microbatches 4 --ranks 2 --chunks 1 "
      "--transport mpi ";
  const auto pair = [&](const std::string& first, const std::string& second) {
    return start(1, usual + first + " : -n 1 \"" STRETTO_TRAIN_PATH "\"" + usual + second,
                 STRETTO_TRAIN_PATH);
  };
  const struct {
    std::string first, second, says;
  } cases[] = {{"--sample 9", "--sample 0", "process 0 has --sample 9, process 1 has --sample 0: "},
               {"", "--check", "process 0 has no --check, process 1 has --check set: "},
               {"--ops look_ahead", "", "process 0 has --ops look_ahead, process 1 has no --ops: "},
               {"--save " + desk.path() + "/one", "",
                "process 0 has --save FILE, process 1 has no --save: "},
               {text.path(), "--sample 76", "process 0 has FILES of 1000 bytes with checksum "}};
  for (const auto& one : cases) {
    INFO(one.says);
    const outcome ended = pair(one.first, one.second);
    CHECK(ended.exit == 2);
    CHECK(ended.out.find("step ") == std::string::npos);
    // Both say it.
    const auto once = ended.err.find("train: " + one.says);
    REQUIRE(once != std::string::npos);
    CHECK(ended.err.find("train: " + one.says, once + 1) != std::string::npos);
  }
  // Nor does one that another MPI's launcher has started, which so is alone.
  const outcome alone = test_support::run(
      "env", "OMPI_COMM_WORLD_SIZE=2 \"" STRETTO_TRAIN_PATH "\"" + usual + "--out " + desk.path());
  CHECK(alone.exit == 2);
  CHECK_MESSAGE(alone.err.starts_with("train: --transport mpi: MPI has this process alone, and "
                                      "OMPI_COMM_WORLD_SIZE is 2: "),
                alone.err);
  // What is each one's own affair.
  const std::string file = desk.path() + "/file";
  const auto save = [&](const std::string& steps) {
    const std::string little = "--sample 0 --steps " + steps;
    const outcome ended = pair(little + " --out " + desk.path() + " --save " + file,
                               little + " --deadline 200 --poison --save " + file + "2");
    CHECK_MESSAGE(ended.exit == 0, ended.err);
  };
  save("1");
  save("2");
  const outcome ended = pair("--resume " + file, "--resume " + file + ".previous");
  CHECK(ended.exit == 2);
  for (const char* each : {": step 2, crc32 ", ": step 1, crc32 "})
    CHECK_MESSAGE(ended.err.find(each) != std::string::npos, ended.err);
  CHECK(ended.err.find(", but process 0 has step 2, crc32 ") != std::string::npos);
}

TEST_CASE("those that train tell what they wait for when one of them is killed") {
  const std::string start_them = STRETTO_MPIRUN_ON;
  if (start_them.empty()) {
    MESSAGE("skipped: this mpirun ends all processes when one dies");
    return;
  }
  const test_support::temporary desk("train_killed");
  std::filesystem::create_directories(desk.path());
  // Each leaves its number. After the first step nothing but steps follows, for hours.
  const std::string train =
      "exec \"" + std::string(STRETTO_TRAIN_PATH) +
      "\" --layers 4 --width 16 --heads 2 --context 16 --microbatches 4 --ranks 3 --chunks 1 "
      "--steps 1000000 --deadline 3 --out . --transport mpi";
  const test_support::temporary script("train_killed.sh");
  script.write("cd " + desk.path() + "; " + start_them +
               " 3 sh -c 'echo $$ >$OMPI_COMM_WORLD_RANK; " + train +
               "' >said 2>told &\n"
               "until grep -q 1/1000000 said; do kill -0 $! || break; sleep 0.05; done\n"
               "kill -KILL $(cat 1)\nwait $!\ncat told >&2; exit 0\n");
  const outcome ended = test_support::run("timeout", "-k 5 100 sh " + script.path());
  INFO(ended.err);
  CHECK(ended.exit == 0);
  const auto told = [&](const std::string& part) {
    return ended.err.find(part) != std::string::npos;
  };
  CHECK(told("has not ended in time: rank 0, instruction "));
  CHECK(told("has not ended in time: rank 2, instruction "));
  // Of the two, in a sum one may wait for the other, which waits for the dead.
  CHECK(told(" waits for rank 1, "));
  for (const char* file : {"failure-0.txt", "failure-2.txt"})
    CHECK(std::filesystem::exists(desk.path() + "/" + file));
}

TEST_CASE("a signal to one process ends all of them after the same step; a second one at once") {
  const std::string start_them = STRETTO_MPIRUN_ON;
  if (start_them.empty()) {
    MESSAGE("skipped: this mpirun ends all processes when one dies");
    return;
  }
  const test_support::temporary desk("train_signalled");
  std::filesystem::create_directories(desk.path());
  const std::string options =
      "--layers 4 --width 16 --heads 2 --context 16 --microbatches 4 --ranks 2 --chunks 1 "
      "--transport mpi --sample 0 --out " +
      desk.path();
  const auto run = [&](const std::string& launcher, const std::string& more,
                       const std::string& signals) {
    const test_support::temporary script("train_signalled.sh");
    script.write("cd " + desk.path() + "; : >said; " + launcher +
                 " 2 sh -c 'echo $$ >$OMPI_COMM_WORLD_RANK; exec \"" STRETTO_TRAIN_PATH "\" " +
                 options + " --steps 1000000 " + more + "' >said &\n" +
                 "until grep -q 1/1000000 said; do kill -0 $! || break; sleep 0.02; done\n" +
                 signals + "wait $!\necho ended with $?\n");
    return test_support::run("timeout", "-k 5 100 sh " + script.path());
  };
  const outcome first = run(STRETTO_MPIRUN, "--save file --log log.csv", "kill -TERM $(cat 1)\n");
  INFO(first.err);
  CHECK(first.out == "ended with 3\n");
  CHECK(first.err.find("train: SIGTERM to process 1 ends it after step ") != std::string::npos);
  CHECK(first.err.find("train: ") == first.err.rfind("train: "));
  // Whole lines, though mpirun gives processes a terminal.
  const std::string said = test_support::contents(desk.path() + "/said");
  CHECK(said.find("\nstep 1/1000000  loss ") != std::string::npos);
  CHECK(said.find('\r') == std::string::npos);
  const std::string log = test_support::contents(desk.path() + "/log.csv");
  const std::string last = log.substr(log.rfind('\n', log.size() - 2) + 1);
  const std::string step = last.substr(0, last.find(','));
  CHECK(first.err.find("ends it after step " + step + " of 1000000; file has it, for --resume\n") !=
        std::string::npos);
  const outcome on = start(2,
                           options + " --save " + desk.path() + "/two --resume " + desk.path() +
                               "/file --steps " + std::to_string(std::stol(step) + 1),
                           STRETTO_TRAIN_PATH);
  CHECK_MESSAGE(on.exit == 0, on.err);
  expect(on, "goes on after step " + step + " of ");

  // While a step waits for somebody, the first is kept, and the second is not.
  std::filesystem::remove(desk.path() + "/file");
  const outcome second =
      run(start_them, "--save file",
          "kill -STOP $(cat 1)\nkill -TERM $(cat 0)\n"
          "caught() { sed -n 's/^SigCgt:[^0-9a-f]*/0x/p' /proc/$(cat 0)/status; }\n"
          "while test $(($(caught) & 0x4000)) -ne 0; do sleep 0.02; done\n"
          "kill -TERM $(cat 0)\n"
          "while test -d /proc/$(cat 0); do sleep 0.02; done\nkill -KILL $(cat 1)\n");
  INFO(second.err);
  CHECK(second.out.find("ended with ") == 0);
  CHECK_FALSE(std::filesystem::exists(desk.path() + "/file"));
}
#endif
