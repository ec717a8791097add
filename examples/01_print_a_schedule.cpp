// Interleaved 1F1B on four ranks: computed and proven by the compiler, printed job by job.
// g++ -std=c++20 -Iinclude examples/01_print_a_schedule.cpp -o print_a_schedule
#include <iostream>

#include "stretto/stretto.hpp"

using step = stretto::pipeline<  //
    stretto::shape{.ranks = 4, .microbatches = 8, .chunks = 2},
    stretto::schedule::interleaved,                // what runs when
    stretto::assignment::round_robin<9, 8, 8, 7>,  // layers per rank, dealt to its chunks in turn
    stretto::memory::release_early,                // what is kept, and until when
    stretto::overlap::separate>;                   // which stream, which events
static_assert(stretto::valid<step>);  // or the build stops and names rank, job and rule

int main() {
  for (int rank = 0; rank < step::sizes.ranks; ++rank) {
    std::cout << "rank " << rank << ':';
    for (const stretto::job& work : step::jobs().row(rank))
      std::cout << ' ' << stretto::to_text(work).view();  // stage, kind, micro-batch
    std::cout << '\n';
  }
}
