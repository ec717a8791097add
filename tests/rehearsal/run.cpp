// bench/gpu/run with a simulated GPU: what it does where not all is as it should be, of which it
// gets to know when there is little time; and bench/gpu/page, of what it leaves.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/run_program.hpp"

// STRETTO_SOURCE_DIR, STRETTO_REHEARSAL_PATH: what is loaded. STRETTO_BENCH_DIR: where the programs
// are.

namespace {

using nlohmann::json;
using test_support::outcome;

//! Where nothing is built but by a cmake that is this.
struct measured {
  explicit measured(const std::string& cmake) {
    std::filesystem::create_directories(folder.path() + "/bin");
    std::ofstream(folder.path() + "/bin/cmake") << "#!/bin/sh\n" << cmake;
    std::filesystem::permissions(folder.path() + "/bin/cmake", std::filesystem::perms::owner_all);
  }
  outcome run(const std::string& names) const {
    return test_support::run("env", "PATH=\"" + folder.path() +
                                        "/bin:$PATH\" LD_PRELOAD=" STRETTO_REHEARSAL_PATH
                                        " STRETTO_COMMIT=here STRETTO_GPU_BUILD=" STRETTO_BENCH_DIR
                                        "/.. " STRETTO_SOURCE_DIR "/bench/gpu/run --out " +
                                        folder.path() + "/results " + names);
  }
  //! What ctest prints in the place of tests.
  void ctest(const std::string& said, int exit) const {
    const std::string path = folder.path() + "/bin/ctest";
    std::ofstream(path) << "#!/bin/sh\nprintf '" + said + "'\nexit " << exit << '\n';
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  outcome page(const std::string& arguments) const {
    return test_support::run("env", "PATH=\"" + folder.path() +
                                        "/bin:$PATH\" STRETTO_PAGE_BUILD=" STRETTO_BENCH_DIR
                                        "/.. " STRETTO_SOURCE_DIR "/bench/gpu/page " +
                                        arguments);
  }
  std::string results(const std::string& name) const {
    return folder.path() + "/results/" + name + ".json";
  }
  test_support::temporary folder{"gpu_run"};
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("what cannot be built does not keep the rest from being measured, and is told") {
  const measured of(
      "case \"$*\" in *STRETTO_BUILD_EXAMPLES=ON* | *--build*bench_gpu_launch*) exit 1 ;; esac\n");
  const outcome ran = of.run("launch");
  CHECK(ran.exit == 1);
  CHECK(has(ran.out, "the trainer is not built"));
  CHECK(has(ran.out, "bench_gpu_launch is not built"));
  const json made = json::parse(test_support::contents(of.results("launch")), nullptr, false);
  REQUIRE(made.is_object());
  CHECK(made["about"]["commit"] == "here");
  CHECK(made["rows"].size() > 10);
}

TEST_CASE("where tests cannot be configured benchmarks are measured all the same") {
  const measured of(
      "case \"$*\" in *--build*tests_gpu*) exit 1 ;; *--build*|*STRETTO_BUILD_TESTS=OFF*) ;; "
      "*) exit 1 ;; esac\n");
  const outcome ran = of.run("tests launch");
  CHECK(ran.exit == 1);
  CHECK(has(ran.out, "tests are not built"));
  const json made = json::parse(test_support::contents(of.results("launch")), nullptr, false);
  REQUIRE(made.is_object());
  CHECK(made["rows"].size() > 10);
}

TEST_CASE("tests that are aborted or killed are among the results, too") {
  const measured of("exit 0\n");
  const std::string said =
      "1/4 Test  #7: gpu/device ....   Passed    1.25 sec\n"
      "2/4 Test  #8: gpu/loopback ...Subprocess aborted***Exception:   0.50 sec\n"
      "3/4 Test  #9: gpu/nccl .......***Timeout  60.01 sec\n"
      "4/4 Test #10: gpus/nccl ......***Skipped   0.02 sec\n";
  of.ctest(said, 8);
  const outcome ran = of.run("tests");
  CHECK(ran.exit == 1);
  CHECK(has(ran.out, "1 passed, 2 failed, 1 skipped"));
  const json made = json::parse(test_support::contents(of.results("tests")), nullptr, false);
  REQUIRE(made.is_object());
  REQUIRE(made["rows"].size() >= 4);
  const auto row = [&](std::size_t at) {
    const json& one = made["rows"][at];
    return one["test"].get<std::string>() + ' ' + one["result"].get<std::string>() + ' ' +
           std::to_string(one["seconds"].get<double>());
  };
  CHECK(row(0) == "gpu/device Passed 1.250000");
  CHECK(row(1) == "gpu/loopback Subprocess aborted***Exception 0.500000");
  CHECK(row(2) == "gpu/nccl Timeout 60.010000");
  CHECK(row(3) == "gpus/nccl Skipped 0.020000");
}

TEST_CASE("results of one GPU are not put beside those of another") {
  const measured of("exit 0\n");
  std::filesystem::create_directories(of.folder.path() + "/results");
  const std::string before = "{\n\"about\": {\"device\":\"NVIDIA H200\"}\n}\n";
  std::ofstream(of.results("overlap")) << before;
  const outcome ran = of.run("launch");
  CHECK(ran.exit == 1);
  CHECK(has(ran.err, "has results of another GPU, NVIDIA H200; this is simulated GPU"));
  CHECK(test_support::contents(of.results("overlap")) == before);
  CHECK_FALSE(std::filesystem::exists(of.results("launch")));
}

TEST_CASE("the last line says how a page is made of the results") {
  const measured of("exit 0\n");
  of.ctest("1/1 Test  #7: gpu/soak ....   Passed    1.25 sec\n", 0);
  const outcome ran = of.run("tests");
  const std::string folder = of.folder.path() + "/results";
  CHECK(has(ran.out,
            "\na page of it: bench/gpu/page " + folder + " -o docs/results-simulated-gpu.md\n"));
  const std::string file = of.folder.path() + "/page.md";
  const outcome made = of.page(folder + " -o " + file);
  CHECK_MESSAGE(made.exit == 0, made.err);
  const std::string page = test_support::contents(file);
  CHECK(has(page, "# Results on simulated GPU\n"));
  CHECK(has(page, "| commit | here |"));
  CHECK(has(page, "| gpu/soak | Passed | 1.25 |"));
  CHECK(has(page, "Not measured: there is no `overlap.json`."));
  CHECK(of.page(folder).out == page);

  CHECK(of.page("/nowhere").err == "gpu_page: /nowhere is no folder\n");
  CHECK(of.page(folder + " -o /nowhere/page.md").err ==
        "gpu_page: cannot write /nowhere/page.md\n");
  const outcome typed = of.page(folder + " --nothing");
  CHECK(typed.exit == 1);
  CHECK(typed.err == "gpu_page: usage: gpu_page FOLDER [-o FILE]\n");
  CHECK(of.page("").exit == 1);
}
