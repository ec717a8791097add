// What `static_assert(stretto::valid<...>)` proves, and what the compiler says when it cannot.
// g++ -std=c++20 -Iinclude examples/02_prove_a_schedule.cpp -o prove_a_schedule
//
// With -DTOO_MUCH_MEMORY it does not compile; the error says what, why and where:
//   stretto::accepted<stretto::fault::over_limit, stretto::reason::above_limit, 0, 4,
//   stretto::job_kind::forward, 0, 4>
//   static assertion failed: stretto: over_limit: the rank needs more memory than its limit
//   stretto::within_limit<0, 5, 4>
//   static assertion failed: stretto: over_limit: within_limit<rank, needed, limit> says how much
// that is: rank 0, step 4 of its list, the forward of stage 0 and micro-batch 4; 5 needed, 4 there.
#include <iostream>

#include "stretto/stretto.hpp"

// Every rank holds what four forwards save; a forward takes one unit, its backward gives it back.
struct four_forwards : stretto::memory::release_early {
  constexpr std::int64_t limit() const { return 4; }
};

template <class Schedule>
using step = stretto::pipeline<stretto::shape{.ranks = 4, .microbatches = 8}, Schedule,
                               stretto::assignment::unassigned, four_forwards>;

// Every rule holds: every job is there, in order; no rank waits forever; sends and receives meet;
// memory stays within its limit; no two streams touch a buffer unordered; no event is there in
// vain; and what README.md lists beside these.
static_assert(stretto::valid<step<stretto::schedule::one_f_one_b>>);

// Fill and drain saves all eight micro-batches before the first backward.
#ifdef TOO_MUCH_MEMORY
static_assert(stretto::valid<step<stretto::schedule::gpipe>>);
#endif

template <class Schedule>
void tell() {
  // The same verdict as a value: for a program that would rather ask than not compile.
  constexpr stretto::verdict found = step<Schedule>::checked;
  std::cout << Schedule::name << ": " << stretto::to_text(found).view() << '\n';
}

int main() {
  tell<stretto::schedule::one_f_one_b>();
  tell<stretto::schedule::gpipe>();
}
