// A stage that takes a buffer for larger than it is is told so: where it asks for it, and, when
// checked, where it has written behind it.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "failures.hpp"
#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/model/plan_names.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/seq_1f1b.hpp"
#include "stretto/schedule/zbv.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

//! Writes behind one of all the buffers that it is given in a step.
struct overrunner final : executor::stage {
  void run(const executor::context& at) override {
    for (const executor::bound_buffer& each : at.buffers) {
      if (given++ != which) continue;
      const auto line = static_cast<std::ptrdiff_t>((64 - each.data.size() % 64) % 64);
      *(each.data.data() + each.data.size() + (behind >= 0 ? behind : line + 63)) = std::byte{1};
      job = ", " + std::string(to_text(at.what).view()) + " (";
      what = "something was written behind the " + std::to_string(each.data.size()) +
             " bytes of its " + std::string(name(each.role)) + ",";
    }
  }
  int given = 0;
  int which = -1;
  std::ptrdiff_t behind = 0;  // -1: as far as is looked at, up to the next line but one
  std::string job{}, what{};  // as the error names them
};

template <class Schedule>
void overrun_each(const Schedule& schedule, const shape& sizes, std::ptrdiff_t behind) {
  const job_table costs(sizes.ranks, stretto::place(schedule.placed(), sizes).chunks);
  plan_request request;
  request.stages = {{.output = 100, .stash = 64, .gradients = 12, .kept = 30}};
  request.data_parallel = true;
  const planned made(schedule, sizes, costs.view(), overlap::separate{}, request);
  REQUIRE(made.answer() == verdict{});
  int buffers = 1;
  for (int which = -1; which < buffers; ++which) {
    CAPTURE(which);
    overrunner stage;
    stage.which = which;
    stage.behind = behind;
    struct idle final : executor::stage {
      void run(const executor::context&) override {}
    } others;
    std::vector<executor::stage*> stages(made.plans().size(), &others);
    stages.back() = &stage;
    executor::options with;
    with.checked = true;
    executor::engine engine(made.plans(), stages, std::move(with));
    if (which < 0) {
      engine.step();
      buffers = stage.given;
      CHECK(buffers > 10);
      continue;
    }
    const executor::execution_error error = stretto::test::error_of(engine);
    CHECK(error.kind() == executor::failure::stage);
    const std::string text = error.what();
    expect_part(text, "rank " + std::to_string(sizes.ranks - 1) + ", ");
    expect_part(text, stage.job);
    expect_part(text, stage.what);
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), executor::buffer_error);
  }
}

//! What a step of two ranks ends with whose first stage's forward makes this call.
template <class Call>
std::string said_of(const Call& call) {
  const planned made(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 2},
                     job_table(2, 1).view(), overlap::separate{});
  REQUIRE(made.answer() == verdict{});
  const auto nothing = [](const executor::context&) {};
  executor::callback_stage stage({.forward =
                                      [&](const executor::context& at) {
                                        if (at.what.stage == 0) call(at);
                                      },
                                  .backward = nothing,
                                  .optimizer = nothing});
  executor::stage* const stages[] = {&stage, &stage};
  executor::engine engine(made.plans(), stages);
  return stretto::test::error_of(engine).what();
}

}  // namespace

TEST_CASE("a stage that needs no more than there is gets what it needs") {
  alignas(64) std::byte memory[64]{};
  const executor::bound_buffer buffers[] = {{memory, buffer_role::stash}};
  executor::context at;
  at.buffers = buffers;
  CHECK(at.need<float>(buffer_role::stash, 16).size() == 16);
  CHECK(at.need<float>(buffer_role::stash, 3).size() == 3);
  CHECK(at.need<double>(buffer_role::stash, 8).data() == static_cast<void*>(memory));
  CHECK(at.need<float>(buffer_role::input, 0).empty());
  for (const std::int64_t count : {INT64_C(-1), INT64_C(17), INT64_MAX})
    CHECK_THROWS_AS(at.need<float>(buffer_role::stash, count), executor::buffer_error);
}

TEST_CASE("one that needs more is told what of, how much, and of which rank and job") {
  std::string text = said_of([](const executor::context& at) {
    static_cast<void>(at.need<double>(buffer_role::stash, 9));
  });
  expect_part(text, "rank 0, instruction 0, 0F0 ");
  expect_part(text, "it asks for 9 elements of 8 bytes of its stash, which has 64 bytes");
  text = said_of([](const executor::context& at) {
    static_cast<void>(at.need<float>(buffer_role::input, 1));
  });
  expect_part(text, "it asks for 1 elements of 4 bytes of its input, and is given none");
}

TEST_CASE("who writes behind any of its buffers, next to it or a line further, is named") {
  for (const std::ptrdiff_t behind : {0, 63, -1}) {
    overrun_each(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 3}, behind);
    overrun_each(schedule::seq_1f1b{}, {.ranks = 2, .microbatches = 2, .slices = 2}, behind);
    overrun_each(schedule::zbv{}, {.ranks = 2, .microbatches = 3, .chunks = 2}, behind);
  }
}
