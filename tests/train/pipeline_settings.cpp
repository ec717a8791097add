// Settings that make no pipeline are refused by name, value and rule; layers go where they should;
// costs are the model's products.
#include <algorithm>

#include "model/layer.hpp"
#include "pipeline/plans.hpp"
#include "pipeline_support.hpp"
#include "stretto/plan/report.hpp"

using namespace train;
using namespace pipeline_test;

namespace {

void refused(const pipeline_settings& settings, const std::string& message, int layers = 10) {
  CHECK_THROWS_WITH_AS(pipeline(tiny(layers, true), text(), settings, learning()), message.c_str(),
                       bad_setting);
}

std::vector<int> dealt(const config& model, const pipeline_settings& settings) {
  const pipeline pipelined(model, text(), settings, learning());
  std::vector<int> counts;
  for (const auto& each : pipelined.layers()) counts.push_back(each.count);
  return counts;
}

}  // namespace

TEST_CASE("what makes no pipeline is refused by name, value and rule") {
  refused({.schedule = "zigzag"},
          "--schedule zigzag: no such schedule trains; there are " + training_schedules());
  refused({.schedule = "inference"},
          "--schedule inference: no such schedule trains; there are " + training_schedules());
  refused({.ranks = 0}, "--ranks 0: there must be at least one rank");
  refused({.microbatches = 0}, "--microbatches 0: there must be at least one micro-batch");
  refused({.chunks = -1}, "--chunks -1: interleaved: there must be at least one chunk per rank");
  refused({.schedule = "1f1b", .chunks = 2},
          "--chunks 2: 1f1b: this schedule has one chunk per rank");
  refused({.schedule = "hanayo", .slices = 2},
          "--slices 2: hanayo: this schedule does not slice micro-batches");
  refused({.schedule = "seq_1f1b", .slices = 0},
          "--slices 0: seq_1f1b: there must be at least one slice per micro-batch");
  refused({.schedule = "seq_1f1b", .slices = 3},
          "--slices 3: the context, 8, is no multiple of it, and --slice-lengths is equal");
  refused({.schedule = "seq_1f1b", .slices = 16},
          "--slices 16: the context, 8, is no multiple of it, and --slice-lengths is equal");
  refused({.schedule = "seq_1f1b", .slices = 3, .slice_lengths = "4,3"},
          "--slice-lengths 4,3: these are 2 slices of 7 tokens, and wanted are 3 slices of a "
          "sequence of 8 tokens");
  refused({.schedule = "seq_1f1b", .slices = 9, .slice_lengths = "balanced"},
          "--slice-lengths balanced: a sequence of 8 tokens has fewer multiples of 1 than 9 "
          "slices");
  refused({.schedule = "1f1b", .slice_lengths = "balanced"},
          "--slice-lengths balanced: sequences are whole: there is one slice");
  refused({.schedule = "seq_1f1b", .microbatches = 200'000, .slices = 4},
          "--microbatches 200000: with 4 ranks of 1 chunks and 4 slices, more than 1000000 jobs of "
          "a kind in a step");
  refused({.schedule = "seq_1f1b", .slices = 2'000},
          "--slices 2000: with so many micro-batches, jobs read more than 10000000 earlier slices "
          "in a step");
  refused({.group = 3},
          "--group 3: a group of fewer micro-batches, or slices of them, than ranks starves the "
          "pipeline");
  refused({.group = 9}, "--group 9: a group cannot exceed the micro-batches");
  refused({.schedule = "gpipe", .group = 4}, "--group 4: the schedule gpipe has no such option");
  refused({.overlap = "sometimes"},
          "--overlap sometimes: no such policy; there are serial, "
          "separate, typed");
  refused({.microbatches = 2'000'000'000},
          "--microbatches 2000000000: with 4 ranks of 2 chunks, more than 1000000 jobs of a kind "
          "in a step");
  refused({.evaluation_microbatches = 0}, "--evaluation-microbatches 0: it must be at least 1");
  refused({.ranks = 6},
          "--layers 8: with embedding and head that makes 10 layers, 12 stages need one each");
  refused({.layers_per_rank = {5, 5}},
          "--layers-per-rank 5,5: one number for each of 4 ranks is needed");
  refused({.layers_per_rank = {3, 3, 3, 3}},
          "--layers-per-rank 3,3,3,3: they sum to 12, but --layers 8, embedding and head make 10");
  refused({.layers_per_rank = {4, 1, 2, 3}},
          "--layers-per-rank 4,1,2,3: misassigned on rank 1: a stage would hold no layer (layers: "
          "1, at least 2)");
  CHECK(training_schedules().find("inference") == std::string::npos);
  CHECK(training_schedules("remainder") == "kfkb, paired_1f1b, interleaved");
  CHECK(training_schedules("backwards") == "paired_1f1b, interleaved, interleaved_zb");
  CHECK(training_schedules("objective") == "zb_auto, zbv_greedy, v_auto");

  learning_settings wrong = learning();
  wrong.rate.peak = -1;
  CHECK_THROWS_WITH_AS(pipeline(tiny(10, true), text(), {}, wrong), doctest::Contains("peak"),
                       std::invalid_argument);
}

TEST_CASE("two chunks where the schedule serves them, else one") {
  CHECK(training_shape({}).chunks == 2);
  CHECK(training_shape({.schedule = "gpipe"}).chunks == 2);
  CHECK(training_shape({.schedule = "1f1b"}).chunks == 1);
}

TEST_CASE("layers as the tool's text deals them, and what it says wrong") {
  CHECK(dealt(tiny(10, true), {.ranks = 2, .chunks = 2, .layers = "6,4"}) ==
        std::vector<int>{3, 2, 3, 2});
  CHECK(dealt(tiny(10, true), {.ranks = 2, .chunks = 2, .layers = "Et*3|tt|tt|tL"}) ==
        std::vector<int>{4, 2, 2, 2});
  CHECK(dealt(tiny(10, true), {.ranks = 2, .chunks = 2, .layers = "table:1,5,3,1"}) ==
        std::vector<int>{1, 5, 3, 1});
  CHECK(dealt(tiny(10, true),
              {.ranks = 2, .chunks = 2, .layers = "rank_list:0,0,1,1,1,0,1,1,1,1"}) ==
        std::vector<int>{2, 3, 1, 4});
  int sum = 0;
  for (const int count : dealt(tiny(10, true), {.ranks = 2, .chunks = 2, .layers = "balanced:10"}))
    sum += count;
  CHECK(sum == 10);
  refused({.layers = "balanced:12"},
          "--layers balanced:12: they are 12, but embedding, blocks and head make 10");
  refused({.ranks = 2, .chunks = 2, .layers = "Et*4||tt|ttL"},
          "--layers Et*4||tt|ttL: each of the trainer's stages needs a layer");
  refused({.ranks = 2, .chunks = 2, .layers = "Et*4|m|mm|mL"},
          "--layers Et*4|m|mm|mL: the trainer's model is E, then t, then L");
  refused(
      {.ranks = 2, .chunks = 2, .layers = "9,1"},
      "--layers 9,1: misassigned on rank 1: a stage would hold no layer (layers: 1, at least 2)");
}

TEST_CASE("layers: even, or as told, round robin over the chunks") {
  CHECK(dealt(tiny(10, true), {}) == std::vector<int>{2, 2, 1, 1, 1, 1, 1, 1});
  CHECK(dealt(tiny(10, true), {.layers_per_rank = {3, 2, 2, 3}}) ==
        std::vector<int>{2, 1, 1, 2, 1, 1, 1, 1});
  CHECK(dealt(tiny(9, true), {.ranks = 2, .chunks = 3, .layers_per_rank = {4, 5}}) ==
        std::vector<int>{2, 2, 1, 2, 1, 1});
}

TEST_CASE("parameters: as many as the unpipelined model has, the tied table once") {
  for (const bool tied : {false, true}) {
    const config model = tiny(10, tied);
    std::size_t sum = 0;
    for (int layer = 0; layer < model.layer_count(); ++layer) sum += parameter_count(model, layer);
    if (tied) sum -= config::size(model.vocabulary) * config::size(model.width);
    CHECK(pipeline(model, text(), {}, learning()).parameter_count() == sum);
  }
}

TEST_CASE("predicted costs are the products that the stages really do") {
  const config model = tiny(10, true);
  for (const auto& per_rank : {std::vector<std::int32_t>{}, {3, 2, 2, 3}}) {
    pipeline pipelined(model, text(), {.microbatches = 3, .layers_per_rank = per_rank}, learning());
    for (int number = 0; number < pipelined.where().stages(); ++number) {
      CAPTURE(number);
      const auto& range = pipelined.layers()[config::size(number)];
      stage alone(model, range.first, range.first + range.count, 1);
      aligned_array<float> stash(alone.stash_scalars());
      aligned_array<float> in(model.activation_scalars()), out(model.activation_scalars());
      const std::vector<std::uint8_t> bytes(model.rows(), 1);
      alone.forward(bytes, bytes, in.span(), out.span(), stash.span(), 1);
      alone.backward(out.span(), in.span(), stash.span());

      stretto::job_table table = pipelined.predicted_costs();
      const auto cost = [&](stretto::job_kind kind) {
        return static_cast<std::uint64_t>(table
                                              .at(pipelined.where().rank_of(number, 0),
                                                  pipelined.where().chunk_of(number, 0), kind)
                                              .time);
      };
      using stretto::job_kind;
      CHECK(cost(job_kind::forward) == alone.products().forward);
      CHECK(cost(job_kind::backward_input) == alone.products().backward_input);
      CHECK(cost(job_kind::backward_weight) == alone.products().backward_weight);
      CHECK(cost(job_kind::backward) ==
            alone.products().backward_input + alone.products().backward_weight);
    }
  }
}

TEST_CASE("predicted costs of slices: their sum over a micro-batch is what a stage really does") {
  const config whole = tiny(4, true);
  for (const int slices : {1, 2, 3, 4, 8}) {
    CAPTURE(slices);
    // Of different lengths where eight tokens are not cut in as many.
    const pipeline pipelined(
        whole, text(),
        {.schedule = "seq_1f1b",
         .ranks = 2,
         .slices = slices,
         .slice_lengths = 8 % slices == 0 ? "equal" : "3,1,4"},
        learning());
    reference alone(pipelined.model(), 1);
    alone.step(1, 1, 1e-3, 1, {}, [](int, auto tokens, auto targets) {
      std::ranges::fill(tokens, std::uint8_t{1});
      std::ranges::fill(targets, std::uint8_t{2});
    });
    stretto::job_table table = pipelined.predicted_costs();
    const auto sum = [&](stretto::job_kind kind) {
      std::int64_t all = 0;
      for (int slice = 0; slice < slices; ++slice)
        all += table.at(slice, 0, 0, kind).time + table.at(slice, 1, 0, kind).time;
      return static_cast<std::uint64_t>(all);
    };
    using stretto::job_kind;
    CHECK(sum(job_kind::forward) == alone.stage().products().forward);
    CHECK(sum(job_kind::backward_input) == alone.stage().products().backward_input);
    CHECK(sum(job_kind::backward_weight) == alone.stage().products().backward_weight);
  }
}

TEST_CASE(
    "on a known machine, costs are what the ops of a job take on it, and messages take time") {
  // One multiply-add in two nanoseconds; an op without any takes one.
  constexpr std::int64_t quick = std::int64_t{1} << 40;
  const stretto::machine abacus{.name = "abacus", .flops = 1, .memory = quick, .link = quick,
                                .latency = 7};
  pipeline_settings settings{.schedule = "zb_h1", .ranks = 3, .microbatches = 4};
  const pipeline counted(tiny(4, true), text(), settings, learning());
  settings.machine = &abacus;
  const pipeline timed(tiny(4, true), text(), settings, learning());
  CHECK(timed.machine() == "abacus");
  CHECK(counted.machine().empty());
  settings.products = precision::bf16;
  CHECK(pipeline(tiny(4, true), text(), settings, learning()).machine() == "abacus, in fp32");
  CHECK(timed.predicted_costs().communication == 8);
  CHECK(timed.predicted_costs().serial_links);
  using stretto::job_kind;
  stretto::job_table products = counted.predicted_costs(), times = timed.predicted_costs();
  for (int rank = 0; rank < 3; ++rank)
    for (const job_kind kind : {job_kind::forward, job_kind::recompute, job_kind::backward,
                                job_kind::backward_input, job_kind::backward_weight}) {
      const std::int64_t beside =
          times.at(rank, 0, kind).time - 2 * products.at(rank, 0, kind).time;
      CHECK((rank < 2 ? beside > 0 : beside == 0));  // a head has nothing else
      CHECK(beside < 40);
    }
}

TEST_CASE("slices take times of their own, on a known machine and by the clock") {
  constexpr std::int64_t quick = std::int64_t{1} << 40;
  const stretto::machine abacus{.name = "abacus", .flops = 1, .memory = quick, .link = quick};
  const pipeline_settings settings{.schedule = "seq_1f1b",
                                   .ranks = 2,
                                   .microbatches = 3,
                                   .slices = 3,
                                   .slice_lengths = "3,3,2",
                                   .machine = &abacus};
  pipeline pipelined(tiny(6, true), text(), settings, learning());
  using stretto::job_kind;
  stretto::job_table foretold = pipelined.predicted_costs();
  const auto forward = [&](int slice) {
    return foretold.at(slice, 0, 0, job_kind::forward).time;
  };
  CHECK(forward(1) > forward(0));  // as long, and sees more
  CHECK(forward(2) < forward(1));
  CHECK(foretold.slices == 3);
  CHECK(foretold.classes == std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2});
  pipelined.step();
  stretto::job_table taken = pipelined.measured_costs();
  for (int slice = 0; slice < 3; ++slice)
    for (int rank = 0; rank < 2; ++rank)
      for (const job_kind kind : {job_kind::forward, job_kind::backward})
        CHECK(taken.at(slice, rank, 0, kind).time > 0);
  CHECK(taken.classes == foretold.classes);
  pipelined.forget_times();
  taken = pipelined.measured_costs();
  for (int slice = 0; slice < 3; ++slice)
    CHECK(taken.at(slice, 1, 0, job_kind::forward).time == 0);
}

TEST_CASE("measured costs: of every kind of job that the plan has, and of no other") {
  pipeline pipelined(tiny(8, true), text(), {.ranks = 3, .microbatches = 4, .chunks = 2},
                     learning());
  using stretto::job_kind;
  const auto times = [&](job_kind kind) {
    stretto::job_table table = pipelined.measured_costs();
    std::vector<std::int64_t> all;
    for (int rank = 0; rank < 3; ++rank)
      for (int chunk = 0; chunk < 2; ++chunk) all.push_back(table.at(rank, chunk, kind).time);
    return all;
  };
  pipelined.step();
  for (const auto time : times(job_kind::forward)) CHECK(time > 0);
  for (const auto time : times(job_kind::backward)) CHECK(time > 0);
  for (const auto time : times(job_kind::backward_weight)) CHECK(time == 0);
  pipelined.forget_times();
  for (const auto time : times(job_kind::forward)) CHECK(time == 0);
}
