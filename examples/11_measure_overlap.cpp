// How much of a communication hides behind a computation: two kernels of one's own, on two streams.
// g++ -std=c++20 -I{,executor/}include examples/11_measure_overlap.cpp executor/src/*.cpp -pthread
#include <chrono>
#include <iostream>
#include <thread>

#include "stretto/executor/overlap_meter.hpp"

int main() {
  namespace executor = stretto::executor;
  const auto compute = [](const executor::kernel_call& at) {  // a product, in pieces
    std::this_thread::sleep_for(std::chrono::milliseconds(8) / at.pieces);
  };
  const auto communicate = [](const executor::kernel_call&) {  // an all-reduce
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  };
  const executor::overlap_times times =
      executor::measure_overlap({compute, communicate}, {.pieces = 2, .rounds = 5});
  std::cout << "compute " << times.compute / 1e6 << " ms, communicate " << times.communicate / 1e6
            << " ms, both " << times.both / 1e6 << " ms: hidden " << 100 * times.hidden()
            << " % of at most " << 100 * times.ceiling() << " %\n";
}
