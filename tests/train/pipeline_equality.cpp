// The pipelined trainer equals the unpipelined one to the bit: losses, norms, gradients, updated
// parameters, evaluations; whatever the schedule, the shape, the streams and the transport.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "pipeline/order_file.hpp"
#include "pipeline_support.hpp"
#include "support/run_program.hpp"
#include "support/schedules.hpp"

using namespace train;
using namespace pipeline_test;

namespace {

void check_equal(const config& model, const pipeline_settings& settings, int steps = 3) {
  CAPTURE(name(settings, model));
  CHECK(compare(model, settings, steps) == "");
}

//! Settings of the n-th case: streams, transport, leads, recomputes, copies to the host and ties
//! alternate, so that all combinations occur with small and large shapes.
pipeline_settings vary(pipeline_settings settings, int number) {
  settings.overlap = number % 2 == 0 ? "separate" : "serial";
  settings.transport_capacity = number / 2 % 3;
  settings.receive_lead = number % 5 - 2 < -1 ? -1 : number % 5 - 2;
  constexpr stretto::memory::recompute_window windows[] = {{}, {1, 1}, {2, 1}, {3, 2, 1, 9}};
  constexpr stretto::memory::offload_window copies[] = {
      {{1, 1}}, {{1, 1}, 0, 0}, {{3, 2}, 0, 2}, {{1, 1, 0, 9}, 2, 1}};
  if (settings.slices > 1) return settings;
  if (number % 7 < 3) settings.recompute = windows[number % 4];
  else settings.offload = copies[number % 4];
  return settings;
}

}  // namespace

TEST_CASE("every schedule that there is, on 2 to 4 ranks, 1 to 7 micro-batches, 1 to 3 chunks") {
  int number = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    if (schedule.forward_only) continue;
    const int before = number;
    for (int ranks = 2; ranks <= 4; ++ranks)
      for (int chunks = 1; chunks <= 3; ++chunks)
        for (const int microbatches : {1, 2, 5, 7}) {
          if (!schedule.supports({.ranks = ranks, .microbatches = microbatches, .chunks = chunks}))
            continue;
          ++number;
          const int layers = std::max(3, ranks * chunks + number % 3);
          const pipeline_settings settings{.schedule = std::string(schedule.name),
                                           .ranks = ranks,
                                           .microbatches = microbatches,
                                           .chunks = chunks};
          check_equal(tiny(layers, number % 5 < 3), vary(settings, number), 2);
        }
    CAPTURE(std::string(schedule.name));
    CHECK(number >= before + 8);  // an even number of ranks, one number of chunks
  }
  CHECK(number > 150);
}

TEST_CASE("the first schedules on 1 to 4 ranks, 1 to 3 chunks, 1 to 7 micro-batches") {
  int number = 0;
  for (const char* schedule : {"gpipe", "1f1b", "interleaved"})
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (int chunks = 1; chunks <= (std::string(schedule) == "1f1b" ? 1 : 3); ++chunks)
        for (int microbatches = 1; microbatches <= 7; ++microbatches, ++number) {
          // A layer for each stage and up to two more, so that stages are uneven, too.
          const int layers = std::max(3, ranks * chunks + number % 3);
          pipeline_settings settings{
              .schedule = schedule, .ranks = ranks, .microbatches = microbatches, .chunks = chunks};
          check_equal(tiny(layers, number % 5 < 3), vary(settings, number), 2);
        }
  CHECK(number == 2 * 4 * 3 * 7 + 4 * 7);
}

TEST_CASE("slices: equal to the bit with a reference that runs slice by slice, too") {
  int number = 0;
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const int slices : {2, 4, 8})
      for (const int microbatches : {1, 2, 5}) {
        ++number;
        const pipeline_settings settings{
            .schedule = "seq_1f1b", .ranks = ranks, .microbatches = microbatches, .slices = slices};
        config model = tiny(std::max(3, ranks + number % 3), number % 5 < 3);
        model.microbatch = 1 + number % 2;
        check_equal(model, vary(settings, number), 2);
      }
  CHECK(number == 36);
  for (const char* schedule :
       {"gpipe", "looped_bfs", "interleaved", "paired_1f1b", "zb_h1", "zb_h2", "interleaved_zb"})
    for (int ranks = 2; ranks <= 3; ++ranks)
      for (const int slices : {2, 4})
        for (const int microbatches : {1, 3}) {
          ++number;
          const bool alone = schedule[0] == 'z';
          const pipeline_settings settings{.schedule = schedule,
                                           .ranks = ranks,
                                           .microbatches = microbatches,
                                           .slices = slices,
                                           .chunks = alone ? 1 : 2};
          check_equal(tiny(2 * ranks, number % 2 == 0), vary(settings, number), 2);
        }
  CHECK(number == 36 + 56);
}

TEST_CASE("slices whose weights' gradients come in any order: equal to the bit, too") {
  // Where a slice's backward is whole again, it stands before what is left of a later one's.
  for (const char* schedule : {"zb_h1", "zb_h2", "interleaved_zb"})
    for (int ranks = 2; ranks <= 3; ++ranks)
      for (const int microbatches : {1, 3}) {
        pipeline_settings settings{.schedule = schedule,
                                   .ranks = ranks,
                                   .microbatches = microbatches,
                                   .slices = 2,
                                   .chunks = 1};
        settings.options.merge = stretto::schedule::merge_kind::shortest;
        check_equal(tiny(2 * ranks, true), settings, 2);
      }
  // Nor do those of one micro-batch stand together in an order of the caller's own.
  const test_support::temporary file("slices.csv");
  file.write("0F0,0F0.1,0F1,0F1.1,0B1.1,0B0.1,0B1,0B0\n"
             "1F0,1F1,1F0.1,1F1.1,1I0.1,1I1.1,1W1.1,1B1,1I0,1W0,1W0.1\n");
  const order_file from = read_order(file.path());
  check_equal(tiny(4, true),
              {.schedule = "slices",
               .order = from.order,
               .ranks = 2,
               .microbatches = 2,
               .slices = 2,
               .chunks = 1},
              2);
}

TEST_CASE("slices of different lengths: equal to the bit, too") {
  int number = 0;
  for (const char* schedule :
       {"seq_1f1b", "gpipe", "looped_bfs", "interleaved", "paired_1f1b", "zb_h1", "interleaved_zb"})
    for (const char* lengths : {"balanced", "5,1,2", "1,6,1", "7,1", "1,2,2,3"}) {
      ++number;
      const int slices = static_cast<int>(std::ranges::count(std::string(lengths), ',')) + 1;
      const bool alone = schedule[0] == 's' || schedule[0] == 'z';
      const pipeline_settings settings{.schedule = schedule,
                                       .ranks = 2 + number % 2,
                                       .microbatches = 1 + number % 3,
                                       .slices = slices == 1 ? 3 : slices,
                                       .slice_lengths = lengths,
                                       .chunks = alone ? 1 : 2};
      config model = tiny(6, number % 2 == 0);
      model.microbatch = 1 + number % 2;
      check_equal(model, vary(settings, number), 2);
    }
  CHECK(number == 35);
  const pipeline balanced(tiny(6, true), text(),
                          {.schedule = "seq_1f1b",
                           .ranks = 2,
                           .slices = 3,
                           .slice_lengths = "balanced:2"},
                          learning());
  CHECK(balanced.model().slice_ends == std::vector<int>{4, 6, 8});
  const pipeline equal(
      tiny(6, true), text(),
      {.schedule = "seq_1f1b", .ranks = 2, .slices = 4, .slice_lengths = "2,2,2,2"}, learning());
  CHECK(equal.model().slice_ends.empty());
}

TEST_CASE("slices: as a pipeline of whole sequences learns, to rounding") {
  pipeline whole(tiny(6, true), text(), {.schedule = "1f1b", .ranks = 3, .chunks = 1}, learning());
  const double before = whole.evaluate();
  std::vector<step_result> expected;
  for (int step = 0; step < 10; ++step) expected.push_back(whole.step());
  for (const int slices : {2, 4, 8}) {
    CAPTURE(slices);
    pipeline sliced(tiny(6, true), text(), {.schedule = "seq_1f1b", .ranks = 3, .slices = slices},
                    learning());
    CHECK(sliced.evaluate() == doctest::Approx(before).epsilon(1e-6));
    // Ten updates of single precision carry the rounding on.
    for (const step_result& of : expected) {
      const step_result found = sliced.step();
      CHECK(found.loss == doctest::Approx(of.loss).epsilon(1e-5));
      CHECK(found.gradient_norm == doctest::Approx(of.gradient_norm).epsilon(1e-4));
    }
    CHECK(sliced.evaluate() == doctest::Approx(whole.evaluate()).epsilon(1e-5));
  }
}

TEST_CASE("groups of any size, with a remainder") {
  int number = 0;
  for (int ranks = 2; ranks <= 3; ++ranks)
    for (int microbatches = ranks + 1; microbatches <= 7; microbatches += 2)
      for (int group = ranks; group <= microbatches; ++group, ++number) {
        const pipeline_settings settings{.schedule = "interleaved",
                                         .ranks = ranks,
                                         .microbatches = microbatches,
                                         .chunks = 2,
                                         .group = group};
        check_equal(tiny(2 * ranks, number % 2 == 0), vary(settings, number), 2);
      }
  CHECK(number > 15);
}

TEST_CASE("uneven layers: as the ranks are told") {
  for (const bool tied : {false, true}) {
    check_equal(tiny(10, tied), {.ranks = 4, .chunks = 2, .layers_per_rank = {3, 2, 2, 3}});
    check_equal(tiny(9, tied), {.ranks = 3, .chunks = 2, .layers_per_rank = {2, 5, 2}});
    check_equal(tiny(7, tied),
                {.schedule = "1f1b", .ranks = 3, .chunks = 1, .layers_per_rank = {1, 5, 1}});
    check_equal(tiny(8, tied), {.ranks = 2, .chunks = 3, .layers_per_rank = {5, 3}});
  }
}

TEST_CASE("the table on one rank and on two, in one stage and in two") {
  for (const int chunks : {1, 2, 3}) {
    check_equal(tiny(6, true), {.ranks = 1, .chunks = chunks}, 4);
    check_equal(tiny(6, true), {.ranks = 2, .chunks = chunks}, 4);
  }
}

TEST_CASE("random delays change nothing") {
  for (const char* overlap : {"serial", "separate"})
    for (const int capacity : {0, 2})
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        pipeline_settings settings{.ranks = 3, .microbatches = 4, .chunks = 2, .overlap = overlap};
        settings.transport_capacity = capacity;
        settings.delay = {seed, std::chrono::microseconds(300)};
        check_equal(tiny(7, true), settings, 2);
      }
}

TEST_CASE("sizes that are no multiple of a vector, several sequences in a micro-batch") {
  config model = tiny(6, true);
  model.width = 14;
  model.context = 8;
  model.microbatch = 3;
  model.expansion = 3;
  check_equal(model, {.ranks = 2, .microbatches = 3, .chunks = 2});
}

TEST_CASE("bf16: equal to the bit with a reference that has it, too, wherever stages begin") {
  std::vector<pipeline_settings> all = {
      {.schedule = "interleaved", .ranks = 2, .microbatches = 4, .chunks = 2},
      {.schedule = "zbv_greedy", .ranks = 3, .microbatches = 5},
      {.schedule = "1f1b", .ranks = 4, .microbatches = 5},
      {.schedule = "dualpipe", .ranks = 2, .microbatches = 4},
      {.schedule = "bitpipe", .ranks = 4, .microbatches = 4, .chunks = 1},
      {.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 2},
      {.schedule = "1f1b", .ranks = 2, .microbatches = 2, .data_parallel = 2}};
  all[0].recompute = {1, 1};
  all[2].offload = stretto::memory::offload_all;
  for (pipeline_settings& settings : all) {
    settings.products = precision::bf16;
    check_equal(tiny(8, settings.ranks == 2), settings);
  }
  // Messages of 7 numbers, where the last float holds one.
  config odd = tiny(6, true);
  odd.width = 7;
  odd.heads = 1;
  check_equal(odd, {.schedule = "seq_1f1b",
                    .ranks = 2,
                    .microbatches = 2,
                    .slices = 8,
                    .products = precision::bf16});
}

TEST_CASE("bf16 learns as fp32, but for rounding") {
  pipeline_settings settings{.schedule = "1f1b", .ranks = 3, .microbatches = 4};
  pipeline exact(tiny(6, true), text(), settings, learning());
  settings.products = precision::bf16;
  pipeline rounding(tiny(6, true), text(), settings, learning());
  bool same = true;
  for (int step = 0; step < 10; ++step) {
    const step_result expected = exact.step(), found = rounding.step();
    same = same && found.loss == expected.loss;
    CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-3));
    CHECK(found.gradient_norm == doctest::Approx(expected.gradient_norm).epsilon(1e-2));
  }
  CHECK(!same);
  CHECK(rounding.evaluate() == doctest::Approx(exact.evaluate()).epsilon(1e-3));
}

TEST_CASE("a difference would be found, and named") {
  const config model = tiny(6, true);
  const pipeline_settings settings{.ranks = 2, .microbatches = 3, .chunks = 2};
  const auto after = [&](auto&& change) {
    pipeline pipelined(model, text(), settings, learning());
    reference whole(model, learning().seed);
    REQUIRE(compare(pipelined, whole, 1) == "");
    change(pipelined, whole);
    return compare(pipelined, whole, 1);
  };
  // The last bit of one parameter on either side is enough.
  CHECK(after([](pipeline& pipelined, reference&) {
          float& value = pipelined.parameters(2)[0];
          value = std::nextafter(value, 2.0f);
        }) != "");
  CHECK(after([](pipeline&, reference& whole) {
          float& value = whole.stage().parameters(5)[0];
          value = std::nextafter(value, 2.0f);
        }) != "");

  step_result result{.loss = 1, .gradient_norm = 2, .clip_factor = 0.5};
  pipeline pipelined(model, text(), settings, learning());
  reference whole(model, learning().seed);
  CHECK(first_difference(pipelined, result, &whole, result) == "");
  step_result wrong = result;
  wrong.loss = 1.25;
  CHECK(first_difference(pipelined, wrong, &whole, result) ==
        "loss is 1.25, the reference's is 1");
  wrong = result;
  wrong.clip_factor = 1;
  CHECK(first_difference(pipelined, wrong, &whole, result).starts_with("clipping factor"));
  whole.stage().parameters(3)[1] = 7;
  CHECK(first_difference(pipelined, result, &whole, result) ==
        "the parameters of layer 3 differ from the reference's");
  whole.stage().gradients(1)[0] = 7;
  CHECK(first_difference(pipelined, result, &whole, result) ==
        "the gradients of layer 1 differ from the reference's");
}

TEST_CASE("clipping is on in these tests, and training makes progress") {
  pipeline pipelined(tiny(6, true), text(), {.ranks = 2, .microbatches = 3, .chunks = 2},
                     learning());
  const double before = pipelined.evaluate();
  CHECK(pipelined.evaluate() == before);
  step_result result;
  for (int step = 0; step < 10; ++step) {
    result = pipelined.step();
    CHECK(result.clip_factor < 1);
    CHECK(result.clip_factor * result.gradient_norm == doctest::Approx(0.5));
  }
  CHECK(pipelined.evaluate() < before);
}
