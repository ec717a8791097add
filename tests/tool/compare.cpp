// All schedules beside each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "run_tool.hpp"
#include "support/sanitized.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

}  // namespace

TEST_CASE("compare runs every schedule on one model") {
  const json all = run_json("compare --ranks 4 --microbatches 8 --chunks 2 --format json");
  REQUIRE(all.is_array());
  const auto find = [&](const std::string& name) {
    for (const json& one : all)
      if (one["schedule"] == name) return one;
    return json{};
  };
  // 1F1B has one stage of two chunks per rank: twice its 33 units and its peaks.
  CHECK(find("1f1b")["makespan"] == 66);
  CHECK(find("1f1b")["chunks"] == 1);
  CHECK(find("1f1b")["peak"] == json({8, 6, 4, 2}));
  CHECK(find("interleaved")["makespan"] == 57);
  CHECK(find("interleaved")["peak"] == json({11, 9, 7, 5}));
  CHECK(find("gpipe")["peak"] == json({16, 16, 16, 16}));
  CHECK(find("inference")["peak"] == json({0, 0, 0, 0}));
  CHECK(find("inference").contains("bound") == false);
  // Every schedule is there, the shortest first, forwards alone last; none beats its bound.
  const std::string listed = run("list").out;
  CHECK(static_cast<std::ptrdiff_t>(all.size()) == std::count(listed.begin(), listed.end(), '\n'));
  CHECK(all.back()["schedule"] == "inference");
  double before = 0;
  for (const json& one : all) {
    INFO(one.dump());
    if (one.contains("refused") || one["schedule"] == "inference") continue;
    CHECK(one["makespan"].get<double>() >= before);
    before = one["makespan"];
    CHECK(one["makespan"].get<double>() >= one["bound"].get<double>());
    CHECK(one["span"].get<double>() >= one["span_bound"].get<double>());
  }
  // Two chunks of one slice make a job of ZB-H1 in slices, of a whole micro-batch four parts one of
  // 1F1B. What can be sliced stands there whole, too.
  const std::string sliced = "compare --ranks 4 --microbatches 8 --chunks 2 --slices 2";
  const json cut = run_json(sliced + " --format json");
  const auto in = [&](const std::string& name, int slices) {
    return *std::find_if(cut.begin(), cut.end(), [&](const json& one) {
      return one["schedule"] == name && one["slices"] == slices;
    });
  };
  CHECK(in("zb_h1", 2)["makespan"] == 2 * (8 * 2 * 3 + 3));
  CHECK(in("zb_h1", 2)["peak"] == json({10, 10, 10, 10}));
  CHECK(in("seq_1f1b", 2)["makespan"] == 2 * (8 * 2 + 3) * 3);
  CHECK(in("seq_1f1b", 2)["peak"] == json({10, 8, 6, 4}));
  CHECK(in("seq_1f1b", 1)["makespan"] == 132);
  CHECK(in("interleaved", 2)["makespan"] == (8 * 2 * 2 + 3) * 3);
  CHECK(in("interleaved", 2)["peak"] == json({12, 10, 8, 6}));
  CHECK(in("1f1b", 1)["makespan"] == 132);
  CHECK(in("1f1b", 1)["peak"] == json({16, 12, 8, 4}));
  std::ptrdiff_t rows = 0;
  for (const json& one : cut) rows += one["slices"] == 1 || one["slices"] == 2 ? 1 : 0;
  const std::string served = "any number of slices";
  std::ptrdiff_t twice = 0;
  for (std::size_t at = listed.find(served); at != std::string::npos;
       at = listed.find(served, at + 1))
    ++twice;
  CHECK(twice == 9);
  CHECK(rows == static_cast<std::ptrdiff_t>(all.size()) + twice);
  CHECK(run(sliced).out.find("schedule        chunks  slices  job") == 0);
  // What does not fit says what it needs, a search what would be enough.
  const json tight = run_json("compare --ranks 4 --microbatches 8 --limit 3 --format json");
  for (const json& one : tight)
    if (one["schedule"] == "gpipe") CHECK(one["refused"] == "needs 8 on rank 0, whose limit is 3");
  // Where a search knows no smallest limit it claims none.
  const std::string kept =
      run("compare zb_auto 1f1b --ranks 4 --microbatches 8 --chunks 2 --limit 4 "
          "--memory 3,-1,-1")
          .out;
  CHECK(kept.find("\nzb_auto: needs more than the limit of rank 0, 4; a limit of 20 is enough\n") !=
        std::string::npos);
  CHECK(kept.find("\n1f1b: needs 32 on rank 0, whose limit is 4\n") != std::string::npos);
  CHECK(run_json("compare zb_auto --ranks 4 --microbatches 8 --chunks 2 --limit 20 "
                 "--memory 3,-1,-1 --format json")[0]
            .contains("makespan"));
  const std::string none = run("compare --ranks 4 --microbatches 8 --limit 0").out;
  CHECK(none.find("\n1f1b: needs 4 on rank 0, whose limit is 0\n") != std::string::npos);
  CHECK(none.find("\nzb_auto: needs 1 on rank ") != std::string::npos);
  // When not even forwards alone fit, each says so, and so does the exit.
  for (const std::string format : {"table", "json"}) {
    const outcome left = run("compare --ranks 4 --microbatches 8 --limit 0 --format " + format);
    CHECK(left.exit == 0);
    CHECK(left.err.empty());
    const outcome bare =
        run("compare --ranks 4 --microbatches 8 --limit 0 --weights 1 --format " + format);
    CHECK(bare.exit == 2);
    CHECK(bare.err.starts_with("stretto: no schedule serves this"));
    CHECK(bare.out.find("needs 5 on rank 0, whose limit is 0") != std::string::npos);
  }
  // Room is for the micro-batches that there are, not for as many as so many ranks could keep.
  CHECK(run("simulate v_auto --variant 0 --ranks 60000 --microbatches 1").exit == 0);
}

TEST_CASE("compare cuts one model into the chunks that a schedule has") {
  const temporary file("costs.json");
  const auto find = [](const std::string& arguments, const std::string& name) {
    for (const json& one :
         run_json("compare --ranks 4 --microbatches 8 --format json " + arguments))
      if (one["schedule"] == name) return one;
    return json{};
  };
  // A stage of 3, 5, 7 in two halves; the hop is the same.
  const json halves = find("--cost 3,5,7,1", "zbv");
  const json doubled =
      run_json("simulate zbv --ranks 4 --microbatches 8 --chunks 2 --cost 3,5,7,2 --format json");
  CHECK(halves["chunks"] == 2);
  CHECK(2 * halves["makespan"].get<double>() == doubled["makespan"]);
  CHECK(halves["peak"] == json({4, 4, 4, 4}));
  // Within a limit of whole activations.
  CHECK(find("--cost 3,5,7,1 --limit 4", "zbv")["makespan"] == halves["makespan"]);
  CHECK(find("--cost 3,5,7,1 --limit 3", "zbv")["refused"] ==
        "needs 4 on rank 0, whose limit is 3");
  CHECK(find("--limit 3", "dualpipe_v")["refused"] == "needs 4.50 on rank 0, whose limit is 3");
  // Three chunks in two: a half more each.
  const json thirds = find("--chunks 3 --cost 2,2,2,0", "zbv");
  CHECK(thirds["makespan"] == 153);
  CHECK(thirds["peak"] == json({12, 12, 12, 12}));
  // From a file: the loss stays on the last stage, which is rank 0's; the rest is cut.
  file.write(R"({"loss": 10, "jobs": [{"rank": 1, "kind": "F", "cost": 4}]})");
  const json given = find("--costs " + file.path(), "zbv");
  file.write(R"({"loss": 20, "jobs": [{"rank": 1, "kind": "F", "cost": 4}]})");
  const json same = run_json(
      "simulate zbv --ranks 4 --microbatches 8 --chunks 2 --format json --cost 1,1,1,0 --costs " +
      file.path());
  CHECK(2 * given["makespan"].get<double>() == same["makespan"]);
  // The same from a pipe, which can be read once, and twice asked.
  const std::string asked = "compare --ranks 4 --microbatches 8 --costs ";
  const auto piped = test_support::run(
      "sh", "-c 'cat " + file.path() + " | \"" STRETTO_TOOL_PATH "\" " + asked + "-'");
  CHECK(piped.err == "");
  CHECK(piped.out == run(asked + file.path()).out);

  // What a pair hides shortens the schedules that have any, and none other.
  const json alone = find("--cost 2,2,2,0", "dualpipe");
  const json hidden = find("--cost 2,2,2,0 --hides 100", "dualpipe");
  CHECK(alone["makespan"] == 52);
  CHECK(hidden["makespan"].get<double>() < 52);
  CHECK(find("--cost 2,2,2,0 --hides 100", "1f1b")["makespan"] == 66);
  // A part of a unit is not rounded away.
  const json tenths = run_json(
      "simulate dualpipe --ranks 4 --microbatches 8 --format json --cost 10,10,10,0 --hides 30");
  CHECK(10 * find("--cost 1,1,1,0 --hides 30", "dualpipe")["makespan"].get<double>() ==
        doctest::Approx(tenths["makespan"].get<double>()));
  CHECK(find("--layers 8 --cost 1,1,1,0 --hides 30", "1f1b")["makespan"] ==
        find("--layers 8 --cost 1,1,1,0", "1f1b")["makespan"]);
  CHECK(10 * find("--layers 8 --cost 1,1,1,0 --hides 30", "dualpipe")["makespan"].get<double>() ==
        doctest::Approx(
            find("--layers 8 --cost 10,10,10,0 --hides 30", "dualpipe")["makespan"].get<double>()));
  CHECK(run("compare --ranks 4 --microbatches 8 --hides 101").exit == 2);

  const auto first = [](const std::string& arguments) {
    const std::string out = run("compare --ranks 4 --microbatches 8 " + arguments).out;
    const auto line = out.find('\n') + 1;
    return out.substr(line, out.find(' ', line) - line);
  };
  CHECK(first("--sort name") == "1f1b");
  CHECK(first("--sort bubble") == "zbv");
  CHECK(run("compare --ranks 4 --microbatches 8 --sort peek").exit == 2);
  // What is named, whatever is to be short.
  for (const std::string by : {"makespan", "span"})
    for (const std::string objective : {"flush", "span"}) {
      const json sorted =
          run_json("compare --ranks 2 --microbatches 4 --cost 2,2,2,0 --format json --sort " + by +
                   " --objective " + objective);
      std::vector<std::int64_t> lengths;
      for (const json& one : sorted)
        if (one["schedule"] != "inference") lengths.push_back(one[by].get<std::int64_t>());
      CHECK(lengths.size() > 10);
      CHECK(std::ranges::is_sorted(lengths));
    }
  // A search is asked for what is compared.
  const std::string tight = "--cost 10,12,8,1 --limit 3 --objective ";
  CHECK(find(tight + "span", "zb_auto")["span"].get<std::int64_t>() <=
        find(tight + "flush", "zb_auto")["span"].get<std::int64_t>());
  CHECK(run("compare --ranks 4 --microbatches 8 --objective span").out.find("span") !=
        std::string::npos);
}

namespace {

//! The words of a schedule's row in a table that has no other of its name, or other slices.
std::vector<std::string> row_of(const std::string& table, const json& one) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::vector<std::string> words;
    for (std::string word; cells >> word;) words.push_back(word);
    if (words.size() > 2 && words[0] == one["schedule"].get<std::string>() && words[1] != "in" &&
        (!one.contains("slices") || words[2] == std::to_string(one["slices"].get<int>())))
      return words;
  }
  return {};
}

}  // namespace

TEST_CASE("compare shows what each of several limits leaves") {
  const temporary own("own.csv");
  const std::string written = "schedule v_half --ranks 4 --microbatches 8 --format csv -o ";
  REQUIRE(run(written + own.path()).exit == 0);
  for (const std::string more : {"--chunks 2", "--objective span --cost 3,4,2,1",
                                 "--layers balanced:16 --cost 3,4,2,1", "--slices 2,4"}) {
    if (test_support::sanitized && !more.starts_with("--layers")) continue;
    const std::string step = "compare --ranks 4 --microbatches 8 --csv " + own.path() + " " + more;
    INFO(step);
    const int limits[] = {4, 6, 16};
    const json all = run_json(step + " --limit 6,16,4,6 --format json");
    REQUIRE(all.size() == 3);
    const std::string table = run(step + " --limit 16,6,4").out;
    const std::string key = more.find("span") == std::string::npos ? "makespan" : "span";
    for (std::size_t at = 0; at < 3; ++at) {
      CHECK(all[at]["limit"] == limits[at]);
      const json alone = run_json(step + " --format json --limit " + std::to_string(limits[at]));
      CHECK(all[at]["schedules"] == alone);
      double shortest = 1e9;
      for (const json& one : alone)
        if (one.contains(key) && one["schedule"] != "inference")
          shortest = std::min(shortest, one[key].get<double>());
      for (const json& one : alone) {
        const std::vector<std::string> words = row_of(table, one);
        if (words.empty()) continue;  // within no limit
        CAPTURE(one.dump());
        std::string told = words[words.size() - 3 + at];
        CHECK(told.ends_with("*") == (one.contains(key) && one["schedule"] != "inference" &&
                                      one[key].get<double>() == shortest));
        if (told.ends_with("*")) told.pop_back();
        CHECK((told == "-") == !one.contains(key));
        if (one.contains(key)) CHECK(std::stod(told) == doctest::Approx(one[key].get<double>()));
      }
    }
  }
  // The order is that of the greatest; what fits nowhere says why below.
  const std::string table = run("compare --ranks 4 --microbatches 8 --limit 3,4 --sort name").out;
  CHECK(table.find("schedule        chunks    job  limit 3   limit 4\n1f1b ") == 0);
  CHECK(table.find("\n* the shortest makespan within this limit; - does not fit\n") !=
        std::string::npos);
  CHECK(table.find("\ngpipe: needs 8 on rank 0, whose limit is 4\n") != std::string::npos);
  CHECK(run("compare --ranks 4 --microbatches 8 --limit 0,0").out ==
        run("compare --ranks 4 --microbatches 8 --limit 0").out);
  const outcome none = run("compare --ranks 4 --microbatches 8 --weights 5 --limit 1,2");
  CHECK(none.exit == 2);
  CHECK(none.out.find("\n1f1b: needs 9 on rank 0, whose limit is 2\n") != std::string::npos);
  for (const std::string wrong : {"4,,6", "4,x", "4,-1", "4,", ",4", "1000000000000001"}) {
    const outcome refused = run("compare --ranks 4 --microbatches 8 --limit " + wrong);
    CHECK(refused.exit == 2);
    CHECK(refused.err == "stretto: --limit " + wrong +
                             ": expected integers from 0 to 1000000000000000 between commas\n");
  }
}

TEST_CASE(
    "compare: what keeps to a smaller limit stands within a greater one where it is shorter") {
  const std::string step =
      "compare --ranks 3 --microbatches 4 --layers balanced:7 --cost 1,3,3,0 --weights 1 "
      "--embedding 2,0,0 --head 4,11,9 ";
  const json all = run_json(step + "--limit 12,16,18,44 --format json");
  REQUIRE(all.size() == 4);
  std::map<std::string, json> within_less;
  int kept = 0;
  for (const json& within : all)
    for (const json& one : within["schedules"]) {
      CAPTURE(one.dump());
      const auto name = one["schedule"].get<std::string>();
      if (!one.contains("makespan")) {
        CHECK(within_less.count(name) == 0);
        continue;
      }
      CHECK(one["layers"].size() == 3 * one["chunks"].get<std::size_t>());
      if (within_less.count(name) > 0) CHECK(one["makespan"] <= within_less[name]["makespan"]);
      if (one.contains("bound")) CHECK(one["bound"] <= one["makespan"]);
      within_less[name] = one;
      if (!one.contains("made_for")) continue;
      ++kept;
      const std::string limits[] = {std::to_string(one["made_for"].get<int>()),
                                    std::to_string(within["limit"].get<int>())};
      const std::string simulated = "simulate " + step.substr(step.find(' ')) + name +
                                    " --chunks " + one["chunks"].dump() + " --format json --limit ";
      const json less = run_json(simulated + limits[0]);
      CHECK(less["makespan"] == one["makespan"]);
      CHECK(less["layers"] == one["layers"]);
      CHECK(less["peak"] == one["peak"]);
      // By itself it is longer, or there is none.
      const json alone = run_json(simulated + limits[1]);
      if (alone.contains("makespan")) CHECK(alone["makespan"] > one["makespan"]);
    }
  CHECK(kept > 3);
  const std::string table = run(step + "--limit 12,16,18,44").out;
  const std::size_t told = table.find("\nshorter as made for a smaller limit: ");
  REQUIRE(told != std::string::npos);
  CHECK(table.find("zb_h1 of limit 16 from 12", told) != std::string::npos);
}

TEST_CASE("compare puts orders from files beside schedules, told as the schedules' own would be") {
  const auto row = [](const json& all, const char* key, const std::string& value) {
    for (const json& one : all)  // a file has no slices
      if (one.value(key, "") == value && one.value("slices", 1) == 1) return one;
    return json{};
  };
  const struct {
    const char* name;
    const char* chunks;
  } orders[] = {{"1f1b", "1"}, {"zbv", "2"}, {"interleaved", "2"}, {"dualpipe_v", "2"}};
  for (const auto& order : orders) {
    if (test_support::sanitized && &order != &orders[1]) continue;
    const temporary file(std::string(order.name) + "_of_ones_own.csv");
    REQUIRE(run("schedule " + std::string(order.name) + " --ranks 4 --microbatches 8 --chunks " +
                order.chunks + " --format csv -o " + file.path())
                .exit == 0);
    for (const char* with :
         {"--chunks 2", "--cost 10,12,8,1 --chunks 2", "--cost 5,6,7,2 --chunks 2 --hides 75",
          "--limit 9 --chunks 2", "--slices 2 --chunks 2", "--layers 16 --cost 3,4,2,1 --chunks 2",
          "--objective span --weights 3 --chunks 2 --sort bubble"}) {
      INFO((std::string(order.name) + " " + with));
      const json all = run_json("compare --ranks 4 --microbatches 8 --format json " +
                                std::string(with) + " --csv " + file.path());
      json mine = row(all, "file", file.path());
      CHECK(mine["schedule"] == std::filesystem::path(file.path()).filename().string());
      json theirs = row(all, "schedule", order.name);
      REQUIRE(theirs.is_object());
      for (const char* key : {"schedule", "file"}) mine.erase(key), theirs.erase(key);
      CHECK(mine == theirs);
    }
  }
  // Another number of chunks cuts the model anew, as a schedule's does.
  const temporary two("two chunks.csv");
  const std::string written = "schedule zbv --ranks 4 --microbatches 8 --format csv -o '";
  REQUIRE(run(written + two.path() + "'").exit == 0);
  const std::string step = "compare --ranks 4 --microbatches 8 --cost 3,5,7,1 ";
  const json halves = run_json(step + "--format json --csv '" + two.path() + "'");
  CHECK(row(halves, "file", two.path())["makespan"] == row(halves, "schedule", "zbv")["makespan"]);
  CHECK(row(halves, "file", two.path())["chunks"] == 2);
  const json piped = json::parse(test_support::run("sh", "-c 'cat \"" + two.path() +
                                                             "\" | \"" STRETTO_TOOL_PATH "\" " +
                                                             step + "--csv - --format json'")
                                     .out);
  CHECK(row(piped, "file", "-")["makespan"] == row(halves, "schedule", "zbv")["makespan"]);
  // Several, in the table and, above a limit, below it; forwards alone last.
  const temporary forwards("forwards.csv");
  REQUIRE(run("schedule inference --ranks 4 --microbatches 8 --format csv -o " + forwards.path())
              .exit == 0);
  const std::string name = std::filesystem::path(two.path()).filename().string();
  const std::string both =
      run(step + "--limit 3 --csv '" + two.path() + "' --csv " + forwards.path()).out;
  CHECK(both.find("\n" + name + ": needs 4 on rank 0, whose limit is 3\n") != std::string::npos);
  const auto last = both.find(std::filesystem::path(forwards.path()).filename().string());
  CHECK(last > both.find("\ninference "));
  CHECK(both.substr(last, both.find('\n', last) - last).ends_with(" -"));
}

TEST_CASE("compare refuses files of other shapes, by name") {
  const temporary small("small.csv");
  const temporary uneven("uneven.csv");
  const temporary stuck("stuck.csv");
  small.write("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  uneven.write("0F0,2F0,2B0,0B0\n1F0,1B0\n");
  stuck.write("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  const std::string step = "compare --ranks 2 --microbatches 2 ";
  const std::string refused = "stretto: --csv " + small.path() + ": has 2 ";
  CHECK(run(step + "--csv " + small.path()).exit == 0);
  const auto says = [](const std::string& arguments, int exit, const std::string& words) {
    const outcome ran = run(arguments);
    INFO(arguments, ran.err);
    CHECK(ran.exit == exit);
    CHECK(ran.out.empty());
    CHECK(ran.err.find(words) != std::string::npos);
  };
  says("compare --ranks 3 --microbatches 2 --csv " + small.path(), 2,
       refused + "ranks, not the 3 of --ranks\n");
  says("compare --ranks 2 --microbatches 1 --csv " + small.path(), 2,
       refused + "micro-batches, not the 1 of --microbatches\n");
  says("compare --ranks 2 --microbatches 1 --csv " + uneven.path(), 2,
       uneven.path() + ": has 3 stages on 2 ranks, not as many on each");
  CHECK(run("compare --ranks 2 --microbatches 1 --layers 6 --csv " + uneven.path()).exit == 0);
  says(step + "--csv " + stuck.path(), 1,
       stuck.path() + ": row 1 (rank 0), cell 2, \"0B0\": rule live");
  says(step + "--csv /no/such.csv", 2, "--csv /no/such.csv: cannot be read");
  says(step + "--csv " + small.path() + " --merge shortest", 2, "--merge excludes --csv");
  says(step + "--csv ''", 2, "--csv: its value is empty");
  // Costs are cut no finer than they can be told.
  std::string many = "compare --ranks 1 --microbatches 1";
  const temporary files[] = {temporary("7.csv"), temporary("11.csv"), temporary("13.csv")};
  const char* chunks[] = {"7", "11", "13"};
  for (int at = 0; at < 3; ++at) {
    many += " --csv " + files[at].path();
    CHECK(run("schedule interleaved --ranks 1 --microbatches 1 --format csv -o " +
              files[at].path() + " --chunks " + chunks[at])
              .exit == 0);
  }
  says(many, 2, files[2].path() + ": has 13 chunks, for which costs would be cut in 2002 parts");
  CHECK(run(many + " --layers 26").exit == 0);
}
