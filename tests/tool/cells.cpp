// Files of orders that say what PyTorch's CSV has no form for.
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::found;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

//! A schedule with its shape, and what else its jobs take.
struct written {
  const char* schedule;
  const char* costs;
  const char* lies;  //!< as `check` says it
};
constexpr written all[] = {
    {"chimera --ranks 4 --microbatches 8", "--cost 3,4,5,1", "bidirectional, "},
    {"bitpipe --ranks 4 --microbatches 8 --chunks 2", "--cost 3,4,5,1", "bidirectional, "},
    {"bitpipe --ranks 2 --microbatches 3 --chunks 3 --recompute 1/2", "--again 1",
     "bidirectional, "},
    {"dualpipe --ranks 4 --microbatches 9", "--cost 3,4,5,1 --hides 50", "bidirectional, "},
    {"inference --ranks 4 --microbatches 5 --placement bidirectional", "", "bidirectional, "},
    {"dualpipe_v --ranks 3 --microbatches 6", "--cost 3,4,5,1 --hides 50", "wave, "},
    {"seq_1f1b --ranks 4 --microbatches 4 --slices 2", "--cost 3,4,5,1", ""},
    {"interleaved_zb --ranks 4 --microbatches 4 --chunks 2 --slices 4", "--memory 4,-1,-3",
     "looped, "},
    {"1f1b --ranks 4 --microbatches 8 --recompute all", "--again 2,1", ""},
    {"v_half --ranks 4 --microbatches 8 --recompute 1/2", "--cost 3,4,5,1", "wave, "},
    {"gpipe --ranks 4 --microbatches 6 --offload all", "--copy 2,1", ""},
    {"chimera --ranks 2 --microbatches 4 --offload all", "--copy 1", "bidirectional, "},
    {"dualpipe --ranks 4 --microbatches 8 --recompute all", "", "bidirectional, "},
    {"dualpipe --ranks 2 --microbatches 3 --recompute 2/3", "--again 1", "bidirectional, "},
    {"dualpipe --ranks 2 --microbatches 3 --offload 1/2,lag=1,prefetch=1", "", "bidirectional, "}};

std::string says(const outcome& ran) {
  CHECK(ran.exit == 2);
  CHECK(ran.out == "");
  return ran.err;
}

}  // namespace

TEST_CASE("what a schedule's cells say is what the schedule is") {
  const temporary file("cells.csv");
  const temporary again("again.csv");
  for (const written& one : all) {
    INFO(one.schedule);
    const std::string made = std::string(one.schedule) + " ";
    const std::string costs = one.costs;
    REQUIRE(run("schedule " + made + costs + " --format cells -o " + file.path()).exit == 0);
    const std::string read = "--csv " + file.path() + " " + costs;
    json mine = run_json("simulate " + made + costs + " --format json");
    json its = run_json("simulate " + read + " --format json");
    REQUIRE(mine.contains("makespan"));
    for (json* each : {&mine, &its}) each->erase("schedule");
    CHECK(mine == its);
    // To what each rank is given to run.
    const bool forwards = made.starts_with("inference");
    const std::string planned = run("plan " + made + costs + " --format json").out;
    CHECK(planned.size() > 1000);
    json plans[] = {json::parse(planned), json::parse(run("plan " + read + " --format json").out)};
    for (json& each : plans) each.erase("schedule");
    CHECK((plans[0] == plans[1]));
    const std::string kept = run("check " + file.path() + " " + costs).out;
    CHECK_MESSAGE(
        kept.ends_with(" stages, " + std::string(one.lies) +
                       (forwards ? "forwards only, compute_only" : "compute_only") +
                       (made.starts_with("dualpipe_v") ? "" : " beyond PyTorch's grammar") +
                       ": ok\n"),
        kept);
    REQUIRE(run("schedule " + read + " --format cells -o " + again.path()).exit == 0);
    CHECK(contents(file.path()) == contents(again.path()));
    CHECK(run("plot " + read).out.ends_with("</svg>\n"));
    // And with messages, which keep the rules.
    REQUIRE(run("schedule " + made + costs + " --comms --format cells -o " + again.path()).exit ==
            0);
    const std::string lowered = run("check " + again.path() + " " + costs).out;
    CHECK_MESSAGE(lowered.find("compute_comms") != std::string::npos, lowered);
    CHECK(lowered.ends_with(": ok\n"));
    if (forwards) continue;
    // Beside the schedule itself. What runs again, or is copied, no option puts into others.
    const auto shape = found(made,
                             "(--ranks [0-9]+ --microbatches [0-9]+)( --chunks [0-9]+)?( "
                             "--slices [0-9]+)?( --[a-z]+ [0-9a-z/]+)?");
    REQUIRE(shape.size() == 1);
    const std::string name = made.substr(0, made.find(' '));
    const std::string asked = "compare " + name + " " + shape[0][0] + shape[0][2] + " --chunks " +
                              its["chunks"].dump() + " " + costs + " --format json --csv " +
                              file.path();
    const json beside = run_json(asked);
    REQUIRE(beside.is_array());
    const auto row =
        std::ranges::find_if(beside, [](const json& each) { return each.contains("file"); });
    REQUIRE(row != beside.end());
    INFO(row->dump());
    CHECK((*row)["makespan"] == its["makespan"]);
    CHECK((*row)["peak"] == its["peak"]);
    CHECK((*row)["makespan"].get<double>() >= (*row)["bound"].get<double>());
    if (!shape[0][3].empty()) continue;
    for (const json& each : beside)
      if (!each.contains("file") && each.value("slices", 1) == row->value("slices", 1))
        for (const char* number : {"makespan", "span", "bubble", "peak", "idle", "bound"})
          CHECK(each[number] == (*row)[number]);
  }
}

TEST_CASE("a file's order within a limit has no bound that its second runs could beat") {
  const temporary file("again.csv");
  REQUIRE(
      run("schedule 1f1b --ranks 4 --microbatches 8 --recompute all --memory 4,0,-4 --again 1,3 "
          "--format cells -o " +
          file.path())
          .exit == 0);
  const json rows = run_json(
      "compare zb_auto --ranks 4 --microbatches 8 --memory 4,0,-4 --again 1,3 "
      "--limit 8 --format json --csv " +
      file.path());
  REQUIRE(rows.is_array());
  for (const json& row : rows) {
    INFO(row.dump());
    CHECK(row["makespan"].get<double>() >= row["bound"].get<double>());
    if (row.contains("file")) CHECK(std::ranges::max(row["peak"].get<std::vector<int>>()) <= 8);
  }
}

TEST_CASE("what is wrong with such cells is named with its place") {
  const temporary file("wrong.csv");
  const auto checked = [&](const std::string& text) {
    file.write(text);
    const outcome ran = run("check " + file.path());
    CHECK(ran.exit == 1);
    const std::size_t at = ran.err.find(".csv: ");
    return at == std::string::npos ? ran.err : ran.err.substr(at + 6);
  };
  CHECK(checked("0F0,0F0.1,0B0.1,0B0\n1F0,1F0.1,1B0.1\n") ==
        "row 2 (rank 1): rule complete broken, job 1B0: the job is missing\n");
  CHECK(checked("0F0,0F0.1,0B0.1,0B0\n1F0,1F0.9,1B0.1,1B0\n") ==
        "row 2 (rank 1), cell 2, \"1F0.9\": rule complete broken, job 0F0.2: the job is missing, "
        "which this cell asks for\n");
  CHECK(checked("0F0,0F0.1,0B0,0B0.1\n1F0,1F0.1,1B0.1,1B0\n")
            .starts_with("row 1 (rank 0), cell 3, \"0B0\": rule ordered broken"));
  CHECK(checked("0F0,0B0,0R0\n")
            .starts_with("row 1 (rank 0), cell 2, \"0B0\": rule complete broken"));
  CHECK(checked("0F0,0OFFLOAD0,0B0\n") ==
        "row 1 (rank 0): rule complete broken, job 0RELOAD0: the job is missing\n");
  CHECK(checked("0F0,0B0,0ALL_REDUCE0\n") ==
        "row 1 (rank 0), cell 3, \"0ALL_REDUCE0\": syntax: this job has no form in the format\n");
  CHECK(checked("0UNSHARD0.1,0F0,0B0\n").find("no form") != std::string::npos);
  // Two directions, of which one micro-batch goes the other way.
  CHECK(checked("0F0,1F1,1B1,0B0,1F2,1B2,1F3,1B3\n1F0,0F1,0B1,1B0,0F2,0B2,0F3,0B3\n")
            .find("rule complete broken") != std::string::npos);
  // Two stages a direction and rank: what is mistyped neither moves a stage nor makes a chunk.
  const std::string waves = "0F0,1F1,2F1,3F0,3B0,2B1,1B1,0B0\n0F1,1F0,2F0,3F1,3B1,2B0,1B0,0B1\n";
  file.write(waves);
  CHECK(run("check " + file.path()).out.find("2 chunks, 4 stages, bidirectional, ") !=
        std::string::npos);
  const auto with = [&](const std::string& right, const std::string& wrong) {
    std::string text = waves;
    text.replace(text.find(right), right.size(), wrong);
    return checked(text);
  };
  CHECK(with("3F0", "9F0") ==
        "row 1 (rank 0), cell 4, \"9F0\": rule complete broken, job 4F0: the job is missing, which "
        "this cell asks for\n");
  CHECK(with("3B0", "2B0").starts_with(
      "row 1 (rank 0), cell 5, \"2B0\": rule complete broken: of two directions, "));
  CHECK(with("2B0,", "") == "row 2 (rank 1): rule complete broken, job 2B0: the job is missing\n");
  REQUIRE(
      run("schedule bitpipe --ranks 4 --microbatches 4 --chunks 2 --format cells -o " + file.path())
          .exit == 0);
  const std::string whole = contents(file.path());
  for (const std::string stage : {"0", "3", "7"}) {  // of which no job is left
    const std::regex of_stage("\\b" + stage + "[FB][0-9]");
    const std::string told = checked(std::regex_replace(whole, of_stage, ""));
    CHECK_MESSAGE(told.find("job " + stage + "F0: the job is missing") != std::string::npos, told);
  }
  const std::string good = "0F0,1F1,1B1,0B0\n1F0,0F1,1B0,0B1\n";
  file.write(good);
  CHECK(run("check " + file.path()).out.find("2 stages, bidirectional, ") != std::string::npos);
  CHECK(checked("0F0,1F1,1B1,0B0\n1F0,0F1,1B0\n") ==
        "row 2 (rank 1): rule complete broken, job 0B1: the job is missing\n");
  CHECK(checked("0F0,1F1,1B1,0B0,1F2\n1F0,0F1,1B0,0B1\n").find("job 0F2: the job is missing") !=
        std::string::npos);

  CHECK(says(run("schedule dualpipe --ranks 2 --microbatches 4 --format csv")) ==
        "stretto: --format csv: a bidirectional placement has no form in PyTorch's CSV; --format "
        "cells writes it for stretto alone\n");
  CHECK(says(run("schedule gpipe --ranks 2 --microbatches 4 --recompute all --format csv")) ==
        "stretto: --format csv: 0R0 of rank 0: this job has no form in the format; --format cells "
        "writes it for stretto alone\n");
  file.write(good);
  CHECK(
      says(run("simulate --csv " + file.path() + " --again 1")).find("--again 1: no forward of ") !=
      std::string::npos);
  CHECK(says(run("simulate --csv " + file.path() + " --copy 1")).find("--copy 1: no job of ") !=
        std::string::npos);
  file.write("0F0,0F0.1,0B0.1,0B0\n");
  CHECK(says(run("compare --ranks 1 --microbatches 1 --slices 4 --csv " + file.path()))
            .ends_with("has 2 slices; --slices 2 compares with as many\n"));
  CHECK(
      checked("0F0,0F0.1,0R0.1,0B0.1,0B0\n") ==
      "row 1 (rank 0), cell 3, \"0R0.1\": unsupported: a slice cannot be recomputed: later ones of "
      "its micro-batch read what it keeps\n");
  CHECK(checked("0F0,0OFFLOAD0,0F0.1,0B0.1,0RELOAD0,0B0\n")
            .starts_with("row 1 (rank 0), cell 2, \"0OFFLOAD0\": unsupported: "));
}

TEST_CASE("of two directions the cell is named that is wrong, whichever that is") {
  const temporary file("both.csv");
  const auto checked = [&](const std::string& text) {
    file.write(text);
    return run("check " + file.path()).err;
  };
  const std::string rule =
      ": rule complete broken: of two directions, the second half of the "
      "micro-batches goes from the last rank to the first: the job lies on "
      "the other rank of its stage's two\n";
  // Odd micro-batches the other way; the greater half; from the other end.
  CHECK(checked("0F0,0F2,1F1,1F3,1B1,1B3,0B0,0B2\n1F0,1F2,0F1,0F3,1B0,1B2,0B1,0B3\n")
            .ends_with("row 1 (rank 0), cell 2, \"0F2\"" + rule));
  CHECK(checked("0F0,1F1,1B1,1F2,1B2,0B0\n1F0,0F1,0F2,1B0,0B1,0B2\n")
            .ends_with("row 1 (rank 0), cell 2, \"1F1\"" + rule));
  CHECK(checked("1F0,0F1,1B0,0B1\n0F0,1F1,1B1,0B0\n").ends_with("cell 1, \"1F0\"" + rule));
  for (const std::string schedule :
       {"dualpipe --ranks 4 --microbatches 8", "chimera --ranks 2 --microbatches 3",
        "chimera --ranks 4 --microbatches 4 --recompute all"}) {
    const std::string good = run("schedule " + schedule + " --format cells").out;
    const std::string ranks = found(schedule, "--ranks ([0-9]+)")[0][0];
    int tried = 0;
    for (const auto& cell : found(good, "([0-9]+)[FBIWR][0-9]+")) static_cast<void>(cell), ++tried;
    CHECK(tried > 10);
    std::size_t at = 0;
    for (int job = 0; job < tried; ++job) {
      at = good.find_first_of("FBIWR", at + 1);
      while (good.compare(at, 3, "F_B") == 0 || good[at - 1] < '0' || good[at - 1] > '9')
        at = good.find_first_of("FBIWR", at + 1);
      if (job % 3 != 0) continue;  // they are many
      const std::size_t end = good.find_first_of(",;)\r", at);
      for (const std::string& stage : {ranks, std::string("33")}) {
        // A stage that is none is named where it stands, in whichever cell.
        std::string typed = good;
        typed.replace(at - 1, 1, stage);
        const std::string job_typed = stage + good.substr(at, end - at);
        const std::string said = checked(typed);
        INFO(schedule, ": ", job_typed, ": ", said);
        CHECK(said.find(job_typed) != std::string::npos);
        CHECK(said.find("another rank") == std::string::npos);
      }
    }
    // Nor does one that is left out put others on a wrong rank.
    std::size_t comma = 0;
    for (int cell = 0; cell < 6; ++cell) {
      comma = good.find(',', comma + 1);
      std::string left = good;
      left.erase(comma, good.find_first_of(",\r", comma + 1) - comma);
      const std::string said = checked(left);
      INFO(schedule, ": ", said);
      CHECK(said.empty() == (good[comma + 2] == 'R'));
      CHECK(said.find("another rank") == std::string::npos);
      CHECK(said.find("other rank") == std::string::npos);
    }
  }
}

TEST_CASE("no order of two directions is below its bound, nor counts a stage's weights twice") {
  const temporary file("both.csv");
  const temporary costs("both.json");
  const auto row_of = [&](const std::string& more) {
    for (const json& row : run_json("compare 1f1b inference --format json --csv " + file.path() +
                                    " --costs " + costs.path() + " " + more))
      if (row.contains("file")) return row;
    return json{};
  };
  file.write("0F0,0F0.1,1F1,1F1.1,1B1.1,1B1,0B0.1,0B0\n1F0,1F0.1,0F1,0F1.1,1B0.1,1B0,0B1.1,0B1\n");
  for (const char* entries :
       {R"({"loss":3})", R"({"loss":3,"jobs":[{"kind":"I","cost":2,"microbatch":0}]})"}) {
    costs.write(entries);
    const json row = row_of("--ranks 2 --microbatches 2 --slices 2");
    INFO(row.dump());
    CHECK(row["makespan"].get<double>() >= row["bound"].get<double>());
    CHECK(row["span"].get<double>() >= row["span_bound"].get<double>());
    CHECK(row["bound"].get<double>() >= 30);
  }
  // Of three micro-batches two go the first way, whatever their slices.
  file.write(
      "0F0,0F0.1,0F1,0F1.1,1F2,1F2.1,1B2.1,1B2,0B0.1,0B0,0B1.1,0B1\n"
      "0F2,0F2.1,1F0,1F0.1,1B0.1,1B0,1F1,1F1.1,1B1.1,1B1,0B2.1,0B2\n");
  costs.write(R"({"loss":10,"jobs":[{"kind":"F","cost":20,"rank":0}]})");
  const json row = row_of("--ranks 2 --microbatches 3 --slices 2");
  INFO(row.dump());
  CHECK(row["makespan"].get<double>() >= row["bound"].get<double>());

  file.write("0F0,2F1,2B1,0B0\n1F0,1F1,1B0,1B1\n2F0,0F1,2B0,0B1\n");
  const std::string three = "simulate --csv " + file.path() + " --memory 0,0,0 --format json ";
  CHECK(run_json(three + "--weights 10")["peak"] == json({20, 10, 20}));
  const temporary layers("layers.json");
  layers.write(R"([{"layer":1,"memory_weights":7},{"layer":0,"memory_weights":2}])");
  CHECK(run_json(three + "--layers table:1,1,1 --layer-costs " + layers.path())["peak"] ==
        json({2, 7, 2}));
  costs.write("{}");
  CHECK(row_of("--ranks 3 --microbatches 2 --memory 0,0,0 --weights 10")["peak"] ==
        json({20, 10, 20}));
}
