// Layers dealt, and what they cost.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

}  // namespace

TEST_CASE("assign deals layers in pipeline order") {
  CHECK(run_json("assign --layers 5,3 --chunks 2 --format json")["stages"] ==
        json::parse(R"([{"rank":0,"chunk":0,"layers":[0,1,2],"time":9},
                        {"rank":1,"chunk":0,"layers":[3,4],"time":6},
                        {"rank":0,"chunk":1,"layers":[5,6],"time":6},
                        {"rank":1,"chunk":1,"layers":[7],"time":3}])"));
  CHECK(run_json("assign --layers 3,2 --chunks 2 --placement wave --format json")["stages"] ==
        json::parse(R"([{"rank":0,"chunk":0,"layers":[0,1],"time":6},
                        {"rank":1,"chunk":0,"layers":[2],"time":3},
                        {"rank":1,"chunk":1,"layers":[3],"time":3},
                        {"rank":0,"chunk":1,"layers":[4],"time":3}])"));
  CHECK(run("assign --layers 2,1 --format table").out ==
        "stage  rank  chunk  layers  time\n"
        "0         0      0     0-1     6\n"
        "1         1      0       2     3\n\n"
        "rank  layers  time  of the slowest\n"
        "0          2     6         100.0 %\n"
        "1          1     3          50.0 %\n\n"
        "slowest rank 6; dealt evenly 6\n");
  const json layout =
      run_json("assign --layers \"Ett||(t|)*2L\" --chunks 1 --format json")["stages"];
  REQUIRE(layout.size() == 5);
  CHECK(layout[0]["letters"] == "Ett");
  CHECK(layout[1]["layers"].empty());
  CHECK(layout[4]["letters"] == "L");
  const auto svg =
      run("assign --layers balanced:18 --ranks 4 --chunks 2 --head 2,2,2 --format svg");
  CHECK(svg.exit == 0);
  CHECK(svg.out.starts_with("<svg"));
  CHECK(svg.out.find("<title>layer 17, 6</title>") != std::string::npos);
}

TEST_CASE("what assign says of the slowest rank is in its JSON, too") {
  for (const std::string layers :
       {"4,2", "balanced:6 --ranks 2 --head 2,2,2", "balanced:4 --ranks 2 --embedding 9,9,9"}) {
    INFO(layers);
    const json all = run_json("assign --format json --layers " + layers);
    const auto slowest = all["slowest"].get<std::int64_t>();
    std::string summary = "slowest rank " + std::to_string(slowest) + "; dealt evenly " +
                          std::to_string(all["dealt_evenly"].get<std::int64_t>());
    CHECK(all.contains("bound") == layers.starts_with("balanced"));
    if (all.contains("bound"))
      summary += all["bound"] == slowest
                     ? "; none is faster"
                     : "; none is faster than " + std::to_string(all["bound"].get<std::int64_t>());
    CHECK(run("assign --layers " + layers).out.ends_with("\n" + summary + "\n"));
  }
}

TEST_CASE("what layers cost reaches every schedule") {
  const std::string shape = " --ranks 4 --microbatches 16 --cost 10,10,10,0 --head 30,30,30";
  const auto makespan = [&](const std::string& rest) {
    return run_json("simulate --format json" + shape + rest)["makespan"].get<std::int64_t>();
  };
  for (const char* one : {" 1f1b", " interleaved --chunks 2", " zbv --chunks 2", " dualpipe"}) {
    INFO(one);
    CHECK(makespan(std::string(one) + " --layers balanced:26") <
          makespan(std::string(one) + " --layers even:26"));
  }
  // One stage holds as much as eight layers of three, and four ranks are as slow as it.
  CHECK(makespan(" 1f1b --layers 2,2,2,2") == 15 * 120 + 60 + 60 + 60 + 120);
  // Memory of a rank's layers, those of all its chunks.
  CHECK(run_json("simulate interleaved --chunks 2 --format json --ranks 2 --microbatches 2 "
                 "--layers 5,3 --memory 0,0,0 --weights 7")["peak"] == json({35, 21}));
  const auto all = run_json("compare --format json --chunks 2" + shape + " --layers table:4,4,4,2");
  int refused = 0;
  for (const json& one : all)
    if (one.contains("refused")) {
      ++refused;
      CHECK(one["chunks"] == 2);
      CHECK(one["refused"].get<std::string>().find("counts: 4, must be 8") != std::string::npos);
    }
  CHECK(refused > 3);
  const temporary profile("profile.json");
  profile.write(R"([{"forward": 2}, {"layer": [0, 3], "backward_input": 9},
                    {"layer": 3, "backward_weight": 40}])");
  const auto dealt = run_json("assign --layers even:4 --ranks 4 --format json --layer-costs " +
                              profile.path())["stages"];
  for (const auto& [stage, time] : {std::pair{0, 12}, {1, 4}, {2, 4}, {3, 51}})
    CHECK(dealt[static_cast<std::size_t>(stage)]["time"] == time);
}

TEST_CASE("balanced layers: where a rank has several stages no step is longer than of even ones") {
  // The slowest rank is faster, and of each turn of all ranks another's stage is the longer one.
  const std::string model = " --cost 10,10,10,0 --embedding 11,11,11 --head 13,13,13 ";
  const std::string dealt = "--ranks 4 --chunks 4 --layers balanced:33";
  std::string cut;
  const json assigned = run_json("assign --format json " + dealt + model);
  for (const json& stage : assigned["stages"])
    cut += (cut.empty() ? "" : ",") + std::to_string(stage["layers"].size());
  const auto makespan = [&](const std::string& layers, const std::string& step) {
    return run_json("simulate interleaved --ranks 4 --chunks 4 --microbatches 8 --format json" +
                    model + step + " --layers " + layers)["makespan"]
        .get<std::int64_t>();
  };
  const std::int64_t even = makespan("even:33", "");
  CHECK(makespan("table:" + cut, "") > even);
  CHECK(makespan("balanced:33", "") == even);
  CHECK(makespan("balanced:33", "--limit 1000") == even);
  CHECK(run("simulate interleaved --microbatches 8 " + dealt + model)
            .out.find("\nlayers   3 2 2 2 ") != std::string::npos);
  // So with every schedule, and with an order of one's own.
  const temporary order("order.csv");
  REQUIRE(run("schedule interleaved --ranks 4 --chunks 4 --microbatches 8 --format csv -o " +
              order.path())
              .exit == 0);
  const std::string all =
      "compare --ranks 4 --chunks 4 --microbatches 8 --format json --csv " + order.path() + model;
  int seen = 0;
  for (const json& one : run_json(all + "--layers balanced:33"))
    for (const json& other : run_json(all + "--layers even:33"))
      if (one["schedule"] == other["schedule"] && one["chunks"] > 1 && other["chunks"] > 1 &&
          one.contains("makespan")) {
        INFO(one["schedule"]);
        CHECK(one["makespan"] <= other["makespan"]);
        ++seen;
        if (one.contains("file")) CHECK(one["makespan"] == even);
      }
  CHECK(seen > 10);
}
