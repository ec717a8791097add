// What training leaves behind takes the place of what an earlier run has left, once it is complete.
#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "support/run_program.hpp"
#include "train_program/desk.hpp"

using program_test::desk;
using program_test::small;
using test_support::outcome;

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

  // As on a full disk, behind training.
  const outcome full =
      test_support::run("sh", std::string("-c 'trap \"\" XFSZ; ulimit -f 1; \"") +
                                  STRETTO_TRAIN_PATH + "\" --out=" + here.out.path() + " " +
                                  small() + " " + here.text.path() + " >/dev/null'");
  CHECK(full.exit == 2);
  CHECK(full.err == "train: --out " + here.out.path() +
                        ": trace.json cannot be written there: File too large\n");
  CHECK(here.left("trace.json") == trace);
  CHECK(here.left("timeline.svg") == picture);
  CHECK(files() == 2);
  CHECK(here.train(small("--seed 9")).exit == 0);
  CHECK(here.left("trace.json") != trace);
}

}  // namespace
