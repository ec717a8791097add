// A product does not wait for the sum issued ahead of it to be there, and may take its place.
// expected: stretto: not_resident: it may begin before communication issued ahead of it
// expected: <stretto::fault::not_resident, stretto::reason::starts_unordered, 0, 17, stretto::job_kind::backward, 0, 0>
#include "stretto/plan/accepted.hpp"
#include "stretto/plan/with_ops.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"
#include "support/two_products.hpp"

using step = stretto::with_ops<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                                                 stretto::schedule::one_f_one_b>,
                               support::two_products<support::op_order::look_ahead, 8>>;
// Of the first backward on rank 0, entries 13 to 19, the sum is entry 16, and 17 computes behind it.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)buffers;
    list[17].wait_count = 0;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
