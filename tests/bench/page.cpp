// The page of results: what is met, missed or not measured, and files that do not go together.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "../bench/gpu/page_text.hpp"
#include "support/run_program.hpp"

using namespace stretto;

namespace {

using bench::json_value;
using bench::reached;

//! What bench/gpu/run would leave, of a GPU that there is not.
struct left_folder {
  left_folder() {
    std::filesystem::create_directory(folder.path());
    about = {{"device", "no such H200"},
             {"compute_capability", "9.0"},
             {"multiprocessors", 132},
             {"memory_bytes", 3LL << 30},
             {"cuda_driver", 13010},
             {"toolkit", 13000},
             {"commit", "c0ffee"},
             {"driver", "1.2.3"},
             {"clock_mhz", {{"least", 1700}, {"most", 1750.5}}},
             {"globaltimer_step_ns", 1024}};
    for (const std::string name :
         {"gpu/device", "gpu/loopback", "gpu/soak", "gpu/loopback_memcheck", "gpu/nccl_memcheck",
          "train_gpu/pipeline_memcheck"})
      tests.push_back({{"test", name}, {"result", "Passed"}, {"seconds", 1.5}});
    tests.push_back({{"test", "gpus/nccl"}, {"result", "Skipped"}, {"seconds", 0.02}});
    launch.push_back({{"what", "kernel launch"},
                      {"on", "host"},
                      {"microseconds", 31234.5},
                      {"spread", 0.015},
                      {"reference", "2|3"},
                      {"source", "another GPU"}});
    overhead.push_back({{"plan", "one"},
                        {"jobs", 128},
                        {"messages", 0},
                        {"issued_us", 300},
                        {"issued_host_us", 50},
                        {"issued_host_us_by_job", 0.4},
                        {"calls_us_by_job", 0.2}});
    overhead.push_back({{"plan", "four"},
                        {"jobs", 128},
                        {"messages", 96},
                        {"issued_us", 900},
                        {"issued_host_us", 627},
                        {"issued_host_us_by_job", 4.9},
                        {"calls_us_by_job", 4.2},
                        {"replayed_us", 700},
                        {"replayed_host_us", 11},
                        {"replayed_nodes", 100},
                        {"replayed_host_us_by_node", 0.11},
                        {"followed_us", 720},
                        {"followed_host_us", 9.5},
                        {"followed_nodes", 250},
                        {"followed_host_us_by_node", 0.038}});
    overlap.push_back(overlap_row("stand-in", 370, 8, 1.28, {way(0.93, 1.05)}));
  }

  static json_value way(double hidden, double slowdown, const std::string& order = "matmul first") {
    return {{"order", order},
            {"margin", 8},
            {"pieces", 1},
            {"hidden", hidden},
            {"lead_us", 2},
            {"matmul_slowdown", slowdown},
            {"communication_slowdown", 1}};
  }
  //! Its matmul does 790 TFLOP/s, at which a layer of f = 16384 shared by 4 has r = 1.28.
  static json_value overlap_row(const std::string& link, double pace, int blocks, double r,
                                std::vector<json_value> ways, int size = 4096) {
    const double matmul = 2.0 * size * size * size / 790e6;
    return {{"type", "bf16"},
            {"m", size},
            {"n", size},
            {"k", size},
            {"communication", link},
            {"blocks", blocks},
            {"pace_gb_s", pace},
            {"late_us", 0},
            {"gb_s", pace},
            {"r", r},
            {"matmul_us", matmul},
            {"matmul_in_margin_us", 1.07 * matmul},
            {"communication_us", matmul / r},
            {"ceiling", std::min(1.0, r)},
            {"bound", 0.9},
            {"ways", std::move(ways)}};
  }

  void write(const std::string& name, const json_value& rows) {
    const json_value all = {{"name", name}, {"about", about}, {"rows", rows}, {"notes", notes}};
    text(name, all.dump());
  }
  void text(const std::string& name, const std::string& what) const {
    std::ofstream(folder.path() + "/" + name + ".json") << what;
  }
  void write_all() {
    write("tests", tests);
    write("launch", launch);
    write("overhead", overhead);
    write("overlap", overlap);
  }
  std::string page() const { return bench::page_of(bench::results(folder.path())); }
  std::vector<reached> verdicts() const {
    std::vector<reached> made;
    for (const bench::target& each : bench::judge(bench::results(folder.path())))
      made.push_back(each.verdict);
    return made;
  }
  std::string refusal() const {
    try {
      static_cast<void>(page());
    } catch (const bench::results_error& wrong) {
      return wrong.what();
    }
    return "";
  }

  test_support::temporary folder{"results"};
  json_value about;
  json_value tests = json_value::array(), launch = json_value::array(),
             overhead = json_value::array(), overlap = json_value::array(),
             notes = json_value::array();
};

void expect_in(const std::string& page, const std::string& part) {
  CHECK_MESSAGE(page.find(part) != std::string::npos, page, " lacks ", part);
}

constexpr std::size_t all_targets = 10;

}  // namespace

TEST_CASE("a page has the device, every target and a table of each benchmark") {
  left_folder of;
  of.write_all();
  CHECK(of.verdicts() == std::vector<reached>(all_targets, reached::met));
  const std::string page = of.page();
  for (const char* part :
       {"# Results on no such H200\n",
        "`tests.json`, `launch.json`, `overhead.json`, `overlap.json`.",
        "| driver | 1.2.3, of CUDA 13.1 |", "| toolkit | CUDA 13.0 |", "| commit | c0ffee |",
        "| memory, GiB | 3 |", "tests 1700 to 1751; launch 1700 to 1751",
        "| timer's step, ns | 1024 |", "Nothing that the programs know of.",
        "| 6 passed, 0 failed, 1 skipped | met |",
        "| at most 5 µs | 4.9 µs (four); its calls of CUDA alone take 4.2 µs | met |",
        "| at most 10 µs | 9.5 µs (four) | met |",
        "| allocations and synchronisations in a step | none | gpu/soak: Passed | met |",
        "0.93, wanted 0.9 (4096 x 4096 x 4096, r = 1.28; such a layer's is 1.279) | met |",
        "| gpus/nccl | Skipped | 0.02 |",
        "| kernel launch | host | 31230 | 1.5 % | 2\\|3 | another GPU |",
        "| one | 128 | 0 | 300 | 50 | 0.4 | 0.2 |  |  |  |  |  |  |  |  |",
        "| four | 128 | 96 | 900 | 627 | 4.9 | 4.2 | 700 | 11 | 100 | 0.11 | 720 | 9.5 | 250 | "
        "0.038 |",
        "| 93.0 % | matmul first, margin 8, pieces 1 | 5.0 % |"})
    expect_in(page, part);
}

TEST_CASE("what is missed is told, target by target") {
  left_folder of;
  of.tests = json_value::array();
  for (const std::string name : {"gpu/loopback", "gpu/soak", "gpu/loopback_memcheck"})
    of.tests.push_back({{"test", name}, {"result", "Timeout"}, {"seconds", 100}});
  of.overhead[1]["issued_host_us_by_job"] = 5.01;
  of.overhead[1]["followed_host_us"] = 10.1;
  of.overlap[0] = of.overlap_row("stand-in", 370, 8, 1.28, {of.way(0.89, 1.08)});
  of.write_all();
  CHECK(of.verdicts() == std::vector<reached>(all_targets, reached::missed));
  expect_in(of.page(), "| 10.1 µs (four) | **missed** |");
  expect_in(of.page(), "| 0 passed, 3 failed, 0 skipped | **missed** |");
}

TEST_CASE("what was not measured is neither met nor missed") {
  left_folder of;
  of.write("launch", of.launch);
  CHECK(of.verdicts() == std::vector<reached>(all_targets, reached::not_measured));
  const std::string page = of.page();
  for (const char* part :
       {"Not measured: there is no `tests.json`.", "Not measured: there is no `overhead.json`.",
        "| there is no overlap.json | not measured |"})
    expect_in(page, part);
  // Nor is what lacks in files that there are.
  of.overhead[1].erase("followed_host_us");
  for (auto& row : of.overhead) row.erase("issued_host_us_by_job");
  of.overlap[0]["pace_gb_s"] = 180;
  of.tests = {{{"test", "gpu/soak"}, {"result", "Skipped"}, {"seconds", 0}}};
  of.write_all();
  CHECK(of.verdicts() == std::vector<reached>(all_targets, reached::not_measured));
  of.write("tests", json_value::array());
  expect_in(of.page(), "Not measured: `tests.json` has no row.");
  expect_in(of.page(), "| gpu/soak: has not run | not measured |");
}

TEST_CASE("of overlap that row is judged which is like the layer, and the way that serves both") {
  left_folder of;
  const auto judged = [&](const std::vector<json_value>& rows) {
    of.write("overlap", rows);
    return bench::judge_overlap(bench::results(of.folder.path()));
  };
  const std::vector<json_value> bad = {of.way(0.1, 2)};
  json_value single = of.overlap_row("stand-in", 370, 8, 1.28, bad);
  single["type"] = "fp32";
  const auto seen = judged(
      {single, of.overlap_row("stand-in, late", 370, 8, 1.28, bad),
       of.overlap_row("NCCL to itself", 0, 8, 1.28, bad),
       of.overlap_row("stand-in", 370, 16, 1.28, bad),
       of.overlap_row("stand-in", 180, 8, 1.28, bad), of.overlap_row("stand-in", 370, 8, 1.1, bad),
       of.overlap_row("stand-in", 370, 8, 2.88, bad),
       of.overlap_row("stand-in", 370, 8, 1.25,
                      {of.way(0.99, 1.2), of.way(0.91, 1.01), of.way(0.8, 1)})});
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].hidden == 0.91);
  CHECK(seen[0].least_hidden == 0.9);
  CHECK(seen[0].most_slowdown == doctest::Approx(8.0 / 124 + 0.03));
  // Where none hides enough, the one that hides most; each size for itself.
  const auto two =
      judged({of.overlap_row("stand-in", 370, 8, 1.28, {of.way(0.5, 1), of.way(0.6, 2)}),
              of.overlap_row("stand-in", 370, 8, 1.28, {of.way(0.95, 1)}, 8192)});
  REQUIRE(two.size() == 2);
  CHECK(two[0].hidden == 0.6);
  CHECK(two[1].hidden == 0.95);
  CHECK(of.verdicts()[8] == reached::missed);
}

TEST_CASE("a matmul's slowdown is that of the time beside the communication") {
  const auto slowdown = [](json_value row, double slower, const char* order) {
    json_value how = left_folder::way(0.9, slower, order);
    row["matmul_us"] = 200;
    row["communication_us"] = 102;
    return bench::slowdown_beside({row, "row"}, {how, "way"});
  };
  const json_value row = left_folder::overlap_row("stand-in", 370, 8, 2, {});
  // In 100 of them, which two before the matmul's begin are not, it does what it does in 90 alone.
  CHECK(slowdown(row, 1.05, "communication first") == doctest::Approx(1.0 / 9));
  CHECK(slowdown(row, 1.05, "matmul first") == doctest::Approx(10.0 / 92));
  CHECK(slowdown(row, 1, "matmul first") == 0);
  CHECK(std::isinf(slowdown(row, 1.6, "communication first")));
}

TEST_CASE("what casts doubt on the results is on the page") {
  left_folder of;
  of.about["device"] = "no such GPU";
  of.about["commit"] = "c0ffee-dirty";
  of.notes = {"the clock moved"};
  of.write("launch", of.launch);
  of.write("tests", of.tests);
  const std::string page = of.page();
  for (const char* part :
       {"- The targets are those of an H200, and this is none: no such GPU.\n",
        "- What was measured is not the commit alone", "- `launch`: the clock moved",
        "| 6 passed, 0 failed, 1 skipped, and not all have run | not measured |"})
    expect_in(page, part);
}

TEST_CASE("files that are none, or do not go together, are refused by name") {
  left_folder of;
  const std::string folder = of.folder.path();
  CHECK(of.refusal() == folder + " has no .json file");
  of.text("launch", "{\"name\": ");
  CHECK(of.refusal() == "launch.json is no JSON: byte 10");
  of.text("launch", "[]");
  CHECK(of.refusal() == "launch.json is no object");
  of.text("launch", R"({"name": "launch"})");
  CHECK(of.refusal() == "launch.json: there is no 'rows'");
  of.text("launch", R"({"name": "overlap", "rows": [], "notes": []})");
  CHECK(of.refusal() == "launch.json has results of 'overlap'");
  of.text("launch", R"({"name": "launch", "rows": [], "notes": [1]})");
  CHECK(of.refusal() == "launch.json: not all of 'notes' is text");
  of.launch[0]["microseconds"] = "quick";
  of.write("launch", of.launch);
  CHECK(of.refusal() == "launch.json, row 1: 'microseconds' is no number");
  of.launch[0]["microseconds"] = 1;
  of.write("launch", of.launch);
  CHECK(of.refusal() == "");
  of.about["commit"] = "decaf";
  of.write("overlap", of.overlap);
  CHECK(of.refusal() == "launch.json and overlap.json differ in 'commit': c0ffee and decaf");
  of.about["commit"] = "c0ffee";
  of.about["device"] = "no such GPU";
  of.write("overlap", of.overlap);
  CHECK(of.refusal() ==
        "launch.json and overlap.json differ in 'device': no such H200 and no such GPU");
  of.about["device"] = "no such H200";
  of.about["toolkit"] = 12030;
  of.write("overlap", of.overlap);
  CHECK(of.refusal() == "launch.json and overlap.json differ in 'toolkit': 13000 and 12030");
  of.about.erase("driver");
  of.write("overlap", of.overlap);
  CHECK(of.refusal() == "overlap.json, 'about': there is no 'driver'");
  of.text("other", "{}");
  CHECK(of.refusal() == "other.json is no result of bench/gpu/run");
  std::filesystem::remove_all(folder);
  CHECK(of.refusal() == folder + " is no folder");
}

TEST_CASE("the pages of results that are kept are what is made of them") {
  int pages = 0;
  for (const auto& each :
       std::filesystem::directory_iterator(STRETTO_SOURCE_DIR "/bench/results")) {
    const std::string name = each.path().filename().string();
    CAPTURE(name);
    CHECK(bench::page_of(bench::results(each.path().string())) ==
          test_support::contents(STRETTO_SOURCE_DIR "/docs/results-" + name + ".md"));
    ++pages;
  }
  CHECK(pages > 0);
}
