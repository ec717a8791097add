// Measured machines as files: read, written, refused, used. What was measured is looked at only for
// being there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

const std::string known = STRETTO_CSV_DIR "/../frozen/machine.json";

TEST_CASE("a machine's file is written as it was read") {
  const outcome said = run("calibrate --machine " + known);
  CHECK(said.exit == 0);
  CHECK(said.out == contents(known));
}

TEST_CASE("a header names the file it was made of as a shell takes it, and in one line") {
  const std::string made = run("calibrate --emit header --machine " + known).out;
  for (const std::string name : {"a machine", "a\\", "a\nint x = 3;"}) {
    const temporary file(name);
    file.write(contents(known));
    const outcome said = run("calibrate --emit header --machine '" + file.path() + "'");
    CHECK(said.exit == 0);
    std::string shown = file.path();
    if (const std::size_t at = shown.find('\n'); at != std::string::npos) shown[at] = ' ';
    std::string same = made;
    same.replace(same.find(known), known.size(), "'" + shown + "'");
    CHECK(said.out == same);
  }
}

TEST_CASE("what is wrong in a machine's file is named") {
  const std::string good = contents(known);
  const auto complaint = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    const temporary file("machine.json");
    file.write(text);
    const outcome said = run("overlap --machine " + file.path());
    CHECK(said.exit == 2);
    const std::string begin = "stretto: --machine " + file.path() + ": ";
    REQUIRE(said.err.starts_with(begin));
    return said.err.substr(begin.size());
  };
  CHECK(complaint("\"memory\": 10,", "\"memory\": 10").find("not JSON: ") == 0);
  CHECK(complaint("\"memory\": 10,", "\"memory\": 10").find("line 5") != std::string::npos);
  CHECK(complaint(" \"link\": 5,\n", "") == "\"link\" is missing\n");
  CHECK(complaint("\"link\": 5", "\"link\": 0") ==
        "\"link\" is 0, must be an integer from 1 to 1000000000\n");
  CHECK(complaint("\"link\": 5", "\"link\": 5, \"links\": 5") == "there is no field \"links\"\n");
  CHECK(complaint("\"collective\": 0", "\"collective\": 32768") ==
        "\"collective\" is 32768, at most 32767\n");
  CHECK(complaint("\"multiprocessors\": 0,\n \"collective\": 0",
                  "\"multiprocessors\": 8,\n \"collective\": 8") ==
        "\"collective\" is 8, which leaves computation none of \"multiprocessors\", 8\n");
  CHECK(complaint("measured_host", "a host") ==
        "\"machine\" is \"a host\", must be a C++ identifier, no keyword, and no name that the "
        "header or the "
        "language uses\n");
  CHECK(complaint("\"move\"", "\"sum\"").find("is a second \"sum\"\n") != std::string::npos);
  CHECK(complaint("\"move\"", "\"product\"") ==
        "kernels[1].axes has 1 axes, and \"product\" 3\n");
  CHECK(complaint("[[1024,65536]]", "[[1024],[65536]]") ==
        "kernels[1].axes has 2 axes, and \"move\" 1\n");
  CHECK(complaint("[[1024,65536]]", "[[1024,1024]]") ==
        "kernels[1].axes[0][1] is 1024, must be larger than the size before it\n");
  CHECK(complaint("[[1024,65536]]", "[[1],[1],[1],[1]]") ==
        "kernels[1].axes has 4 axes, at most 3\n");
  CHECK(complaint("[50,3000]", "[50]") == "kernels[1].times has 1 times for 2 points\n");
  CHECK(complaint("[50,3000]", "[50,-1]") ==
        "kernels[1].times[1] is -1, must be an integer from 1 to 10000000000\n");
  CHECK(complaint("[100,400,1600,400", "[100,400,1600,99") ==
        "kernels[0].times[3] is 99, less than that of a smaller size, times[0]\n");
  CHECK(complaint("\"times\":[90,6000]", "\"tim\":[90]") ==
        "kernels[2]: there is no field \"tim\"\n");
  CHECK(run("overlap --machine /none").err.find("--machine /none: cannot be read") !=
        std::string::npos);
}

TEST_CASE("of a machine that was not measured its rates are enough") {
  const temporary file("rates.json");
  const std::string rates =
      R"("machine": "mine", "flops": 788000, "memory": 3000, "link": 370, "launch": 3000,
         "latency": 3000, "multiprocessors": 132, "collective": 8)";
  const auto with = [&](const std::string& more, const std::string& command) {
    file.write("{" + rates + more + "}");
    return run_json(command + " --machine " + file.path());
  };
  // The library's H100.
  const std::string costs = "costs -o - --layers 4 --tensor-parallel 2 --precision ";
  const std::string all = R"(, "single": 394000, "to_host": 52, "fp8": 1576000)";
  for (const std::string precision : {"mixed", "single", "fp8"})
    CHECK(with(all, costs + precision) == run_json(costs + precision + " --device h100"));
  const json overlap = with("", "overlap --tensor-parallel 2 --format json");
  json same = run_json("overlap --tensor-parallel 2 --format json --device h100");
  CHECK(overlap["device"] == "mine");
  same["device"] = "mine";
  CHECK(overlap == same);
  // Written again, in either form, it is the same.
  file.write("{" + rates + all + "}");
  const temporary again("again.json");
  REQUIRE(run("calibrate --machine " + file.path() + " -o " + again.path()).exit == 0);
  CHECK(json::parse(contents(again.path())) == json::parse(contents(file.path())));
  const std::string header = run("calibrate --machine " + file.path() + " --emit header -o -").out;
  CHECK_MESSAGE(
      header.find(
          "on{\"mine\", 788000, 3000, 370, 3000, 3000, 132, 8, {}, 0, 394000, 52, 1576000};") !=
          std::string::npos,
      header);
  CHECK(header.find("kernels[]") == std::string::npos);
  // What is not told: copies to the host none, single precision as half.
  const json without = with("", costs + "mixed");
  for (const json& one : without["costs"]) CHECK_FALSE(one.contains("offload"));
  CHECK(with("", costs + "single") != with(all, costs + "single"));
  // Products that it may not have are not guessed at.
  file.write("{" + rates + "}");
  for (const std::string command : {"costs --layers 4", "overlap"})
    CHECK(run(command + " --precision fp8 --machine " + file.path())
              .err.ends_with("--precision fp8: mine has no rate for it (\"fp8\" in a machine's "
                             "file)\n"));
  CHECK(run("overlap --precision fp8 --device a100").err ==
        "stretto: --precision fp8: a100 has no rate for it (\"fp8\" in a machine's file)\n");
  file.write("{" + rates + R"(, "single": 0})");
  CHECK(run("costs --layers 4 --machine " + file.path())
            .err.ends_with("\"single\" is 0, must be an integer from 1 to 1000000000\n"));
  file.write("{" + rates + R"(, "kernels": []})");
  CHECK(run("costs --layers 4 --machine " + file.path())
            .err.ends_with("\"kernels\" must be an array that is not empty\n"));
}

TEST_CASE("a measured machine takes the place of a device") {
  const std::string model = "overlap --hidden 64 --heads 4 --sequence 64 --format json --machine ";
  const json once = run_json(model + known);
  CHECK(once["device"] == "measured_host");
  // The times of the file's kernels, doubled.
  json text = json::parse(contents(known));
  text["latency"] = 2 * text["latency"].get<int>();
  for (json& kernel : text["kernels"])
    for (json& time : kernel["times"]) time = 2 * time.get<int>();
  const temporary file("slow.json");
  file.write(text.dump());
  const json twice = run_json(model + file.path());
  for (std::size_t job = 0; job < 3; ++job)
    for (const char* part : {"compute_ns", "communication_ns"})
      CHECK(twice["jobs"][job][part].get<double>() ==
            doctest::Approx(2 * once["jobs"][job][part].get<double>()).epsilon(0.01));
}

TEST_CASE("a machine is measured, and ops are foretold by it") {
  const temporary file("measured.json");
  const outcome said = run("calibrate --few --name here -o " + file.path());
#ifndef STRETTO_WITH_KERNELS
  CHECK(said.exit == 2);
  CHECK(said.err.find("without the trainer") != std::string::npos);
#else
  CHECK(said.exit == 0);
  CHECK(said.err.find("100 %") != std::string::npos);
  CHECK(said.err.find("quiet") != std::string::npos);
  const std::string written = contents(file.path());
  CHECK(run("calibrate --machine " + file.path()).out == written);
  CHECK(json::parse(written)["machine"] == "here");

  const std::string command = "predict --width 32 --context 24 --microbatches 3 --machine ";
  const json all = run_json(command + file.path() + " --format json");
  REQUIRE(all["ops"].size() == 25);
  std::vector<double> errors;
  for (const json& op : all["ops"]) {
    const double predicted = op["predicted_ns"], measured = op["measured_ns"];
    CHECK(predicted > 0);
    CHECK(op["error"].get<double>() == doctest::Approx(predicted / measured - 1));
    errors.push_back(std::fabs(op["error"].get<double>()));
  }
  std::sort(errors.begin(), errors.end());
  CHECK(all["median_error"].get<double>() == doctest::Approx(errors[12]));
  const outcome table = run(command + file.path());
  CHECK(table.out.find("attention back") != std::string::npos);
  CHECK(table.out.find("Median error") != std::string::npos);
  CHECK(run(command + file.path() + " --heads 5").err ==
        "stretto: --heads 5: --width 32 is no multiple of it\n");
  CHECK(run("predict --context 65536 --batch 65536 --machine " + file.path())
            .err.starts_with("stretto: --width 96 --heads 4 --context 65536 --batch 65536: "));
  std::string lacking = written;
  file.write(lacking.replace(lacking.find("row sums"), 8, "row sons"));
  const outcome refused = run(command + file.path());
  CHECK(refused.exit == 2);
  CHECK(refused.err.find(": it lacks the kernel \"row sums\"") != std::string::npos);
#endif
  CHECK(run("calibrate --few --name 5").exit == 2);
  for (const char* const taken : {"on", "kernels", "kernel_0_times", "int64_t", "NULL", "a__b"})
    CHECK(run(std::string("calibrate --few --name ") + taken).exit == 2);
  CHECK(run("calibrate --few --name class").err ==
        "stretto: --name class: must be a C++ identifier, no keyword, and no name that the header "
        "or the "
        "language uses\n");
}

}  // namespace
