// Plans as they are made, run with all of their buffers really used and NaN over what is released:
// nobody reads NaN, and ThreadSanitizer sees no release that others may overlap with.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stretto/executor/engine.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/memory/windows.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/dualpipe.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/seq_1f1b.hpp"
#include "stretto/schedule/zbv.hpp"

using namespace stretto;

namespace {

//! Reads and writes every byte that it is given, and none behind.
struct toucher final : executor::stage {
  void run(const executor::context& at) override {
    for (const executor::bound_buffer& each : at.buffers) {
      const std::span<float> values{reinterpret_cast<float*>(each.data.data()),
                                    each.data.size() / sizeof(float)};
      if (each.mode != access::write &&
          std::ranges::any_of(values, [](float value) { return std::isnan(value); }))
        ++spoilt;
      if (each.mode != access::read) std::ranges::fill(values, 1.0F);
      ++touched;
    }
  }
  std::atomic<int> spoilt{0};
  std::atomic<int> touched{0};
};

template <class Schedule>
void run(const Schedule& schedule, const shape& sizes, const memory::windows& put = {}) {
  const placement where = stretto::place(schedule.placed(), sizes);
  const job_table costs(sizes.ranks, where.chunks);
  overlap::for_each([&](const auto& overlap) {
    for (const auto& [capacity, lead] : {std::pair{0, -1}, {2, 0}, {0, 1}}) {
      const std::int64_t kept = 300 * capacity;
      CAPTURE(std::string(Schedule::name));
      CAPTURE(std::string(overlap.name));
      CAPTURE(capacity);
      CAPTURE(lead);
      plan_request request;
      request.stages = {{.output = 200,
                         .stash = 1000,
                         .gradients = 300,
                         .kept = kept,
                         .passing = lead < 0 ? -1 : 100 * capacity}};
      request.recompute = put.recompute;
      request.offload = put.offload;
      const overlap::with_receive_lead<std::remove_cvref_t<decltype(overlap)>> led{overlap, lead};
      const planned made(schedule, sizes, costs.view(), led, request);
      REQUIRE(made.answer() == verdict{});
      std::vector<toucher> stages(static_cast<std::size_t>(sizes.ranks));
      std::vector<executor::stage*> pointers;
      for (toucher& each : stages) pointers.push_back(&each);
      executor::options with;
      with.poison = with.checked = true;
      with.capacity = capacity;
      with.delay = {7, std::chrono::microseconds(20)};
      executor::engine engine(made.plans(), pointers, std::move(with));
      for (std::size_t rank = 0; rank < stages.size(); ++rank)
        for (const std::span<std::byte> memory : {engine.arena(rank), engine.host_memory(rank)})
          std::ranges::fill(memory, std::byte{executor::poison_byte});
      for (int step = 0; step < 3; ++step) engine.step();
      for (const toucher& each : stages) {
        CHECK(each.spoilt == 0);
        CHECK(each.touched > 0);
      }
    }
  });
}

}  // namespace

TEST_CASE("looped, sliced, wave and bidirectional plans release nothing that is still in use") {
  run(schedule::one_f_one_b{}, {.ranks = 4, .microbatches = 8});
  run(schedule::interleaved{}, {.ranks = 3, .microbatches = 6, .chunks = 2});
  run(schedule::seq_1f1b{}, {.ranks = 3, .microbatches = 4, .slices = 3});
  run(schedule::zbv{}, {.ranks = 4, .microbatches = 8, .chunks = 2});
  run(schedule::dualpipe{}, {.ranks = 4, .microbatches = 8});
}

TEST_CASE("what is on the host is not given up before it is back") {
  for (const memory::offload_window& window :
       {memory::offload_all, memory::offload_window{{1, 1}, 0, 0},
        memory::offload_window{{3, 2}, 2, 2}}) {
    run(schedule::one_f_one_b{}, {.ranks = 4, .microbatches = 8}, {{}, window});
    run(schedule::interleaved{}, {.ranks = 3, .microbatches = 6, .chunks = 2}, {{}, window});
    run(schedule::zbv{}, {.ranks = 4, .microbatches = 8, .chunks = 2}, {{}, window});
    run(schedule::dualpipe{}, {.ranks = 4, .microbatches = 8}, {{}, window});
  }
}

TEST_CASE("a forward that runs again leaves nothing, however much it had, and its recompute all") {
  for (const memory::recompute_window& window :
       {memory::recompute_all, memory::recompute_window{3, 2}}) {
    run(schedule::one_f_one_b{}, {.ranks = 4, .microbatches = 8}, {window, {}});
    run(schedule::zbv{}, {.ranks = 4, .microbatches = 8, .chunks = 2}, {window, {}});
    run(schedule::dualpipe{}, {.ranks = 4, .microbatches = 8}, {window, {}});
  }
  run(schedule::zbv{}, {.ranks = 4, .microbatches = 8, .chunks = 2},
      {{1, 1, 0, 0}, {{1, 1, 1, 1}, 0, 0}});
}
