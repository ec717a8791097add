// What processes have to tell at the end may be more than an exchange takes.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "account.hpp"
#include "pipeline_support.hpp"
#include "process_support.hpp"
#include "stretto/executor/loopback_transport.hpp"

using namespace train;
using namespace pipeline_test;
namespace executor = stretto::executor;

namespace {

//! What is to be given at once, of the 64 MiB that a bootstrap takes.
constexpr std::size_t most = std::size_t{1} << 22U;

watched_bootstrap limited(std::unique_ptr<executor::bootstrap> by) {
  return {std::move(by), [](std::string_view mine, executor::time_point) {
            if (mine.size() > most) FAIL_CHECK(mine.size());
          }};
}

}  // namespace

TEST_CASE("times of more instructions than are told at once arrive, all of them and in order") {
  watched_bootstrap alone = limited(std::move(executor::make_local_bootstraps(1).front()));
  pipeline_settings settings{
      .schedule = "1f1b", .ranks = 2, .microbatches = 10000, .trace_steps = 2};
  settings.make_transport = [] { return executor::make_loopback_transport(); };
  settings.between = &alone;
  config model = tiny(4, false);
  model.width = model.heads = model.expansion = 1;
  pipeline made(model, text(), settings, learning());
  for (int step = 0; step < 2; ++step) made.step();
  const auto times = made.trace();
  REQUIRE(times.size() * sizeof times.front() > most);
  const account found = take_account(made, {});
  CHECK(found.machines == 1);
  CHECK(found.workers.size() == 2);
  CHECK(found.processes.size() == 1);
  const auto all_of = [](const executor::trace_record& of) {
    return std::tuple(of.step, of.rank, of.instruction, of.start, of.end);
  };
  CHECK(std::ranges::equal(found.trace, times, {}, all_of, all_of));
}

TEST_CASE("the process that leads gets what each has, however much, and the others nothing") {
  const std::vector<std::string> parts{"a few", std::string(2 * most, 'x') + "end", ""};
  auto between = executor::make_local_bootstraps(3);
  std::vector<std::thread> all;
  for (std::size_t process = 0; process < 3; ++process)
    all.emplace_back([&, process] {
      watched_bootstrap mine = limited(std::move(between[process]));
      pipeline_settings settings{.schedule = "1f1b", .ranks = 3, .microbatches = 3};
      settings.make_transport = [] { return std::make_unique<no_transport>(); };
      settings.between = &mine;
      const pipeline made(tiny(6, true), text(), settings, learning());
      for (int times = 0; times < 2; ++times)
        CHECK((made.collected("parts", parts[process]) ==
               (process == 0 ? parts : std::vector<std::string>())));
      CHECK(made.collected("nothing", "").size() == (process == 0 ? 3 : 0));
    });
  for (std::thread& each : all) each.join();
}
