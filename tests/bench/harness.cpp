// How the benchmarks of a GPU take samples and write them down; needs none.
#include "../bench/gpu/harness.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace stretto;

TEST_CASE("a summary is the median and what lies between the quartiles") {
  CHECK(bench::quantile({4, 1, 3, 2}, 0.5) == 2.5);
  const bench::summary seen = bench::summarize({9, 10, 11, 10, 10, 30, 8, 12});
  CHECK(seen.median == 10);
  CHECK(seen.count == 8);
  CHECK(seen.spread == doctest::Approx((11.25 - 9.75) / 10));
  CHECK(seen.error() == doctest::Approx(0.93 * 0.15 / 2.828427));
  CHECK_THROWS_AS(bench::summarize({}), std::invalid_argument);
}

TEST_CASE("samples are taken in turn until the medians are sure") {
  std::string order;
  double noisy = 0;
  const std::vector<bench::sampler> variants = {
      [&] { return order += 'a', 5.0; },
      // Quiet from its 31st sample on.
      [&] { return order += 'b', noisy += 1, noisy <= 30 ? 100 + 40 * std::fmod(noisy, 2) : 140; }};
  const auto still = [] { return 0.0; };
  const auto seen = bench::alternate(variants, {.warmups = 2, .least = 15, .most = 200}, still);
  CHECK(order.substr(0, 6) == "ababab");
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].median == 5);
  CHECK(seen[1].median == 140);
  CHECK(seen[0].count == seen[1].count);
  // The quartiles agree once three of four samples are quiet ones.
  CHECK(seen[1].count > 40);
  CHECK(seen[1].count < 80);
  CHECK(static_cast<int>(order.size()) == 2 * (2 + seen[0].count));
}

TEST_CASE("quiet variants need the least number of samples, noisy ones no more than is allowed") {
  int calls = 0;
  const std::vector<bench::sampler> quiet = {[&] { return ++calls, 1.0; }};
  const auto still = [] { return 0.0; };
  CHECK(bench::alternate(quiet, {}, still)[0].count == 15);
  CHECK(calls == 18);  // three of them to warm up
  double last = 1;
  const std::vector<bench::sampler> noisy = {[&] { return last = 3 - last; }};
  CHECK(bench::alternate(noisy, {.most = 40}, still)[0].count == 40);
  // Time that is up ends it, but not before there are the least.
  double clock = 0;
  CHECK(bench::alternate(noisy, {.most = 40, .seconds = 2}, [&] { return clock += 1; })[0].count ==
        16);
  CHECK(bench::alternate(noisy, {.most = 40, .seconds = 0}, still)[0].count == 15);
  CHECK_THROWS_AS(bench::alternate(noisy, {.least = 9, .most = 8}, still), std::invalid_argument);
}

TEST_CASE("bounds of what can hide") {
  const auto share = [](int blocks, double r) {
    return bench::most_hidden_with_margin(r, blocks, 132) / std::min(1.0, r);
  };
  CHECK(share(4, 0.5) == doctest::Approx(1));
  CHECK(share(4, 1) == doctest::Approx(0.97).epsilon(0.005));
  CHECK(share(8, 3.84) == doctest::Approx(0.75).epsilon(0.01));
  CHECK(share(24, 2.88) == doctest::Approx(0.36).epsilon(0.02));
  CHECK(share(16, 7.67) == doctest::Approx(-0.06).epsilon(0.1));  // it makes the whole slower
  CHECK(bench::most_hidden(0.5, 8, 132) == 0.5);
  CHECK(bench::most_hidden(3, 8, 132) == doctest::Approx(0.939).epsilon(0.001));
}

TEST_CASE("a clock that moves casts doubt on the figures of the row in which it does") {
  bench::clocks_seen seen;
  CHECK(seen.doubt().empty());
  seen.add(1980);
  seen.begin_row();
  for (const double clock : {1500, 1440, 1450}) seen.add(clock);
  CHECK(seen.doubt().empty());
  CHECK(seen.least() == 1440);
  CHECK(seen.most() == 1980);
  seen.add(1350);
  seen.begin_row();
  seen.add(1980);
  CHECK(seen.doubt().find("between 1350 and 1500 MHz") != std::string::npos);
}

TEST_CASE("a timer of large steps casts doubt on what is paced by it") {
  for (const double fine : {0, 32, 1000, 2000}) CHECK(bench::doubt_of_timer(fine).empty());
  CHECK(bench::doubt_of_timer(1048576).find("by 1048576 ns at a time") != std::string::npos);
}

TEST_CASE("a stand-in that is short of its pace, or hardly is not, casts doubt on what it hides") {
  CHECK(bench::doubt_of_pace(8, 370, 366, 490).empty());
  const std::string slow = bench::doubt_of_pace(8, 370, 300, 301);
  CHECK(slow.find("8 blocks, at a pace of 370 GB/s, move 300 alone") != std::string::npos);
  CHECK(slow.find("that is short of it") != std::string::npos);
  CHECK(bench::doubt_of_pace(8, 370, 366, 400).find("little to spare") != std::string::npos);
}

TEST_CASE("a report says what it is of, and what was doubtful") {
  bench::report made("launch", {{"device", "a simulated GPU"}});
  made.row({{"what", "kernel launch"}, {"microseconds", bench::rounded(2.71828)}});
  made.row({{"what", "hop"}, {"microseconds", bench::rounded(0.000123456)}});
  made.note("the clock moved");
  const auto path = std::filesystem::temp_directory_path() / "stretto_bench_harness.json";
  made.write(path.string());
  const auto read = nlohmann::json::parse(std::ifstream(path));
  std::filesystem::remove(path);
  CHECK(read == nlohmann::json(made.all()));
  CHECK(read["name"] == "launch");
  CHECK(read["about"]["device"] == "a simulated GPU");
  CHECK(read["about"].contains("commit"));
  CHECK(read["about"].contains("driver"));
  CHECK(read["rows"].size() == 2);
  CHECK(read["rows"][0]["microseconds"] == 2.718);
  CHECK(read["rows"][1]["microseconds"] == 0.0001235);
  CHECK(read["notes"][0] == "the clock moved");
  CHECK_THROWS_AS(made.write("/nowhere/at/all.json"), std::runtime_error);
}

TEST_CASE("notes leave standard output to what others read") {
  const auto path = std::filesystem::temp_directory_path() / "stretto_bench_notes.txt";
  bench::report made("about", {});
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO);
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  ::dup2(file, STDOUT_FILENO);
  made.note("the clock moved");
  std::fflush(stdout);
  ::dup2(kept, STDOUT_FILENO);
  ::close(file);
  ::close(kept);
  CHECK(std::filesystem::file_size(path) == 0);
  std::filesystem::remove(path);
}

TEST_CASE("numbers are written to four digits") {
  CHECK(bench::rounded(176.14321) == 176.1);
  CHECK(bench::rounded(-31234.5) == -31230);
  CHECK(bench::rounded(0) == 0);
  CHECK(bench::rounded(INFINITY) == 0);
}

TEST_CASE("options are taken from among the words") {
  std::vector<std::string> words = {"300", "--json", "a.json"};
  CHECK(bench::take_option(words, "--json") == "a.json");
  CHECK(words == std::vector<std::string>{"300"});
  CHECK(bench::take_option(words, "--blocks", "8") == "8");
  words = {"--json"};
  CHECK_THROWS_AS(bench::take_option(words, "--json"), std::invalid_argument);
}
