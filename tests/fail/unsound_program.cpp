// Nothing that the forward computes needs the sum, so that the job could end before it.
// expected: stretto: unsound_program: an op of this job uses what is not there, or is not tied to its job
// expected: <stretto::fault::unsound_program, stretto::reason::needed_by_nothing, 0, 2, stretto::job_kind::forward, 0, 0>
#include <array>
#include <vector>

#include "stretto/lowering/streams/input_gradient_first.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/plan/with_ops.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/two_products.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
struct product_and_sum : support::two_products<support::op_order::program> {
  constexpr stretto::program_chain programs(int) const {
    stretto::program_chain chain;
    const auto x = chain.buffer("x", 64);
    const auto y = chain.buffer("y", 64);
    const stretto::op_form sum{.stream = support::tensor_parallel, .collective = true};
    chain.begin(stretto::job_kind::forward, 0);
    chain.add("receive", {stretto::writes(x)});
    chain.add("product", {stretto::reads(x), stretto::writes(y)});
    chain.add("sum", {stretto::reads(y), stretto::writes(y)}, sum);
    return chain;
  }
};
static_assert(stretto::valid<stretto::with_ops<step, product_and_sum>>);
