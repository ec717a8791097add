// Orders that are frozen as C++ headers.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

}  // namespace

TEST_CASE("a header holds every schedule's jobs, rank after rank") {
  std::istringstream names(run("list").out);
  int headers = 0;
  for (std::string line; std::getline(names, line); ++headers) {
    const std::string name = line.substr(0, line.find(' '));
    std::string asked;
    json made;
    for (int chunks = 1; chunks <= 2 && !made.contains("lists"); ++chunks) {
      asked = "schedule " + name + " --ranks 4 --microbatches 8 --chunks " + std::to_string(chunks);
      made = run_json(asked + " --format json");
    }
    INFO(asked);
    REQUIRE(made.contains("lists"));
    const outcome header = run(asked + " --emit header");
    REQUIRE(header.exit == 0);
    CHECK(header.out.find("stretto schedule " + name + " --ranks 4") != std::string::npos);
    std::string expected;
    for (const json& list : made["lists"])
      for (const json& one : list["jobs"]) {
        const int slice = one.value("slice", 0);
        const bool paired = one.value("paired", false);
        expected += "{" + std::to_string(one["stage"].get<int>()) + ", " +
                    one["kind"].get<std::string>() + ", " +
                    std::to_string(one["microbatch"].get<int>());
        if (slice > 0 || paired) expected += ", " + std::to_string(slice);
        expected += paired ? ", true}," : "},";
      }
    std::string found;
    const std::string text = header.out.substr(0, header.out.find("\n  };"));
    for (std::size_t at = text.find("// rank 0"); (at = text.find('{', at)) != std::string::npos;
         ++at)
      found += text.substr(at, text.find("},", at) + 2 - at);
    CHECK(found == expected);
  }
  CHECK(headers > 0);
  CHECK(run("schedule zb_auto --ranks 4 --microbatches 12 --cost 5,6,3,1 --limit 5 --emit header")
            .out == contents(STRETTO_SOURCE_DIR "/examples/09_frozen_order.hpp"));
  CHECK(run("schedule 1f1b --ranks 2 --microbatches 2 --emit header")
            .out.find("struct frozen_1f1b_2x2 {") != std::string::npos);
  CHECK(run("schedule 1f1b --ranks 2 --microbatches 2 --emit header --comms").exit == 2);
}

TEST_CASE(
    "an order from a file is printed as a schedule is, and frozen where a header can say it") {
  const temporary file("an order.csv"), again("again.csv");
  const std::string shape = "zbv --ranks 3 --microbatches 4 --chunks 2 ";
  REQUIRE(run("schedule " + shape + "--format csv -o '" + file.path() + "'").exit == 0);
  const std::string csv = "schedule --csv '" + file.path() + "' ";
  REQUIRE(run(csv + "--format csv -o " + again.path()).exit == 0);
  CHECK(contents(again.path()) == contents(file.path()));
  json mine = run_json(csv + "--format json"),
       theirs = run_json("schedule " + shape + "--format json");
  mine.erase("schedule"), theirs.erase("schedule");
  CHECK(mine == theirs);
  // But for its name the table is the schedule's.
  const auto table = [](const outcome& of) { return of.out.substr(of.out.find("made_for{")); };
  CHECK(table(run(csv + "--emit header")) == table(run("schedule " + shape + "--emit header")));

  const auto refused = [&](const std::string& command, const std::string& words) {
    const outcome ran = run(command);
    CHECK(ran.exit == 2);
    CHECK_MESSAGE(ran.err.find(words) != std::string::npos, ran.err);
  };
  again.write("1F0,1B0\n0F0,0B0\n");  // stage 0 on rank 1
  refused("schedule --emit header --csv " + again.path(),
          "neither looped over the ranks nor in a wave");
  again.write("0F0,2F0,2B0,0B0\n1F0,1B0\n");  // looped, but for the last stage, which is missing
  refused("schedule --emit header --csv " + again.path(),
          "neither looped over the ranks nor in a wave");
  // The line above it asks for the same, as a shell reads it. One chunk lies in either way.
  CHECK(run(csv + "--emit header").out.find("//   stretto schedule --csv '" + file.path() +
                                            "' --emit header\n") != std::string::npos);
  // But for where it goes.
  const std::string asked = "schedule 1f1b --ranks 2 --microbatches 2 --emit header";
  REQUIRE(run(asked + " -o " + again.path()).exit == 0);
  CHECK(contents(again.path()) == run(asked).out);
  const temporary odd("-.csv"), end("late -.csv");
  for (const std::string name : {"1f1b", "inference"}) {
    const std::string one = name + " --ranks 2 --microbatches 3 ";
    for (const std::string& path : {odd.path(), end.path()}) {
      REQUIRE(run("schedule " + one + "--format csv -o '" + path + "'").exit == 0);
      const outcome frozen = run("schedule --emit header --csv '" + path + "'");
      CHECK(table(frozen) == table(run("schedule " + one + "--emit header")));
      const std::size_t at = frozen.out.find("struct frozen_");
      REQUIRE(at != std::string::npos);
      CHECK((frozen.out.find("bool forward_only = true;") != std::string::npos) ==
            (name == "inference"));
      CHECK(frozen.out.substr(at, frozen.out.find(" {", at) - at).find("__") == std::string::npos);
    }
  }
  // What a rank holds before it begins must be the same for all, or it is not said.
  again.write(R"({"base": [1, 2]})");
  const std::string based = "schedule 1f1b --ranks 2 --microbatches 3 --emit header --costs ";
  CHECK(run(based + again.path()).out.find("for its order alone") != std::string::npos);
  again.write(R"({"base": 2})");
  CHECK(run(based + again.path()).out.find(".memory_weights = 2") != std::string::npos);
  REQUIRE(run("schedule " + shape + "--comms --format csv -o " + again.path()).exit == 0);
  refused("schedule --emit header --csv " + again.path(), "holds messages");
  refused("schedule --comms --csv " + again.path(), "holds messages already");
}

TEST_CASE("costs of a file that are alike everywhere stand in a header as those of options do") {
  const temporary file("costs.json");
  file.write(R"({"limit": 3, "jobs": [{"kind": "F", "cost": 3}, {"kind": "F", "change": 1}]})");
  const std::string step = "schedule zb_auto --ranks 3 --microbatches 4 --emit header ";
  const auto code = [](const std::string& header) {
    return header.substr(header.find("#include"));
  };
  const outcome by_file = run(step + "--costs " + file.path());
  const outcome by_options = run(step + "--cost 3,1,1,0 --limit 3");
  REQUIRE(by_file.exit == 0);
  CHECK(code(by_file.out) == code(by_options.out));
  CHECK(by_file.out.find("limit() const { return 3; }") != std::string::npos);
  // What a policy cannot say leaves the order alone.
  for (const std::string other :
       {R"({"limit": 3, "jobs": [{"rank": 1, "kind": "F", "cost": 3}]})", R"({"limit": [3, 3, 4]})",
        R"({"limit": 9, "jobs": [{"kind": "I", "peak": 2}]})"}) {
    file.write(other);
    const outcome alone = run(step + "--costs " + file.path());
    REQUIRE(alone.exit == 0);
    CHECK(alone.out.find("for its order alone: costs or\n// limits differ by rank") !=
          std::string::npos);
    CHECK(alone.out.find("limit()") == std::string::npos);
  }
}
