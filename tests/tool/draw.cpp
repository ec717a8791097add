#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

TEST_CASE("plot writes an SVG with every job, its title and its time") {
  const temporary file("picture.svg");
  REQUIRE(
      run("plot interleaved --ranks 3 --microbatches 4 --chunks 2 --show-memory -o " + file.path())
          .exit == 0);
  const std::string svg = contents(file.path());
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(svg.find("interleaved: 3 ranks, 4 micro-batches, 2 chunks") != std::string::npos);
  CHECK(svg.find("makespan ") != std::string::npos);
  CHECK(svg.find("prefers-color-scheme:dark") != std::string::npos);
  CHECK(count(svg, "<title>") == 1 + 3 * 4 * 2 * 2);
  CHECK(count(svg, "class=\"curve\" d=") == 3);
  CHECK(svg.find("<title>5F3: ") != std::string::npos);
}

TEST_CASE("trace: jobs that nest, arrows that join the right jobs, memory") {
  for (const std::string& step :
       {std::string("interleaved --ranks 3 --microbatches 5 --chunks 2 --cost 3,2,2,1"),
        std::string("inference --ranks 3 --microbatches 2"),
        std::string("--csv " STRETTO_CSV_DIR "/csv/dualpipev_p4_v2_m10_compute_only.csv"),
        std::string("--csv " STRETTO_CSV_DIR "/csv/zbvzerobubble_p4_v2_m8_compute_comms.csv")}) {
    INFO(step);
    const json trace = run_json("trace " + step);
    const json simulated = run_json("simulate --format json " + step);
    REQUIRE(trace.contains("traceEvents"));
    std::map<std::pair<int, int>, double> busy_until;
    std::map<int, json> arrows;
    std::map<int, double> work;
    double last = 0;
    for (const json& event : trace["traceEvents"]) {
      const std::string phase = event["ph"];
      if (phase == "X") {
        const std::pair<int, int> track{event["pid"], event["tid"]};
        CHECK(event["ts"].get<double>() >= busy_until[track]);
        busy_until[track] = event["ts"].get<double>() + event["dur"].get<double>();
        last = std::max(last, busy_until[track]);
        if (track.second == 0) work[track.first] += event["dur"].get<double>();
      } else if (phase == "s") {
        arrows[event["id"]] = event;
      } else if (phase == "f") {
        const json& start = arrows.at(event["id"]);
        CHECK(start["name"] == event["name"]);
        CHECK(start["pid"] != event["pid"]);
        CHECK(start["ts"].get<double>() < event["ts"].get<double>());
      }
    }
    CHECK(last == simulated["makespan"].get<double>());
    for (const auto& [rank, time] : work)
      CHECK(time == simulated["busy"][static_cast<std::size_t>(rank)].get<double>());
    CHECK(!arrows.empty());
  }
  // Looped stages 0 ... 5 on three ranks have five boundaries, all between ranks; each is crossed
  // by five micro-batches, forth and back.
  const json trace = run_json("trace interleaved --ranks 3 --microbatches 5 --chunks 2");
  std::set<std::string> messages;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "s") messages.insert(event["name"].get<std::string>());
  CHECK(messages.size() == 2 * 5 * 5);
  CHECK(messages.contains("4SEND_F3"));
  CHECK(messages.contains("1SEND_B0"));
}

}  // namespace
