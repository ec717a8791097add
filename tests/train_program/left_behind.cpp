// What training leaves behind takes the place of what an earlier run has left, once it is complete,
// and never that of what the run reads.
#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "support/run_program.hpp"
#include "train_program/desk.hpp"

using program_test::desk;
using program_test::has;
using program_test::small;
using test_support::contents;
using test_support::outcome;
using test_support::temporary;

namespace {

TEST_CASE("training that fails leaves the files of the run before") {
  const desk here;
  REQUIRE(here.train(small()).exit == 0);
  const std::string trace = here.left("trace.json"), picture = here.left("timeline.svg");
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(here.out.path()),
                         std::filesystem::directory_iterator());
  };
  CHECK(files() == 2);
  CHECK(here.train(small("--learning-rate 1e30")).exit == 1);
  CHECK(here.left("trace.json") == trace);
  CHECK(here.left("timeline.svg") == picture);
  CHECK(files() == 3);  // with failure.txt

  const std::string full = here.train_on_full_disk(small());
  for (const char* name : {"trace.json", "timeline.svg"})
    CHECK(has(full, "train: --out " + here.out.path() + ": " + name +
                        " cannot be written there: File too large\n"));
  CHECK(has(full, "\nheld-back beginning | what the model makes of it:\n"));
  CHECK(full.ends_with("\nended with 1\n"));
  CHECK(here.left("trace.json") == trace);
  CHECK(here.left("timeline.svg") == picture);
  CHECK(files() == 2);
  CHECK(here.train(small("--seed 9")).exit == 0);
  CHECK(here.left("trace.json") != trace);
}

TEST_CASE("what is left behind takes the place of nothing that is read or saved") {
  const desk here;
  for (const char* name : {"trace.json", "timeline.svg", "failure.txt"}) {
    const std::string file = here.left_path(name);
    std::filesystem::copy_file(here.text.path(), file);
    for (const std::string option : {"--resume", "--save", "FILES"}) {
      INFO(option);
      const outcome ran = here.train(small((option == "FILES" ? "" : option + " ") + file));
      CHECK(ran.exit == 2);
      CHECK(ran.out.empty());
      CHECK(ran.err == "train: " + option + " " + file + ": would be lost where --out " +
                           here.out.path() + " has its " + name + "\n");
      CHECK(contents(file) == contents(here.text.path()));
    }
    std::filesystem::remove(file);
  }
  // Also of a file that is not there yet, and by another name.
  const outcome fresh = here.train(small("--save " + here.out.path() + "/./trace.json"));
  CHECK(fresh.exit == 2);
  CHECK(has(fresh.err, "/./trace.json: would be lost where --out "));
  const temporary order("order.csv");
  order.write("0F1,0F0,0B0,0B1\n1F1,1F0,1B0,1B1\n");
  std::filesystem::create_symlink(order.path(), here.left_path("timeline.svg"));
  const outcome through = here.train(small("--csv " + order.path()));
  CHECK(through.exit == 2);
  CHECK(has(through.err, "--csv " + order.path() + ": would be lost where --out "));
  CHECK(has(contents(order.path()), "0F1,0F0"));
#ifdef STRETTO_TOOL_PATH
  const std::string machine = here.left_path("trace.json");
  REQUIRE(test_support::run(STRETTO_TOOL_PATH, "calibrate --few -o " + machine).exit == 0);
  const outcome measured = here.train(small("--machine " + machine));
  CHECK(measured.exit == 2);
  CHECK(has(measured.err, "--machine " + machine + ": would be lost where --out "));
#endif
}

}  // namespace
