#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "measured_step.hpp"
#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::event;
using tool_tests::measured_step;
using tool_tests::outcome;
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

TEST_CASE("plot outlines the critical path where it is asked for") {
  const std::string step = "plot 1f1b --ranks 3 --microbatches 4 --cost 2,2,2,1";
  CHECK(run(step).out.find("critical path") == std::string::npos);
  const std::string svg = run(step + " --critical-path").out;
  CHECK(svg.find(">critical path</text>") != std::string::npos);
  CHECK(count(svg, "<path class=\"path\"") == 1);
}

TEST_CASE("parts of a unit of time that pairs hide are drawn where they are in a finer unit") {
  const std::string step = " paired_1f1b --ranks 4 --microbatches 8 --hides 75";
  const std::string parts = run("plot" + step).out;
  const std::string whole = run("plot --cost 4,4,4,0" + step).out;
  CHECK(parts.find("makespan 27.75, ") != std::string::npos);
  CHECK(parts.find("<title>0B2: 15.25 to 17.25</title>") != std::string::npos);
  CHECK(whole.find("<title>0B2: 61 to 69</title>") != std::string::npos);
  // The axis counts units.
  CHECK(parts.find(">26</text>") != std::string::npos);
  CHECK(parts.find(">30</text>") == std::string::npos);
  const auto times = [&](const std::string& costs) {
    std::vector<double> all;
    const json trace = run_json("trace" + costs + step);
    for (const json& event : trace["traceEvents"])
      for (const char* time : {"ts", "dur"})
        if (event.contains(time)) all.push_back(event[time].get<double>());
    return all;
  };
  std::vector<double> four_times = times("");
  CHECK(*std::max_element(four_times.begin(), four_times.end()) == 27.75);
  for (double& time : four_times) time *= 4;
  CHECK(four_times.size() > 4 * 8 * 2 * 2);
  CHECK(four_times == times(" --cost 4,4,4,0"));
}

TEST_CASE("copies to the host and back are drawn beside the jobs, and memory never runs back") {
  const std::string step =
      " 1f1b --ranks 4 --microbatches 8 --offload all,prefetch=2 --copy 2,1 ";
  const std::string list = run("schedule" + step).out;
  const std::size_t copies = count(list, "OFFLOAD") + count(list, "RELOAD");
  CHECK(copies > 8);
  const std::string svg = run("plot" + step + "--show-memory").out;
  CHECK(count(svg, "OFFLOAD") + count(svg, "RELOAD") == copies);
  CHECK(count(svg, ">copies</text>") == 4);
  CHECK(count(svg, "class=\"curve\" d=") == 4);
  CHECK(svg.find(">copy to the host</text>") != std::string::npos);
  const json trace = run_json("trace" + step);
  std::map<int, double> now;
  std::size_t beside = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["tid"] == 2) ++beside;
    if (event["ph"] != "C") continue;
    CHECK(event["ts"].get<double>() >= now[event["pid"]]);
    now[event["pid"]] = event["ts"];
  }
  CHECK(beside == copies);
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

const std::string measured_1f1b = "plot 1f1b --ranks 2 --microbatches 1 --trace ";

TEST_CASE("a measured step is drawn below the predicted one, rank by rank, stream by stream") {
  const temporary file("trace.json");
  file.write(measured_step().dump());
  const std::string svg = run(measured_1f1b + file.path()).out;
  // Predicted by what the jobs took: 10, 10, 20, 21.
  CHECK(svg.find("makespan 61, bubble") != std::string::npos);
  CHECK(svg.find("measured, step 7: makespan 71; every order was kept") != std::string::npos);
  std::size_t at = 0;  // the lanes, from above
  for (const char* lane : {">rank 0 predicted<", ">measured<", ">send_next<", ">receive<",
                           ">rank 1 predicted<", ">measured<", ">send_next<", ">receive<"}) {
    CAPTURE(lane);
    at = svg.find(lane, at + 1);
    REQUIRE(at != std::string::npos);
  }
  CHECK(svg.find("<title>1B0: 20 to 40</title>") != std::string::npos);  // predicted
  CHECK(svg.find("<title>1B0: 23 to 43</title>") != std::string::npos);  // from the first job on
  CHECK(svg.find("<title>1F0: 13 to 23</title>") != std::string::npos);  // its ops together
  CHECK(svg.find("<title>1RECV_F0: 0 to 13</title>") != std::string::npos);
  CHECK(svg.find("optimizer") != std::string::npos);
  CHECK(svg.find(">time, µs<") != std::string::npos);
  // By costs of one's own, in the same unit.
  CHECK(run(measured_1f1b + file.path() + " --cost 2,2,2,0")
            .out.find("by the costs given: makespan 12") != std::string::npos);
  // Hops go with these: a trace tells of none.
  CHECK(run(measured_1f1b + file.path() + " --cost 2,2,2,0 --nodes 1,5")
            .out.find("by the costs given: makespan 22") != std::string::npos);
  for (const char* links : {"--nodes 1,5", "--serial-links"}) {
    const outcome refused = run(measured_1f1b + file.path() + " " + links);
    CHECK(refused.exit == 2);
    CHECK(refused.err.find("they go with --cost") != std::string::npos);
  }
}

TEST_CASE("a trace has the critical path on a track of its own, behind the ranks") {
  const std::string step = " 1f1b --ranks 3 --microbatches 4 --cost 2,2,2,1";
  const json plain = run_json("trace" + step);
  for (const json& one : plain["traceEvents"]) CHECK(one["pid"] < 3);
  const json trace = run_json("trace --critical-path" + step);
  const json told = run_json("simulate --critical-path --format json" + step);
  std::vector<std::string> names;
  for (const json& one : trace["traceEvents"]) {
    if (one["pid"] != 3) continue;
    if (one["ph"] == "X") names.push_back(one["name"]);
    else if (one["name"] == "process_name") CHECK(one["args"]["name"] == "critical path");
  }
  std::vector<std::string> jobs;
  for (const json& one : told["critical_path"]["jobs"]) jobs.push_back(one["job"]);
  CHECK(names == jobs);
  CHECK(names.size() > 10);
}

TEST_CASE(
    "of a measured step the critical path is the measured one's, and what it is made of is told") {
  const temporary file("trace.json");
  file.write(measured_step().dump());
  const std::string plain = run(measured_1f1b + file.path()).out;
  CHECK(plain.find("critical path") == std::string::npos);
  const std::string svg = run(measured_1f1b + file.path() + " --critical-path").out;
  // Of 71: 10 + 10 + 20 + 21 of jobs, and from 20 to 23 and 53 to 60 on the way to the other rank.
  CHECK(svg.find("critical path: jobs 85.9 %, messages 14.1 %, lost 0.0 %") != std::string::npos);
  const std::string begins = "<path class=\"path\" d=\"";
  const std::string lines = svg.substr(svg.find(begins) + begins.size());
  CHECK(std::ranges::count(lines.substr(0, lines.find('"')), 'Z') == 3);  // 1F0 and 1B0 in one
  // A rank that is late by itself has that time in it.
  json late = measured_step();
  event(late, "1B0")["ts"] = 38;
  event(late, "1B0")["dur"] = 15;
  file.write(late.dump());
  CHECK(run(measured_1f1b + file.path() + " --critical-path")
            .out.find("critical path: jobs 78.9 %, messages 14.1 %, lost 7.0 %") !=
        std::string::npos);
}

TEST_CASE("a picture is SVG, and no other file is made of it") {
  for (const char* command :
       {"plot 1f1b --ranks 2 --microbatches 2", "compare --ranks 2 --microbatches 2 --format svg",
        "assign --layers 4,4 --chunks 1 --format svg"})
    for (const char* ending : {".png", ".pdf"}) {
      const std::string name = temporary("picture").path() + ending;
      const auto ran = run(std::string(command) + " -o " + name);
      INFO(ran.err);
      CHECK(ran.exit == 2);
      CHECK(ran.err == "stretto: -o " + name + ": pictures are SVG, and that is no " + ending +
                           ": name it .svg, of which rsvg-convert makes others\n");
      CHECK_FALSE(std::filesystem::exists(name));
    }
}

TEST_CASE("an order that a trace breaks is named, a trace of something else refused") {
  const auto said = [](auto change, const std::string& more = "") {
    json trace = measured_step();
    change(trace);
    const temporary file("trace.json"), picture("picture.svg");
    file.write(trace.dump());
    const auto ran =
        run((more.empty() ? measured_1f1b : more) + file.path() + " -o " + picture.path());
    const std::string begin =
        ran.exit == 1 ? "stretto: " + file.path() + ": " : "stretto: --trace " + file.path() + ": ";
    CHECK(ran.exit != 0);
    REQUIRE(ran.err.starts_with(begin));
    CHECK(contents(picture.path()).empty() == (ran.exit == 2));  // what broke is drawn, too
    return std::to_string(ran.exit) + " " + ran.err.substr(begin.size());
  };
  CHECK(said([](json& trace) { event(trace, "1B0")["ts"] = 32.5; }) ==
        "1 step 7: 1B0 on rank 1 comes after 1F0 on rank 1 (list), which ends 0.5 us after it "
        "starts\n");
  CHECK(said([](json& trace) { event(trace, "0SEND_F0")["ts"] = 19; }) ==
        "1 step 7: 0SEND_F0 on rank 0 comes after 0F0 on rank 0 (data), which ends 1.0 us after it "
        "starts\n");
  CHECK(
      said([](json& trace) { event(trace, "1RECV_F0")["dur"] = 14; }) ==
      "1 step 7: 1RECV_F0 on rank 1 comes after 0SEND_F0 on rank 0 (message), which starts 1.0 us "
      "after it ends\n");
  CHECK(said([](json& trace) { event(trace, "0RECV_B0")["dur"] = 40; }) ==
        "1 step 7: 0B0 on rank 0 comes after 0RECV_B0 on rank 0 (data), which ends 2.0 us after it "
        "starts\n");
  CHECK(said([](json& trace) { event(trace, "1B0")["name"] = "1B1"; }) ==
        "2 step 7 has no 1B0 on rank 1: it is a trace of another schedule\n");
  CHECK(said([](json& trace) { event(trace, "0OPTIMIZER")["name"] = "0F1"; }) ==
        "2 step 7 has 0F1, and the schedule has not: it is a trace of another schedule\n");
  CHECK(said([](json& trace) { event(trace, "1B0")["pid"] = 0; }) ==
        "2 step 7 has no 1B0 on rank 1: it is a trace of another schedule\n");
  CHECK(said([](json& trace) { event(trace, "1B0")["name"] = "B"; }) ==
        "2 traceEvents[12].name is \"B\", which is no job\n");
  CHECK(said([](json& trace) { event(trace, "0OPTIMIZER")["name"] = "9R0"; }) ==
        "2 traceEvents[16].name is \"9R0\", and the schedule has 2 stages\n");
  CHECK(said([](json& trace) { event(trace, "1B0").erase("dur"); }) ==
        "2 traceEvents[12]: there is no field \"dur\"\n");
  CHECK(said([](json& trace) { trace.erase("traceEvents"); }) ==
        "2 there is no array \"traceEvents\"\n");
  CHECK(said([](json&) {}, "plot 1f1b --ranks 3 --microbatches 1 --trace ") ==
        "2 it has the jobs of 2 ranks, not of 3\n");
}

TEST_CASE("orders that no list has are held against a trace, those that nobody needs are not") {
  const temporary file("trace.json");
  // What is broken, behind the step's number; empty: nothing.
  const auto broken = [&](const json& trace, const std::string& step) {
    file.write(trace.dump());
    const auto ran = run("plot " + step + " -o /dev/null --trace " + file.path());
    const std::string begin = "stretto: " + file.path() + ": ";
    CHECK((ran.exit == 0 || ran.err.starts_with(begin)));
    return ran.exit == 0 ? "" : ran.err.substr(begin.size());
  };
  const std::string two = "1f1b --ranks 2 --microbatches 1";
  json trace = measured_step();
  event(trace, "0SEND_F0")["dur"] = 5;  // its sender may hear later that it has come
  CHECK(broken(trace, two).empty());

  // Forwards that run again, which no list has: before the backward that needs them.
  const auto with_recompute = [](double to) {
    json made = measured_step();
    json again = event(made, "1B0");
    again["name"] = "1R0";
    again["ts"] = 33;
    again["dur"] = to - 33;
    event(made, "1B0")["ts"] = 40;
    event(made, "1B0")["dur"] = 13;
    made["traceEvents"].push_back(again);
    return made;
  };
  CHECK(broken(with_recompute(40), two).empty());
  CHECK(broken(with_recompute(41), two) ==
        "step 7: 1B0 on rank 1 comes after 1R0 on rank 1 (data), which ends 1.0 us after it "
        "starts\n");

  // Where no messages are told, a job of the next rank still comes after what it needs.
  trace = measured_step();
  std::erase_if(trace["traceEvents"].get_ref<json::array_t&>(), [](const json& one) {
    return one["name"] == "0SEND_F0" || one["name"] == "1RECV_F0";
  });
  CHECK(broken(trace, two).empty());
  event(trace, "1F0 op 0")["ts"] = 19;
  CHECK(broken(trace, two) ==
        "step 7: 1F0 on rank 1 comes after 0F0 on rank 0 (message), which ends 1.0 us after it "
        "starts\n");

  // Each step counts, not the last alone.
  trace = measured_step();
  for (json& one : trace["traceEvents"])
    if (one["ph"] == "X") one["args"]["step"] = 6;
  event(trace, "1B0")["ts"] = 32.5;
  const json last = measured_step();
  for (const json& one : last["traceEvents"]) trace["traceEvents"].push_back(one);
  CHECK(broken(trace, two).starts_with("step 6: 1B0 on rank 1 comes after 1F0"));

  // The halves of a pair run beside each other.
  trace = {{"traceEvents", json::array()}};
  const std::pair<const char*, double> jobs[] = {{"0F0", 0},  {"0F1", 10}, {"0B0", 12},
                                                 {"0F2", 22}, {"0B1", 24}, {"0B2", 34}};
  for (const auto& [name, from] : jobs)
    trace["traceEvents"].push_back({{"ph", "X"},
                                    {"name", name},
                                    {"cat", "compute"},
                                    {"pid", 0},
                                    {"tid", 0},
                                    {"ts", from},
                                    {"dur", 10},
                                    {"args", {{"step", 1}}}});
  const std::string pairs = "paired_1f1b --ranks 1 --microbatches 3";
  CHECK(broken(trace, pairs).empty());
  CHECK(broken(trace, "1f1b --ranks 1 --microbatches 3") != "");
  // But each after both of the pair before.
  event(trace, "0F1")["dur"] = 13;
  CHECK(broken(trace, pairs) ==
        "step 1: 0F2 on rank 0 comes after 0F1 on rank 0 (list), which ends 1.0 us after it "
        "starts\n");
  event(trace, "0F1")["dur"] = 10;
  event(trace, "0B1")["ts"] = 21.5;
  CHECK(broken(trace, pairs) ==
        "step 1: 0B1 on rank 0 comes after 0B0 on rank 0 (list), which ends 0.5 us after it "
        "starts\n");
}

//! Every text of a picture, with where it begins and the font size that its class has.
struct placed_text {
  double x = 0;
  double size = 12;
  bool from_x = true;
  std::string words;
};
std::vector<placed_text> texts_of(const std::string& svg) {
  std::vector<placed_text> found;
  for (std::size_t at = svg.find("<text "); at != std::string::npos;
       at = svg.find("<text ", at + 1)) {
    const std::size_t words = svg.find('>', at) + 1;
    const std::string head = svg.substr(at, words - at);
    found.push_back({std::stod(head.substr(head.find("x=\"") + 3)),
                     head.find("\"head\"") != std::string::npos ? 16.0 : 12.0,
                     head.find("text-anchor") == std::string::npos &&
                         head.find("\"layer ") == std::string::npos,
                     svg.substr(words, svg.find('<', words) - words)});
  }
  return found;
}

TEST_CASE("a picture of layers is as wide as what stands in it, and cuts only a long title") {
  std::string table = "sparse_table:1";
  for (int stage = 1; stage < 96; ++stage) table += ",1";
  const struct {
    std::string arguments;
    std::string holds;
  } cases[] = {
      {"5,3", ">5,3 on 2 ranks<"},
      {"5,3 --cost 1000000000,1000000000,1000000000,0", ">5 layers, 15000000000<"},
      {"balanced:8 --ranks 2 --cost 3000000000,3000000000,3000000000,0", "; none is faster<"},
      {table + " --ranks 8", "sparse_table:1,1,"},
      {"24 --ranks 2 --chunks 8", ">chunk 7<"},
      {"24 --ranks 2 --chunks 12", ">chunk 7 ...<"},
      {"6 --ranks 2 --placement bidirectional", ">direction 1<"},
      {"8 --ranks 2 --placement bidirectional --chunks 2", ">direction 1, chunk 0<"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.arguments);
    const std::string svg = run("assign --format svg --layers " + one.arguments).out;
    CHECK(svg.find(one.holds) != std::string::npos);
    const double width = std::stod(svg.substr(svg.find("width=\"") + 7));
    CHECK(width < 1300);
    // A digit of these fonts is 0.56 of their size, a bold one as well.
    for (const placed_text& text : texts_of(svg)) {
      CAPTURE(text.words);
      if (text.from_x)
        CHECK(text.x + 0.56 * text.size * static_cast<double>(text.words.size()) <= width);
    }
  }
  // The whole of a title that is cut is what a browser shows of the picture.
  const std::string svg = run("assign --format svg --ranks 8 --layers " + table).out;
  CHECK(svg.find(",...</text>") != std::string::npos);
  CHECK(svg.find("<title>" + table + " on 8 ranks, 12 chunks: ") != std::string::npos);
}

}  // namespace
