// How far a simulated GPU's streams are, by the events behind their instructions.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "../../executor/cuda/src/progress_events.hpp"
#include "driver/simulated_gpu.hpp"
#include "executor/plan_builder.hpp"
#include "stretto/executor/cuda/handles.hpp"

using namespace stretto;
using namespace stretto::test;

TEST_CASE("wherever a stream stands is found at once, in few questions") {
  constexpr int jobs = 40;
  plan_builder plan(0, 1, {"compute"});
  for (int microbatch = 0; microbatch < jobs; ++microbatch)
    plan.run({0, microbatch, 0, job_kind::forward}, 0);
  plan.end();
  const plan_view view = plan.view();
  for (int done = 0; done <= jobs; ++done) {
    CAPTURE(done);
    gpu::reset(static_cast<std::uint64_t>(done));
    std::vector<executor::cuda::owned_event> events;
    for (std::int32_t made = 0; made < view.events; ++made)
      events.push_back(executor::cuda::make_event());
    executor::cuda::progress_events progress(view, events);
    const executor::cuda::owned_stream stream = executor::cuda::make_stream(0);
    bool over = false;
    for (int number = 0; number < jobs; ++number) {
      if (number == done) gpu::enqueue_until(stream.get(), "stuck", [&over] { return over; });
      const executor::mark what{number, 0, number, nullptr};
      progress.begin(0, what);
      progress.end(0, stream.get(), what);
      if (const int event = view.instructions[static_cast<std::size_t>(number)].record;
          event >= 0) {
        executor::cuda::check(
            cudaEventRecord(events[static_cast<std::size_t>(event)].get(), stream.get()),
            "cudaEventRecord");
        progress.recorded(event, 0);
      }
    }
    for (int look = 0; look < 500; ++look) static_cast<void>(cudaStreamQuery(stream.get()));
    static_cast<void>(cudaGetLastError());
    const auto first = static_cast<std::ptrdiff_t>(gpu::calls().size());
    progress.look();
    CHECK(progress.of(0).finished == done - 1);
    CHECK(progress.first_missing() == done);
    const auto questions = std::count_if(
        gpu::calls().begin() + first, gpu::calls().end(),
        [](const gpu::call& each) { return std::string_view(each.name) == "cudaEventQuery"; });
    CHECK(questions <= 2 * std::bit_width(static_cast<unsigned>(done)) + 1);
    over = true;
    for (int look = 0; look < 500; ++look) static_cast<void>(cudaStreamQuery(stream.get()));
  }
}
