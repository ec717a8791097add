// A search that ran before the build, its order frozen in a header and proven by the compiler.
// g++ -std=c++20 -Iinclude examples/09_freeze_a_search.cpp -o freeze_a_search
//
// The header is what this prints; compilers then check the order instead of finding it again:
//   stretto schedule zb_auto --ranks 4 --microbatches 12 --cost 5,6,3,1 --limit 5 --emit header
#include <array>
#include <iostream>

#include "09_frozen_order.hpp"
#include "stretto/stretto.hpp"

// The costs and the limit of memory that it was made for stand in the header, too, and are a
// promise: with room for four activations the same table does not compile.
using frozen_order = frozen_zb_auto_4x12;

template <class Schedule>
using step =
    stretto::pipeline<frozen_order::made_for, Schedule, stretto::assignment::unassigned,
                      frozen_order::memory>;
using searched = step<stretto::schedule::frozen<frozen_order>>;
static_assert(stretto::valid<searched>);

template <class Step>
void tell(std::string_view name) {
  std::array<stretto::rank_report, Step::sizes.ranks> ranks;
  const stretto::report all = stretto::measure(Step::compute(), ranks);
  std::cout << name << ": makespan " << all.makespan << ", peak " << ranks[0].peak << '\n';
}

int main() {
  tell<step<stretto::schedule::one_f_one_b>>("1f1b");
  tell<searched>("frozen zb_auto");
}
