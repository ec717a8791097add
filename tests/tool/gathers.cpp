// Weights of which data-parallel replicas hold a part each: what gathering them adds to a step, and
// what they take.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "run_tool.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;
using tool_tests::temporary;

std::string refusal(const std::string& command) {
  const outcome ran = run(command);
  CHECK(ran.exit != 0);
  CHECK(ran.out.empty());
  return ran.err;
}

}  // namespace

TEST_CASE("gathers that take no time are on no critical path") {
  const temporary file("comms.csv");
  file.write(run("schedule 1f1b --ranks 2 --microbatches 2 --comms --format csv").out);
  const json made = run_json("simulate --critical-path --format json --csv " + file.path());
  CHECK(made["critical_path"]["jobs"].size() > 3);
  CHECK_FALSE(made["critical_path"]["count"].contains("UNSHARD"));
}

TEST_CASE("every schedule waits for its weights, and holds what it has gathered") {
  stretto::schedule::all::for_each([](const auto& made) {
    stretto::shape sizes{.ranks = 4, .microbatches = 8};
    if (!made.supports(sizes).ok()) sizes.chunks = 2;
    const std::string step = "simulate " + std::string(made.name) +
                             " --ranks 4 --microbatches 8 --cost 3,2,2,1 --format json --chunks " +
                             std::to_string(sizes.chunks);
    const json plain = run_json(step);
    CHECK_FALSE(plain.contains("by_gathers"));
    const int stages = place(made.placed(), sizes).chunks;  // of a rank
    for (const int time : {1, 5, 40}) {
      INFO(made.name, ", ", time);
      const json all = run_json(step + " --unshard " + std::to_string(time) + ",7");
      CHECK(all["makespan"].get<int>() - plain["makespan"].get<int>() == all["by_gathers"]);
      CHECK(all["by_gathers"] >= time);  // a rank's first weights have nothing to hide behind
      for (std::size_t rank = 0; rank < 4; ++rank) {
        // Of both, or its only stage, it has the weights all the time.
        CHECK(all["gathers"][rank] == stages);
        CHECK(all["peak"][rank].get<int>() == plain["peak"][rank].get<int>() + 7 * stages);
        CHECK(all["busy"][rank] == plain["busy"][rank]);
      }
    }
  });
}

TEST_CASE("fewer stages at once take less memory, and are gathered more often") {
  const std::string step =
      "simulate interleaved --ranks 4 --microbatches 8 --chunks 4 --unshard 6,100 --format json";
  int before = 0;
  int makespan = 0;
  for (const int gathered : {4, 3, 2, 1}) {
    CAPTURE(gathered);
    const json all = run_json(step + " --gathered " + std::to_string(gathered));
    if (gathered == 3) CHECK(run_json(step) == all);  // as PyTorch has it
    const int gathers = all["gathers"][0].get<int>();
    CHECK(gathers > before);
    CHECK(all["makespan"].get<int>() >= makespan);
    CHECK(all["peak"][0].get<int>() / 100 == gathered);
    before = gathers;
    makespan = all["makespan"].get<int>();
  }
  CHECK(refusal(step + " --gathered 0").find("--gathered") != std::string::npos);
  // The halves of a pair run at once.
  const std::string two = "--gathered 1: dualpipe pairs jobs of two stages, whose weights must be";
  CHECK(refusal("simulate dualpipe --ranks 4 --microbatches 8 --unshard 1,1 --gathered 1")
            .find(two) != std::string::npos);
  CHECK(refusal("memory dualpipe --ranks 4 --microbatches 8 --weight-shards 2 --gathered 1")
            .find(two) != std::string::npos);
  CHECK(run("compare --ranks 4 --microbatches 8 --unshard 1,1 --gathered 1")
            .out.find("\ndualpipe: rule sharded broken: the rank holds the weights of more stages "
                      "at once than "
                      "it may (2, at most 1)\n") != std::string::npos);
}

TEST_CASE("limits count what is gathered, for orders and for searches") {
  const std::string limited = " --ranks 4 --microbatches 8 --unshard 1,5 --limit ";
  for (const std::string name : {"zb_h1", "1f1b"}) {
    const std::string step = "simulate " + name + limited;
    CHECK(run(step + "9").exit == 0);
    CHECK(refusal(step + "8").find("the order needs 9 on rank 0, whose limit is 8") !=
          std::string::npos);
  }
  const std::string search = "simulate zbv_greedy --chunks 2" + limited;
  for (const int limit : {14, 16, 18}) {
    const json all = run_json(search + std::to_string(limit) + " --format json");
    for (const json& peak : all["peak"]) CHECK(peak <= limit);
    CHECK(all["makespan"] >=
          run_json(search + std::to_string(limit + 4) + " --format json")["makespan"]);
  }
  CHECK(refusal(search + "11").find("the smallest limit that will do is 12") != std::string::npos);
  // An order that never has the larger of its stages' weights when it is fullest keeps a limit that
  // leaves no room for them then.
  const temporary costs("costs.json");
  costs.write(R"({"jobs": [{"kind": "UNSHARD", "chunk": 0, "change": 5, "cost": 1},
                           {"kind": "UNSHARD", "chunk": 1, "change": 1, "cost": 1}]})");
  const std::string gpipe =
      "simulate gpipe --ranks 1 --chunks 2 --microbatches 4 --gathered 1 --costs " + costs.path();
  CHECK(run(gpipe + " --limit 9").exit == 0);
  CHECK(run(gpipe + " --limit 8").exit == 1);
  // Searches leave room for the largest, and do not say that no less would do.
  CHECK(refusal("simulate zbv_greedy --ranks 1 --chunks 2 --microbatches 4 --gathered 1 --limit 5 "
                "--costs " +
                costs.path())
            .find("is enough") != std::string::npos);
  // What deals layers counts them.
  const temporary layers("layers.json");
  layers.write(R"([{"layer": 0, "memory_unshard": 20}])");
  CHECK(run_json("simulate 1f1b --ranks 2 --microbatches 4 --layers balanced:8 --memory 2,0,-2 "
                 "--unshard 0,1 --limit 34 --format json --layer-costs " +
                 layers.path())["layers"] == json({3, 5}));
}

TEST_CASE("a list without what replicas do says so of its makespan") {
  const auto title = [](const std::string& arguments) {
    const std::string text = run("schedule gpipe --ranks 2 --microbatches 3 " + arguments).out;
    return text.substr(0, text.find('\n'));
  };
  CHECK(title("--unshard 30,1").ends_with(", without gathers of weights"));
  CHECK(title("--unshard 0,1").ends_with(", without gathers of weights"));
  CHECK(title("").find("without") == std::string::npos);
}

TEST_CASE("what gathers take is told by option, by rank and chunk, or by layer") {
  const std::string two = "simulate 1f1b --ranks 2 --microbatches 4 --format json ";
  const temporary costs("costs.json");
  costs.write(R"({"jobs": [{"kind": "UNSHARD", "cost": 9, "change": 4},
      {"kind": "UNSHARD", "rank": 0, "cost": 4}]})");
  CHECK(run_json(two + "--unshard 4,1")["makespan"] == 15 + 4);
  // Rank 1's first job would begin at 1, and on rank 0 at 4.
  CHECK(run_json(two + "--costs " + costs.path())["makespan"] == 15 - 1 + 9);
  CHECK(run_json(two + "--costs " + costs.path())["peak"][1] == 1 + 4);
  const temporary layers("layers.json");
  layers.write(R"([{"unshard": 1, "memory_unshard": 2}, {"layer": 0, "unshard": 3}])");
  const json dealt = run_json(two + "--layers 2,2 --layer-costs " + layers.path());
  CHECK(dealt["makespan"] == 30 + 4);
  CHECK(dealt["peak"][1] == 2 + 4);
  CHECK(run_json(two + "--layers 2,2 --unshard 7,0")["makespan"] == 30 + 14);
  // Of both slices once.
  CHECK(run_json("simulate seq_1f1b --slices 2 --ranks 2 --microbatches 4 --unshard 5,3 "
                 "--format json")["gathers"] == json({1, 1}));
  for (const json& one : run_json("compare --ranks 2 --microbatches 4 --slices 2 --format json "
                                  "--chunks 2 --unshard 6,8 --gathered 2"))
    if (one.contains("makespan")) {
      CAPTURE(one["schedule"].get<std::string>());
      CHECK(one["by_gathers"].get<double>() >= 6);
      CHECK(one["makespan"] >= one.value("bound", 0.0));
    }
  // Of slices that a job does together once, too.
  const temporary of_slices("slices.json");
  of_slices.write(R"([{"memory_unshard": 8}, {"slice": 1, "forward": 2}])");
  const std::string sliced = "compare --ranks 2 --microbatches 4 --slices 2 --format json ";
  for (const std::string& layered :
       {std::string(), "--layers 2,2 --layer-costs " + of_slices.path()}) {
    CAPTURE(layered);
    const temporary no_gathers("plain.json");
    no_gathers.write(R"([{"slice": 1, "forward": 2}])");
    const json there = run_json(sliced + (layered.empty() ? "--unshard 0,8" : layered));
    const json plain = run_json(
        sliced + (layered.empty() ? "" : "--layers 2,2 --layer-costs " + no_gathers.path()));
    int seen = 0;
    for (const json& one : there)
      for (const json& other : plain) {
        if (one["schedule"] != other["schedule"] || one["slices"] != other["slices"] ||
            !one.contains("makespan"))
          continue;
        CAPTURE(one["schedule"].get<std::string>());
        const bool replicas = one["schedule"] == "chimera" || one["schedule"] == "bitpipe" ||
                              one["schedule"] == "dualpipe";
        CHECK(one["peak"][0].get<double>() - other["peak"][0].get<double>() ==
              (layered.empty() ? 8 : 16) * (replicas ? 2 : 1));
        ++seen;
      }
    CHECK(seen > 20);
  }
  // No order begins before the first stage's are there.
  const std::string all = "compare --ranks 2 --microbatches 4 --chunks 2 --format json ";
  const json without = run_json(all);
  const json with = run_json(all + "--unshard 6,0");
  for (const json& one : with)
    for (const json& other : without)
      if (one["schedule"] == other["schedule"] && one.contains("bound"))
        CHECK(one["bound"].get<double>() - other["bound"].get<double>() ==
              (one["chunks"] == 2 ? 6 : 12));
  // Of time alone, of memory alone.
  CHECK(run_json(two + "--unshard 0,3")["by_gathers"] == 0);
  CHECK(run_json(two + "--unshard 0,3")["peak"][0] == 2 + 3);
  CHECK_FALSE(run_json(two + "--unshard 0,0").contains("by_gathers"));
  // Other commands have no use for them, and say nothing of them.
  const std::string plan = "plan 1f1b --ranks 2 --microbatches 4 --layers 2,2 ";
  CHECK(run(plan).out == run(plan + "--layer-costs " + layers.path()).out);
  CHECK(run(plan + "--unshard 3,1").exit == 2);

  const auto refused = [&](const std::string& file, const std::string& option) {
    const temporary wrong("wrong.json");
    wrong.write(file);
    return refusal(two + option + wrong.path());
  };
  CHECK(refused(R"({"jobs": [{"kind": "UNSHARD", "microbatch": 1, "cost": 2}]})", "--costs ")
            .find("jobs[0].microbatch: an UNSHARD is of all micro-batches, and has a cost and a "
                  "change alone") != std::string::npos);
  CHECK(refused(R"({"jobs": [{"kind": "UNSHARD", "peak": 1}]})", "--costs ")
            .find("jobs[0].peak: an UNSHARD") != std::string::npos);
  CHECK(refused(R"({"jobs": [{"kind": "UNSHARD", "change": -1}]})", "--costs ")
            .find("jobs[0].change") != std::string::npos);
  CHECK(refused(R"([{"slice": 0, "unshard": 1}])", "--layers 2,2 --layer-costs ")
            .find("unshard is of all slices") != std::string::npos);
  CHECK(refused(R"([{"memory_unshard": -1}])", "--layers 2,2 --layer-costs ")
            .find("memory_unshard") != std::string::npos);
  CHECK(refusal(two + "--unshard 3").find("--unshard 3: expected 2 integers, T,M") !=
        std::string::npos);
  for (const char* step : {"simulate 1f1b --ranks 2 --microbatches 4 --gathered 2",
                           "compare --ranks 2 --microbatches 4 --gathered 2"})
    CHECK(refusal(step).find("--gathered 2: has a meaning only where weights are gathered") !=
          std::string::npos);
}

TEST_CASE("gathers of a file that has UNSHARD stand where it has them; of others as of schedules") {
  const temporary with("with.csv");
  with.write("0UNSHARD,0F0,0RESHARD,1UNSHARD,1F0,1B0,1RESHARD,0UNSHARD,0B0,0RESHARD\n");
  const temporary without("without.csv");
  without.write("0F0,1F0,1B0,0B0\n");
  const auto told = [](const temporary& file, const std::string& options) {
    return run_json("simulate --csv " + file.path() + " --format json --unshard 5,3 " + options);
  };
  CHECK(told(with, "")["makespan"] == 6 + 3 * 5);
  CHECK(told(with, "")["gathers"][0] == 3);
  CHECK(told(with, "--gathered 1")["peak"][0] == 2 + 3);
  CHECK(told(without, "")["makespan"] == 6 + 5 + 5 - 1);
  CHECK(told(without, "")["peak"][0] == 2 + 6);
  const json same = told(without, "--gathered 1");
  for (const char* key : {"makespan", "span", "peak", "gathers"}) {
    CAPTURE(key);
    CHECK(same[key] == told(with, "")[key]);
  }
  CHECK(refusal("simulate --csv " + without.path() + " --unshard 5,3 --limit 7")
            .find("the order needs 8 on rank 0, whose limit is 7") != std::string::npos);
  CHECK(refusal("simulate --csv " + without.path() + " --gathered 2").find("--gathered 2") !=
        std::string::npos);
  // Of messages in a file, too.
  const temporary messages("messages.csv");
  messages.write("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  CHECK(run_json("simulate --csv " + messages.path() +
                 " --format json --unshard 4,2")["makespan"] == 6 + 4);
}

TEST_CASE(
    "an order that is written keeps the limit that it was made for; check and compare know it") {
  const temporary costs("costs.json");
  costs.write(R"({"jobs": [{"kind": "UNSHARD", "cost": 3, "change": 4}]})");
  const std::string step = " v_auto --ranks 4 --microbatches 8 --limit 10 --gathered 1 ";
  for (const std::string& told : {"--costs " + costs.path(), std::string("--unshard 3,4")}) {
    CAPTURE(told);
    const json made = run_json("simulate" + step + told + " --format json");
    for (const char* format : {"", "--comms "}) {
      if (*format == 0 && told.find("json") == std::string::npos) continue;
      const temporary file("made.csv");
      const std::string write = "schedule" + step + told + " --format csv " + format;
      REQUIRE(run(write + "-o " + file.path()).exit == 0);
      const std::string limited = " --limit 10 --costs " + costs.path();
      const json read =
          run_json("simulate --csv " + file.path() + " --gathered 1 --format json" + limited);
      CHECK(read["makespan"] == made["makespan"]);
      CHECK(read["peak"] == made["peak"]);
      CHECK(run("check " + file.path() + " --gathered 1" + limited).exit == 0);
      CHECK(refusal("check " + file.path() + " --gathered 1 --limit 9 --costs " + costs.path())
                .find("the order needs 10 on rank 0, whose limit is 9") != std::string::npos);
      for (const json& one : run_json("compare --ranks 4 --microbatches 8 --chunks 2 --gathered 1 "
                                      "--format json --csv " +
                                      file.path() + limited))
        if (one.contains("file")) CHECK(one["makespan"] == made["makespan"]);
    }
  }
  // A header has the rest of the costs and the limit, and so its proof.
  const std::string header = "schedule zb_h1 --ranks 2 --microbatches 4 --limit 9 --emit header ";
  const auto proof = [](const std::string& text) { return text.substr(text.find("// makespan")); };
  CHECK(proof(run(header + "--unshard 3,4").out) == proof(run(header).out));
  CHECK(refusal(header + "--unshard 3,8").find("whose limit is 9") != std::string::npos);
  // Orders alone say nothing of gathers.
  CHECK(run("schedule" + step + "--unshard 3,4 --format json").out.find("UNSHARD") ==
        std::string::npos);
}

TEST_CASE("what is above a limit is told of the file's cells, gathers among them or not") {
  const temporary plain("plain.csv");
  plain.write("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const auto told = [&](int limit) {
    return refusal("simulate --csv " + plain.path() + " --unshard 2,3 --limit " +
                   std::to_string(limit));
  };
  CHECK(
      told(1).find("row 1 (rank 0), cell 1, \"0F0\": rule bounded broken, job 0UNSHARD: memory in "
                   "use exceeds the rank's limit (3, at most 1); the order needs 5 on rank 0") !=
      std::string::npos);
  CHECK(told(3).find("cell 1, \"0F0\": rule bounded broken: memory in use exceeds the rank's limit "
                     "(4, at most 3)") != std::string::npos);
  CHECK(told(4).find("cell 2, \"0F1\": rule bounded") != std::string::npos);
  CHECK(run("simulate --csv " + plain.path() + " --unshard 2,3 --limit 5").exit == 0);
}

TEST_CASE("what is written for PyTorch has the weights of as many stages as are asked for") {
  const std::string step = "schedule interleaved --ranks 2 --chunks 4 --microbatches 4 --comms ";
  CHECK(run(step + "--format csv").out == run(step + "--format csv --gathered 3").out);
  for (const int gathered : {1, 2, 4}) {
    CAPTURE(gathered);
    const temporary file("made.csv");
    REQUIRE(run(step + "--format csv --gathered " + std::to_string(gathered) + " -o " + file.path())
                .exit == 0);
    const std::string told = "holds the weights of " + std::to_string(gathered) + " stage";
    CHECK(run("check " + file.path()).out.find(told) != std::string::npos);
    // It takes what the same order does.
    const std::string options = " --unshard 7,5 --format json";
    const json read = run_json("simulate --csv " + file.path() + options);
    const json made =
        run_json("simulate interleaved --ranks 2 --chunks 4 --microbatches 4 --gathered " +
                 std::to_string(gathered) + options);
    for (const char* key : {"makespan", "peak", "gathers"}) CHECK(read[key] == made[key]);
  }
  for (const char* other : {"", "--format json "})
    CHECK(refusal(step + other + "--gathered 2").find("--gathered 2: has a meaning only where") !=
          std::string::npos);
  CHECK(refusal("schedule paired_1f1b --ranks 2 --chunks 2 --microbatches 4 --comms --format csv "
                "--gathered 1")
            .find("--gathered 1: paired_1f1b pairs jobs of two stages") != std::string::npos);
}

TEST_CASE("costs tells what a layer's gather takes around a ring of those who hold a part") {
  const std::string model = "costs --layers 4 --device h100 --hidden 4096 --heads 32 -o - ";
  const json plain = run_json(model)["costs"];
  for (const json& one : plain) CHECK_FALSE(one.contains("unshard"));
  for (const std::int64_t shards : {2, 8}) {
    const json all = run_json(model + "--weight-shards " + std::to_string(shards))["costs"];
    REQUIRE(all.size() == plain.size());
    const std::int64_t weights = 12 * 4096 * 4096 + 13 * 4096;
    const std::int64_t bytes = (shards - 1) * (2 * weights / shards);
    CHECK(all[0]["unshard"] == (bytes + 369) / 370 + 6000);
    CHECK(all[0]["memory_unshard"] == 2 * weights / 1024);
    CHECK(all[1]["unshard"] > all[0]["unshard"]);  // the embedding
    const auto part = [&](std::int64_t of) { return (of / shards + 1023) / 1024; };
    CHECK(all[0]["memory_weights_alone"] == part(2 * weights));
    CHECK(all[0]["memory_weights"] == (2 * weights + 14 * weights / shards + 1023) / 1024);
  }
  CHECK(refusal(model + "--weight-shards 4 --data-parallel 6") ==
        "stretto: --weight-shards 4: --data-parallel 6 is no multiple of it\n");
  for (const char* fewer : {"1", "2"})
    CHECK(refusal(model + "--weight-shards 4 --data-parallel " + fewer) ==
          "stretto: --weight-shards 4: --data-parallel " + std::string(fewer) +
              " is no multiple of it\n");
  CHECK(refusal(model + "--weight-shards 2 --experts 8 --expert-parallel 4")
            .find("--weight-shards 2: is no multiple of --expert-parallel 4") != std::string::npos);
  const temporary file("layers.json");
  const outcome table = run(
      "costs --layers 4 --hidden 1024 --heads 16 --weight-shards 4 --slices 2 -o " + file.path());
  REQUIRE(table.exit == 0);
  CHECK(table.out.find("Gather: of weights, from 4 replicas") != std::string::npos);
  const json step = run_json(
      "simulate seq_1f1b --slices 2 --ranks 2 --microbatches 4 --layers 2,2 "
      "--format json --layer-costs " +
      file.path());
  CHECK(step["by_gathers"] > 0);
  // Forwards alone gather them as well.
  CHECK(run_json("simulate inference --slices 2 --ranks 2 --microbatches 4 --layers 2,2 --format "
                 "json --layer-costs " +
                 file.path())["by_gathers"] > 0);
}

TEST_CASE("memory has a part of weights all the time, and what is gathered at once") {
  const std::string model =
      " --ranks 4 --microbatches 8 --layers 16 --hidden 1024 --heads 16 --format json ";
  const auto of = [](const json& all, std::size_t rank, const char* what) {
    return all["need"][rank][what].get<std::int64_t>();
  };
  const json plain = run_json("memory interleaved --chunks 4 --data-parallel 8" + model);
  const std::int64_t layer = 12 * 1024 * 1024 + 13 * 1024;
  for (const int gathered : {1, 2, 4}) {
    const json dealt = run_json("memory interleaved --chunks 4 --weight-shards 8 --gathered " +
                                std::to_string(gathered) + model);
    CAPTURE(gathered);
    for (std::size_t rank = 1; rank < 3; ++rank) {
      CHECK(of(plain, rank, "gathered") == 0);
      CHECK(of(dealt, rank, "gathered") == 2 * layer * gathered);
      CHECK(of(dealt, rank, "state") == 4 * (2 * layer + 14 * layer / 8));
      CHECK(of(dealt, rank, "activations") == of(plain, rank, "activations"));
      CHECK(of(dealt, rank, "total") == of(dealt, rank, "state") + of(dealt, rank, "gathered") +
                                            of(dealt, rank, "activations"));
    }
    CHECK(of(dealt, 0, "gathered") > of(dealt, 1, "gathered"));  // the embedding
  }
  const auto title = [&](const std::string& options) {
    return run("memory 1f1b --ranks 4 --microbatches 8 --layers 16 --hidden 1024 --heads 16" +
               options)
               .out.find("gathered") != std::string::npos;
  };
  CHECK(title(" --weight-shards 2"));
  CHECK_FALSE(title(""));
  CHECK(refusal("memory 1f1b --gathered 2" + model) ==
        "stretto: --gathered 2: has a meaning only with --weight-shards\n");
  // A limit is of all that the jobs need, gathered weights among it.
  const json whole = run_json("memory 1f1b --weight-shards 4" + model);
  std::int64_t most = 0;
  for (const json& need : whole["need"]) most = std::max(most, need["jobs"].get<std::int64_t>());
  const auto limited = [&](double bytes) {
    return run("memory 1f1b --weight-shards 4 --limit " + std::to_string(bytes / (1 << 20)) + model)
        .exit;
  };
  CHECK(limited(static_cast<double>(most) + 1024) == 0);
  CHECK(limited(static_cast<double>(most) - 1024) == 1);
}

TEST_CASE("gathers are drawn below the jobs of their rank, and are a track of a trace") {
  const std::string step = " interleaved --ranks 2 --chunks 2 --microbatches 4 --gathered 1 ";
  const std::string drawn = run("plot" + step + "--unshard 3,1 --reduce-grad 2").out;
  CHECK(drawn.find(">gathers<") != std::string::npos);
  CHECK(drawn.find(">sums<") != std::string::npos);
  CHECK(drawn.find("gather of weights") != std::string::npos);
  CHECK(run("plot interleaved --ranks 2 --chunks 2 --microbatches 4").out.find(">gathers<") ==
        std::string::npos);
  for (const char* each : {"1f1b", "gpipe", "zb_h1", "interleaved", "dualpipe", "inference"})
    for (const int ranks : {2, 4, 8}) {
      CAPTURE(each);
      CAPTURE(ranks);
      const std::string other = std::string(" ") + each + " --microbatches 8 --ranks " +
                                std::to_string(ranks) + " --unshard 4,3" +
                                (std::string(each) == "inference" ? "" : " --reduce-grad 4");
      std::int64_t end = 0;
      const json drawn_step = run_json("trace" + other);
      for (const json& event : drawn_step["traceEvents"])
        if (event["ph"] == "X")
          end = std::max(end, event["ts"].get<std::int64_t>() + event["dur"].get<std::int64_t>());
      CHECK(end == run_json("simulate" + other + " --format json")["makespan"]);
    }
  // A measured step's trace tells of none.
  const std::string traced = "plot 1f1b --ranks 2 --microbatches 4 --trace file ";
  CHECK(refusal(traced + "--unshard 3,1") == "stretto: --unshard excludes --trace\n");
  CHECK(refusal(traced + "--gathered 2") == "stretto: --gathered excludes --trace\n");
  CHECK(refusal(traced + "--reduce-grad 2") == "stretto: --reduce-grad excludes --trace\n");
  const json trace = run_json("trace" + step + "--unshard 3,1");
  const json told = run_json("simulate" + step + "--unshard 3,1 --format json");
  int gathers = 0;
  std::int64_t memory = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "C") memory = std::max(memory, event["args"]["in use"].get<std::int64_t>());
    if (event["ph"] != "X" || event["cat"] != "gather of weights") continue;
    ++gathers;
    CHECK(event["tid"] == 4);
    CHECK(event["dur"] == 3);
  }
  CHECK(gathers == told["gathers"][0].get<int>() + told["gathers"][1].get<int>());
  CHECK(memory ==
        std::max(told["peak"][0].get<std::int64_t>(), told["peak"][1].get<std::int64_t>()));
}
