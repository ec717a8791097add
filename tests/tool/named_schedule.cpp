// Schedules that comparisons name with options of their own.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "run_tool.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;

const std::string shape = " --ranks 4 --microbatches 16 --cost 10,12,8,1";

}  // namespace

TEST_CASE("a comparison's schedule with options is what these make of it elsewhere") {
  const std::vector<std::pair<std::string, std::string>> told{
      {"interleaved:group=8", "interleaved --group 8 --chunks 2"},
      {"interleaved:group=16,warmup=all", "interleaved --group 16 --warmup all --chunks 2"},
      {"interleaved_zb:warmup=standard", "interleaved_zb --warmup standard --chunks 2"},
      {"interleaved:backwards=early", "interleaved --backwards early --chunks 2"},
      {"interleaved:group=5,remainder=last", "interleaved --group 5 --remainder last --chunks 2"},
      {"zbv_greedy:variant=2", "zbv_greedy --variant 2 --chunks 2"},
      {"v_auto:variant=0,merge=shortest", "v_auto --variant 0 --merge shortest --chunks 2"},
      {"inference:placement=wave", "inference --placement wave --chunks 2"},
      {"zb_h1:split=partial", "zb_h1 --split partial --chunks 1"},
      {"zb_h1:merge=adjacent", "zb_h1 --merge adjacent --chunks 1"}};
  std::string names;
  for (const auto& [words, alone] : told) names += words + " ";
  for (const char* chunks : {"1", "2"}) {
    const json rows =
        run_json("compare " + names + shape + " --chunks " + chunks + " --format json");
    REQUIRE(rows.size() == told.size());
    for (const auto& [words, alone] : told) {
      INFO(words);
      if (!alone.ends_with(chunks)) continue;
      const json same = run_json("simulate " + alone + shape + " --format json");
      bool found = false;
      for (const json& row : rows) {
        if (row["schedule"] != words) continue;
        found = true;
        CHECK(row["makespan"] == same["makespan"]);
        CHECK(row["peak"] == same["peak"]);
      }
      CHECK(found);
    }
  }
}

TEST_CASE("a schedule stands there once with each of its options, and as it is") {
  const json rows = run_json(
      "compare zb_h1 interleaved:warmup=all,group=16 interleaved interleaved:group=016,warmup=all "
      "zb_h1 interleaved:group=8" +
      shape + " --chunks 2 --sort name --format json");
  std::vector<std::string> names;
  for (const json& row : rows) names.push_back(row["schedule"]);
  CHECK(names == std::vector<std::string>{"interleaved", "interleaved:group=16,warmup=all",
                                          "interleaved:group=8", "zb_h1"});
  // An option of one's own before that for all.
  const json merged = run_json("compare zb_h1:merge=none zb_h1 --merge shortest --whole-saves 3" +
                               shape + " --format json");
  CHECK(merged[0]["schedule"] == "zb_h1");
  CHECK(merged[0]["makespan"] < merged[1]["makespan"]);
  CHECK(merged[1]["makespan"] == run_json("simulate zb_h1 --whole-saves 3" + shape +
                                          " --format json")["makespan"]);
  const json swept = run_json("sweep interleaved:group=8 --ranks 4,8 --microbatches 16 --chunks 2 "
                              "--format json");
  REQUIRE(swept.size() == 2);
  CHECK(swept[1]["schedule"] == "interleaved:group=8");
}

TEST_CASE("what a schedule cannot be told is refused, by name") {
  const auto said = [&](const std::string& name) {
    const outcome told = run("compare " + name + shape + " --chunks 2");
    CHECK(told.exit == 2);
    CHECK(told.out.empty());
    return told.err;
  };
  const auto refusal = [](const std::string& words) { return "stretto: NAME " + words + "\n"; };
  CHECK(said("interleaved:group=0") ==
        refusal("interleaved:group=0: group is a whole number from 1 to 2147483647, not '0'"));
  CHECK(said("interleaved:group=4x") ==
        refusal("interleaved:group=4x: group is a whole number from 1 to 2147483647, not '4x'"));
  CHECK(said("zb_auto:variant=-1") ==
        refusal("zb_auto:variant=-1: variant is a whole number from 0 to 2147483647, not '-1'"));
  CHECK(said("interleaved:warmup=some") ==
        refusal("interleaved:warmup=some: warmup is standard, half or all, not 'some'"));
  CHECK(said("1f1b:group=2") == refusal("1f1b:group=2: 1f1b has no option group; it has merge"));
  CHECK(said("interleaved:grp=2") == refusal("interleaved:grp=2: interleaved has no option grp; it "
                                             "has group, remainder, warmup, backwards, merge"));
  CHECK(said("interleaved:group=2,group=3") ==
        refusal("interleaved:group=2,group=3: group is told twice"));
  for (const char* wrong : {"interleaved:", "interleaved:group", "interleaved:group=",
                            "interleaved:group=2,", "interleaved:=2"})
    CHECK(said(wrong).find("is not option=value") != std::string::npos);
  CHECK(said("zbv_greedy:objective=span").find("--objective") != std::string::npos);
  CHECK(said("nosuch:group=2").starts_with(refusal("nosuch: no such schedule").substr(0, 36)));
  // What only the shape does not allow stands below the table.
  const outcome beside = run("compare 1f1b interleaved:group=99" + shape + " --chunks 2");
  CHECK(beside.exit == 0);
  CHECK(beside.out.ends_with(
      "\ninterleaved:group=99: a group cannot exceed the micro-batches\n"));
  const outcome other = run("compare 1f1b interleaved_zb:warmup=all" + shape + " --chunks 2");
  CHECK(other.exit == 0);
  CHECK(other.out.ends_with(
      "\ninterleaved_zb:warmup=all: interleaved_zb has the warm-ups half and standard\n"));
}
