// Data-parallel replicas: each has micro-batches of its own, and all go on with the same bits.
// Equal to an unpipelined reference that sums replica by replica, then joins these sums.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "pipeline/checkpoint.hpp"
#include "pipeline/footprint.hpp"
#include "pipeline_support.hpp"
#include "support/schedules.hpp"

using namespace train;
using namespace pipeline_test;

TEST_CASE("two and three replicas of every schedule: equal to the reference to the bit") {
  int number = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    if (schedule.forward_only) continue;
    const int before = number;
    for (const int ranks : {2, 4})
      for (const int chunks : {1, 2}) {
        const int microbatches = 4;
        if (!schedule.supports({.ranks = ranks, .microbatches = microbatches, .chunks = chunks}))
          continue;
        ++number;
        pipeline_settings settings{.schedule = std::string(schedule.name),
                                   .ranks = ranks,
                                   .microbatches = microbatches,
                                   .chunks = chunks,
                                   .overlap = number % 3 == 0 ? "serial" : "separate",
                                   .data_parallel = ranks == 2 ? 3 : 2};
        settings.transport_capacity = number % 2;
        settings.poison = number % 2 == 0;
        if (number % 4 == 0) settings.recompute = {2, 1};
        else if (number % 4 == 1) settings.offload = stretto::memory::offload_all;
        const config model = tiny(std::max(3, ranks * chunks + number % 3), number % 5 < 3);
        CAPTURE(name(settings, model));
        CHECK(compare(model, settings, 2) == "");
      }
    CAPTURE(std::string(schedule.name));
    CHECK(number > before);
  }
}

TEST_CASE("slices, uneven layers, jobs in ops, one rank, delays: the same") {
  const config model = tiny(7, true);
  for (pipeline_settings settings :
       {pipeline_settings{.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 2},
        pipeline_settings{.ranks = 3, .microbatches = 3, .layers_per_rank = {3, 2, 2}},
        pipeline_settings{.schedule = "zbv", .ranks = 2, .microbatches = 3, .ops = "look_ahead"},
        pipeline_settings{.schedule = "1f1b", .ranks = 1, .microbatches = 2},
        pipeline_settings{.schedule = "chimera", .ranks = 2, .microbatches = 1},
        pipeline_settings{.schedule = "zb_h1", .ranks = 2, .microbatches = 5}}) {
    settings.data_parallel = 2;
    settings.delay = {3, std::chrono::microseconds(30)};
    CAPTURE(name(settings, model));
    CHECK(compare(model, settings, 2) == "");
  }
}

TEST_CASE("replicas of two workers a rank: as one of them with all micro-batches, to rounding") {
  for (const char* schedule : {"1f1b", "dualpipe"}) {
    CAPTURE(schedule);
    pipeline_settings settings{
        .schedule = schedule, .ranks = 2, .microbatches = 8, .chunks = 1, .tensor_parallel = 2};
    pipeline one(tiny(4, true), text(), settings, learning());
    settings.data_parallel = 2;
    settings.microbatches = 4;
    pipeline two(tiny(4, true), text(), settings, learning());
    CHECK(two.workers() == 4);
    CHECK(two.plans().size() == 8);
    CHECK(two.evaluate() == one.evaluate());
    const step_result expected = one.step(), found = two.step();
    CHECK(found.loss == expected.loss);  // the same micro-batches, summed in their order
    CHECK(found.gradient_norm == doctest::Approx(expected.gradient_norm).epsilon(1e-6));
    for (int step = 0; step < 2; ++step) two.step();
    for (int layer = 0; layer < 4; ++layer)
      for (int replica = 0; replica < two.replicas(); ++replica)
        for (int copy = 0; copy < 2; ++copy)
          CHECK(two.whole(layer, layer_part::parameters, replica, copy) ==
                two.whole(layer, layer_part::parameters));
  }
}

TEST_CASE("a checkpoint does not tell how many replicas there were") {
  const auto file = std::filesystem::temp_directory_path() /
                    ("stretto_replicas_" + std::to_string(::getpid()));
  const config model = tiny(6, true);
  pipeline_settings settings{.ranks = 2, .microbatches = 2, .data_parallel = 2};
  pipeline two(model, text(), settings, learning());
  two.step();
  save_checkpoint(file, two);
  settings.data_parallel = 1;
  settings.microbatches = 4;
  pipeline one(model, text(), settings, learning());
  load_checkpoint(file, one);
  settings.data_parallel = 4;
  settings.microbatches = 1;
  pipeline four(model, text(), settings, learning());
  load_checkpoint(file, four);
  std::filesystem::remove(file);
  for (int layer = 0; layer < model.layer_count(); ++layer)
    for (const layer_part part : {layer_part::parameters, layer_part::mean, layer_part::square}) {
      CHECK(one.whole(layer, part) == two.whole(layer, part));
      for (int copy = 0; copy < 4; ++copy)
        CHECK(four.whole(layer, part, 0, copy) == two.whole(layer, part));
    }
  const double loss = two.step().loss;  // of the same micro-batches
  CHECK(one.step().loss == loss);
  CHECK(four.step().loss == loss);
}

TEST_CASE("no byte of an arena is touched that is not planned, and every one is") {
  pipeline_settings settings{.ranks = 2, .microbatches = 3, .chunks = 2, .data_parallel = 2};
  settings.poison = false;
  pipeline made(tiny(6, false), text(), settings, learning());
  for (std::size_t worker = 0; worker < made.plans().size(); ++worker)
    paint(made.engine().arena(worker));
  made.step();
  for (std::size_t worker = 0; worker < made.plans().size(); ++worker)
    CHECK(touched_bytes(made.engine().arena(worker)) == made.plans()[worker].arena_bytes);
  CHECK(made.memory(0).arena == 2 * made.plans()[0].arena_bytes);
}

TEST_CASE("replicas that make no sense are refused") {
  for (const auto& [replicas, words] :
       {std::pair{0, "--data-parallel 0: it must be at least 1"},
        std::pair{-3, "--data-parallel -3: it must be at least 1"},
        std::pair{17, "--data-parallel 17: replicas of 4 workers each are more than 64 workers"}}) {
    const pipeline_settings settings{.data_parallel = replicas};
    CHECK_THROWS_WITH_AS(pipeline(tiny(10, true), text(), settings, learning()), words,
                         bad_setting);
  }
}
