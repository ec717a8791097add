// Schedules on several shapes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
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
using tool_tests::run_json;
using tool_tests::temporary;

//! The cells of CSV whose quotes hold no line ends.
std::vector<std::vector<std::string>> cells_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(csv);
  for (std::string line; std::getline(text, line);) {
    rows.emplace_back(1);
    bool quoted = false;
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '"' && quoted && at + 1 < line.size() && line[at + 1] == '"')
        rows.back().back() += line[at++];
      else if (line[at] == '"')
        quoted = !quoted;
      else if (line[at] == ',' && !quoted)
        rows.back().emplace_back();
      else
        rows.back().back() += line[at];
    }
    REQUIRE(!quoted);
  }
  return rows;
}

//! Each line is a row of the JSON, and nothing else is known of that.
void is_same(const std::string& csv, const json& rows, const std::string& limit) {
  const auto cells = cells_of(csv);
  REQUIRE(cells.size() == rows.size() + 1);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    json left = rows[at];
    INFO(left.dump());
    REQUIRE(cells[at + 1].size() == cells[0].size());
    for (std::size_t of = 0; of < cells[0].size(); ++of) {
      const std::string& title = cells[0][of];
      const std::string& cell = cells[at + 1][of];
      INFO(title);
      if (title == "limit") {
        CHECK(cell == limit);
      } else if (title == "slices" && !left.contains("slices")) {
        CHECK(cell == "1");
      } else if (!left.contains(title)) {
        CHECK(cell == "");
      } else {
        const json& value = left[title];
        if (value.is_string())
          CHECK(cell == value.get<std::string>());
        else if (value.is_array())
          CHECK(std::stod(cell) == std::ranges::max(value.get<std::vector<double>>()));
        else
          CHECK(std::stod(cell) == value.get<double>());
        left.erase(title);
      }
    }
    left.erase("idle");
    left.erase("layers");
    CHECK(left.empty());
  }
}

}  // namespace

TEST_CASE("sweep says of each shape what compare says of it") {
  // Where sanitizers watch, all take their time.
  const std::string all = test_support::sanitized ? "1f1b interleaved zb_h1 zbv chimera " : "";
  struct {
    std::string ranks, microbatches, more;
  } cases[] = {
      {"2,3,4", "1,4,6", all + "--cost 10,12,8,1"},
      {"4", "2,8", all + "--chunks 1,2 --slices 2 --limit 8"},
      {"2,4", "8", "zb_auto v_auto 1f1b inference --limit 3 --recompute auto --again 1"},
      {"2,4", "4", "zbv zb_h1 1f1b dualpipe --reduce-grad 5 --unshard 3,1 --objective span"},
      {"4,2", "4", "1f1b interleaved --layers balanced:13 --head 2,2,1 --cost 2,2,2,0"}};
  for (const auto& one : cases) {
    const json swept = run_json("sweep --format json --ranks " + one.ranks + " --microbatches " +
                                one.microbatches + " " + one.more);
    INFO(one.more);
    REQUIRE(swept.is_array());
    std::size_t rows = 0;
    for (const auto& ranks : found(one.ranks, "([0-9]+)"))
      for (const auto& microbatches : found(one.microbatches, "([0-9]+)")) {
        const json alone = run_json("compare --format json --ranks " + ranks[0] +
                                    " --microbatches " + microbatches[0] + " " + one.more);
        REQUIRE(alone.is_array());
        rows += alone.size();
        for (const json& row : alone) {
          INFO(row.dump());
          CHECK(row["ranks"] == std::stoi(ranks[0]));
          CHECK(row["microbatches"] == std::stoi(microbatches[0]));
          CHECK(std::ranges::count(swept, row) == 1);
        }
      }
    CHECK(swept.size() == rows);
    const auto limit = found(one.more, "--limit ([0-9]+)");
    is_same(run("sweep --format csv --ranks " + one.ranks + " --microbatches " + one.microbatches +
                " " + one.more)
                .out,
            swept, limit.empty() ? "" : limit[0][0]);
  }
}

TEST_CASE("compare writes CSV, too, of each of several limits") {
  const temporary own("own,\"1\".csv");
  REQUIRE(
      run("schedule 1f1b --ranks 4 --microbatches 8 --format csv -o '" + own.path() + "'").exit ==
      0);
  const std::string asked = "compare --ranks 4 --microbatches 8 --csv '" + own.path() + "' ";
  is_same(run(asked + "--format csv").out, run_json(asked + "--format json"), "");
  const json limited = run_json(asked + "--format json --limit 2,3,8");
  const std::string all = run(asked + "--format csv --limit 2,3,8").out;
  REQUIRE(limited.size() == 3);
  const std::string titles = all.substr(0, all.find('\n') + 1);
  std::size_t at = titles.size();
  for (const json& one : limited) {
    std::size_t end = at;
    for (std::size_t lines = 0; lines < one["schedules"].size(); ++lines)
      end = all.find('\n', end) + 1;
    is_same(titles + all.substr(at, end - at), one["schedules"],
            std::to_string(one["limit"].get<int>()));
    at = end;
  }
  CHECK(at == all.size());
}

TEST_CASE("sweep's table has the shapes beside each other, and says why some are not there") {
  CHECK(
      run("sweep 1f1b dualpipe chimera zbv --ranks 3,4 --microbatches 2,4,8 --cost 2,2,2,1").out ==
      "bubble, 3 ranks, by micro-batches\n"
      "schedule  chunks       2        4        8\n"
      "zbv            2  53.8 %*  31.4 %*  18.6 %*\n"
      "1f1b           1  57.1 %   45.5 %   33.3 %\n"
      "* the least of its column\n"
      "chimera: this schedule needs an even number of ranks\n"
      "dualpipe: this schedule needs an even number of ranks\n"
      "\n"
      "bubble, 4 ranks, by micro-batches\n"
      "schedule  chunks       2        4        8\n"
      "dualpipe       1  57.1 %*  35.1 %*  21.3 %*\n"
      "chimera        1  60.0 %   38.5 %   25.0 %\n"
      "zbv            2  64.7 %   42.9 %   26.2 %\n"
      "1f1b           1  66.7 %   53.8 %   41.5 %\n"
      "* the least of its column\n");
  // Each number is that of the JSON; of all that are least the mark.
  const std::string asked =
      "sweep 1f1b zb_h1 gpipe v_auto inference --ranks 2,4,8 --microbatches 6 --cost 3,3,3,0 ";
  const json rows = run_json(asked + "--format json");
  for (const std::string measure :
       {"makespan", "span", "pace", "peak", "bubble", "span_bubble", "above"}) {
    const std::string table = run(asked + "--measure " + measure).out;
    INFO(table);
    CHECK(table.find(", 6 micro-batches, by ranks\n") != std::string::npos);
    std::map<int, double> least;
    const auto value_of = [&](const json& row) {
      const double makespan = row["makespan"];
      if (measure == "pace") return makespan / 6;
      if (measure == "peak") return std::ranges::max(row["peak"].get<std::vector<double>>());
      if (measure.ends_with("bubble")) return 100 * row[measure].get<double>();
      if (measure == "above")
        return 100 * (makespan - row["bound"].get<double>()) / row["bound"].get<double>();
      return row[measure].get<double>();
    };
    for (const json& row : rows) {
      if (row["schedule"] == "inference") continue;
      const auto [at, fresh] = least.insert({row["ranks"], value_of(row)});
      if (!fresh) at->second = std::min(at->second, value_of(row));
    }
    int there = 0;
    for (const auto& line :
         found(table,
               "\n([a-z0-9_]+) +[12] +([-0-9.%]+)( %)?([* ]) +([-0-9.%]+)( %)?([* ]) +"
               "([-0-9.%]+)( %)?(\\*?)")) {
      if (line[0] == "schedule") continue;
      ++there;
      for (std::size_t at = 0; at < 3; ++at) {
        const int ranks = 2 << at;
        const json row = *std::ranges::find_if(rows, [&](const json& one) {
          return one["schedule"] == line[0] && one["ranks"] == ranks;
        });
        const bool forwards = line[0] == "inference";
        const std::string& number = line[1 + 3 * at];
        INFO(row.dump());
        CHECK((line[3 + 3 * at] == "*") == (!forwards && value_of(row) == least[ranks]));
        CHECK(std::abs(std::stod(number) - value_of(row)) < 0.0501);
      }
    }
    CHECK(there == (measure == "above" ? 4 : 5));  // forwards alone have no bound
  }
  // What is refused on some shapes is so with their counts.
  const outcome some = run("sweep 1f1b zb_auto --ranks 2,4 --microbatches 2,4,8 --limit 3");
  CHECK(some.exit == 0);
  CHECK(some.out.find("1f1b at 4, 8: needs 4 on rank 0, whose limit is 3\n") != std::string::npos);
  const outcome none = run("sweep dualpipe --ranks 3,5 --microbatches 8");
  CHECK(none.exit == 2);
  CHECK(
      none.out ==
      "bubble, 8 micro-batches, by ranks\ndualpipe: this schedule needs an even number of ranks\n");
  CHECK(none.err ==
        "stretto: no schedule serves any of these shapes within its limits; standard output says "
        "why\n");
}

TEST_CASE("sweep draws a line for each schedule, or for several that are alike") {
  for (const std::string asked :
       {test_support::sanitized ? "--ranks 4 --microbatches 2,4 --cost 10,12,8,1 --chunks 2"
                                : "--ranks 4 --microbatches 4,8,16,32 --cost 10,12,8,1 --chunks 2",
        "1f1b seq_1f1b zbv v_min inference --ranks 2,4,6 --microbatches 1,2,40 --measure makespan",
        "zbv 1f1b --ranks 2,4,8,32 --microbatches 16 --measure peak",
        "dualpipe chimera 1f1b --ranks 2,3,4,5,6 --microbatches 8",
        "1f1b --ranks 1 --microbatches 1"}) {
    INFO(asked);
    const outcome drawn = run("sweep --format svg " + asked);
    REQUIRE(drawn.err == "");
    REQUIRE(drawn.exit == 0);
    REQUIRE(drawn.out.starts_with("<svg"));
    REQUIRE(drawn.out.ends_with("</svg>\n"));
    const json rows = run_json("sweep --format json " + asked);
    // A dot for each value, at a height by it, which tells it: all schedules are in one each.
    std::size_t told = 0;
    std::map<double, double> heights;
    const bool percents = asked.find("measure") == std::string::npos;
    for (const auto& dot : found(drawn.out,
                                 "<circle cx=\"[0-9.]+\" cy=\"([0-9.]+)\" [^>]*><title>"
                                 "([^<]*), [0-9]+ [a-z-]+: ([0-9.]+)( %)?</title>")) {
      told += 1 + static_cast<std::size_t>(std::ranges::count(dot[1], ','));
      if (asked.starts_with("--ranks 4")) heights[std::stod(dot[2])] = std::stod(dot[0]);
      CHECK((dot[3] == " %") == percents);
    }
    CHECK(told == static_cast<std::size_t>(std::ranges::count_if(rows, [](const json& row) {
            return row.contains("bound") && row["schedule"] != "inference";
          })));
    double before = 1e9;
    for (const auto& [value, height] : heights) {
      CHECK(height <= before);
      before = height;
    }
    // Where there is none, the line is not drawn through.
    if (asked.starts_with("dualpipe")) {
      const auto paths =
          found(drawn.out, "class=\"line\" [^>]* d=\"(M[0-9.]+ [0-9.]+[ML][^\"]*)\"");
      REQUIRE(paths.size() == 3);
      CHECK(std::ranges::count(paths[0][0] + paths[1][0] + paths[2][0], 'M') == 3 + 3 + 1);
    }
    // Names are on the picture, and none on another.
    const double width = std::stod(found(drawn.out, "width=\"([0-9.]+)\"")[0][0]);
    const double height = std::stod(found(drawn.out, "height=\"([0-9.]+)\"")[0][0]);
    std::vector<std::pair<double, double>> labels;
    for (const auto& one : found(drawn.out,
                                 "<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" class=\"[a-z]*\" "
                                 "text-anchor=\"(start|end|middle)\">([^<]*)</text>")) {
      const double wide = stretto::detail::svg_layout::text_width(one[3], 12);
      const double x = std::stod(one[0]);
      if (one[2] == "start") CHECK(x + (one[1] == "28.0" ? 0 : wide) < width);
      CHECK(std::stod(one[1]) < height);
      if (one[2] == "start" && x > 600) labels.emplace_back(x, std::stod(one[1]));
    }
    REQUIRE(!labels.empty());
    std::ranges::sort(labels, {}, [](const auto& one) { return one.second; });
    for (std::size_t at = 1; at < labels.size(); ++at)
      CHECK(labels[at].second - labels[at - 1].second >= 14.9);
  }
}

TEST_CASE("sweep's pictures can be read where all is small, many, or not there") {
  // Ticks where all values lie within a unit.
  for (const std::string asked :
       {"1f1b zbv --ranks 4 --microbatches 400,500,1000",
        "1f1b zbv --ranks 4 --microbatches 100,200,1000 --measure pace"}) {
    const std::string drawn = run("sweep --format svg " + asked).out;
    INFO(asked);
    CHECK(found(drawn, "class=\"tick\" text-anchor=\"end\">([0-9]+[.][0-9]+)( %)?</text>").size() >=
          3);
  }
  // Over the plot a name's line is dotted: there is nothing of the schedule's.
  const std::string short_of =
      run("sweep 1f1b zbv --ranks 2,4 --microbatches 8 --limit 3 --format svg").out;
  CHECK(found(short_of, "class=\"leader\" stroke-dasharray=\"(1 4)\"").size() == 2);
  CHECK(found(run("sweep 1f1b zbv --ranks 2,4 --microbatches 8 --format svg").out,
              "class=\"leader\" (stroke)")
            .empty());
  if (test_support::sanitized) return;  // so many schedules take their time
  // No more lines than can be told apart, and which are not there is said.
  const std::string many = run("sweep --ranks 2 --microbatches 2,4 --chunks 1,2,3 --slices 2,4 "
                               "--measure pace --cost 7,9,5,3 --format svg")
                               .out;
  std::map<std::string, int> looks;
  for (const auto& line : found(many, "class=\"line\" (stroke=[^>]*) d=\"M[0-9.]+ [0-9.]+h16"))
    ++looks[line[0]];
  CHECK(looks.size() == 30);
  for (const auto& [look, lines] : looks) CHECK(lines == 1);
  CHECK(found(many, "not drawn: ([0-9]+) that end above these").size() == 1);
}

TEST_CASE("sweep refuses what is no list, and shapes that are too large before it computes any") {
  const auto refused = [](const std::string& arguments) {
    const outcome ran = run("sweep " + arguments);
    CHECK(ran.exit == 2);
    CHECK(ran.out == "");
    return ran.err;
  };
  CHECK(refused("--ranks 4,x --microbatches 4") ==
        "stretto: --ranks 4,x: expected integers from 1 to 2147483647 between commas\n");
  CHECK(refused("--ranks 4 --microbatches 0,4") ==
        "stretto: --microbatches 0,4: expected integers from 1 to 2147483647 between commas\n");
  CHECK(refused("--ranks 4 --microbatches 4 --measure idle")
            .find("--measure: idle not in {bubble,") != std::string::npos);
  CHECK(refused("--microbatches 4") == "stretto: --ranks is required\n");
  CHECK(refused("1f1b --ranks 4,8000000 --microbatches 4") ==
        "stretto: --ranks 8000000 --chunks 1: their product must be at most 4000000\n");
  CHECK(refused("1f1b --ranks 2 --microbatches 2 --gathered 3").find("--gathered 3: ") !=
        std::string::npos);
  CHECK(refused("inference --ranks 4 --microbatches 4,8 --format svg") ==
        "stretto: --format svg: no schedule that trains is there to be drawn; a table says why\n");
  // The same number twice is one.
  CHECK(run("sweep 1f1b --ranks 2,2 --microbatches 4,2,4").out ==
        run("sweep 1f1b --ranks 2 --microbatches 2,4").out);
  const temporary file("sweep.svg");
  for (const std::string format : {"svg", "table", "json", "csv"}) {
    const std::string asked = "sweep zbv 1f1b --ranks 2,4 --microbatches 4,8 --format " + format;
    const outcome quiet = run(asked + " -o " + file.path());
    CHECK(quiet.exit == 0);
    CHECK(quiet.out == "");
    CHECK(contents(file.path()) == run(asked).out);
  }
}
