// Files of --layer-costs that say which model they are of.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

const std::string small_model = "--hidden 1024 --heads 16 --sequence 512 ";

//! What a step of such layers is refused with, behind the option and the file.
std::string refusal(const temporary& file, const std::string& layers) {
  const outcome ran = run("simulate 1f1b --ranks 4 --microbatches 8 --layers '" + layers +
                          "' --layer-costs " + file.path());
  const std::string begin = "stretto: --layer-costs " + file.path() + ": ";
  CHECK(ran.exit == 2);
  CHECK(ran.out.empty());
  REQUIRE_MESSAGE(ran.err.starts_with(begin), ran.err);
  return ran.err.substr(begin.size());
}

TEST_CASE("a file of so many layers is for no others: else the head would lie among them") {
  const temporary file("layers.json");
  REQUIRE(run("costs --layers 8 -o " + file.path() + " " + small_model).exit == 0);
  CHECK(refusal(file, "even:16") == "is of 8 layers, and --layers even:16 has 16\n");
  CHECK(refusal(file, "balanced:12") == "is of 8 layers, and --layers balanced:12 has 12\n");
  CHECK(refusal(file, "1,1,1,1") == "is of 8 layers, and --layers 1,1,1,1 has 4\n");
  for (const char* layers : {"even:8", "3,2,2,1", "tt|tt|tt|tt"})
    CHECK(run("simulate 1f1b --ranks 4 --microbatches 8 --layers '" + std::string(layers) +
              "' --layer-costs " + file.path())
              .exit == 0);
  // E and L are layers, of which the file has none apart.
  CHECK(refusal(file, "Ett|tt|t|tL") ==
        "does not have embedding and head as layers of their own, as E and L of --layers "
        "Ett|tt|t|tL are; stretto costs --ends-apart writes it so\n");
}

TEST_CASE(
    "embedding and head are layers of their own, as a layout has them, and together as much") {
  const temporary file("layers.json");
  const outcome told = run("costs --ends-apart --layers 8 -o " + file.path() + " " + small_model);
  REQUIRE(told.exit == 0);
  CHECK(told.out.find("8 layers, embedding and head, each on") == 0);
  CHECK(told.out.find("The first layer is the embedding, the last the head.\n") !=
        std::string::npos);
  CHECK(told.out.find(" --layers balanced:10 ") != std::string::npos);
  // Of more than can be balanced the command that it tells is one that runs, too.
  CHECK(run("costs --layers 4097 " + small_model).out.find(" --layers even:4097 ") !=
        std::string::npos);
  const json apart = json::parse(tool_tests::contents(file.path()));
  CHECK(apart["layers"] == 10);
  CHECK(apart["ends_apart"] == true);
  const json within = run_json("costs --layers 8 -o - " + small_model)["costs"];
  const auto of = [](const json& costs, std::size_t at, const char* what) {
    return costs[at][what].get<std::int64_t>();
  };
  const json& costs = apart["costs"];
  REQUIRE(costs.size() == 3);
  CHECK(of(costs, 1, "layer") == 0);
  CHECK(of(costs, 2, "layer") == 9);
  CHECK(costs[0] == within[0]);  // those between
  for (const char* kept : {"memory_forward", "memory_weights", "memory_weights_alone"})
    for (const auto end : {std::size_t{1}, std::size_t{2}})
      CHECK(of(costs, 0, kept) + of(costs, end, kept) == of(within, end, kept));
  // Ops one behind the other take the sum; side by side some less.
  for (const char* time : {"forward", "backward_weight"})
    for (const auto end : {std::size_t{1}, std::size_t{2}}) {
      CHECK(of(costs, 0, time) + of(costs, end, time) >= of(within, end, time));
      CHECK(of(costs, 0, time) + of(costs, end, time) <= of(within, end, time) * 101 / 100);
    }
  CHECK(run("simulate 1f1b --ranks 4 --microbatches 8 --layers 'Ett|tt|tt|ttL' --layer-costs " +
            file.path())
            .exit == 0);
  CHECK(run("simulate 1f1b --ranks 4 --microbatches 8 --layers balanced:10 --layer-costs " +
            file.path())
            .exit == 0);
  CHECK(refusal(file, "ttt|tt|tt|ttL") ==
        "has embedding and head as layers of their own, which --layers ttt|tt|tt|ttL does not "
        "begin and end with, as E and L\n");
  CHECK(refusal(file, "Ett|tt|tt|tL") == "is of 10 layers, and --layers Ett|tt|tt|tL has 9\n");
}

TEST_CASE("what is wrong with such a file is named") {
  const temporary file("layers.json");
  const auto complaint = [&](const std::string& text) {
    file.write(text);
    return refusal(file, "even:4");
  };
  CHECK(complaint(R"(3)") == "must hold a list, or an object with one\n");
  CHECK(complaint(R"({"layers": 4})") == "\"costs\" is missing\n");
  CHECK(complaint(R"({"costs": []})") == "\"layers\" is missing\n");
  CHECK(complaint(R"({"layers": 4, "costs": 3})") == "\"costs\" is 3, must be a list\n");
  CHECK(complaint(R"({"layers": 4, "costs": [], "ends": true})") ==
        "has an unknown key, \"ends\"\n");
  CHECK(complaint(R"({"layers": 4, "costs": [], "ends_apart": 1})") ==
        "\"ends_apart\" is 1, must be true or false\n");
  CHECK(complaint(R"({"layers": 0, "costs": []})") ==
        "\"layers\" is 0, must be an integer from 1 to 100000\n");
  CHECK(complaint(R"({"layers": 4, "costs": [{"layer": 4}]})").find("costs[0].layer is 4") == 0);
  CHECK(complaint(R"([{"layer": []}])") == "[0].layer names none\n");
  CHECK(complaint(R"({"layers": 4, "costs": [{}, {"cost": 4}]})") ==
        "costs[1] has an unknown key, \"cost\"\n");
}

}  // namespace
