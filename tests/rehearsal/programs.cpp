// The programs for a GPU as they are built, with a simulated GPU loaded before CUDA: all of them but
// what kernels compute. Figures are none; that there are some, and where, is looked at.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "support/run_program.hpp"

// STRETTO_REHEARSAL_PATH: what is loaded. STRETTO_BENCH_DIR, STRETTO_GPU_TESTS_DIR: where the programs are.

namespace {

using nlohmann::json;
using test_support::outcome;

outcome rehearse(const std::string& program, const std::string& arguments = "") {
  return test_support::run("env", "LD_PRELOAD=" STRETTO_REHEARSAL_PATH
                                  " CUDA_MODULE_LOADING=EAGER STRETTO_COMMIT=here timeout -k 5 300 \"" +
                                      program + "\" " + arguments);
}

//! What the benchmark leaves.
json results(const std::string& program, const std::string& arguments) {
  CAPTURE(program);
  const test_support::temporary file(program + ".json");
  const outcome ran = rehearse(STRETTO_BENCH_DIR "/" + program, arguments + " --json " + file.path());
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  const json made = json::parse(test_support::contents(file.path()), nullptr, false);
  REQUIRE(made.is_object());
  CHECK(made["about"]["device"] == "simulated GPU");
  CHECK(made["about"]["commit"] == "here");
  CHECK(made["about"]["clock_mhz"]["least"] == 1750);
  return made;
}

//! Notes of what was not measured: a host that others keep busy may be too slow for a part.
std::size_t too_slow(const json& made) {
  for (const json& note : made["notes"])
    CHECK(std::string(note).find(" is not measured: the host does not issue fast enough") !=
          std::string::npos);
  return made["notes"].size();
}

}  // namespace

TEST_CASE("what launches, events, graphs and memory take has a row each") {
  const json made = results("gpu_launch", "");
  std::set<std::string> named;
  for (const json& row : made["rows"]) {
    named.insert(std::string(row["what"]) + ", " + std::string(row["on"]));
    CHECK(row["microseconds"] > 0);
    CHECK(row["samples"] >= 15);
  }
  CHECK(named.size() == made["rows"].size());
  CHECK(named.size() + too_slow(made) == 17);
}

TEST_CASE("the executor's overhead is told of every plan, issued and replayed") {
  const json made = results("cuda_overhead", "20");
  REQUIRE(made["rows"].size() == 3);
  CHECK(made["rows"][0]["issuing_an_instruction_us"] > 0);
  for (const json& row : made["rows"]) {
    CHECK(row["steps"] == 20);
    CHECK(row["step_us"] > 0);
    if (row["instructions"] < 200) continue;  // the graph of one rank has no node
    CHECK(row["replayed_us"] > 0);
    CHECK(row["followed_us"] > 0);
  }
}

TEST_CASE("of overlap every shape has a row beside each communication, with all ways to run the two") {
  const json made = results("gpu_overlap", "--rates 370 --ratios 1.28");
  CHECK(made["about"]["nccl"] > 0);
  CHECK(made["rows"].size() + too_slow(made) == 7);
  for (const json& row : made["rows"]) {
    CAPTURE(row.dump());
    const bool stand_in = std::string(row["communication"]).starts_with("stand-in");
    CHECK(row["ways"].size() == (stand_in ? 18 : 12));
    CHECK(row["matmul_us"] > 0);
    CHECK(row["communication_us"] > 0);
    CHECK(row["ceiling"] == std::min(1.0, double(row["r"])));
  }
}

TEST_CASE("options that are none, and a file that cannot be written, end with a word") {
  for (const char* program : {"gpu_launch", "cuda_overhead", "gpu_overlap"}) {
    CAPTURE(program);
    const outcome typed = rehearse(std::string(STRETTO_BENCH_DIR "/") + program, "1 --nothing");
    CHECK(typed.exit == 1);
    CHECK(typed.err.find(program) == 0);
  }
  const outcome lost =
      rehearse(STRETTO_BENCH_DIR "/cuda_overhead", "1 --json /nowhere/there/is.json");
  CHECK(lost.exit == 1);
  CHECK(lost.err == "cuda_overhead: cannot write /nowhere/there/is.json\n");
}

TEST_CASE("what a GPU is, on one line") {
  const outcome ran = rehearse(STRETTO_BENCH_DIR "/gpu_about");
  CHECK(ran.exit == 0);
  CHECK(json::parse(ran.out, nullptr, false)["multiprocessors"] == 132);
}

TEST_CASE("the tests of a GPU pass") {
  for (const char* name : {"device", "loopback", "nccl"}) {
    const outcome ran = rehearse(std::string(STRETTO_GPU_TESTS_DIR "/test_gpu_") + name);
    CHECK_MESSAGE(ran.exit == 0, ran.out);
    CHECK(ran.out.find("Status: SUCCESS!") != std::string::npos);
  }
}
