// What runs for days, started by others: a signal ends it after a step, which is saved; each step
// leaves a line; cores are those that it may use.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/run_program.hpp"
#include "train_program/desk.hpp"

using program_test::desk;
using program_test::has;
using program_test::small;
using test_support::contents;
using test_support::outcome;
using test_support::temporary;

namespace {

constexpr const char* header =
    "step,time,loss,gradient_norm,learning_rate,seconds,tokens_per_second,idle_share\n";

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::string> made;
  for (std::string line; std::getline(lines, line);) made.push_back(line);
  return made;
}

std::vector<std::string> columns_of(const std::string& line) {
  std::istringstream columns(line);
  std::vector<std::string> made;
  for (std::string one; std::getline(columns, one, ',');) made.push_back(one);
  return made;
}

//! For a shell: whether the program that it has started last keeps a SIGTERM.
const std::string heeds =
    "heeds() { test $((0x$(sed -n 's/^SigCgt:[^0-9a-f]*//p' /proc/$!/status) & 0x4000)) -ne 0; }\n";

//! Trains for hours, but for the signal that it gets after its first step.
outcome signalled(const desk& at, const std::string& with, const std::string& signal) {
  const temporary script("signalled.sh");
  const std::string said = at.left_path("said");
  script.write(": >" + said + "\n\"" + std::string(STRETTO_TRAIN_PATH) +
               "\" --out=" + at.out.path() + " " + small("--steps 1000000 " + with) + " " +
               at.text.path() + " >" + said + " &\nuntil grep -q ^step " + said +
               "; do kill -0 $! || break; sleep 0.02; done\nkill -" + signal +
               " $!\nwait $!\necho ended with $?\n");
  return test_support::run("timeout", "-k 5 60 sh " + script.path());
}

TEST_CASE("a signal ends a run after its step, which is saved; without --save at once") {
  const desk here;
  const std::string file = here.left_path("saved"), log = here.left_path("log.csv");
  for (const std::string signal : {"TERM", "USR1"}) {
    const outcome ended = signalled(here, "--save " + file + " --log " + log, signal);
    INFO(ended.err);
    CHECK(ended.out == "ended with 3\n");
    std::istringstream words(ended.err);
    std::string train, name, ends, it, after, step;
    long done = 0;
    words >> train >> name >> ends >> it >> after >> step >> done;
    CHECK(done > 0);
    CHECK(ended.err == "train: SIG" + signal + " ends it after step " + std::to_string(done) +
                           " of 1000000; " + file + " has it, for --resume\n");
    // The last line of progress and of the log are of that step.
    CHECK(has(contents(here.left_path("said")), "\nstep " + std::to_string(done) + "/1000000  "));
    CHECK(lines_of(contents(log)).size() == static_cast<std::size_t>(done) + 1);
    const outcome on =
        here.train(small("--resume " + file + " --steps " + std::to_string(done + 1)));
    CHECK_MESSAGE(on.exit == 0, on.err);
    CHECK(has(on.out, "goes on after step " + std::to_string(done) + " of "));
    std::filesystem::remove(log);
  }
  CHECK(signalled(here, "", "TERM").out == "ended with 143\n");
  // Who reads its output has gone.
  std::filesystem::remove(file);
  const outcome unread = test_support::run(
      "sh", std::string("-c '{ \"") + STRETTO_TRAIN_PATH + "\" --out=" + here.out.path() + " " +
                // The next line is due after a tenth of them.
                small("--steps 5000 --deadline 20 --save " + file) + " " + here.text.path() +
                "; echo ended with $? >&2; } | head -n 1'");
  CHECK(has(unread.err, "train: SIGPIPE ends it after step "));
  CHECK(has(unread.err, "\nended with 3\n"));
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("a signal before the first step ends a run without one, and what was saved stays") {
  const desk here;
  const std::string file = here.left_path("saved"), pipe = here.left_path("pipe");
  REQUIRE(here.train(small("--save " + file)).exit == 0);
  const std::string good = contents(file);
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  // It waits for its text when it is asked to end, and is given it then.
  const auto asked = [&](const std::string& with, const std::string& signals) {
    const temporary script("asked.sh");
    script.write("\"" + std::string(STRETTO_TRAIN_PATH) + "\" --out=" + here.out.path() + " " +
                 small(with) + " " + pipe + " >" + here.left_path("said") + " &\n" + heeds +
                 "until heeds; do kill -0 $! || exit; sleep 0.02; done\n"
                 "kill -TERM $!\nwhile heeds; do sleep 0.02; done\n" +
                 signals + "wait $!\necho ended with $?\n");
    return test_support::run("timeout", "-k 5 60 sh " + script.path());
  };
  const std::string give = "cat " + here.text.path() + " >" + pipe + "\n";
  const outcome on = asked("--steps 8 --resume " + file + " --save " + file, give);
  CHECK(on.out == "ended with 3\n");
  CHECK(on.err == "train: SIGTERM ends it before step 5 of 8; " + file + " is as it was\n");
  CHECK(contents(file) == good);
  CHECK_FALSE(std::filesystem::exists(file + ".previous"));
  CHECK_FALSE(has(contents(here.left_path("said")), "step "));
  const std::string none = here.left_path("none");
  const outcome first = asked("--save " + none, give);
  CHECK(first.out == "ended with 3\n");
  CHECK(first.err == "train: SIGTERM ends it before step 1 of 4; " + none + " is as it was\n");
  CHECK_FALSE(std::filesystem::exists(none));
  // A second one ends it at once.
  CHECK(asked("--save " + none, "kill -TERM $!\n").out == "ended with 143\n");
}

TEST_CASE("a signal behind the last step ends nothing, a second one at once") {
  for (const bool twice : {false, true}) {
    CAPTURE(twice);
    const desk here;
    const std::string trace = here.left_path("trace.json"), file = here.left_path("saved");
    REQUIRE(::mkfifo(trace.c_str(), 0600) == 0);
    // All that it writes is read; before that it waits there.
    const temporary script("late.sh");
    script.write("\"" + std::string(STRETTO_TRAIN_PATH) + "\" --out=" + here.out.path() + " " +
                 small("--save " + file) + " " + here.text.path() + " >" + here.left_path("said") +
                 " &\nuntil test -e " + file + "; do kill -0 $! || exit; sleep 0.02; done\n" +
                 "kill -TERM $!\n" +
                 (twice ? heeds + "while heeds; do sleep 0.02; done\nkill -TERM $!\n"
                        : "cat " + trace + " >" + here.left_path("read") + "\n") +
                 "wait $!\necho ended with $?\n");
    const outcome ended = test_support::run("timeout", "-k 5 60 sh " + script.path());
    CHECK(ended.out == (twice ? "ended with 143\n" : "ended with 0\n"));
    const std::string said = here.left("said");
    CHECK(has(said, "held-back beginning") == !twice);
    CHECK(has(here.left("read"), "\"traceEvents\"") == !twice);
  }
}

TEST_CASE("each step leaves a line, behind those of the run that is gone on with") {
  const desk here;
  const std::string file = here.left_path("saved"), log = here.left_path("log.csv");
  const outcome first = here.train(small("--save " + file + " --log " + log));
  CHECK_MESSAGE(first.exit == 0, first.err);
  const std::string four = contents(log);
  CHECK(four.starts_with(header));
  std::vector<std::string> lines = lines_of(four);
  REQUIRE(lines.size() == 5);
  for (std::size_t step = 1; step < lines.size(); ++step) {
    const std::vector<std::string> columns = columns_of(lines[step]);
    REQUIRE(columns.size() == 8);
    CHECK(columns[0] == std::to_string(step));
    CHECK(columns[1].size() == std::string("2026-01-31T12:00:00Z").size());
    char loss[20];
    std::snprintf(loss, sizeof loss, "%.3f", std::stod(columns[2]));
    CHECK(has(first.out, "step " + columns[0] + "/4  loss " + loss));
    CHECK(std::stod(columns[3]) > 0);
    CHECK(std::stod(columns[4]) > 0);
    CHECK(std::stod(columns[5]) > 0);
    CHECK(std::stod(columns[6]) == doctest::Approx(128 / std::stod(columns[5])));
    CHECK(std::stod(columns[7]) <= 1);
  }

  const auto refused = [&](const std::string& arguments, const std::string& says) {
    INFO(arguments);
    const outcome ran = here.train(small(arguments));
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err == "train: " + says + "\n");
  };
  refused("--log " + log,
          "--log " + log + ": has the steps of another run: with --resume more are added to it");
  CHECK(contents(log) == four);
  refused("--log " + here.text.path() + "2 --save " + here.text.path() + "2",
          "--log " + here.text.path() + "2: --save is the same file");
  const std::string previous = file + ".previous";
  refused(
      "--save " + file + " --log " + previous,
      "--log " + previous + ": would be lost where --save " + file + " keeps its saved.previous");
  std::filesystem::create_symlink("saved", here.left_path("link"));
  refused("--save " + here.left_path("link") + " --log " + here.out.path() + "/./saved.previous",
          "--log " + here.out.path() + "/./saved.previous: would be lost where --save " +
              here.left_path("link") + " keeps its saved.previous");
  CHECK_FALSE(std::filesystem::exists(previous));
  refused("--resume " + file + " --steps 5 --log " + here.text.path(),
          "--log " + here.text.path() + ": FILES is the same file");
  refused("--steps 5 --log /dev/null", "--log /dev/null: is no regular file");
  refused("--log " + here.out.path() + "/none/log",
          "--log " + here.out.path() + "/none/log: cannot be written: No such file or directory");
  const std::string other = here.left_path("other");
  std::ofstream(other) << "step,loss\n";
  refused("--log " + other, "--log " + other + ": holds something else than the steps of a run");
  CHECK(contents(other) == "step,loss\n");

  // Of a line that was being written when its machine went down, a part may be left.
  std::ofstream(log, std::ios::app) << "5,2026-";
  const outcome on = here.train(small("--steps 6 --resume " + file + " --log " + log));
  CHECK_MESSAGE(on.exit == 0, on.err);
  CHECK(contents(log).starts_with(four + "5,2"));
  lines = lines_of(contents(log));
  REQUIRE(lines.size() == 7);
  CHECK(lines.back().starts_with("6,"));
  std::ofstream(log) << std::string(header).substr(0, 9);
  CHECK(here.train(small("--log " + log)).exit == 0);
  CHECK(lines_of(contents(log)).size() == 5);
}

TEST_CASE("what a full disk does not take of the log is told at once, and ends no training") {
  const desk here;
  const std::string log = here.left_path("log.csv");
  // Some lines fit in so many blocks.
  const std::string full = here.train_on_full_disk(small("--steps 20 --log " + log));
  const auto at = full.find("\ntrain: --log " + log + ": step ");
  REQUIRE(at != std::string::npos);
  CHECK(at < full.find("\nstep 20/20 "));
  CHECK(has(full, " cannot be written: File too large; training goes on\n"));
  CHECK(has(full, " steps are missing: File too large\nended with 1\n"));
  const std::string left = contents(log);
  CHECK(left.ends_with("\n"));
  const std::vector<std::string> lines = lines_of(left);
  REQUIRE(lines.size() > 2);
  CHECK(lines.size() < 20);
  for (const std::string& line : lines) CHECK(std::ranges::count(line, ',') == 7);
}

TEST_CASE("what a full disk does not take of a checkpoint is told at once, and ends no training") {
  const desk here;
  const std::string file = here.left_path("saved");
  const auto full = [&](const std::string& more) {
    return here.train_on_full_disk(small("--save-every 2 --save " + file + more));
  };
  const std::string name = "\ntrain: --save " + file + ": not written ";
  const std::string why = ": cannot be written: File too large";
  std::string said = full("");
  INFO(said);
  const auto at = said.find(name + "after step 2" + why + "; training goes on\n");
  REQUIRE(at != std::string::npos);
  CHECK(at < said.find("\nstep 3/4 "));
  CHECK(has(said, name + "after step 4" + why + "\n"));
  CHECK(has(said, "\nheld-back beginning | what the model makes of it:\n"));
  CHECK(said.ends_with(name + "2 of 2 times, the last time after step 4" + why +
                       "; it is as it was\nended with 1\n"));
  CHECK_FALSE(std::filesystem::exists(file));
  // What was there before stays.
  REQUIRE(here.train(small("--save " + file)).exit == 0);
  const std::string good = contents(file);
  said = full(" --steps 6 --resume " + file);
  INFO(said);
  CHECK(said.ends_with("after step 6" + why + "; it is as it was\nended with 1\n"));
  CHECK(contents(file) == good);
  CHECK_FALSE(std::filesystem::exists(file + ".previous"));
}

TEST_CASE("where a checkpoint cannot be written for a while, training goes on, and is saved then") {
  const desk here;
  const std::string file = here.left_path("link");
  for (const char* name : {"disk", "back"}) std::filesystem::create_directory(here.left_path(name));
  std::filesystem::create_symlink("disk/saved", file);
  // It is taken away when there is one, and comes back without it when that was told.
  const temporary script("for_a_while.sh");
  script.write(
      "cd " + here.out.path() + "\n\"" + std::string(STRETTO_TRAIN_PATH) + "\" --out=. " +
      small("--steps 1000000 --save-every 1 --save link ") + " " + here.text.path() +
      " >said 2>told &\nwait_for() { until \"$@\"; do kill -0 $! || exit; sleep 0.02; done; }\n"
      "wait_for test -e disk/saved\nmv disk away\n"
      "wait_for grep -q 'training goes on' told\nmv back disk\n"
      "wait_for test -e disk/saved\nkill -TERM $!\nwait $!\necho ended with $?\n");
  const outcome ended = test_support::run("timeout", "-k 5 60 sh " + script.path());
  const std::string told = here.left("told");
  INFO(told);
  CHECK(ended.out == "ended with 3\n");
  CHECK(told.starts_with("train: --save link: not written after step "));
  CHECK(has(told, "; training goes on\n"));
  CHECK(has(told, "; link has it, for --resume; --save link: not written "));
  CHECK(has(here.train(small("--steps 1 --resume " + file)).err, "the checkpoint has "));
}

TEST_CASE("cores that a launcher keeps from a process are not counted") {
  const desk here;
  // What a process may use, those that it starts may.
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const outcome bound = here.train(small());
  REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
  CHECK_MESSAGE(bound.exit == 0, bound.err);
  CHECK(has(bound.out, " on 1 core, "));
  CHECK(has(bound.out, "\nmeasured: not, because 2 ranks share 1 core.\n"));
}

}  // namespace
