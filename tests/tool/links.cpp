// Hops within nodes and between them, and links that carry one message at a time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::contents;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

std::int64_t makespan(const std::string& options) {
  const json told = run_json("simulate " + options + " --format json");
  return told["makespan"].get<std::int64_t>();
}

}  // namespace

TEST_CASE("links: a hop to another node takes what --nodes says") {
  // Forwards of one micro-batch, and its gradients: two hops within nodes, one between, either way.
  const std::string step = "gpipe --ranks 4 --microbatches 1 --cost 10,10,10,1";
  CHECK(makespan(step) == 4 * 30 + 6);
  CHECK(makespan(step + " --nodes 2,50") == 4 * 30 + 2 * (1 + 50 + 1));
  CHECK(makespan(step + " --nodes 1,50") == 4 * 30 + 6 * 50);
  CHECK(makespan(step + " --nodes 4,50") == 4 * 30 + 6);
  CHECK(makespan(step + " --nodes 3,0") == 4 * 30 + 4);
  // From the last rank to the first and back, too.
  CHECK(makespan("gpipe --ranks 2 --microbatches 1 --chunks 2 --cost 10,10,10,1 --nodes 1,7") ==
        4 * 30 + 6 * 7);
}

TEST_CASE("links: messages follow one another where --serial-links says so") {
  const std::string step = "gpipe --ranks 2 --microbatches 4 --cost 1,1,1,10";
  const std::int64_t at_once = makespan(step);
  CHECK(at_once == 4 + 10 + 1 + 8 + 10 + 2);
  // Forwards come 10 apart: the last at 41. Gradients, too: of backwards from 42 on the first is
  // there at 54, the last at 84.
  CHECK(makespan(step + " --serial-links") == 41 + 1 + 2 + 4 * 10 + 2);
  const outcome told = run("simulate " + step);
  CHECK(told.out.find("messages 4 from rank 0 to 1, one after the other 40: longer than the step, "
                      "which lets a link carry any number at once (see --serial-links)\n") !=
        std::string::npos);
  CHECK(run("simulate " + step + " --serial-links").out.find("any number") == std::string::npos);
}

TEST_CASE("links: the busiest is the one whose messages take longest") {
  const json told = run_json(
      "simulate 1f1b --ranks 4 --microbatches 6 --cost 1,1,1,2 --nodes 3,9 --format json");
  CHECK(told["busiest_link"] == 6 * 9);
}

TEST_CASE("links: comparisons and sweeps go by them, bounds too, in whatever unit") {
  const std::string model = "--microbatches 8 --cost 10,12,8,1 --chunks 2 --nodes 2,31 --hides 30 ";
  for (const char* more : {"", "--serial-links "}) {
    const json rows = run_json("compare --ranks 4 " + model + more + "--format json");
    int compared = 0;
    for (const json& one : rows) {
      if (one.contains("refused")) continue;
      ++compared;
      INFO(one["schedule"].get<std::string>(), " ", more);
      if (one.contains("bound") && !one["bound"].is_null())
        CHECK(one["bound"].get<double>() <= one["makespan"].get<double>());
      // That of its number of chunks: jobs of one chunk take twice as long.
      if (one["chunks"] != 2) continue;
      const json alone =
          run_json("simulate " + one["schedule"].get<std::string>() + " --ranks 4 " + model + more +
                   "--format json");
      CHECK(alone["makespan"] == one["makespan"]);
    }
    CHECK(compared > 15);
  }
  const json rows = run_json("sweep 1f1b --ranks 2,4 " + model + "--serial-links --format json");
  REQUIRE(rows.size() == 2);
  const json alone = run_json("compare 1f1b --ranks 4 " + model + "--serial-links --format json");
  CHECK(rows[1]["makespan"] == alone[0]["makespan"]);
}

TEST_CASE("links: a file of costs says them, and wins") {
  const temporary file("links.json");
  const std::string step = "gpipe --ranks 4 --microbatches 3 --cost 10,10,10,1 ";
  const auto with = [&](const std::string& text, const std::string& more = "") {
    file.write(text);
    return makespan(step + "--costs " + file.path() + " " + more);
  };
  CHECK(with(R"({"node_ranks": 2, "between_nodes": 50})") == makespan(step + "--nodes 2,50"));
  CHECK(with(R"({"serial_links": true})", "--nodes 2,50") ==
        makespan(step + "--nodes 2,50 --serial-links"));
  CHECK(makespan(step + "--nodes 2,50") < makespan(step + "--nodes 2,50 --serial-links"));
  CHECK(with(R"({"serial_links": false})", "--nodes 2,50 --serial-links") ==
        makespan(step + "--nodes 2,50"));
  CHECK(with(R"({"node_ranks": 1, "between_nodes": 3})", "--nodes 2,50") ==
        makespan(step + "--nodes 1,3"));
  const auto refused = [&](const std::string& text) {
    file.write(text);
    const outcome told = run("simulate " + step + "--costs " + file.path());
    CHECK(told.exit == 2);
    CHECK(told.out.empty());
    return told.err;
  };
  CHECK(refused(R"({"node_ranks": 2})").find("node_ranks and between_nodes belong together") !=
        std::string::npos);
  CHECK(refused(R"({"node_ranks": 0, "between_nodes": 1})").find("node_ranks") !=
        std::string::npos);
  CHECK(refused(R"({"node_ranks": 2, "between_nodes": -1})").find("between_nodes") !=
        std::string::npos);
  CHECK(refused(R"({"serial_links": 1})").find("serial_links must be true or false") !=
        std::string::npos);
}

TEST_CASE("links: what says nothing is refused") {
  const std::string step = "simulate gpipe --ranks 4 --microbatches 3 ";
  for (const char* wrong : {"0,5", "-1,5", "2,-5", "2", "2,5,1", "2.5,1", "x,1", "1048577,1"}) {
    const outcome told = run(step + "--nodes " + wrong);
    CAPTURE(wrong);
    CHECK(told.exit == 2);
    CHECK(told.err.find("--nodes") != std::string::npos);
  }
  const outcome told = run(step + "--nodes 0,5");
  CHECK(told.err == "stretto: --nodes 0,5: N is a number of ranks, from 1 to 1048576\n");
  const outcome many = run("compare gpipe --ranks 1024 --chunks 1,7,9 --microbatches 1024 "
                           "--nodes 2,10000000000");
  CHECK(many.exit == 2);
  CHECK(many.err.starts_with("stretto: --nodes 2,10000000000: with so many jobs, "));
}

TEST_CASE("links: what takes several slices together sends as much more on a serial link") {
  const auto rows = [&](const std::string& options) {
    return run_json("compare seq_1f1b --ranks 4 --microbatches 4 --slices 1,4 --cost 1,1,1,4 "
                    "--nodes 2,6 --sort name --format json " +
                    options);
  };
  const auto whole = [&](const std::string& costs) {
    return makespan("seq_1f1b --ranks 4 --microbatches 4 " + costs);
  };
  const json serial = rows("--serial-links");
  const auto of_slices = [](const json& all, int slices) {
    for (const json& one : all)
      if (one["slices"] == slices) return one["makespan"].get<std::int64_t>();
    return std::int64_t{-1};
  };
  CHECK(of_slices(serial, 1) == whole("--cost 4,4,4,16 --nodes 2,24 --serial-links"));
  CHECK(of_slices(serial, 4) == whole("--slices 4 --cost 1,1,1,4 --nodes 2,6 --serial-links"));
  const json at_once = rows("");  // hops are what the way takes
  CHECK(of_slices(at_once, 1) == whole("--cost 4,4,4,4 --nodes 2,6"));
}

TEST_CASE("links: a header is proven under them, and says the command that writes it") {
  const outcome header = run(
      "schedule zb_auto --ranks 4 --microbatches 6 --nodes 2,9 --serial-links --emit header");
  REQUIRE(header.exit == 0);
  const std::string before = "// Written by\n//   stretto ";
  const std::size_t from = header.out.find(before) + before.size();
  CHECK(run(header.out.substr(from, header.out.find('\n', from) - from)).out == header.out);
  CHECK(header.out.find(".node_ranks = 2,") != std::string::npos);
  CHECK(header.out.find(".between_nodes = 9,") != std::string::npos);
  CHECK(header.out.find(".serial_links = true") != std::string::npos);
  CHECK(run("schedule zb_auto --ranks 4 --microbatches 6 --emit header").out.find("node") ==
        std::string::npos);
}

TEST_CASE("links: costs tells hops within a node from those over the network") {
  const std::string model =
      "--device h100 --layers 8 --hidden 4096 --heads 32 --sequence 2048 --tensor-parallel 4 "
      "--sequence-parallel ";
  // 2048 tokens of 4096 numbers of two bytes, a fourth of them on each device.
  const std::int64_t bytes = 2048 * 4096 * 2 / 4;
  const std::string near = std::to_string(bytes / 370 + 1 + 6000);
  const std::string far = std::to_string(bytes / 50 + 1 + 6000);
  const outcome told = run("costs " + model + "--network 50 --node-ranks 2");
  CHECK(told.exit == 0);
  CHECK(told.out.find("Between ranks of a node a hop takes " + near + ", between nodes " + far +
                      ". So, for what ranks and micro-batches you like:\n") != std::string::npos);
  CHECK(told.out.find(" --cost 0,0,0," + near + " --nodes 2," + far + "\n") != std::string::npos);
  const outcome refused = run("costs " + model + "--node-ranks 2");
  CHECK(refused.exit == 2);
  CHECK(refused.err ==
        "stretto: --node-ranks 2: without --network all hops take the same\n");
}
