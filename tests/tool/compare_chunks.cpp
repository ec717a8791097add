// Schedules beside each other with several numbers of chunks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "run_tool.hpp"
#include "support/sanitized.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;

const std::string shape = "compare --ranks 4 --microbatches 8 --format json ";

//! What is told of a schedule with so many chunks; null when that does not stand there.
json row(const json& all, const std::string& name, int chunks) {
  for (const json& one : all)
    if (one["schedule"] == name && one["chunks"] == chunks) return one;
  return {};
}

}  // namespace

TEST_CASE("compare: of several --chunks each row is what one of them alone says") {
  const json both = run_json(shape + "--chunks 4,2 --cost 2,3,1,1 --memory 3,-1,-2");
  const json fours = run_json(shape + "--chunks 4 --cost 2,3,1,1 --memory 3,-1,-2");
  const json twos = run_json(shape + "--chunks 2 --cost 4,6,2,1 --memory 6,-2,-4");
  REQUIRE(both.is_array());
  std::set<std::pair<std::string, int>> seen;
  std::map<std::string, int> times;
  for (const json& one : both) {
    INFO(one.dump());
    const int chunks = one["chunks"];
    CHECK(seen.insert({one["schedule"], chunks}).second);
    ++times[one["schedule"]];
    CHECK(one == row(chunks == 2 ? twos : fours, one["schedule"], chunks));
  }
  // None is missing: with both where it has both, else with one.
  for (const json& four : fours) {
    const std::string name = four["schedule"];
    const bool has_four = four["chunks"] == 4;
    const bool has_two = !row(twos, name, 2).is_null();
    INFO(name);
    CHECK(times[name] == (has_four && has_two ? 2 : 1));
  }
  CHECK(times["interleaved"] == 2);
  CHECK(times["zbv"] == 1);
  CHECK(times["1f1b"] == 1);

  double before = 0;
  for (const json& one : both) {
    if (one["schedule"] == "inference") continue;
    CHECK(one["makespan"].get<double>() >= before);
    before = one["makespan"];
  }
  // The first is what costs are of, a number that stands twice is one.
  CHECK(run_json(shape + "--chunks 2,2") == run_json(shape + "--chunks 2"));
  const json halves = run_json(shape + "--chunks 1,2 --cost 2,4,2,0");
  CHECK(row(halves, "interleaved", 1)["makespan"] == (8 + 3) * 8);
  CHECK(row(halves, "interleaved", 2)["makespan"] ==
        row(run_json(shape + "--chunks 2 --cost 1,2,1,0"), "interleaved", 2)["makespan"]);
}

TEST_CASE("compare: what pairs hide is no less exact of a model that is cut") {
  // Of 3, 2, 4 and a hop of 1 in 400 parts, which chunks and percents divide.
  const auto simulated = [](const std::string& name, int chunks, int hides) {
    const auto part = [&](int time) { return std::to_string(400 * time / chunks); };
    return run_json("simulate " + name + " --ranks 4 --microbatches 16 --chunks " +
                    std::to_string(chunks) + " --cost " + part(3) + "," + part(2) + "," + part(4) +
                    ",400 --format json --hides " + std::to_string(hides))["makespan"]
               .get<double>() /
           400;
  };
  for (const int hides : {25, 50, 75, 100}) {
    if (test_support::sanitized && hides != 50) continue;
    const std::string asked =
        "compare --ranks 4 --microbatches 16 --cost 3,2,4,1 --format json --hides " +
        std::to_string(hides) + " --chunks ";
    for (const std::string chunks : {"1", "1,2,4"})
      for (const json& one : run_json(asked + chunks)) {
        const std::string name = one["schedule"];
        if (name != "paired_1f1b" && name != "dualpipe" && name != "dualpipe_v") continue;
        INFO(hides, " % of ", one.dump());
        CHECK(one["makespan"].get<double>() ==
              doctest::Approx(simulated(name, one["chunks"], hides)).epsilon(1e-9));
      }
  }
}

TEST_CASE("compare: of several --chunks layers are dealt to each") {
  const json all = run_json(shape + "--chunks 1,2,3 --layers balanced:24 --head 2,2,2");
  for (const int chunks : {1, 2, 3}) {
    const json alone =
        run_json(shape + "--layers balanced:24 --head 2,2,2 --chunks " + std::to_string(chunks));
    for (const char* const name : {"interleaved", "zbv_greedy", "hanayo", "gpipe"}) {
      const json made = row(all, name, chunks);
      INFO(name, " ", chunks);
      REQUIRE(made.contains("layers"));
      CHECK(made["layers"].size() == static_cast<std::size_t>(4 * chunks));
      CHECK(made == row(alone, name, chunks));
    }
  }
}

TEST_CASE("compare: of several --chunks what does not fit is told by its chunks") {
  const outcome tight = run("compare --ranks 4 --microbatches 8 --chunks 1,2 --limit 3");
  CHECK(tight.exit == 0);
  CHECK(tight.out.find("\ngpipe of 2 chunks: needs 8 on rank 0, whose limit is 3\n") !=
        std::string::npos);
  CHECK(tight.out.find("\n1f1b of 1 chunk: needs 4 on rank 0, whose limit is 3\n") !=
        std::string::npos);
  CHECK(
      run("compare --ranks 4 --microbatches 8 --chunks 2 --limit 3").out.find("\ngpipe: needs ") !=
      std::string::npos);
  // Rows of several limits are the same ones.
  const json within = run_json(shape + "--chunks 1,2 --limit 2,8");
  REQUIRE(within.size() == 2);
  for (const json& limited : within) {
    const json alone =
        run_json(shape + "--chunks 1,2 --limit " + std::to_string(limited["limit"].get<int>()));
    REQUIRE(limited["schedules"].size() == alone.size());
    for (const json& one : alone)
      CHECK(row(limited["schedules"], one["schedule"], one["chunks"]) == one);
  }
  const outcome table = run("compare --ranks 4 --microbatches 8 --chunks 1,2 --limit 2,8");
  CHECK(table.out.find("\nzbv_greedy           2  x 1/2    39.50 ") != std::string::npos);
  CHECK(table.out.find("\nzbv_greedy           1    x 1       41 ") != std::string::npos);
}

TEST_CASE("compare: numbers of chunks that are none, and costs that would be cut too finely") {
  const auto refused = [](const std::string& chunks, const std::string& why) {
    const outcome made = run("compare --ranks 4 --microbatches 8 --chunks '" + chunks + "'");
    INFO(chunks);
    CHECK(made.exit == 2);
    CHECK(made.out.empty());
    CHECK(made.err == "stretto: --chunks " + why + "\n");
  };
  for (const std::string wrong : {"1,0", "x", "2,", ",2", "2;4", "2147483648", "1,,2"})
    refused(wrong, wrong + ": expected integers from 1 to 2147483647 between commas");
  refused("7,9,11,13", "13: costs would be cut in 1287 parts, at most 1000; leave some out");
  CHECK(run("compare --ranks 4 --microbatches 8 --chunks 1,1000001").err ==
        "stretto: --ranks 4 --chunks 1000001: their product must be at most 4000000\n");
  CHECK(run("compare --ranks 2 --microbatches 4 --chunks 7,9,11,13 --layers 26").exit == 0);
  // One number is all that other commands take.
  CHECK(run("simulate interleaved --ranks 4 --microbatches 8 --chunks 1,2").exit == 2);
}

TEST_CASE("compare: schedules that are named, alone") {
  const std::string step = " --ranks 4 --microbatches 8 --format json";
  const json all = run_json("compare --chunks 1,2" + step);
  const json three = run_json("compare zbv interleaved 1f1b interleaved --chunks 1,2" + step);
  REQUIRE(three.size() == 4);
  for (const json& one : three) CHECK(row(all, one["schedule"], one["chunks"]) == one);
  for (const char* const name : {"zbv", "1f1b", "interleaved"})
    CHECK(std::any_of(three.begin(), three.end(),
                      [&](const json& one) { return one["schedule"] == name; }));
  // Names stand before and behind options, and an order of one's own beside them.
  const tool_tests::temporary file("order.csv");
  CHECK(run("schedule zb_h1 --ranks 4 --microbatches 8 --format csv -o " + file.path()).exit == 0);
  const json with = run_json("compare" + step + " --csv " + file.path() + " zbv");
  REQUIRE(with.size() == 2);
  CHECK((with[0].contains("file") != with[1].contains("file")));
  const outcome wrong = run("compare zbv zbw --ranks 4 --microbatches 8");
  CHECK(wrong.exit == 2);
  CHECK(wrong.err.starts_with("stretto: NAME zbw: no such schedule; there are gpipe, 1f1b, "));
}
