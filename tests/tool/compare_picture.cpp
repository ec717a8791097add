// The picture of memory and makespan that compare draws.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "run_tool.hpp"
#include "stretto/plan/svg_layout.hpp"
#include "support/sanitized.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::found;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::temporary;

//! Chunks, length and peak.
using place = std::tuple<int, double, double>;

//! Which schedules that train stand where, as the table's numbers say.
std::map<place, std::set<std::string>> expected(const std::string& arguments, const char* length) {
  const json told = json::parse(run("compare --format json " + arguments).out);
  std::map<place, std::set<std::string>> all;
  const auto add = [&](const json& rows) {
    for (const json& one : rows) {
      if (one.contains("refused") || !one.contains("bound")) continue;
      double peak = 0;
      for (const json& rank : one["peak"]) peak = std::max(peak, rank.get<double>());
      all[{one["chunks"], one[length], peak}].insert(one["schedule"]);
    }
  };
  if (told[0].contains("limit"))
    for (const json& limited : told) add(limited["schedules"]);
  else
    add(told);
  return all;
}

void looks_right(const std::string& arguments, const char* length = "makespan") {
  INFO(arguments);
  const outcome drawn = run("compare --format svg " + arguments);
  REQUIRE(drawn.err == "");
  REQUIRE(drawn.exit == 0);
  REQUIRE(drawn.out.starts_with("<svg"));
  REQUIRE(drawn.out.ends_with("</svg>\n"));
  const auto all = expected(arguments, length);
  REQUIRE(!all.empty());

  // 1. A dot for every place, with the names of all that stand there.
  struct seen {
    double x, y;
  };
  std::map<place, seen> dots;
  for (const auto& one : found(drawn.out,
                               "<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"[^>]*><title>([^<]*), "
                               "([0-9]+) chunks?: " +
                                   std::string(length) + " ([0-9.]+), peak ([0-9.]+)</title>")) {
    // Two digits are told.
    const auto same = std::find_if(all.begin(), all.end(), [&](const auto& other) {
      return std::get<0>(other.first) == std::stoi(one[3]) &&
             std::abs(std::get<1>(other.first) - std::stod(one[4])) < 0.0051 &&
             std::abs(std::get<2>(other.first) - std::stod(one[5])) < 0.0051;
    });
    INFO(one[2]);
    REQUIRE(same != all.end());
    std::set<std::string> names;
    for (const auto& name : found(one[2], "([^, ]+)")) names.insert(name[0]);
    CHECK(names == same->second);
    CHECK(dots.insert({same->first, {std::stod(one[0]), std::stod(one[1])}}).second);
  }
  CHECK(dots.size() == all.size());

  // 2. More memory is further right, more time further up, the same at the same place.
  for (const auto& [one, here] : dots)
    for (const auto& [other, there] : dots) {
      if (std::get<1>(one) <= std::get<1>(other)) CHECK(here.y >= there.y);
      if (std::get<2>(one) <= std::get<2>(other)) CHECK(here.x <= there.x);
    }

  // 3. The line goes down to each that no other beats in both.
  std::set<std::tuple<double, double>> unbeaten;
  for (const auto& [one, names] : all) {
    const double mine[] = {std::get<1>(one), std::get<2>(one)};
    const bool beaten = std::any_of(all.begin(), all.end(), [&](const auto& other) {
      const double its[] = {std::get<1>(other.first), std::get<2>(other.first)};
      return its[0] <= mine[0] && its[1] <= mine[1] && (its[0] < mine[0] || its[1] < mine[1]);
    });
    if (!beaten) unbeaten.insert({mine[0], mine[1]});
  }
  const auto front = found(drawn.out, "class=\"front\" d=\"(M[0-9.]+ [^\"]*)\"");
  REQUIRE(front.size() == 2);  // the other one is the legend's
  const auto downs = found(front[1][0], "V([0-9.]+)");
  CHECK(downs.size() == unbeaten.size());
  for (const auto& one : unbeaten) {
    const auto dot = std::find_if(dots.begin(), dots.end(), [&](const auto& other) {
      return std::get<1>(other.first) == std::get<0>(one) &&
             std::get<2>(other.first) == std::get<1>(one);
    });
    REQUIRE(dot != dots.end());
    CHECK(std::any_of(downs.begin(), downs.end(), [&](const auto& down) {
      return std::abs(std::stod(down[0]) - dot->second.y) < 0.06;
    }));
  }

  // 4. Names lie on the picture and not on each other; those that are not there are counted.
  struct label {
    double left, right, y;
  };
  std::vector<label> labels;
  for (const auto& one : found(drawn.out,
                               "<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" class=\"name[^\"]*\" "
                               "text-anchor=\"(start|end)\">([^<]*)</text>")) {
    const double wide = stretto::detail::svg_layout::text_width(one[3], 12);
    const double x = std::stod(one[0]);
    labels.push_back(
        {one[2] == "start" ? x : x - wide, one[2] == "start" ? x + wide : x, std::stod(one[1])});
  }
  for (std::size_t one = 0; one < labels.size(); ++one) {
    CHECK(labels[one].left > 0);
    CHECK(labels[one].right < std::stod(found(drawn.out, "width=\"([0-9.]+)\"")[0][0]));
    for (std::size_t other = 0; other < one; ++other)
      CHECK((std::abs(labels[one].y - labels[other].y) >= 12 ||
             labels[one].right <= labels[other].left || labels[other].right <= labels[one].left));
  }
  const auto rest = found(drawn.out, "named by tooltips alone: ([0-9]+)");
  CHECK(labels.size() + (rest.empty() ? 0 : std::stoul(rest[0][0])) == dots.size());

  // 5. Nor beside a ring, which another number of chunks has around a dot, so near that they touch.
  for (const auto& ring :
       found(drawn.out,
             "<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\" r=\"([0-9.]+)\" fill=\"none\"")) {
    const double x = std::stod(ring[0]);
    const double outside = std::stod(ring[2]) + 2;
    for (const label& one : labels)
      if (std::abs(one.y - 4 - std::stod(ring[1])) < 0.06)
        CHECK((one.left > x + outside || one.right < x - outside));
  }
}

}  // namespace

TEST_CASE("compare draws memory and makespan") {
  looks_right("--ranks 4 --microbatches 8");
  if (!test_support::sanitized)
    looks_right("--ranks 8 --microbatches 32 --chunks 1,2,4 --cost 2,2,2,0");
  looks_right("--ranks 4 --microbatches 8 --chunks 1,2");
  looks_right(std::string("--ranks 4 --microbatches ") + (test_support::sanitized ? "6" : "16") +
              " --cost 10,12,8,1 --limit 2,3,4,6,16");
  looks_right("--ranks 4 --microbatches 8 --objective span --cost 3,3,3,1", "span");
  looks_right("--ranks 4 --microbatches 8 --memory 0,0,0");  // all on one upright
  looks_right("--ranks 1 --microbatches 1");
  looks_right("--ranks 2 --microbatches 2 --cost 10000000,20000000,10000000,0 --chunks 3");
  if (!test_support::sanitized)  // regular expressions take their time
    looks_right("--ranks 8 --microbatches 64 --chunks 1,2,4,8 --layers balanced:80 --head 3,3,3");

  // What no other beats has a name, if not all of its names.
  const temporary layers("layers.json");
  REQUIRE(run("costs --layers 80 --device h100 --architecture llama --attention fused --hidden "
              "8192 --heads 64 --kv-heads 8 --feed-forward 28672 --vocabulary 128256 --sequence "
              "8192 --tensor-parallel 8 --sequence-parallel -o " +
              layers.path())
              .exit == 0);
  CHECK(run("compare --ranks 8 --microbatches 64 --chunks 1,2,5 --layers balanced:80 --cost "
            "0,0,0,51344 --limit 35000000,45000000,60000000 --format svg --layer-costs " +
            layers.path())
            .out.find(">1f1b +2<") != std::string::npos);

  const std::string limits =
      run("compare --ranks 4 --microbatches 8 --limit 2,4,100 --format svg").out;
  CHECK(limits.find(">limit 2<") != std::string::npos);
  CHECK(limits.find(">limit 4<") != std::string::npos);
  CHECK(limits.find(">limit 100<") == std::string::npos);  // far right of all that is drawn
}

TEST_CASE("compare draws long numbers and long legends whole") {
  const std::string drawn =
      run("compare --ranks 4 --microbatches 8 --cost 10000000000,9999999999,10000000000,5 --format "
          "svg --chunks 1,2,3,4,6,8")
          .out;
  const double width = std::stod(found(drawn, "width=\"([0-9.]+)\"")[0][0]);
  int longest = 0;
  for (const auto& one : found(drawn,
                               "<text x=\"([0-9.]+)\" y=\"[0-9.]+\" class=\"[a-z]*\" "
                               "text-anchor=\"(start|end)\">([^<]*)</text>")) {
    INFO(one[2]);
    const double x = std::stod(one[0]);
    const double wide = stretto::detail::svg_layout::text_width(one[2], 11);
    CHECK((one[1] == "start" ? x : x - wide) > 0);
    CHECK((one[1] == "start" ? x + wide : x) < width);
    longest = std::max(longest, static_cast<int>(one[2].size()));
  }
  CHECK(longest > 12);
  CHECK(drawn.find(">no order is below: ") != std::string::npos);
  CHECK(drawn.find(">8 chunks<") != std::string::npos);
}

TEST_CASE("compare writes to a file, and draws no picture of nothing") {
  const temporary file("compare.svg");
  const std::string asked = "compare --ranks 4 --microbatches 8 ";
  for (const std::string format : {"svg", "table", "json"}) {
    const outcome quiet = run(asked + "--format " + format + " -o " + file.path());
    CHECK(quiet.exit == 0);
    CHECK(quiet.out.empty());
    CHECK(contents(file.path()) == run(asked + "--format " + format).out);
  }
  // Forwards alone are not drawn. What is refused is told as in a table.
  const outcome forwards = run(asked + "--limit 0 --format svg");
  CHECK(forwards.exit == 2);
  CHECK(forwards.out.empty());
  CHECK(forwards.err ==
        "stretto: --format svg: no schedule that trains is there to be drawn; a table says why\n");
  const outcome none = run(asked + "--limit 0 --weights 1 --format svg");
  CHECK(none.exit == 2);
  CHECK(none.out.find("1f1b: needs 5 on rank 0, whose limit is 0") != std::string::npos);
  // A name of one's own is text.
  const temporary own("a<b>&c.csv");
  CHECK(run("schedule 1f1b --ranks 4 --microbatches 8 --format csv -o '" + own.path() + "'").exit ==
        0);
  const std::string drawn = run(asked + "--format svg --csv '" + own.path() + "'").out;
  CHECK(drawn.find("a&lt;b&gt;&amp;c.csv") != std::string::npos);
  CHECK(drawn.find("a<b>") == std::string::npos);
}
