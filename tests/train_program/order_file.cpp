// Training by an order from a file: what it learns, and how a broken one is refused.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "support/run_program.hpp"
#include "train_program/desk.hpp"

using program_test::desk;
using program_test::has;
using program_test::losses;
using program_test::small;
using test_support::outcome;
using test_support::temporary;

TEST_CASE("an order that is no schedule's trains, within what it needs") {
  const desk here;
  const temporary order("order.csv");
  order.write(
      "\xef\xbb\xbf"
      "0F1,0F0,0B0,0B1\r\n1F1,1F0,1B0,1B1\r\n");  // no schedule's
  CHECK(here.train(small("--check --csv " + order.path() + " --recompute all")).exit == 0);
  CHECK(here.train(small("--csv " + order.path() + " --limit 2")).exit == 0);
  const outcome above = here.train(small("--csv " + order.path() + " --limit 1"));
  CHECK(above.exit == 2);
  CHECK(
      has(above.err, "--limit 1: " + order.path() + " needs more: rule bounded broken on rank 0"));
}

TEST_CASE("a file that cannot be read, or stands beside a schedule, is refused") {
  const desk here;
  CHECK(has(here.train(small("--csv /no/order.csv")).err,
            "--csv /no/order.csv: cannot be read: No such file"));
  CHECK(has(here.train(small("--csv / ")).err, "--csv /: is a folder"));
  CHECK(has(here.train("--csv x --schedule 1f1b").err, "--schedule excludes --csv"));
}

#ifdef STRETTO_TOOL_PATH
TEST_CASE("an order from a file trains as the schedule that it is, to the same losses") {
  for (const std::string schedule :
       {"1f1b --ranks 2 --microbatches 5", "zb_h1 --ranks 3 --microbatches 4",
        "interleaved --ranks 2 --chunks 2 --microbatches 4", "gpipe --ranks 1 --microbatches 2",
        "zbv --ranks 2 --chunks 2 --microbatches 4", "paired_1f1b --ranks 2 --microbatches 4",
        "dualpipe --ranks 2 --microbatches 4", "chimera --ranks 2 --microbatches 3",
        "seq_1f1b --ranks 2 --microbatches 2 --slices 2"}) {
    INFO(schedule);
    const desk here;
    const temporary order("order.csv");
    REQUIRE(test_support::run(STRETTO_TOOL_PATH,
                              "schedule " + schedule + " --format cells -o " + order.path())
                .exit == 0);
    const outcome by_name = here.train(small("--check --schedule " + schedule));
    const outcome by_file = here.train(small("--check --csv " + order.path()));
    CHECK(by_file.err == "");
    REQUIRE(by_file.exit == 0);
    CHECK(!losses(by_name.out).empty());
    CHECK(losses(by_file.out) == losses(by_name.out));
    CHECK(has(by_file.out, order.path() + ": "));
    // What ran is this order: the picture of another one is refused.
    CHECK(test_support::run(STRETTO_TOOL_PATH, "plot " + schedule + " --trace " +
                                                   here.left_path("trace.json") + " -o /dev/null")
              .exit == 0);
  }
}

TEST_CASE(
    "a broken order is refused as the tool refuses it, and one that does not fit the trainer") {
  const desk here;
  const temporary order("order.csv");
  const auto refused = [&](const std::string& text) {
    order.write(text);
    const outcome ran = here.train(small("--csv " + order.path()));
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK_FALSE(std::filesystem::exists(here.out.path()));
    CHECK(ran.err.starts_with("train: --csv " + order.path() + ": "));
    return ran.err.substr(ran.err.find(": ", 8) + 2);
  };
  for (const std::string text :
       {"0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "0F0,0B0\n1F0,1B0,1X0\n", "0F0,0F1,0B0\n1F0,1B0\n",
        "0F0,0B0\n\n", "0B0,0F0\n1F0,1B0\n", ""}) {
    INFO(text);
    const std::string said = refused(text);
    const std::string told = test_support::run(STRETTO_TOOL_PATH, "check " + order.path()).err;
    CHECK(told == "stretto: " + order.path() + ": " + said);
  }
  CHECK(refused("0F0\n1F0\n") ==
        "row 1 (rank 0): rule complete broken, job 0B0: the job is missing\n");
  CHECK(has(refused("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"), "it has messages"));
  CHECK(has(refused("0F0,1F0,1B0,0B0\n2F0,3F0,3B0,2B0\n"), "lie neither looped"));
  CHECK(refused("0F0.0,0F0.1,0F0.2,0B0.2,0B0.1,0B0.0\n") ==
        "the context, 16, is no multiple of its 3 slices, and --slice-lengths is equal\n");
  CHECK(refused("0F0,0R0,0B0\n") ==
        "it says what forwards run again, which the trainer has from --recompute\n");
  CHECK(refused("0F0,0OFFLOAD0,0RELOAD0,0B0\n") ==
        "it says what forwards copy, which the trainer has from --offload\n");
}
#endif
