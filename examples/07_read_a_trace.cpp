// Runs a few steps with times taken, writes them for Perfetto (https://ui.perfetto.dev) or
// chrome://tracing, and reads them: busy time of every stream, and every order the plan demands.
// g++ -std=c++20 -I{,executor/}include examples/07_read_a_trace.cpp executor/src/*.cpp -pthread
#include <chrono>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <thread>
#include <vector>

#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/stretto.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 4, .microbatches = 8},
                               stretto::schedule::one_f_one_b>;
namespace executor = stretto::executor;

int main(int count, char** words) {
  const auto wait = [](int milliseconds) {
    return [milliseconds](const executor::context&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    };
  };
  executor::callback_stage callbacks(
      {.forward = wait(1), .backward = wait(2), .optimizer = wait(0)});
  const std::vector<executor::stage*> stages(4, &callbacks);
  executor::options options;
  options.trace_steps = 2;  // of the three steps, keep the last two
  executor::engine engine(step::plans(), stages, std::move(options));
  for (int turn = 0; turn < 3; ++turn) engine.step();

  const std::vector<executor::trace_record> records = engine.trace();
  const char* path = count > 1 ? words[1] : "trace.json";
  std::ofstream file(path);
  executor::write_chrome_trace(file, step::plans(), records);
  std::cout << records.size() << " records in " << path << '\n';

  std::vector<std::vector<std::int64_t>> busy(4, std::vector<std::int64_t>(8));
  for (const executor::trace_record& one : records) {
    const auto rank = static_cast<std::size_t>(one.rank);
    const auto& what = step::plans()[rank].instructions[static_cast<std::size_t>(one.instruction)];
    busy[rank][what.stream] += one.end - one.start;
  }
  for (const stretto::plan_view& plan : step::plans()) {
    std::cout << "rank " << plan.rank << ", milliseconds a step:" << std::fixed;
    for (std::size_t stream = 0; stream < plan.streams.size(); ++stream)
      std::cout << ' ' << plan.streams[stream].name << ' ' << std::setprecision(1)
                << static_cast<double>(busy[static_cast<std::size_t>(plan.rank)][stream]) / 2e6;
    std::cout << '\n';
  }
  const auto broken = executor::check_against(step::plans(), records);
  std::cout << (broken ? broken->text : "every order of the plans was kept") << '\n';
  return broken || !file ? 1 : 0;
}
