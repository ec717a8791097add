// What each rank is given to run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run_tool.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/model/plan_names.hpp"
#include "stretto/plan/plan_text.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "support/sanitized.hpp"

namespace {

using nlohmann::json;
using stretto::plan_view;
using tool_tests::contents;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

//! Whether an instruction stands in the JSON as in the plan.
void check_instruction(const json& told, const plan_view& plan, std::size_t index) {
  const stretto::instruction& mine = plan.instructions[index];
  CHECK(told["index"] == index);
  CHECK(told["job"] == stretto::to_text(mine.what).view());
  CHECK(told["kind"] == stretto::letters(mine.what.kind));
  CHECK(told["stage"] == mine.what.stage);
  CHECK(told["microbatch"] == mine.what.microbatch);
  CHECK(told["slice"] == mine.what.slice);
  CHECK(told["paired"] == mine.what.paired);
  CHECK(told["action"] == name(mine.act));
  CHECK(told["stream"] == name(plan.streams[mine.stream]));
  const bool message = mine.act == stretto::action::send || mine.act == stretto::action::receive;
  CHECK(told.value("peer", -1) == (message ? mine.peer : -1));
  CHECK(told["records"] == (mine.record < 0 ? json() : json(mine.record)));
  REQUIRE(told["waits"].size() == plan.waits_of(mine).size());
  for (std::size_t at = 0; at < told["waits"].size(); ++at) {
    const stretto::event_wait& wait = plan.waits_of(mine)[at];
    const json& one = told["waits"][at];
    CHECK(one["event"] == wait.event);
    CHECK(one["reason"] == name(wait.why));
    CHECK(one["previous_step"] == wait.previous_step);
    CHECK(plan.instructions[one["instruction"].get<std::size_t>()].record == wait.event);
  }
  REQUIRE(told["buffers"].size() == plan.uses_of(mine).size());
  for (std::size_t at = 0; at < told["buffers"].size(); ++at) {
    const stretto::buffer_use& use = plan.uses_of(mine)[at];
    const stretto::buffer& of = plan.buffers[static_cast<std::size_t>(use.buffer)];
    const json& one = told["buffers"][at];
    CHECK(one["buffer"] == use.buffer);
    CHECK(one["access"] == name(use.mode));
    CHECK(one["role"] == name(use.role));
    CHECK(one["offset"] == of.offset);
    CHECK(one["bytes"] == of.bytes);
  }
  const auto released = plan.released_before(mine);
  CHECK(told["releases"] == json(std::vector<std::int32_t>(released.begin(), released.end())));
}

TEST_CASE("a plan as text") {
  const outcome ran = run("plan 1f1b --ranks 2 --microbatches 2 --bytes 256,1024,0,0");
  CHECK(ran.err == "");
  const std::string digest = ran.out.substr(ran.out.find("digest ") + 7, 16);
  CHECK(digest.find_first_not_of("0123456789abcdef") == std::string::npos);
  const std::string streams =
      "streams (priority): compute (0), send_next (-1), receive_previous (-1), "
      "send_previous (-1), receive_next (-1)\n";
  const std::string rest =
      "waits for (reason, event); access, buffer, role, offset+bytes; releases before it starts\n";
  const std::string expected =
      "1f1b: 2 ranks, 2 micro-batches\n"
      "\n"
      "rank 0 of 2: 10 instructions, 6 events, 6 waits, 6 buffers; arena 2816 bytes, host 0 bytes; "
      "digest " +
      digest + "\n" + streams + "#  job         does                 stream        records  " +
      rest +
      "0  0F0         run                  compute       event 0  "
      "write 0 stash 0+1024, write 1 output 2048+256\n"
      "1  0SEND_F0    send to rank 1       send_next     -        "
      "waits for 0 0F0 (data, event 0); read 1 output 2048+256\n"
      "2  0F1         run                  compute       event 1  "
      "write 2 stash 1024+1024, write 3 output 2304+256\n"
      "3  0SEND_F1    send to rank 1       send_next     event 5  "
      "waits for 2 0F1 (data, event 1); read 3 output 2304+256\n"
      "4  0RECV_B0    receive from rank 1  receive_next  event 2  "
      "write 4 output_gradient 2560+256\n"
      "5  0B0         run                  compute       event 3  "
      "waits for 4 0RECV_B0 (data, event 2); read 4 output_gradient 2560+256, "
      "read_write 0 stash 0+1024; releases 1\n"
      "6  0RECV_B1    receive from rank 1  receive_next  event 4  "
      "waits for 5 0B0 (data, event 3); write 5 output_gradient 2048+256; releases 4, 0\n"
      "7  0B1         run                  compute       -        "
      "waits for 6 0RECV_B1 (data, event 4); read 5 output_gradient 2048+256, "
      "read_write 2 stash 1024+1024; releases 3\n"
      "8  0OPTIMIZER  run                  compute       -        releases 5, 2\n"
      "9  0END_STEP   end_step             compute       -        "
      "waits for 3 0SEND_F1 (bound, event 5)\n"
      "\n"
      "rank 1 of 2: 10 instructions, 6 events, 6 waits, 6 buffers; arena 1792 bytes, host 0 bytes; "
      "digest " +
      digest + "\n" + streams + "#  job         does                 stream            records  " +
      rest +
      "0  1RECV_F0    receive from rank 0  receive_previous  event 0  "
      "waits for 9 1END_STEP of the step before (gate, event 5); write 0 input 1024+256\n"
      "1  1RECV_F1    receive from rank 0  receive_previous  event 2  write 1 input 1280+256\n"
      "2  1F0         run                  compute           -        "
      "waits for 0 1RECV_F0 (data, event 0); read 0 input 1024+256, write 2 stash 0+1024\n"
      "3  1B0         run                  compute           event 1  "
      "read 0 input 1024+256, read_write 2 stash 0+1024, write 3 input_gradient 1536+256\n"
      "4  1SEND_B0    send to rank 0       send_previous     -        "
      "waits for 3 1B0 (data, event 1); read 3 input_gradient 1536+256; releases 0, 2\n"
      "5  1F1         run                  compute           -        "
      "waits for 1 1RECV_F1 (data, event 2); read 1 input 1280+256, write 4 stash 0+1024\n"
      "6  1B1         run                  compute           event 3  "
      "read 1 input 1280+256, read_write 4 stash 0+1024, write 5 input_gradient 1024+256\n"
      "7  1SEND_B1    send to rank 0       send_previous     event 4  "
      "waits for 6 1B1 (data, event 3); read 5 input_gradient 1024+256; releases 1, 4\n"
      "8  1OPTIMIZER  run                  compute           -\n"
      "9  1END_STEP   end_step             compute           event 5  "
      "waits for 7 1SEND_B1 (bound, event 4)\n";
  CHECK(ran.out == expected);
  // One rank of them; into a file.
  const temporary file("plan.txt");
  const outcome one =
      run("plan 1f1b --ranks 2 --microbatches 2 --bytes 256,1024,0,0 --rank 1 -o " + file.path());
  CHECK(one.out.empty());
  CHECK(contents(file.path()) == expected.substr(0, expected.find("\n\n") + 2) +
                                     expected.substr(expected.find("rank 1 of")));
}

TEST_CASE("a plan as json is what the library has") {
  const stretto::shape sizes{.ranks = 4, .microbatches = 8, .chunks = 2};
  const stretto::job_table costs(4, 2);
  stretto::plan_request request;
  request.stages = {{.output = 4096, .stash = 10000, .gradients = 64, .kept = 0}};
  const stretto::planned made(stretto::schedule::interleaved{}, sizes, costs.view(),
                              stretto::overlap::separate{}, request);
  REQUIRE(made.answer().ok());
  const std::string asked =
      "plan interleaved --ranks 4 --microbatches 8 --chunks 2 --bytes 4096,10000,0,64 --format "
      "json";
  const json all = run_json(asked);
  CHECK(all["schedule"] == "interleaved");
  CHECK(all["ranks"] == 4);
  CHECK(all["microbatches"] == 8);
  CHECK(all["stages"] == 8);
  CHECK(all["digest"] == stretto::digest_text(made.plans()[0].digest));
  REQUIRE(all["plans"].size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const plan_view& plan = made.plans()[rank];
    const json& told = all["plans"][rank];
    CHECK(told["rank"] == rank);
    CHECK(told["events"] == plan.events);
    CHECK(told["waits"] == plan.waits.size());
    CHECK(told["arena_bytes"] == plan.arena_bytes);
    CHECK(told["host_bytes"] == plan.host_bytes);
    REQUIRE(told["streams"].size() == plan.streams.size());
    for (std::size_t at = 0; at < plan.streams.size(); ++at) {
      CHECK(told["streams"][at]["name"] == name(plan.streams[at]));
      CHECK(told["streams"][at]["priority"] == plan.streams[at].priority);
    }
    CHECK(told["groups"].empty());
    REQUIRE(told["buffers"].size() == plan.buffers.size());
    for (std::size_t at = 0; at < plan.buffers.size(); ++at) {
      const stretto::buffer& of = plan.buffers[at];
      CHECK(told["buffers"][at] == json{{"offset", of.offset},
                                        {"bytes", of.bytes},
                                        {"stage", of.stage},
                                        {"microbatch", of.microbatch},
                                        {"slice", of.slice},
                                        {"role", name(of.role)},
                                        {"first", of.first},
                                        {"release", of.release}});
    }
    REQUIRE(told["instructions"].size() == plan.instructions.size());
    for (std::size_t at = 0; at < plan.instructions.size(); ++at)
      check_instruction(told["instructions"][at], plan, at);
  }
  const json one = run_json(asked + " --rank 2");
  REQUIRE(one["plans"].size() == 1);
  CHECK(one["plans"][0] == all["plans"][2]);
  CHECK(one["digest"] == all["digest"]);
  // The text is the library's.
  std::string text;
  write_plan(made.plans()[3], text);
  CHECK(
      run("plan interleaved --ranks 4 --microbatches 8 --chunks 2 --bytes 4096,10000,0,64 --rank 3")
          .out == "interleaved: 4 ranks, 8 micro-batches, 2 chunks\n\n" + text);
}

TEST_CASE("plans of files, copies, replicas, slices, forwards alone and late receives") {
  const temporary file("order.csv");
  const std::string shape = " --ranks 2 --microbatches 4 ";
  REQUIRE(run("schedule zb_h1" + shape + "--format csv -o " + file.path()).exit == 0);
  const std::string named = run("plan zb_h1" + shape).out;
  const std::string read = run("plan --csv " + file.path()).out;
  CHECK(read.substr(read.find('\n')) == named.substr(named.find('\n')));
  const std::string copied = "plan 1f1b --ranks 4 --microbatches 8 --offload all --rank 0 ";
  const std::string copies = run(copied).out;
  CHECK(copies.find("  0OFFLOAD0 ") != std::string::npos);
  CHECK(copies.find("host 192 bytes") != std::string::npos);
  // What is on the host lies behind the arena.
  const json away = run_json(copied + "--format json")["plans"][0];
  const json& jobs = away["instructions"];
  const auto copy = std::find_if(jobs.begin(), jobs.end(),
                                 [](const json& one) { return one["action"] == "offload"; });
  REQUIRE(copy != jobs.end());
  CHECK((*copy)["buffers"][1]["role"] == "host");
  CHECK((*copy)["buffers"][1]["offset"] == away["arena_bytes"]);
  const std::string replicas = run("plan chimera" + shape + "--bytes 64,64,0,400").out;
  CHECK(replicas.find("\ngroup 0: ranks 0, 1; 100 elements of 4 bytes, gradients of stage 0\n") !=
        std::string::npos);
  CHECK(replicas.find("  all_reduce of group 1  ") != std::string::npos);
  CHECK(run_json("plan chimera" + shape +
                 "--bytes 64,64,0,400 --format json")["plans"][0]["groups"] ==
        json::parse(R"([{"ranks":[0,1],"elements":100,"bytes":400,"stage":0},
                        {"ranks":[0,1],"elements":100,"bytes":400,"stage":1}])"));
  const std::string gathers =
      "plan interleaved --chunks 2" + shape + "--bytes 64,64,0,400,640 --gathered 1";
  const std::string gathered = run(gathers).out;
  CHECK(gathered.find(
            "\ngroup 0: ranks 0, over their data-parallel replicas; 100 elements of 4 bytes, "
            "gradients of stage 0, and its weights of 640 bytes to gather\n") != std::string::npos);
  CHECK(gathered.find("  all_gather of group 0      data_parallel ") != std::string::npos);
  CHECK(gathered.find("write 0 weights ") != std::string::npos);
  CHECK(gathered.find("  reduce_scatter of group 0  data_parallel ") != std::string::npos);
  CHECK(gathered.find("all_reduce") == std::string::npos);
  const json plan = run_json(gathers + " --format json")["plans"][0];
  CHECK(plan["groups"][0]["weights_bytes"] == 640);
  CHECK(std::any_of(plan["instructions"].begin(), plan["instructions"].end(), [](const json& one) {
    return one["action"] == "all_gather" && one["group"] == 1 && one["buffers"][0]["bytes"] == 640;
  }));
  // Forwards alone sum nothing.
  const std::string forwards =
      run("plan inference --ranks 2 --microbatches 2 --gathered 1 --bytes 64,0,0,400,640").out;
  CHECK(
      forwards.find("\ngroup 0: ranks 0, over their data-parallel replicas; weights of stage 0, of "
                    "640 bytes, to gather\n") != std::string::npos);
  CHECK(forwards.find("  all_gather of group 0  data_parallel ") != std::string::npos);
  CHECK(forwards.find("REDUCE") == std::string::npos);
  CHECK(run("plan interleaved --chunks 2 --data-parallel" + shape).out.find("REDUCE_GRAD") !=
        std::string::npos);
  const outcome few = run("plan dualpipe_v --ranks 2 --microbatches 4 --gathered 1");
  CHECK(few.exit == 2);
  CHECK(
      few.err ==
      "stretto: --gathered 1: dualpipe_v pairs jobs of two stages, whose weights must be there at "
      "once\n");
  CHECK(run("plan 1f1b" + shape + "--bytes 1,2,3,4,5,6").err.find("--bytes 1,2,3,4,5,6") !=
        std::string::npos);
  CHECK(run("plan paired_1f1b" + shape).out.find("  run, paired  ") != std::string::npos);
  CHECK(run_json("plan paired_1f1b" + shape + "--format json").dump().find("\"paired\":true") !=
        std::string::npos);
  CHECK(run("plan seq_1f1b --slices 2" + shape).out.find("  1F0.1  ") != std::string::npos);
  CHECK(run("plan inference" + shape).out.find("OPTIMIZER") == std::string::npos);
  const outcome late = run("plan 1f1b" + shape + "--receive-lead 0");
  CHECK(late.out.find(" (lead, event ") != std::string::npos);
  CHECK(run_json("plan 1f1b" + shape + "--receive-lead 0 --format json")["receive_lead"] == 0);
}

TEST_CASE("what cannot be planned is refused by name") {
  const std::string step = "plan 1f1b --ranks 4 --microbatches 8 ";
  const auto says = [](const std::string& arguments, int exit, const std::string& words) {
    const outcome ran = run(arguments);
    INFO(arguments, ": ", ran.err);
    CHECK(ran.exit == exit);
    CHECK(ran.out.empty());
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    CHECK(ran.err.find(words) != std::string::npos);
  };
  says("plan", 2, "NAME or --csv");
  says("plan 1f1b --microbatches 8", 2, "--ranks: required");
  says(step + "--rank 4", 2, "stretto: --rank 4: there are 4 ranks, numbered from 0\n");
  says(step + "--rank -1", 2, "--rank");
  says(step + "--bytes 1,2,3", 2, "--bytes 1,2,3: expected 4 integers, M,S,K,G");
  says(step + "--bytes 1,-2,3,4", 2, "--bytes 1,-2,3,4: each number must be from 0");
  says(step + "--format csv", 2, "--format");
  says(step + "--limit 3", 1, "1f1b: rule bounded broken on rank 0, step 3");
  says(step + "--group 2", 2, "--group 2: 1f1b has no such option");
  const temporary file("comms.csv");
  REQUIRE(
      run("schedule 1f1b --ranks 2 --microbatches 2 --comms --format csv -o " + file.path()).exit ==
      0);
  says("plan --csv " + file.path(), 2, "--csv " + file.path() + ": is compute_comms");
  file.write("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  says("plan --csv " + file.path(), 1, "cell 2, \"0B0\": rule live broken");
}

TEST_CASE("more jobs than can be planned are refused" * doctest::skip(test_support::sanitized)) {
  const outcome ran = run("plan 1f1b --ranks 2000 --microbatches 2001");
  CHECK(ran.exit == 2);
  CHECK(ran.out.empty());
  CHECK(ran.err ==
        "stretto: --ranks 2000 --chunks 1 --microbatches 2001: 4002000 jobs of a kind, at most "
        "4000000 can be planned\n");
}

}  // namespace
