#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "run_tool.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/arena_report.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/all.hpp"
#include "stretto/schedule/variants.hpp"

namespace {

using nlohmann::json;
using tool_tests::outcome;
using tool_tests::run;
using tool_tests::run_json;

const std::string gpt =
    " --ranks 8 --microbatches 16 --layers 96 --hidden 12288 --heads 96 --sequence 2048"
    " --tensor-parallel 8 --format json ";

std::int64_t of(const json& all, std::size_t rank, const char* what) {
  return all["need"][rank][what].get<std::int64_t>();
}

TEST_CASE("1F1B keeps a share of the model less on each rank") {
  const json all = run_json("memory 1f1b" + gpt);
  // Korthikanti et al. 2022: 10 s b h + (24 s b h + 5 a s^2 b) / t bytes for each of 12 layers.
  const std::int64_t sbh = std::int64_t{2048} * 12288;
  const std::int64_t as2b = std::int64_t{96} * 2048 * 2048;
  const std::int64_t share = 12 * (10 * sbh + (24 * sbh + 5 * as2b) / 8);
  // The first layer's input is a message. There is one more of them, and while the first
  // micro-batches go in one more output that nothing proves taken, but on the last rank but one.
  const std::int64_t message = 2 * sbh;
  for (std::size_t rank = 1; rank < 6; ++rank) {
    CHECK(of(all, rank, "saved") - of(all, rank + 1, "saved") == share - message);
    CHECK(of(all, rank, "messages") - of(all, rank + 1, "messages") ==
          (rank < 5 ? 2 : 1) * message);
  }
  for (std::size_t rank = 0; rank < 8; ++rank) {
    CHECK(of(all, rank, "layers") == 12);
    CHECK(of(all, rank, "total") == of(all, rank, "state") + of(all, rank, "activations"));
  }
  CHECK(of(all, 0, "state") > of(all, 1, "state"));  // the embedding
  // Of a GPT-like layer 29 bytes of 34 for each row and feature, where the scores are not kept.
  const auto kept = [](const std::string& precision) {
    return run_json(
        "memory 1f1b --ranks 3 --microbatches 8 --layers 30 --hidden 1024 --heads 16 "
        "--sequence 1024 --attention fused --vocabulary 1024 --format json --precision " +
        precision);
  };
  const json halves = kept("mixed_wide_gradients"), bytes = kept("fp8");
  CHECK(of(bytes, 1, "state") == of(halves, 1, "state"));
  CHECK(of(halves, 1, "saved") - of(bytes, 1, "saved") ==
        2 * 10 * (34 - 29) * 1024 * 1024);
  const json single = run_json("memory 1f1b" + gpt + "--precision single");
  CHECK(of(single, 1, "state") == of(all, 1, "state"));  // 16 bytes a weight
  CHECK(of(single, 1, "activations") > of(all, 1, "activations"));
  const json wide = run_json("memory 1f1b" + gpt + "--precision mixed_wide_gradients");
  for (std::size_t rank = 0; rank < 8; ++rank) {  // 18 bytes a weight
    CHECK(8 * of(wide, rank, "state") == 9 * of(all, rank, "state"));
    CHECK(of(wide, rank, "activations") == of(all, rank, "activations"));
  }
  CHECK(run_json("memory 1f1b" + gpt + "--gradient-bytes 4") == wide);
  const json narrow = run_json("memory 1f1b" + gpt + "--gradient-bytes 4 --optimizer-bytes 8");
  for (std::size_t rank = 0; rank < 8; ++rank)  // moments in half precision: 14 bytes a weight
    CHECK(8 * of(narrow, rank, "state") == 7 * of(all, rank, "state"));
  const json replicas = run_json("memory 1f1b" + gpt + "--data-parallel 8");
  const json dealt = run_json("memory 1f1b" + gpt + "--optimizer-shards 8");
  for (std::size_t rank = 0; rank < 8; ++rank) {  // 4 + 12 / 8 of 16 bytes a weight, rounded up
    CHECK(of(dealt, rank, "activations") == of(replicas, rank, "activations"));
    const std::int64_t less = of(all, rank, "state") / 32 * 11;
    CHECK(of(dealt, rank, "state") >= less);
    CHECK(of(dealt, rank, "state") <= less + 12 + 11);
  }
  const json more = run_json("memory 1f1b" + gpt + "--batch 2");
  CHECK(of(more, 1, "activations") == 2 * of(all, 1, "activations"));
  CHECK(of(more, 1, "state") == of(all, 1, "state"));
}

TEST_CASE("of an order from a file it is told what the same one needs that has a name") {
  const tool_tests::temporary file("order.csv");
  const std::string model =
      " --layers even:12 --hidden 512 --heads 8 --sequence 256 --format json ";
  const auto same = [&](const std::string& step, const std::string& more, const std::string& also) {
    CAPTURE(step + more);
    const outcome written = run("schedule " + step + more + " --format cells");
    REQUIRE(written.exit == 0);
    file.write(written.out);
    json named = run_json("memory " + step + more + also + model);
    json read = run_json("memory --csv " + file.path() + also + model);
    named.erase("schedule");
    CHECK(read["schedule"] == file.path());
    read.erase("schedule");
    CHECK(named.contains("need"));
    CHECK(read == named);
  };
  for (const char* schedule : {"1f1b", "interleaved", "zb_h1", "zbv", "zb_auto", "v_auto",
                               "chimera", "dualpipe", "bitpipe", "inference", "gpipe"}) {
    const std::string step = schedule + std::string(" --ranks 4 --microbatches 8");
    same(step, "", "");
    if (std::string(schedule) == "inference") continue;
    same(step, "", " --data-parallel 2");
    same(step, "", " --weight-shards 2");
    // Of what a copy takes the command that writes the order knows nothing.
    if (schedule != std::string("v_auto")) same(step, " --offload all", "");
  }
  // What runs again is in the file, what of it not.
  const std::string step = "1f1b --ranks 4 --microbatches 8";
  const outcome again = run("schedule " + step + " --recompute 1/2 --format cells");
  file.write(again.out);
  json read = run_json("memory --csv " + file.path() + " --recompute attention" + model);
  json named = run_json("memory " + step +
                        " --recompute attention --recompute-of 2 --recompute-count 1" + model);
  CHECK(read["need"] == named["need"]);
  CHECK(read["need"] != run_json("memory " + step + model)["need"]);
  tool_tests::check_refused("memory --csv " + file.path() + model,
                            {{"", "has recomputes: --recompute says of what"},
                             {"--ranks 4", "--csv"},
                             {"--offload all", "--csv"},
                             {"--recompute-of 2", "--csv"}});
}

TEST_CASE(
    "a file whose order is none, or says what a plan adds, has no memory that could be told") {
  const tool_tests::temporary file("order.csv");
  const auto said = [&](const std::string& text, const std::string& more = "") {
    file.write(text);
    const outcome ran = run("memory --csv " + file.path() +
                            " --layers 4 --hidden 512 --heads 8 --sequence 256 " + more);
    CHECK(ran.out.empty());
    const std::size_t name = ran.err.find(file.path());
    REQUIRE(name != std::string::npos);
    return std::to_string(ran.exit) + ran.err.substr(name + file.path().size());
  };
  CHECK(said("0F0,0B0\n1F0,1B0\n", "--recompute full") == "2 has no recomputes\n");
  CHECK(said("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n") ==
        "2: is compute_comms, and a plan makes messages of its own: give the jobs alone\n");
  CHECK(said("0F0,2F0,2B0,0B0\n1F0,1B0\n") == "2: its ranks have not all as many stages\n");
  CHECK(said("0B0,0F0\n1F0,1B0\n").starts_with("1: row 1 (rank 0), cell 1, \"0B0\": rule ordered"));
  CHECK(said("0F0,0B0\n1F0,1B0\n", "--limit 1").starts_with("1: "));
  tool_tests::check_refused("memory --layers 4",
                            {{"", "NAME or --csv: one of them is required"},
                             {"1f1b --microbatches 2", "--ranks: required with a schedule's name"},
                             {"1f1b --ranks 2", "--microbatches: required with a schedule's name"},
                             {"1f2b --ranks 2 --microbatches 2", "1f2b"}});
}

//! Holds what the tool tells against plans whose stages save what Korthikanti et al. 2022 say of
//! layers, here of the default width, and keep for the backwards for the weights, where they are
//! apart, what Qi et al. 2023 ("Zero Bubble Pipeline Parallelism") say: 32 s b h of each layer.
//! Replicas sum 4 bytes a weight.
template <class Schedule>
void check_arena(const stretto::shape& sizes, const std::string& layers,
                 const std::vector<int>& counts, bool split = false, int replicas = 1) {
  const std::int64_t h = 1024;
  const std::int64_t sbh = 1024 * h;
  const std::int64_t layer = 34 * sbh + 5 * std::int64_t{16} * 1024 * 1024;
  const auto stages = static_cast<int>(counts.size());
  stretto::plan_request request;
  request.stages.clear();
  for (int stage = 0; stage < stages; ++stage) {
    // The first layer's input is a message, but for the embedding, which saves its dropout's mask.
    std::int64_t saved =
        counts[static_cast<std::size_t>(stage)] * layer + (stage == 0 ? sbh : -2 * sbh);
    // The head saves its input, its norm, and the logits in single precision.
    const std::int64_t logits = stage + 1 < stages ? 0 : std::int64_t{4} * 1024 * 50304;
    if (logits > 0) saved += 4 * sbh + logits;
    std::int64_t kept = counts[static_cast<std::size_t>(stage)] * 32 * sbh + logits;
    if (logits > 0) kept += 2 * sbh;
    if (!split) kept = 0;
    std::int64_t weights = counts[static_cast<std::size_t>(stage)] * (12 * h * h + 13 * h);
    if (stage == 0) weights += (50304 + 1024) * h;
    if (logits > 0) weights += (50304 + 2) * h;
    request.stages.push_back(
        {.output = 2 * sbh, .stash = saved - kept, .gradients = 4 * weights, .kept = kept});
  }
  const stretto::placement where = stretto::place(Schedule{}.placed(), sizes);
  request.data_parallel = replicas > 1;
  const stretto::job_table table(sizes.ranks, where.chunks);
  const stretto::planned made(Schedule{}, sizes, table.view(), stretto::overlap::separate{},
                              request);
  REQUIRE(made.answer() == stretto::verdict{});
  const bool sums = replicas > 1 || where.kind == stretto::placement_kind::bidirectional;
  const std::string name(Schedule::name);
  const json all = run_json("memory " + name + " --ranks " + std::to_string(sizes.ranks) +
                            " --microbatches " + std::to_string(sizes.microbatches) + " --chunks " +
                            std::to_string(sizes.chunks) + " --format json --data-parallel " +
                            std::to_string(replicas) + " --layers " + layers);
  for (std::size_t rank = 0; rank < made.plans().size(); ++rank) {
    INFO(name, ", layers ", layers, ", rank ", rank);
    const stretto::arena_report use = stretto::measure_arena(made.plans()[rank]);
    CHECK(of(all, rank, "saved") == use.saved);
    CHECK(of(all, rank, "messages") == use.messages);
    CHECK(of(all, rank, "sums") == use.sums);
    CHECK((use.sums > 0) == sums);
    CHECK(of(all, rank, "arena") == use.arena);
    CHECK(of(all, rank, "activations") == use.arena + of(all, rank, "working"));
  }
}

TEST_CASE("activations are what a plan's arena holds, messages in flight with them") {
  namespace schedule = stretto::schedule;
  const stretto::shape four{.ranks = 4, .microbatches = 8};
  const stretto::shape two{.ranks = 2, .microbatches = 4, .chunks = 2};
  check_arena<schedule::one_f_one_b>(four, "24", {6, 6, 6, 6});
  check_arena<schedule::one_f_one_b>(four, "7,6,6,5", {7, 6, 6, 5});
  check_arena<schedule::gpipe>(four, "7,6,6,5", {7, 6, 6, 5});
  check_arena<schedule::interleaved>(two, "8", {2, 2, 2, 2});
  check_arena<schedule::interleaved>(two, "5,3", {3, 2, 2, 1});
  check_arena<schedule::v_1f1b>(two, "8", {2, 2, 2, 2});
  check_arena<schedule::v_1f1b>(two, "5,3", {3, 2, 1, 2});
  check_arena<schedule::zb_h1>(four, "24", {6, 6, 6, 6}, true);
  check_arena<schedule::zb_h1>(four, "7,6,6,5", {7, 6, 6, 5}, true);
  check_arena<schedule::zbv>(two, "8", {2, 2, 2, 2}, true);
  check_arena<schedule::zbv>(two, "5,3", {3, 2, 1, 2}, true);
  check_arena<schedule::chimera>(four, "'Ettttt|tttt|tttt|tttL'", {5, 4, 4, 3});
  check_arena<schedule::dualpipe>(four, "24", {6, 6, 6, 6}, true);
  check_arena<schedule::one_f_one_b>(four, "7,6,6,5", {7, 6, 6, 5}, false, 2);
  check_arena<schedule::zbv>(two, "5,3", {3, 2, 1, 2}, true, 8);
  check_arena<schedule::chimera>(four, "24", {6, 6, 6, 6}, false, 2);
}

TEST_CASE("slices have room for what each keeps, and the gradients that later ones add to") {
  // Llama 3 8B, whose attention is fused; 4 slices of a sequence, on 8 devices a rank.
  const std::string llama =
      " --ranks 4 --microbatches 8 --layers 32 --architecture llama --attention fused --hidden "
      "4096 "
      "--heads 32 --kv-heads 8 --feed-forward 14336 --vocabulary 128256 --sequence 8192 "
      "--tensor-parallel 8 --sequence-parallel --format json ";
  for (const std::int64_t slices : {1, 4}) {
    const json all = run_json("memory seq_1f1b" + llama + "--slices " + std::to_string(slices));
    CHECK(all["slices"] == slices);
    const std::int64_t rows = 8192 / slices;
    const std::int64_t message = rows * 2 * 4096 / 8;
    const std::int64_t layer =
        rows * (2 * (6 * 4096 + 2 * 1024 + 3 * 14336) + 4 * 32 + (slices > 1 ? 4 * 1024 : 0)) / 8;
    stretto::plan_request request;
    request.stages.clear();
    for (int stage = 0; stage < 4; ++stage) {
      std::int64_t saved = 8 * layer - (stage == 0 ? 0 : message);
      // The head's input, its norm, and the logits in single precision.
      if (stage == 3) saved += 2 * message + rows * 4 * 128256 / 8;
      request.stages.push_back({.output = message, .stash = saved, .gradients = 0});
    }
    const stretto::shape sizes{
        .ranks = 4, .microbatches = 8, .slices = static_cast<int>(slices)};
    const stretto::job_table table(4, 1);
    const stretto::planned made(stretto::schedule::seq_1f1b{}, sizes, table.view(),
                                stretto::overlap::separate{}, request);
    REQUIRE(made.answer() == stretto::verdict{});
    for (std::size_t rank = 0; rank < 4; ++rank) {
      CAPTURE(slices);
      CAPTURE(rank);
      const stretto::arena_report use = stretto::measure_arena(made.plans()[rank]);
      CHECK(of(all, rank, "saved") == use.saved);
      CHECK(of(all, rank, "messages") == use.messages);
      CHECK(of(all, rank, "arena") == use.arena);
      // Weights, gradients and optimizer, 16 bytes a weight, of 8 layers and, at the ends, the
      // vocabulary's.
      const std::int64_t weights =
          8 * (4096 * (2 * 4096 + 2 * 1024 + 3 * 14336) / 8 + 2 * 4096) +
          (rank == 0 || rank == 3 ? 128256 * 4096 / 8 : 0) + (rank == 3 ? 4096 : 0);
      CHECK(of(all, rank, "state") == 16 * weights);
    }
  }
  const auto refused = [&](const std::string& option) {
    const outcome ran = run("memory seq_1f1b" + llama + option);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(refused("--slices 2 --recompute full").find("a slice cannot be recomputed") !=
        std::string::npos);
  CHECK(refused("--slices 2048")
            .find("--tensor-parallel 8: a slice of --sequence 4 is no multiple of it, which "
                  "--sequence-parallel splits") != std::string::npos);
}

TEST_CASE("a stage with more layers than a job can have ops is refused by its option") {
  CHECK(run("memory 1f1b --ranks 8 --microbatches 8 --layers 100000").err ==
        "stretto: --layers 100000: a stage of rank 7 gets too many: a job has at most 32767 ops\n");
}

TEST_CASE("every schedule has an arena, and recomputation makes none of a fixed order larger") {
  stretto::schedule::all::for_each([](const auto& made) {
    stretto::shape sizes{.ranks = 2, .microbatches = 4};
    if (!made.supports(sizes).ok()) sizes.chunks = 2;
    const std::string arguments = "memory " + std::string(made.name) +
                                  " --ranks 2 --microbatches 4 --hidden 64 --heads 4 "
                                  "--sequence 64 --layers 8 --format json --chunks " +
                                  std::to_string(sizes.chunks);
    const json plain = run_json(arguments);
    // What runs forwards alone saves nothing, and refuses to recompute it.
    const bool saves = of(plain, 0, "saved") > 0;
    if (!saves) {
      CHECK(made.name == "inference");
      return;
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      INFO(made.name, ", rank ", rank);
      CHECK(of(plain, rank, "arena") > 0);
      CHECK(of(plain, rank, "messages") > 0);
    }
    // A search is free to keep more micro-batches of what is less.
    if (stretto::schedule::Search<std::remove_cvref_t<decltype(made)>>) return;
    const json attention = run_json(arguments + " --recompute attention");
    const json full = run_json(arguments + " --recompute full");
    for (std::size_t rank = 0; rank < 2; ++rank) {
      INFO(made.name, ", rank ", rank);
      CHECK(of(attention, rank, "saved") <= of(plain, rank, "saved"));
      CHECK(of(full, rank, "saved") <= of(attention, rank, "saved"));
    }
  });
}

TEST_CASE("forwards alone hold weights alone, and save nothing") {
  // The default model, of 24 layers: 12 h^2 + 13 h weights each, of two bytes.
  const std::int64_t h = 1024;
  const std::int64_t sbh = std::int64_t{1024} * h;
  const std::int64_t as2b = std::int64_t{16} * 1024 * 1024;
  const std::int64_t vocabulary = 50304 * h;
  const std::int64_t half = 12 * (12 * h * h + 13 * h);
  const json all = run_json("memory inference --ranks 2 --microbatches 4 --format json");
  REQUIRE(all.contains("need"));
  CHECK(of(all, 0, "state") == 2 * (half + vocabulary + sbh));  // as many positions as tokens
  CHECK(of(all, 1, "state") == 2 * (half + vocabulary + 2 * h));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(of(all, rank, "saved") == 0);
    CHECK(of(all, rank, "messages") >= 2 * sbh);
    CHECK(of(all, rank, "arena") == of(all, rank, "messages"));
    CHECK(of(all, rank, "total") == of(all, rank, "state") + of(all, rank, "activations"));
  }
  // The most at once, where attention drops: softmax before and after, of two bytes, and the mask,
  // of one, beside the values and the layer's input.
  CHECK(of(all, 0, "working") == 5 * as2b + 2 * 2 * sbh);
  // Where the head makes logits, in single precision, of its norm.
  CHECK(of(all, 1, "working") == 4 * vocabulary + 2 * sbh);

  // More chunks: what a stage hands to the next on the same rank is a message.
  const json chunks =
      run_json("memory inference --ranks 1 --microbatches 4 --chunks 2 --format json");
  REQUIRE(chunks.contains("need"));
  CHECK(of(chunks, 0, "saved") == 0);
  CHECK(of(chunks, 0, "working") == of(all, 1, "working"));

  CHECK(run("memory inference --ranks 2 --microbatches 4")
            .out.starts_with("inference, MiB: weights alone; the most that forwards save"));
  CHECK(run("memory gpipe --ranks 2 --microbatches 4")
            .out.starts_with("gpipe, MiB: weights, gradients and optimizer state; the most"));
  const auto refused = [](const std::string& option) {
    const outcome ran = run("memory inference --ranks 2 --microbatches 4 " + option);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(refused("--optimizer-shards 2") ==
        "stretto: --optimizer-shards 2: inference has no optimizer\n");
  CHECK(refused("--recompute full") ==
        "stretto: --recompute full: inference has no backward for which a forward would run "
        "again\n");
  CHECK(refused("--offload 1/2") ==
        "stretto: --offload 1/2: inference has no backward, and so its forwards save nothing to "
        "copy\n");
}

TEST_CASE("layers are dealt as `assign` deals them") {
  const auto layers = [](const std::string& text) {
    std::string made;
    const json all = run_json(
        "memory interleaved --ranks 2 --microbatches 4 --chunks 2 --hidden 64 "
        "--heads 4 --sequence 32 --format json --layers '" +
        text + "'");
    for (const json& need : all["need"]) made += std::to_string(need["layers"].get<int>()) + " ";
    return made;
  };
  CHECK(layers("8") == "4 4 ");
  CHECK(layers("5,3") == "5 3 ");
  CHECK(layers("Ett|tt|ttt|tL") == "5 3 ");
  // The head's product with 50304 tokens is worth more than all layers of this width.
  CHECK(layers("balanced:8") == "6 2 ");
}

TEST_CASE("recomputation saves what it says, for as many micro-batches as it is asked for") {
  const auto most = [](const std::string& arguments) {
    return of(run_json("memory 1f1b" + gpt + arguments), 1, "activations");
  };
  const std::int64_t none = most("");
  const std::int64_t attention = most("--recompute attention");
  const std::int64_t half = most("--recompute full --recompute-of 7 --recompute-count 3");
  const std::int64_t full = most("--recompute full");
  CHECK(none > attention);
  CHECK(attention > full);
  CHECK(none > half);
  CHECK(half > full);
}

TEST_CASE("what is offloaded is on the host, and not in the arena") {
  const auto all = [](const std::string& arguments) {
    return run_json(
        "memory 1f1b --ranks 6 --microbatches 12 --layers 12 --hidden 256 --heads 4 "
        "--sequence 128 --format json " +
        arguments);
  };
  const json plain = all("");
  const json away = all("--offload all");
  const json at_once = all("--offload all,lag=0,prefetch=0");
  const json some = all("--offload 1/2");
  for (std::size_t rank = 0; rank < 6; ++rank) {
    CAPTURE(rank);
    CHECK_FALSE(plain["need"][rank].contains("host"));
    // Of `flying` stashes three stay here, or one; one stash more is under way than is gone.
    const auto flying = static_cast<std::int64_t>(6 - rank);
    const std::int64_t stash = of(plain, rank, "saved") / flying;
    CHECK(of(away, rank, "saved") == std::min<std::int64_t>(flying, 3) * stash);
    CHECK(of(away, rank, "host") == (rank < 4 ? (flying - 1) * stash : 0));
    CHECK(of(at_once, rank, "saved") == stash);
    CHECK(of(at_once, rank, "host") == (rank < 5 ? flying * stash : 0));
    CHECK(of(away, rank, "total") <= of(some, rank, "total"));
    CHECK(of(some, rank, "total") <= of(plain, rank, "total"));
    CHECK(of(away, rank, "state") == of(plain, rank, "state"));
  }
  const outcome table = run("memory 1f1b --ranks 2 --microbatches 4 --layers 2 --offload all");
  CHECK(table.out.find("total  host\n") != std::string::npos);
}

TEST_CASE("under a limit that does not do, offloading does, and says how little is enough") {
  const std::string arguments =
      "memory zbv_greedy --ranks 4 --microbatches 8 --chunks 2 --layers 8 --hidden 256 --heads 4 "
      "--sequence 128 --format json";
  const auto needed = [&](const std::string& more) {
    const outcome far = run(arguments + " --limit 1" + more);
    CHECK(far.exit == 1);
    const std::size_t at = far.err.find_first_of("0123456789", far.err.find(';'));
    return std::stoll(far.err.substr(at));
  };
  const std::string at_once = " --offload all,lag=0,prefetch=0";
  const long long plain = needed("");
  const long long away = needed(at_once);
  CHECK(away < plain);
  const std::string between = " --limit " + std::to_string(away);
  CHECK(run(arguments + between).exit == 1);
  const outcome ran = run(arguments + between + at_once);
  REQUIRE(ran.exit == 0);
  for (std::size_t rank = 0; rank < 4; ++rank)
    CHECK(of(json::parse(ran.out), rank, "jobs") <= away << 20);
}

TEST_CASE("a limit: at it, one byte under it, far under it") {
  for (const std::string name : {"zbv_greedy", "zb_auto"}) {
    const std::string arguments = "memory " + name +
                                  " --ranks 4 --microbatches 8 --layers 8 --hidden 256 --heads 4 "
                                  "--sequence 128 --chunks " +
                                  (name == "zb_auto" ? "1" : "2");
    const outcome far = run(arguments + " --limit 1");
    CHECK(far.exit == 1);
    CHECK(far.out.empty());
    CHECK(far.err.find(name + ": rule bounded broken on rank ") != std::string::npos);
    // The smallest limit that fits is found, to a byte, and none of less does.
    std::int64_t least = 0;
    std::int64_t enough = std::int64_t{1} << 40;
    const auto fits = [&](std::int64_t bytes) {
      char limit[64];
      std::snprintf(limit, sizeof limit, " --limit %.9f", static_cast<double>(bytes) / (1 << 20));
      const outcome ran = run(arguments + " --format json" + limit);
      if (ran.exit != 0) return false;
      const json all = json::parse(ran.out);
      for (std::size_t rank = 0; rank < 4; ++rank) CHECK(of(all, rank, "jobs") <= bytes);
      return true;
    };
    while (enough - least > 1) {
      const std::int64_t middle = least + (enough - least) / 2;
      (fits(middle) ? enough : least) = middle;
    }
    const auto mib = (enough + (1 << 20) - 1) >> 20;
    CHECK(far.err.ends_with(", 1 MiB; the smallest limit that will do is " + std::to_string(mib) +
                            " MiB\n"));
  }
}

TEST_CASE("wrong models: exit 2, one line with option and rule") {
  tool_tests::check_refused(
      "memory 1f1b --ranks 4 --microbatches 8",
      {
          {"--heads 7", "--heads 7: --hidden is no multiple of it"},
          {"--tensor-parallel 3", "--tensor-parallel 3: --heads 16 is no multiple of it\n"},
          {"--layers 3", "--layers 3: "},
          {"--layers 0", "--layers 0: "},
          {"--layers 5,4,4", "--layers 5,4,4: "},
          {"--layers some:4", "--layers some:4: "},
          {"--recompute some", "--recompute"},
          {"--recompute full --recompute-of 0", "--recompute-of"},
          {"--offload some", "--offload some: is not none, all or a part"},
          {"--offload all,lag=-1", "--offload all,lag=-1: is not none, all or a part"},
          {"--offload all --recompute full",
           "--offload all,lag=1,prefetch=1: what a recompute saves anew"},
          {"--limit -4", "--limit"},
          {"--limit nan", "--limit nan: must be above 0"},
          {"--recompute-of 2", "--recompute-of 2: "},
          {"--recompute-count 1", "--recompute-count 1: "},
          {"--recompute full --recompute-of 2",
           "--recompute-of 2: has a meaning only with --recompute-count"},
          {"--recompute full --recompute-count 2",
           "--recompute-count 2: has a meaning only with --recompute-of"},
          {"--recompute full --recompute-of 2 --recompute-count 3",
           "--recompute-count 3: is more than --recompute-of, 2"},
          {"--hidden 1048576 --layers 100000",
           "--hidden 1048576 --sequence 1024 --batch 1 --vocabulary 50304 --layers 100000: the "
           "model "
           "passes"},
          {"--hidden 1000 --heads 20 --precision single --sequence 1048576 --layers 4",
           "--sequence 1048576 --batch 1: \"scores\" takes 87960930222080 bytes, and a buffer may"},
          {"--hidden 10240 --heads 80 --layers 2000 --sequence 8192 --batch 8",
           "--layers 2000: a job of stage 0 takes "},
          {"--chunks 2", "1f1b does not serve this: this schedule has one chunk per rank"},
          {"--layers '|Et*2|t*2L|'",
           "has embedding or head on another than the first and the last stage"},
          {"--precision half", "--precision"},
          {"--gradient-bytes 3", "--gradient-bytes"},
          {"--optimizer-bytes -1", "--optimizer-bytes -1"},
          {"--slices 2", "--slices 2: 1f1b does not serve this"},
          {"--slices 3", "--slices 3: --sequence 1024 is no multiple of it"},
          {"--kv-heads 3", "--kv-heads 3: --heads is no multiple of it"},
          {"--kv-heads 4 --tensor-parallel 8",
           "--tensor-parallel 8: --kv-heads 4 is no multiple of it\n"},
          {"--feed-forward 4098 --tensor-parallel 4",
           "--tensor-parallel 4: --feed-forward 4098 is no multiple of it\n"},
          {"--heads 12 --hidden 768 --tensor-parallel 8", "8: --heads 12 is no multiple of it\n"},
          {"--vocabulary 50257 --tensor-parallel 8",
           "8: --vocabulary 50257 is no multiple of it; padded, 50264 is one\n"},
          {"--sequence 1001 --tensor-parallel 8 --sequence-parallel",
           "8: --sequence 1001 is no multiple of it, which --sequence-parallel splits\n"},
          {"--experts 8 --tensor-parallel 2",
           "--experts 8: of layers with experts devices share the rows: with --tensor-parallel 2 "
           "goes "
           "--sequence-parallel"},
          {"--experts 8 --expert-parallel 2 --tensor-parallel 4 --sequence-parallel",
           "--expert-parallel 2: is no multiple of --tensor-parallel 4, of whose devices each has "
           "experts "
           "of its own"},
          {"--experts 8 --experts-per-token 9", "--experts-per-token 9: there are --experts 8"},
          {"--experts 8 --expert-parallel 3",
           "--expert-parallel 3: --experts 8 is no multiple of it"},
          {"--shared-experts 1", "--shared-experts 1: has a meaning only with --experts"},
          {"--expert-parallel 2", "--expert-parallel 2: has a meaning only with --experts"},
          {"--experts-per-token 1", "--experts-per-token 1: has a meaning only with --experts"},
          {"--optimizer-shards 0", "--optimizer-shards"},
          {"--optimizer-shards 6 --experts 8 --expert-parallel 4",
           "--optimizer-shards 6: is no multiple of --expert-parallel 4"},
          {"--architecture bert", "--architecture: bert not in {gpt,llama}"},
          {"--attention flash", "--attention: flash not in {plain,fused}"},
          {"--attention fused --recompute attention",
           "--recompute attention: --attention fused keeps none of that"},
      });
}

}  // namespace
