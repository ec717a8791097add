// A training step takes no memory from the heap after the first one, on any thread.
#include "counted_malloc.hpp"
#include "pipeline_support.hpp"

using namespace train;
using namespace pipeline_test;

TEST_CASE("steps and evaluations do not allocate, on any thread") {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved", "seq_1f1b"})
    for (const char* overlap : {"serial", "separate"})
      for (const int capacity : {0, 2}) {
        pipeline_settings settings{
            .schedule = schedule, .ranks = 3, .microbatches = 4, .overlap = overlap};
        settings.transport_capacity = capacity;
        settings.trace_steps = 2;
        if (settings.schedule == "seq_1f1b") settings.slices = 4;
        if (settings.slices > 1 && capacity > 0) settings.slice_lengths = "3,1,2,2";
        if (capacity > 0) settings.products = precision::bf16;
        const config model = tiny(8, true);
        CAPTURE(name(settings, model));
        const long before_all = allocations.load();
        pipeline pipelined(model, text(), settings, learning());
        CHECK(allocations.load() - before_all > 100);  // the counter counts
        pipelined.step();
        pipelined.evaluate();

        const long before = allocations.load();
        for (int step = 0; step < 4; ++step) {
          pipelined.step();
          pipelined.evaluate();
        }
        CHECK(allocations.load() - before == 0);
      }
}

TEST_CASE("nor do several workers a rank, with jobs in ops") {
  for (const char* schedule : {"1f1b", "paired_1f1b", "zb_h1"}) {
    pipeline_settings settings{
        .schedule = schedule, .ranks = 2, .microbatches = 4, .tensor_parallel = 2};
    settings.trace_steps = 2;
    const config model = tiny(6, true);
    CAPTURE(name(settings, model));
    pipeline pipelined(model, text(), settings, learning());
    pipelined.step();
    pipelined.evaluate();
    const long before = allocations.load();
    for (int step = 0; step < 4; ++step) {
      pipelined.step();
      pipelined.evaluate();
    }
    CHECK(allocations.load() - before == 0);
  }
}
