// The programs for a GPU as they are built, with a simulated GPU loaded before CUDA: all of them
// but what kernels compute. These last as long as they say, by the simulation's time, so that it is
// known what is to be measured on it; of the host's times, that there are some.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/free_port.hpp"
#include "support/run_program.hpp"
#include "support/training_text.hpp"

// STRETTO_REHEARSAL_PATH: what is loaded. STRETTO_BENCH_DIR, STRETTO_GPU_TESTS_DIR,
// STRETTO_TRAIN_PATH: where the programs are.

namespace {

using nlohmann::json;
using test_support::outcome;

//! What stands behind `env`.
std::string rehearsed(const std::string& program, const std::string& arguments, int gpus) {
  return "LD_PRELOAD=" STRETTO_REHEARSAL_PATH " SIMULATED_GPUS=" + std::to_string(gpus) +
         " STRETTO_COMMIT=here timeout -k 5 300 \"" + program + "\" " + arguments;
}
//! The first that the simulation has; but benchmarks may record an event over and over.
std::string complaint_in(const std::string& told) {
  std::istringstream lines(told);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("simulated GPU: ") &&
        !line.ends_with(" is recorded again before it was reached"))
      return line;
  return "";
}
outcome rehearse(const std::string& program, const std::string& arguments = "", int gpus = 1) {
  const outcome ran = test_support::run("env", rehearsed(program, arguments, gpus));
  CHECK(complaint_in(ran.err) == "");
  return ran;
}

//! What the benchmark leaves.
json results(const std::string& program, const std::string& arguments) {
  CAPTURE(program);
  const test_support::temporary file(program + ".json");
  const outcome ran =
      rehearse(STRETTO_BENCH_DIR "/" + program, arguments + " --json " + file.path());
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  const json made = json::parse(test_support::contents(file.path()), nullptr, false);
  REQUIRE(made.is_object());
  CHECK(made["about"]["device"] == "simulated GPU");
  CHECK(made["about"]["commit"] == "here");
  CHECK(made["about"]["clock_mhz"]["least"] == 1750);
  CHECK(made["about"]["globaltimer_step_ns"] == 32);
  return made;
}

//! Parts of what is measured that a host which others keep busy is too slow for.
std::size_t too_slow(const json& made) {
  for (const json& note : made["notes"])
    CHECK(std::string(note).find(" is not measured: the host does not issue fast enough") !=
          std::string::npos);
  return made["notes"].size();
}

//! Of the trainer's steps.
std::vector<std::string> losses(const std::string& printed) {
  std::vector<std::string> all;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("step "))
      all.push_back(line.substr(0, line.find("  ", line.find("loss"))));
  return all;
}

}  // namespace

TEST_CASE("what launches, events, graphs and memory take has a row each") {
  const json made = results("gpu_launch", "");
  // Behind a delay and a record; the launch that waits for the first may come back before the
  // second.
  const int queued = made["about"]["queued_launches"];
  CHECK(queued >= 1024 - 2);
  CHECK(queued <= 1024 - 1);
  std::set<std::string> named;
  for (const json& row : made["rows"]) {
    named.insert(std::string(row["what"]) + ", " + std::string(row["on"]));
    CHECK(row["microseconds"] > 0);
    // A kernel that does nothing takes a microsecond here, and what leads to it no time.
    if (row["on"] == "device") CHECK(std::abs(double(row["microseconds"]) - 1) < 0.05);
    CHECK(row["samples"] >= 15);
  }
  CHECK(named.size() == made["rows"].size());
  CHECK(named.size() + too_slow(made) == 18);
}

TEST_CASE("the executor's overhead is told of every plan, issued and replayed") {
  const json made = results("cuda_overhead", "20");
  REQUIRE(made["rows"].size() == 3);
  for (const json& row : made["rows"]) {
    CHECK(row["steps"] == 20);
    CHECK(row["jobs"] == 128);
    CHECK(row["issued_host_us"] > 0);
    CHECK(row["issued_us"] > row["issued_host_us"]);
    const double by_job = double(row["issued_host_us"]) / 128;
    CHECK(row["issued_host_us_by_job"] == doctest::Approx(by_job).epsilon(0.01));
    CHECK(row["calls_us_by_job"] > 0);
    if (row["messages"] == 0) continue;  // the graph of one rank has no node
    // Of what is followed also those that tell.
    CHECK(row["replayed_nodes"] > 0);
    CHECK(row["followed_nodes"] > row["replayed_nodes"]);
    for (const std::string way : {"replayed", "followed"}) {
      CHECK(row[way + "_host_us"] > 0);
      CHECK(row[way + "_us"] > row[way + "_host_us"]);
      const double by_node = double(row[way + "_host_us"]) / double(row[way + "_nodes"]);
      CHECK(row[way + "_host_us_by_node"] == doctest::Approx(by_node).epsilon(0.01));
    }
  }
}

TEST_CASE(
    "overlap is what two kernels that do not disturb each other have, in every way to run them") {
  const json made = results("gpu_overlap", "--rates 370 --ratios 0.5,1.28 --cluster 2");
  CHECK(made["about"]["cluster"] == 2);
  CHECK(made["about"]["nccl"] > 0);
  REQUIRE(made["notes"].size() == 1);
  const std::string note = made["notes"][0];
  INFO(note);
  CHECK(note.find("8 blocks, at a pace of 370 GB/s, move 3") != std::string::npos);
  CHECK(note.find(" alone, and 38") != std::string::npos);
  // Three shapes beside two communications, and one that is late.
  CHECK(made["rows"].size() == 3 * 2 * 2 + 1);
  for (const json& row : made["rows"]) {
    CAPTURE(row.dump());
    const std::string link = row["communication"];
    CHECK(row["ways"].size() == (link.starts_with("stand-in") ? 18 : 12));
    CHECK(row["matmul_us"] > 0);
    CHECK(row["proposal"] == 1);
    CHECK(row["proposal_in_margin"] == 1);
    CHECK(row["cluster"] == "4x2");
    CHECK(row["cluster_in_margin"] == "4x2");
    CHECK(double(row["matmul_in_margin_us"]) / double(row["matmul_us"]) ==
          doctest::Approx(132.0 / (132 - 8)).epsilon(0.02));
    CHECK(row["communication_us"] > 0);
    const double r = row["r"];
    CHECK(row["ceiling"] == std::min(1.0, r));
    if (link != "stand-in") continue;
    CHECK(std::min(std::abs(r / 0.5 - 1), std::abs(r / 1.28 - 1)) < 0.1);
    for (const json& way : row["ways"]) {
      CAPTURE(way.dump());
      // What is issued first begins first, though one event lets both go.
      const bool gated = std::string(way["order"]).ends_with("gate");
      CHECK(way["lead_us"] >= (gated ? 0 : 2));
      // A margin slows the matmul, or its pieces beside the communication, by so much.
      const double slowed = way["margin"] == 0 ? 1 : 132.0 / (132 - 8);
      CHECK(way["matmul_slowdown"] > 0.95);
      CHECK(way["matmul_slowdown"] < 1.1 * slowed);
      CHECK(way["hidden"] > double(row["ceiling"]) - r * (slowed - 1) - 0.2);
      CHECK(way["hidden"] < double(row["ceiling"]) + 0.05);
    }
  }
}

TEST_CASE("options that are none, and a file that cannot be written, end with a word") {
  for (const char* program : {"gpu_launch", "cuda_overhead", "gpu_overlap"}) {
    CAPTURE(program);
    const outcome typed = rehearse(std::string(STRETTO_BENCH_DIR "/") + program, "1 --nothing");
    CHECK(typed.exit == 1);
    CHECK(typed.err.find(program) == 0);
  }
  const outcome odd = rehearse(STRETTO_BENCH_DIR "/gpu_overlap", "--blocks 4,6 --cluster 4");
  CHECK(odd.exit == 1);
  CHECK(odd.err == "gpu_overlap: --cluster is a divisor of all --blocks\n");
  const outcome lost =
      rehearse(STRETTO_BENCH_DIR "/cuda_overhead", "1 --json /nowhere/there/is.json");
  CHECK(lost.exit == 1);
  CHECK(lost.err == "cuda_overhead: cannot write /nowhere/there/is.json\n");
}

TEST_CASE("what a GPU is, on one line") {
  const outcome ran = rehearse(STRETTO_BENCH_DIR "/gpu_about");
  CHECK(ran.exit == 0);
  const json told = json::parse(ran.out, nullptr, false);
  CHECK(told["multiprocessors"] == 132);
  CHECK(told["globaltimer_step_ns"] == 32);
}

TEST_CASE("the tests of GPUs pass; where there are too few they say so") {
  const auto test = [](const char* name, int gpus) {
    return rehearse(std::string(STRETTO_GPU_TESTS_DIR "/test_") + name, "", gpus);
  };
  const auto pass = [](const outcome& ran) {
    CHECK_MESSAGE(ran.exit == 0, ran.out);
    CHECK(ran.out.find("Status: SUCCESS!") != std::string::npos);
  };
  for (const int gpus : {1, 2})
    for (const char* name :
         {"gpu_device", "gpu_fault", "gpu_loopback", "gpu_nccl", "gpu_overlap_meter", "gpu_soak"})
      pass(test(name, gpus));
  pass(test("gpus_nccl", 2));
#ifdef STRETTO_TRAIN_PATH
  pass(test("train_gpu_pipeline", 1));
  pass(test("train_gpus_pipeline", 2));
#endif
  const outcome lone = test("gpus_nccl", 1);
  CHECK(lone.exit == 77);
  CHECK(lone.out == "skipped: GPUs needed: 2, found (cudaGetDeviceCount): 1\n");
}

#ifdef STRETTO_TRAIN_PATH

TEST_CASE("the trainer learns there what it learns on the host, also in two processes") {
  const test_support::temporary folder("rehearsed");
  const test_support::training_text text;
  const std::string options =
      " --layers 4 --ranks 2 --width 16 --heads 2 --context 16 --steps 3 --out " + folder.path() +
      " " + text.path();
  const outcome here = test_support::run(STRETTO_TRAIN_PATH, options);
  CHECK(losses(here.out).size() == 3);
  const outcome one = rehearse(STRETTO_TRAIN_PATH, "--device cuda" + options);
  CHECK_MESSAGE(one.exit == 0, one.err);
  CHECK(losses(one.out) == losses(here.out));

  std::filesystem::create_directories(folder.path() + "/nccl");
  const std::string port = std::to_string(test_support::free_port());
  const auto process = [&](const std::string& rank) {
    return "env -u OMPI_COMM_WORLD_SIZE -u PMI_SIZE RANK=" + rank + " LOCAL_RANK=" + rank +
           " WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
           " SIMULATED_NCCL=" + folder.path() + "/nccl " +
           rehearsed(STRETTO_TRAIN_PATH, "--device cuda --transport nccl" + options, 2);
  };
  const test_support::temporary script("rehearsed.sh");
  script.write(process("1") + " & other=$!\n" + process("0") + " || exit\nwait $other\n");
  const outcome two = test_support::run("sh", script.path());
  CHECK_MESSAGE(two.exit == 0, two.err);
  CHECK(complaint_in(two.err) == "");
  CHECK_MESSAGE(losses(two.out) == losses(here.out), two.out, "\non the host:\n", here.out);
}

#endif
