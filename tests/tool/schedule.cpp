#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "run_tool.hpp"
#include "support/sanitized.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

const std::string csv_dir = STRETTO_CSV_DIR "/csv/";

TEST_CASE("a list tells parts of a unit of time that pairs hide, as one in a finer unit does") {
  const std::string small = "schedule paired_1f1b --ranks 4 --microbatches 8 --hides 75";
  const json parts = run_json(small + " --format json");
  const json whole = run_json(small + " --format json --cost 4,4,4,0");
  CHECK(parts["makespan"] == 27.75);
  CHECK(4 * parts["makespan"].get<double>() == whole["makespan"].get<double>());
  std::size_t jobs = 0;
  double last = 0;
  for (std::size_t rank = 0; rank < 4; ++rank)
    for (std::size_t at = 0; at < whole["lists"][rank]["jobs"].size(); ++at, ++jobs) {
      const json& mine = parts["lists"][rank]["jobs"].at(at);
      const json& theirs = whole["lists"][rank]["jobs"][at];
      CHECK(mine["job"] == theirs["job"]);
      for (const char* time : {"start", "end"})
        CHECK(4 * mine[time].get<double>() == theirs[time].get<double>());
      last = std::max(last, mine["end"].get<double>());
    }
  CHECK(last == 27.75);
  CHECK(jobs == 2 * 4 * 8);
  CHECK(run(small).out.starts_with(
      "paired_1f1b: 4 ranks, 8 micro-batches; makespan 27.75, bubble 32.4 %\n"));
  // By time, where all is short enough for a line.
  const std::string line = run("schedule paired_1f1b --ranks 1 --microbatches 2 --hides 50").out;
  CHECK(line.find("\ntime  ") != std::string::npos);
  const std::string csv = run(small + " --format csv").out;
  CHECK(csv == run(small + " --format csv --cost 4,4,4,0").out);
  CHECK(csv.find("OVERLAP_F_B") != std::string::npos);
  const temporary file("pairs.csv");
  file.write(csv);
  CHECK(run("check " + file.path() + " --hides 75").exit == 0);
}

TEST_CASE("list names the schedules") {
  const outcome ran = run("list");
  CHECK(ran.exit == 0);
  for (const char* name : {"gpipe ", "1f1b ", "interleaved ", "inference "})
    CHECK(ran.out.find(name) != std::string::npos);
  CHECK(ran.out.find("\ninterleaved_zb  any number of chunks, any number of slices; takes --group "
                     "--warmup --backwards\n") != std::string::npos);
}

TEST_CASE("csv is what PyTorch writes for the same schedule, byte for byte") {
  const struct {
    const char* arguments;
    const char* file;
  } cases[] = {{"gpipe --ranks 4 --microbatches 4", "gpipe_p4_v1_m4_compute_only.csv"},
               {"1f1b --ranks 4 --microbatches 8", "1f1b_p4_v1_m8_compute_only.csv"},
               {"interleaved --ranks 4 --microbatches 8 --chunks 2",
                "interleaved1f1b_p4_v2_m8_compute_only.csv"},
               {"interleaved --ranks 4 --microbatches 10 --chunks 2 --group 5",
                "interleaved1f1b_p4_v2_m10_compute_only.csv"}};
  for (const auto& one : cases) {
    INFO(one.file);
    const outcome ran = run(std::string("schedule --format csv ") + one.arguments);
    CHECK(ran.exit == 0);
    // PyTorch pads with empty cells for bubbles; ours has none.
    std::string expected;
    for (const char letter : contents(csv_dir + one.file)) {
      if ((letter == ',' || letter == '\r') && !expected.empty() && expected.back() == ',') {
        if (letter == ',') continue;
        expected.pop_back();
      }
      if (letter == ',' && (expected.empty() || expected.back() == '\n')) continue;
      expected += letter;
    }
    CHECK(ran.out == expected);
  }
}

TEST_CASE("csv with messages is what PyTorch lowers the same schedule to, byte for byte") {
  const struct {
    const char* arguments;
    const char* file;
  } cases[] = {
      {"1f1b --ranks 4 --microbatches 8", "1f1b_p4_v1_m8"},
      {"interleaved --ranks 4 --microbatches 8 --chunks 2", "interleaved1f1b_p4_v2_m8"},
      {"interleaved_zb --ranks 2 --microbatches 8 --chunks 2", "interleavedzerobubble_p2_v2_m8"},
      {"looped_bfs --ranks 4 --microbatches 4 --chunks 2", "loopedbfs_p4_v2_m4"},
      {"zbv --ranks 4 --microbatches 8", "zbvzerobubble_p4_v2_m8"},
      {"dualpipe_v --ranks 2 --microbatches 4", "dualpipev_p2_v2_m4"}};
  for (const auto& one : cases) {
    INFO(one.file);
    CHECK(run(std::string("schedule --comms --format csv ") + one.arguments).out ==
          contents(csv_dir + one.file + "_compute_comms.csv"));
  }
  // Receives that are posted late keep all rules, too.
  const temporary late("late.csv");
  REQUIRE(run("schedule --comms --format csv hanayo --ranks 4 --microbatches 8 --chunks 4 "
              "--receive-lead 1 -o " +
              late.path())
              .exit == 0);
  CHECK(run("check " + late.path()).exit == 0);
  // More stages than the three that are gathered at once.
  CHECK(
      run("schedule --comms --format csv interleaved --ranks 1 --microbatches 2 --chunks 4").out ==
      "0UNSHARD,1UNSHARD,2UNSHARD,0F0,0RESHARD,3UNSHARD,1F0,1RESHARD,0UNSHARD,2F0,3F0,3B0,"
      "3RESHARD,1UNSHARD,0F1,2B0,1F1,1B0,1RESHARD,3UNSHARD,2F1,0B0,0RESHARD,1UNSHARD,3F1,3B1,"
      "3REDUCE_GRAD,3RESHARD,0UNSHARD,2B1,2REDUCE_GRAD,2RESHARD,1B1,1REDUCE_GRAD,1RESHARD,0B1,"
      "0REDUCE_GRAD,0RESHARD\r\n");
}

TEST_CASE("with messages, a schedule passes the tool's own check and takes as long") {
  for (const std::string arguments :
       {"gpipe --ranks 3 --microbatches 2", "1f1b --ranks 4 --microbatches 3",
        "interleaved --ranks 4 --microbatches 9 --chunks 3",
        "gpipe --ranks 3 --microbatches 4 --chunks 2 --placement wave",
        "interleaved --ranks 1 --microbatches 2 --chunks 2",
        "inference --ranks 3 --microbatches 5 --chunks 2"}) {
    INFO(arguments);
    const temporary file("comms.csv");
    REQUIRE(run("schedule --comms --format csv -o " + file.path() + " " + arguments).exit == 0);
    const outcome checked = run("check " + file.path());
    INFO(checked.err);
    CHECK(checked.exit == 0);
    const auto named = run_json("simulate --cost 3,4,2,5 --format json " + arguments);
    const auto read = run_json("simulate --cost 3,4,2,5 --format json --csv " + file.path());
    for (const char* key : {"makespan", "bubble", "idle"}) CHECK(named[key] == read[key]);
  }
}

TEST_CASE("forwards alone on each placement") {
  const auto makespan = [](const std::string& shape) {
    return run_json("simulate inference --format json --ranks 4 --microbatches 8 " +
                    shape)["makespan"];
  };
  CHECK(makespan("--chunks 2 --placement looped") == 19);
  CHECK(makespan("--chunks 2 --placement wave") == 22);
  CHECK(makespan("--placement bidirectional") == 10);
  const outcome refused =
      run("simulate interleaved --ranks 4 --microbatches 8 --placement bidirectional");
  CHECK(refused.exit != 0);
  CHECK(refused.err.find("--placement bidirectional") != std::string::npos);
}

TEST_CASE("the grid shows every job where and as long as it runs") {
  const outcome ran = run("schedule 1f1b --ranks 2 --microbatches 2 --cost 1,1,1,1");
  CHECK(ran.exit == 0);
  CHECK(ran.out ==
        "1f1b: 2 ranks, 2 micro-batches; makespan 11, bubble 45.5 %\n"
        "time   0   1   2   3   4   5   6   7   8   9   10\n"
        "rank 0 0F0 0F1 .   .   .   .   0B0---- .   0B1----\n"
        "rank 1 .   .   1F0 1B0---- 1F1 1B1---- .   .   .\n");
  const outcome large = run("schedule 1f1b --ranks 2 --microbatches 40");
  CHECK(large.out.find("step  rank 0  rank 1\n0     0F0     1F0\n1     0F1     1B0\n") !=
        std::string::npos);
  const outcome comms = run("schedule 1f1b --ranks 2 --microbatches 1 --comms");
  CHECK(comms.out.find("step  rank 0    rank 1\n"
                       "0     0F0       1RECV_F0\n"
                       "1     0SEND_F0  1F0\n"
                       "2     0RECV_B0  1B0\n"
                       "3     0B0       1SEND_B0\n") != std::string::npos);
  CHECK(ran.out.find('\033') == std::string::npos);
}

TEST_CASE("json holds the same jobs and their times") {
  const auto text = run_json(
      "schedule interleaved --ranks 2 --microbatches 3 --chunks 2 "
      "--cost 2,1,1,0 --format json");
  CHECK(text["ranks"] == 2);
  CHECK(text["stages"] == 4);
  REQUIRE(text["lists"].size() == 2);
  std::int64_t last = 0;
  for (const auto& list : text["lists"]) {
    CHECK(list["jobs"].size() == 12);
    std::int64_t before = 0;
    for (const auto& job : list["jobs"]) {
      CHECK(job["start"].get<std::int64_t>() >= before);
      CHECK(job["end"].get<std::int64_t>() == job["start"].get<std::int64_t>() + 2);
      before = job["end"];
      last = std::max(last, before);
    }
  }
  CHECK(text["makespan"] == last);
  CHECK(text["lists"][1]["jobs"][0]["job"] == "1F0");
}

TEST_CASE("json is laid out as a library would") {
  for (const std::string arguments : {"paired_1f1b --ranks 2 --microbatches 3",
                                      "seq_1f1b --ranks 2 --microbatches 2 --slices 2 --comms",
                                      "inference --ranks 1 --microbatches 1"}) {
    const std::string text = run("schedule --format json " + arguments).out;
    CHECK(text == nlohmann::ordered_json::parse(text).dump(1) + "\n");
  }
  const std::string trace = run("trace zbv --ranks 2 --microbatches 3 --offload 1/2").out;
  CHECK(trace == nlohmann::ordered_json::parse(trace).dump() + "\n");
}

// A sanitizer takes all addresses there are.
TEST_CASE("what is written is not held in memory" * doctest::skip(test_support::sanitized)) {
  for (const std::string asked : {"schedule gpipe --ranks 1 --microbatches 150000 --format json",
                                  "trace gpipe --ranks 2 --microbatches 12000"})
    CHECK(std::system(
              ("ulimit -v 131072; \"" STRETTO_TOOL_PATH "\" " + asked + " -o /dev/null").c_str()) ==
          0);
}

TEST_CASE("slices: in the grid, in json, in messages and in pictures") {
  const std::string sliced = "seq_1f1b --ranks 2 --microbatches 2 --slices 2";
  CHECK(run("schedule " + sliced).out.find("rank 1 .     1F0-- 1F0.1 1B0.1------ 1F1--") !=
        std::string::npos);
  const auto text = run_json("schedule --format json " + sliced);
  CHECK(text["slices"] == 2);
  CHECK(text["lists"][1]["jobs"][1]["job"] == "1F0.1");
  CHECK(text["lists"][1]["jobs"][1]["slice"] == 1);
  CHECK(run("schedule --comms " + sliced).out.find("1RECV_F0.1") != std::string::npos);
  CHECK(run("plot " + sliced).out.find(">0.1</text>") != std::string::npos);
  const std::string trace = run("trace " + sliced).out;
  CHECK(trace.find("\"name\":\"0SEND_F0.1\"") != std::string::npos);
  CHECK(trace.find("\"slice\":1") != std::string::npos);
}

TEST_CASE("a limit holds a schedule to account, with the rule and the numbers") {
  CHECK(run("schedule 1f1b --ranks 4 --microbatches 8 --limit 4").exit == 0);
  const outcome ran = run("schedule 1f1b --ranks 4 --microbatches 8 --limit 3");
  CHECK(ran.exit == 1);
  CHECK(ran.err ==
        "stretto: 1f1b: rule bounded broken on rank 0, step 3, job 0F3: memory in use exceeds the "
        "rank's limit (4, at most 3); the order needs 4 on rank 0, whose limit is 3\n");
  // Where it is exceeded first, and all that the order needs, on the rank that needs most.
  const std::string shape = " --ranks 4 --microbatches 8 --limit 0";
  for (const std::string command : {"simulate", "schedule", "plot", "trace"}) {
    CHECK(
        run(command + " 1f1b" + shape).err ==
        "stretto: 1f1b: rule bounded broken on rank 0, step 0, job 0F0: memory in use exceeds the "
        "rank's limit (1, at most 0); the order needs 4 on rank 0, whose limit is 0\n");
    CHECK(run(command + " zbv" + shape)
              .err.ends_with("(1, at most 0); the order needs 8 on rank 0, whose limit is 0\n"));
  }
  const std::string compared = run("compare --ranks 4 --microbatches 6 --limit 0").out;
  CHECK(compared.find("\nzbv: needs 4 on rank 1, whose limit is 0\n") != std::string::npos);
  const temporary file("mine.csv");
  file.write("0F0,0F1,0B0,0F2,0B1,0B2\r\n1F0,1B0,1F1,1F2,1B1,1B2\r\n");
  CHECK(run("check " + file.path() + " --limit 0")
            .err.ends_with("(1, at most 0); the order needs 2 on rank 0, whose limit is 0\n"));
  // A search says which limit would do.
  CHECK(
      run("simulate v_auto --ranks 4 --microbatches 6 --limit 1").err ==
      "stretto: v_auto: rule bounded broken on rank 0: memory in use exceeds the rank's limit, 1; "
      "the smallest limit that will do is 2\n");
  // Where backwards for the weights take memory while they run, less may do; and where
  // micro-batches differ, what the search says of one class is nothing of the others.
  const temporary costs("costs.json");
  costs.write(R"({"jobs": [{"kind": "B", "cost": 2, "change": -5}, {"kind": "W", "peak": 9}]})");
  const std::string by_file = " --costs " + costs.path();
  CHECK(run("simulate v_auto --ranks 2 --microbatches 1 --limit 1" + by_file)
            .err.ends_with("limit, 1; a limit of 11 is enough\n"));
  costs.write(R"({"jobs": [{"kind": "F", "microbatch": 1, "peak": 9}]})");
  const std::string two = " --ranks 2 --microbatches 4 --memory 5,-2,-3" + by_file;
  CHECK(
      run("simulate zb_auto --limit 0" + two)
          .err.ends_with("limit, 0; how much is enough is not known where micro-batches differ\n"));
  CHECK(run("compare --limit 4" + two)
            .out.find("\nzb_auto: needs more than the limit of rank 0, 4\n") != std::string::npos);
  CHECK(run("simulate gpipe --ranks 2 --microbatches 5 --memory 2,-1,-1 --limit 9").exit == 1);
  CHECK(run("simulate gpipe --ranks 2 --microbatches 5 --memory 2,-1,-1 --limit 10").exit == 0);
}

TEST_CASE("wrong input: exit 2 and one line that names option, value and rule") {
  const struct {
    const char* arguments;
    const char* words[2];
  } cases[] = {
      {"", {"subcommand", "required"}},
      {"fold", {"COMMAND fold", "schedule, check"}},
      {"--fold", {"COMMAND --fold", "expected a command"}},
      {"calibrate -o /nowhere/host.json", {"-o /nowhere/host.json", "cannot be written"}},
      {"schedule", {"NAME", "required"}},
      {"schedule zigzag --ranks 2 --microbatches 2", {"NAME zigzag", "gpipe, 1f1b"}},
      {"schedule 1f1b --microbatches 2", {"--ranks", "required"}},
      {"schedule 1f1b --ranks 2", {"--microbatches", "required"}},
      {"schedule 1f1b --ranks 0 --microbatches 2", {"--ranks", "0"}},
      {"schedule 1f1b --ranks -3 --microbatches 2", {"--ranks", "-3"}},
      {"schedule 1f1b --ranks two --microbatches 2", {"--ranks", "two"}},
      {"schedule 1f1b --ranks 99999999999 --microbatches 2", {"--ranks", "99999999999"}},
      {"schedule 1f1b --ranks 60000 --microbatches 60000", {"--ranks 60000", "at most 16777216"}},
      {"schedule 1f1b --ranks 4 --microbatches 4194305",
       {"--ranks 4 --chunks 1 --microbatches 4194305", "at most 16777216"}},
      {"schedule interleaved --ranks 2000001 --microbatches 1 --chunks 2",
       {"--ranks 2000001 --chunks 2: their product", "at most 4000000"}},
      {"memory 1f1b --ranks 2000 --microbatches 2001 --layers 2000",
       {"--ranks 2000 --chunks 1 --microbatches 2001: 4002000 jobs of a kind",
        "at most 4000000 can be planned"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --chunks 2", {"--chunks 2", "one chunk"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --slices 2", {"--slices 2", "does not slice"}},
      {"schedule zb_h1 --ranks 2 --microbatches 2 --slices 2 --split partial",
       {"--split partial with --slices 2", "does not slice"}},
      {"schedule interleaved --ranks 8 --microbatches 5 --chunks 3 --slices 4 --remainder last "
       "--group 2",
       {"--group 2", "behind groups of so few slices a short last one hangs"}},
      {"schedule seq_1f1b --ranks 2 --microbatches 2 --slices 0", {"--slices", "0"}},
      {"schedule seq_1f1b --ranks 2 --microbatches 2 --slices 40000", {"--slices", "40000"}},
      {"schedule seq_1f1b --ranks 2 --microbatches 2 --slices 2 --chunks 2",
       {"--chunks 2", "one chunk"}},
      {"schedule seq_1f1b --ranks 9 --microbatches 999999 --slices 9",
       {"--slices 9", "at most 16777216"}},
      {"schedule seq_1f1b --ranks 2 --microbatches 2 --slices 2 --format csv",
       {"--format csv: 0F0.1", "no form"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --group 2", {"--group 2", "no such option"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --placement wave", {"--placement wave", "1f1b"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --placement spiral", {"--placement", "spiral"}},
      {"schedule gpipe --ranks 2 --microbatches 2 --warmup all", {"--warmup all", "no such"}},
      {"simulate chimera --ranks 2 --microbatches 4 --layers 3,4",
       {"--layers 3,4: misassigned: layers per rank, dealt round robin to its chunks, are not for",
        "a bidirectional placement: say those of every stage (table:...), or how many there are "
        "(even:N, balanced:N)"}},
      {"schedule interleaved_zb --ranks 2 --microbatches 2 --warmup all",
       {"--warmup all: interleaved_zb", "has the warm-ups half and standard"}},
      {"schedule interleaved --ranks 4 --microbatches 8 --chunks 2 --group 3",
       {"--group 3", "fewer micro-batches, or slices of them, than ranks"}},
      {"schedule interleaved --ranks 4 --microbatches 8 --chunks 2 --group 9",
       {"--group 9", "exceed the micro-batches"}},
      {"schedule grouped --ranks 2 --microbatches 4 --group 3",
       {"--group 3: grouped", "the ranks"}},
      {"schedule chimera --ranks 3 --microbatches 4", {"--ranks 3: chimera", "even number"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --cost 1,2,3", {"--cost 1,2,3", "4 integers"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --cost 1,2,3,4,5", {"--cost 1,2", "4 integers"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --cost 1,2,3,x", {"--cost 1,2,3,x", "integers"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --cost 1,2,-3,4", {"-3", "from 0"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --cost 1,2,3,99999999999999999999",
       {"--cost", "integers"}},
      {"simulate zbv --ranks 2 --microbatches 2 --cost 1,2,3,0 --whole-saves 6",
       {"--whole-saves 6", "I+W = 5"}},
      {"simulate zbv --ranks 2 --microbatches 2 --whole-saves -1", {"--whole-saves", "-1"}},
      {"simulate zbv --ranks 2 --microbatches 2 --merge all", {"--merge", "shortest"}},
      {"simulate --csv a.csv --merge adjacent", {"--merge", "--csv"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --memory 1,2", {"--memory 1,2", "3 integers"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --limit -1", {"--limit", "-1"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --format xml", {"--format", "xml"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --emit xml",
       {"--emit: xml", "{grid,csv,cells,json,head"}},
      {"calibrate --few --emit=xml", {"--emit: xml", "{json,header}"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 -o", {"-o: takes a value", ""}},
      {"schedule 1f1b --ranks 2 --ranks 3", {"--ranks: takes one value, not 2\n", ""}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --format csv --emit header",
       {"takes one value, not 2; ", "--format and --emit are one option"}},
      {"plot 1f1b --ranks 2 --microbatches 2 --output /no/x", {"--output /no/x", "written"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --colour", {"--colour: schedule has no such", ""}},
      {"simulate 1f1b --rank 4 --microbatches 2",
       {"--rank: simulate has no such option", "--help"}},
      {"list all", {"all: list takes no such argument", ""}},
      {"plan 1f1b --ranks 8 --microbatches 8 --data-parallel 8",
       {"--data-parallel 8: takes no value in plan", ""}},
      {"plan --data-parallel 8 1f1b --ranks 8 --microbatches 8",
       {"--data-parallel 8: takes no value in plan", ""}},
      {"schedule 1f1b --ranks 2 --microbatches 2 -o /no/such/folder/x", {"-o /no", "written"}},
      {"schedule zb_auto --ranks 2 --microbatches 2 --variant 999",
       {"--variant 999", "there are 38, numbered from 0"}},
      {"assign --layers 9,8 --limit 40 --weights 3",
       {"--limit 40: with --layers 9,8 rank 0", "needs 45"}},
      {"simulate interleaved --ranks 4 --microbatches 8 --layers 'Et|t|t|t|t|t|t|tL'",
       {"Et|t|t|t|t|t|t|tL: ", "(counts: 8, must be 4); so many are stages of --chunks 2\n"}},
      {"simulate interleaved --ranks 3 --microbatches 8 --layers table:1,1,1,1",
       {"--layers table:1,1,1,1: ", "(counts: 4, must be 3)\n"}},
      {"assign --layers 9,8 --hides 3", {"--hides: assign has no such", ""}},
      {"assign --layers 9,8 --copy 1,1", {"--copy: assign has no such", ""}},
      {"compare --ranks 2 --microbatches 2 --copy 1,1", {"--copy 1,1", "only with --offload"}},
      {"check a.csv --unshard 1,1", {"--unshard: check has no such", ""}},
      {"simulate", {"NAME", "--csv"}},
      {"simulate 1f1b", {"--ranks", "required"}},
      {"simulate 1f1b --ranks 2", {"--microbatches", "required"}},
      {"simulate 1f1b --csv a.csv", {"NAME", "--csv"}},
      {"simulate --ranks 2 --csv a.csv", {"--ranks", "--csv"}},
      {"simulate --csv /no/such/file.csv", {"--csv /no/such/file.csv", "No such file"}},
      {"simulate --csv /tmp", {"--csv /tmp", "folder"}},
      {"check", {"FILE.csv", "required"}},
      {"check /no/such/file.csv", {"FILE.csv /no/such/file.csv", "No such file"}},
      {"schedule 1f1b --ranks 2 --microbatches 2 --costs /no/such.json", {"--costs /no", "read"}},
      {"plot 1f1b --ranks 200 --microbatches 600", {"240000 jobs", "at most 200000"}},
      {"assign", {"--layers", "required"}},
      {"assign --layers 5,x", {"--layers 5,x", "numbers between commas"}},
      {"assign --layers 5,", {"--layers 5,", "numbers between commas"}},
      {"assign --layers 5,-1", {"--layers 5,-1", "numbers between commas"}},
      {"assign --layers 2147483647,1", {"--layers 2147483647,1", "at most 100000 layers"}},
      {"assign --layers 99999999999,1", {"--layers 99999999999,1", "numbers"}},
      {"assign --layers 0 --ranks 2", {"--layers 0", "at least one layer"}},
      {"assign --layers 8", {"--ranks", "required with --layers 8"}},
      {"assign --layers skewed:8 --ranks 2", {"--layers skewed:8", "rank_list"}},
      {"assign --layers even:-8 --ranks 2", {"--layers even:-8", "one number"}},
      {"assign --layers even:8,2 --ranks 2", {"--layers even:8,2", "one number"}},
      {"assign --layers balanced:5000 --ranks 2", {"balanced:5000", "at most 4096"}},
      {"assign --layers even:3 --ranks 4 --chunks 2",
       {"--layers even:3: misassigned: a stage would hold no layer", "layers: 3, at least 8"}},
      {"assign --layers 7,1 --chunks 2", {"on rank 1", "layers: 1, at least 2"}},
      {"assign --layers 5,3 --chunks 0", {"--chunks", "0"}},
      {"assign --layers 5,3 --ranks 3", {"counts: 2, must be 3", ""}},
      {"assign --layers 5,3 --placement bidirectional",
       {"are not for a bidirectional placement", ""}},
      {"assign --layers even:3 --ranks 2 --placement bidirectional --chunks 2",
       {"a stage would hold no layer", "layers: 3, at least 4"}},
      {"assign --layers 8 --ranks 100000 --chunks 2", {"--ranks 100000", "at most 100000"}},
      {"assign --layers table:3,0 --ranks 2", {"on rank 1", "layers: 0, at least 1"}},
      {"assign --layers table:3,1 --ranks 3", {"counts: 2, must be 3", ""}},
      {"assign --layers rank_list:0,1,0,0,1,0 --ranks 2 --chunks 2",
       {"on rank 1:",
        "layer 1, must be on rank 0); and layer 2 on rank 1, 4 on rank 0, 5 on rank 1"}},
      {"assign --layers rank_list:0,2 --ranks 2", {"no such rank", "layer 1"}},
      {"assign --layers layout:Et[d]L --ranks 2", {"character 3 of 6", ""}},
      {"assign --layers EttL --ranks 2", {"counts: 1, must be 2", ""}},
      {"assign --layers 8 --ranks 2 --head 1,2", {"--head 1,2", "3 integers"}},
      {"assign --layers 8 --ranks 2 --embedding 1,-2,3", {"--embedding 1,-2,3", "from 0"}},
      {"schedule 1f1b --rank 4 --microbatches 8", {"--rank: schedule has no such option", ""}},
      {"overlap --tensor-parallel 1 --dense 1", {"--dense: overlap has no such option", ""}},
      {"simulate some.csv", {"NAME some.csv: no such schedule", ""}},
      {"simulate 1f1b", {"--ranks: required with a schedule's name", ""}},
      {"schedule --csv some.csv --chunk 2", {"--chunk: schedule has no such option", ""}},
      {"assign --layers 9999 --ranks 2 --cost 99999999,0,0,0", {"--layers 9999", "2e11"}},
      {"assign --layers balanced:8 --ranks 2 --weights 5 --limit 9", {"--limit 9", "is enough"}},
      {"assign --layers 8 --ranks 2 --layer-costs /no/such", {"--layer-costs /no/such", "read"}},
      {"assign --layers 8 --ranks 2 --costs /no/such", {"--costs", "--layer-costs"}},
      {"assign --ranks 2 --head 1,2,3", {"--head", "--layers"}},
      {"simulate 1f1b --ranks 2 --microbatches 2 --layers 1",
       {"--layers 1: misassigned:", "layers: 1, at least 2"}},
      {"simulate 1f1b --ranks 2 --microbatches 2 --layers 4 --costs /no", {"--layer-costs", ""}},
      {"plot 1f1b --ranks 2 --microbatches 2 --layers 3,3,3", {"counts: 3, must be 2", ""}},
      {"schedule zbv --ranks 2 --microbatches 2 --chunks 1", {"--chunks 1", "two chunks"}},
      {"memory zbv --ranks 4 --microbatches 8 --chunks 3", {"--chunks 3: zbv", "two chunks"}},
      {"memory zbv --ranks 4 --microbatches 8 --limit 0", {"--limit 0: must", "above 0"}},
      {"memory zbv --ranks 4 --microbatches 8 --limit nan", {"--limit nan: must", "above 0"}},
      {"calibrate --machine a.json --few", {"--machine", "--few"}},
  };
  for (const auto& one : cases) {
    INFO(std::string(one.arguments));
    const outcome ran = run(one.arguments);
    INFO(ran.err);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.starts_with("stretto: "));
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    for (const char* words : one.words) CHECK(ran.err.find(words) != std::string::npos);
  }
}

TEST_CASE("of very long words errors quote the beginning, with its option and the rule") {
  const std::string digits(100'000, '7');
  const std::string begin = digits.substr(0, 300) + "...";
  const auto refused = [](const std::string& arguments, const std::string& words) {
    const outcome ran = run(arguments);
    CHECK(ran.exit == 2);
    CHECK(ran.err == "stretto: " + words + "\n");
  };
  refused("assign --layers " + digits, "--layers " + begin + ": expected one number of layers");
  refused("assign --layers=" + digits, "--layers " + begin + ": expected one number of layers");
  refused("assign --layers 2,2 --format " + digits,
          "--format: " + begin + " not in {table,json,svg}");
  refused("list " + digits, begin + ": list takes no such argument; see stretto list --help");
  // No letter is cut in two, and what is quoted twice is cut twice.
  std::string letters = "1f1b:x";
  while (letters.size() < 1000) letters += "\u00e4";
  const outcome ran = run("compare --ranks 2 --microbatches 2 " + letters);
  CHECK(ran.err.starts_with("stretto: NAME " + letters.substr(0, 300) + "...: "));
  CHECK(ran.err.find("'" + letters.substr(5, 299) + "...'") != std::string::npos);
  const std::string path(299, 'p');
  refused("simulate --csv " + path, "--csv " + path + ": cannot be read: File name too long");
}

TEST_CASE("a file of more than a GiB is not read" * doctest::skip(test_support::sanitized)) {
  const outcome ran = run("check /dev/zero");
  CHECK(ran.exit == 2);
  CHECK(ran.out.empty());
  CHECK(ran.err == "stretto: FILE.csv /dev/zero: is larger than 1 GiB\n");
}

TEST_CASE("help is no error, a full disk is") {
  CHECK(run("--help").exit == 0);
  CHECK(run("--version").out.starts_with("stretto 0."));
  CHECK(run("schedule --help").out.find("--remainder") != std::string::npos);
  std::istringstream names("list schedule check plan simulate compare assign memory plot trace");
  for (std::string name; names >> name;)
    CHECK(run(name + " --help").out.find("\nExit: 0 when") != std::string::npos);
  if (std::filesystem::exists("/dev/full"))
    for (const std::string words : {"list", "--help", "plot --help", "--version"})
      CHECK(std::system(
                ("\"" STRETTO_TOOL_PATH "\" " + words + " >/dev/full 2>/dev/null").c_str()) != 0);
}

TEST_CASE("what is read is not overwritten, and standard input is read once") {
  const temporary file("order.csv");
  const std::string text = "0F0,0B0\n";
  file.write(text);
  const outcome over = run("plot --csv " + file.path() + " -o " + file.path());
  CHECK(over.exit == 2);
  CHECK(over.err == "stretto: -o " + file.path() + ": is read by --csv, and would be lost\n");
  CHECK(contents(file.path()) == text);
  const auto twice = test_support::run(
      "sh", "-c 'cat " + file.path() + " | \"" STRETTO_TOOL_PATH "\" simulate --csv - --costs -'");
  CHECK(twice.exit == 2);
  CHECK(twice.err == "stretto: --costs -: standard input is read by --csv already\n");
}

TEST_CASE("what a file holds is told without what a terminal would act upon") {
  const temporary file("cells.csv");
  file.write("\x1b[2J\a,0F0\n");
  const outcome said = run("check " + file.path());
  CHECK(said.exit == 1);
  CHECK(said.err.find("\\x1b[2J\\x07") != std::string::npos);
}

TEST_CASE("a file's name that is too long is told with its option") {
  const std::string name(300, 'a');
  for (const std::string option : {"--costs", "--csv"}) {
    const outcome refused =
        run((option == "--csv" ? "simulate " : "simulate 1f1b --ranks 2 --microbatches 2 ") +
            option + " " + name);
    CHECK(refused.exit == 2);
    CHECK(refused.err.starts_with("stretto: " + option + " " + name + ": cannot be read: "));
  }
}

}  // namespace
